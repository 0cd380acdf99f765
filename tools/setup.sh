#!/usr/bin/env bash
# Installs the Debian packages that Tally builds with, when they are missing, and configures and builds presets.
#   tools/setup.sh packages [PRESET...]   only the packages, with those that some presets need in addition; release-package: those of
#                                         tools/package/build.sh
#   tools/setup.sh build PRESET [TARGET...]   packages, then configure and build a preset (release, release-test, release-source, debug,
#                                         asan, tsan, fuzz): everything, or only the targets
#   tools/setup.sh python NAME FILE       makes build/NAME, a Python environment with the packages that the requirements file pins
# Sourced by run.sh. Safe to repeat: what is there is left alone.
set -euo pipefail
tally_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

tally_packages=(
    gcc libc6-dev cmake ninja-build pkg-config lemon
    librocksdb-dev libev-dev libssl-dev liblz4-dev libsnappy-dev zlib1g-dev
    libcrypt-dev libyaml-dev libmicrohttpd-dev libgnutls28-dev libyajl-dev libcbor-dev libgmp-dev libedit-dev
    libcmocka-dev
    python3 python3-venv openssl ca-certificates dpkg-dev file
    tzdata # read at run time (types/zone.c)
)
fuzz_packages=(clang libclang-rt-14-dev)
source_packages=(g++) # for RocksDB
package_packages=(patchelf binutils)

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }

# install_packages [MORE...]: the packages above and those named.
install_packages() {
    local missing=() p as_root=()
    for p in "${tally_packages[@]}" "$@"; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    say "installing ${#missing[@]} Debian packages: ${missing[*]}"
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# install_packages_of PRESET...: what those need.
install_packages_of() {
    local more=()
    case " $* " in *" fuzz "*) more+=("${fuzz_packages[@]}") ;; esac
    case " $* " in *" release-source "*) more+=("${source_packages[@]}") ;; esac
    case " $* " in *" release-package "*) more+=("${package_packages[@]}") ;; esac
    install_packages "${more[@]}"
}

# build_preset PRESET [TARGET...]: configures and builds; progress on a terminal, the log only when something fails.
build_preset() {
    local preset=$1 launcher=() targets=() log=$tally_root/build/$1.log
    shift
    [ $# -gt 0 ] && targets=(--target "$@")
    command -v ccache >/dev/null && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
    say "building the $preset preset into build/$preset"
    mkdir -p "$tally_root/build"
    (cd "$tally_root" && cmake --preset "$preset" "${launcher[@]}") >"$log" 2>&1 || { tail -30 "$log"; return 1; }
    if [ -t 1 ]; then
        (cd "$tally_root" && cmake --build --preset "$preset" "${targets[@]}") 2>&1 | tee "$log" |
            awk '/^\[[0-9]+\/[0-9]+\]/ { printf "\r    %s ", $1; fflush() } END { print "" }' || { cat "$log"; return 1; }
    else
        (cd "$tally_root" && cmake --build --preset "$preset" "${targets[@]}") >"$log" 2>&1 || { cat "$log"; return 1; }
    fi
}

# A Python environment in build/NAME with what a requirements file pins; made again when the file changes. Modules are compiled when they
# are first imported, for most never are.
python_env() {
    local dir=$tally_root/build/$1 requirements=$2
    mkdir -p "$tally_root/build"
    (
        flock 9 # of two that need it at once
        cmp -s "$requirements" "$dir/requirements.txt" && exit
        say "making the Python environment build/$1"
        rm -rf "$dir"
        python3 -m venv "$dir" &&
            "$dir/bin/pip" install --quiet --no-compile --disable-pip-version-check -r "$requirements" &&
            cp "$requirements" "$dir/requirements.txt"
    ) 9>"$dir.lock"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    case ${1:-} in
        packages) install_packages_of "${@:2}" ;;
        build)
            install_packages_of "$2"
            build_preset "${@:2}"
            ;;
        python) python_env "$2" "$3" ;;
        *)
            sed -n '2,6p' "$0"
            exit 2
            ;;
    esac
fi
