#!/usr/bin/env bash
# Builds the npm package: tools/package/npm/build.sh TREE DIST. TREE is a relocatable folder with bin/ and lib/; DIST gets the .tgz.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
tree=$(realpath "$1")
mkdir -p "$2"
dist=$(realpath "$2")

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp "$here"/{package.json,README.md,*.js,*.mjs,*.d.ts,*.d.mts} "$root/LICENSE" "$root/NOTICE" "$stage"
cp -rL "$tree" "$stage/tree" # npm leaves symbolic links out
version=$("$tree/bin/tallyd" --version | cut -d ' ' -f 2)
cd "$stage"
npm pkg set version="$version"
npm pack --silent --pack-destination "$dist" >/dev/null
