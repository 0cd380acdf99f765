#!/usr/bin/env bash
# Builds the Python wheel: tools/package/wheel/build.sh TREE DIST. TREE is a relocatable folder with bin/ and lib/; DIST gets the wheel.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
tree=$(realpath "$1")
mkdir -p "$2"
dist=$(realpath "$2")

"$root/tools/setup.sh" python venv-wheel "$here/requirements.txt"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -r "$here"/{pyproject.toml,setup.py,README.md,src} "$root/LICENSE" "$root/NOTICE" "$stage"
cp -rL "$tree" "$stage/src/tally_keyspaces/tree" # a wheel holds no symbolic links
export TALLY_VERSION=$("$tree/bin/tallyd" --version | cut -d ' ' -f 2) TALLY_ARCH=$(uname -m) TALLY_GLIBC=$("$here/../glibc.sh" "$tree")
"$root/build/venv-wheel/bin/pip" wheel --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation --wheel-dir "$dist" "$stage"
