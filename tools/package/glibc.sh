#!/usr/bin/env bash
# Prints the oldest version of glibc on which the programs and libraries of a tree run: tools/package/glibc.sh TREE
set -euo pipefail
find "$1" -type f \( -path '*/bin/*' -o -path '*/lib/*' \) -exec objdump -T {} + | grep -oE 'GLIBC_[0-9]+\.[0-9]+' | sort -uV | tail -1 | cut -d _ -f 2
