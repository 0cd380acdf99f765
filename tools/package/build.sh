#!/usr/bin/env bash
# Builds what a release consists of, into dist/:
#   tools/package/build.sh [--preset PRESET] [--dist DIR] KIND...
#   tree      tally-VERSION-linux-ARCH/: the programs with all libraries but those of glibc, and their licences; it runs from any folder
#   tarball   the same as .tar.gz, equal byte for byte if it is built again
#   deb       the Debian package, for the Debian that it is built on
#   wheel, npm, junit   the packages for Python, Node and Java with the tree inside
#   all       each of these, and SHA256SUMS
# PRESET: release-source by default, with a RocksDB of its own, which takes twenty minutes to build once.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
preset=release-source dist=$root/dist kinds=()

usage() {
    sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

# Which package of Debian a file belongs to.
package_of() { dpkg-query -S "$1" 2>/dev/null || dpkg-query -S "${1#/usr}"; }

tree() {
    local name path package licences=$tree/share/doc/tally/licences
    command -v patchelf >/dev/null || "$root/tools/setup.sh" packages release-package
    rm -rf "$tree"
    cmake --install "$build" --prefix "$tree" --strip >/dev/null
    rm -r "$tree/lib"
    mkdir -p "$tree/lib" "$licences"
    while read -r name path; do
        case $name in
            ld-linux* | libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.* | libutil.so.*) continue ;; # glibc's
        esac
        cp -L "$path" "$tree/lib/$name"
        patchelf --set-rpath "\$ORIGIN" "$tree/lib/$name"
        package=$(package_of "$(realpath "$path")")
        package=${package%%:*}
        cp "/usr/share/doc/$package/copyright" "$licences/$package"
    done < <(ldd "$tree"/bin/* | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u)
    patchelf --set-rpath "\$ORIGIN/../lib" "$tree"/bin/*
}

tarball() {
    local time=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
    tar -C "$dist" --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w --mtime="@$time" -c "$(basename "$tree")" |
        gzip -n >"$tree.tar.gz"
}

while [ $# -gt 0 ]; do
    case $1 in
        --preset | --dist)
            [ $# -ge 2 ] || usage
            printf -v "${1#--}" %s "$2"
            shift
            ;;
        tree | tarball | deb | wheel | npm | junit) kinds+=("$1") ;;
        all) kinds+=(tarball deb wheel npm junit) ;;
        *) usage ;;
    esac
    shift
done
[ ${#kinds[@]} -gt 0 ] || usage
build=$root/build/$preset
"$root/tools/setup.sh" build "$preset" tallyd tally
tree=$dist/tally-$("$build/bin/tallyd" --version | cut -d ' ' -f 2)-linux-$(uname -m)
mkdir -p "$dist"
dist=$(realpath "$dist") tree=$(realpath -m "$tree")
[ "${kinds[*]}" = deb ] || tree
for kind in "${kinds[@]}"; do
    case $kind in
        tree) ;;
        tarball) tarball ;;
        deb) cpack --config "$build/CPackConfig.cmake" -B "$dist" >/dev/null && rm -r "$dist/_CPack_Packages" ;;
        *) "$here/$kind/build.sh" "$tree" "$dist" ;;
    esac
done
(cd "$dist" && find . -type f ! -path './tally-*-linux-*/*' ! -name SHA256SUMS -printf '%P\n' | sort | xargs -r sha256sum >SHA256SUMS)
[ ! -d "$tree" ] || echo "the programs need glibc $("$here/glibc.sh" "$tree") or later"
