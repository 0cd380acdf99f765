#!/usr/bin/env bash
# Builds the Java artefacts: tools/package/junit/build.sh TREE DIST. TREE is a relocatable folder with bin/ and lib/; DIST/maven becomes a
# Maven repository with them.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(realpath "$1")
mkdir -p "$2/maven"
dist=$(realpath "$2/maven")

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -r "$here"/{pom.xml,native,junit5,testcontainers} "$stage"
version=$("$tree/bin/tallyd" --version | cut -d ' ' -f 2)
sed -i "s/0-SNAPSHOT/$version/" "$stage"/pom.xml "$stage"/*/pom.xml
files=$stage/native/files/META-INF/tally/linux-x86_64
mkdir -p "$files"
cp -rL "$tree/." "$files"
(cd "$files" && find . -type f -printf '%P\n' | sort >"$stage/list" && mv "$stage/list" files)
cd "$stage"
mvn -B -q deploy -Dmaven.install.skip=true -DaltDeploymentRepository="dist::file:$dist"
