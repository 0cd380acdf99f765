#!/usr/bin/env python3
"""Walks the #include lines of every source file and proves that the arrows between folders go one way.

Also: one CMake library per folder of the table, no umbrella headers' names, and no path of one machine in the tree.
Prints each breach, and "N passed, N failed" (files).
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# A folder may include itself and what stands here (house style: folders and arrows).
ALLOWED = {
    "base": set(),
    "engine": {"base"},
    "cql/types": {"base"},
    "system_schema": {"base", "engine", "cql/types"},
    "cql": {"base", "engine", "cql/types", "system_schema"},
    "metering": {"base", "cql/types"},
    "native_protocol": {"base", "engine", "cql/types", "system_schema", "cql", "metering"},
    "server": {"base", "engine", "cql/types", "system_schema", "cql", "metering", "native_protocol"},
}
ENGINE_ONLY = re.compile(r"rocksdb/c\.h")
BAD_NAMES = {"util.c", "util.h", "common.h", "common.c", "misc.c", "misc.h"}
SUFFIXES = (".c", ".h", ".y", ".def", ".py", ".sh", ".txt", ".md", ".cmake", ".js", ".go", ".rs", ".java")
SKIPPED = {".git", "build", "data", "tally-data", "node_modules", "target", "__pycache__", ".venv", ".cache"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
MACHINE_PATH = re.compile(r"(^|[^A-Za-z0-9_.])/(work|farm|home/[a-z]+|root)/")


def folder_of(path):
    parts = path.split("/")
    if parts[:2] == ["cql", "types"]:
        return "cql/types"
    return parts[0] if parts[0] in ALLOWED else None


def check(path):
    """Yields what is wrong with one file."""
    folder = folder_of(path)
    name = os.path.basename(path)
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as f:
        lines = f.read().split("\n")
    for number, line in enumerate(lines, 1):
        if MACHINE_PATH.search(line) and path != "tests/layer/check_layers.py":
            yield f"{path}:{number}: names a path of one machine"
        m = INCLUDE.match(line)
        if not m or folder is None:
            continue
        quote, target = m.groups()
        if ENGINE_ONLY.search(target) and folder != "engine":
            yield f"{path}:{number}: only engine/ may include {target}"
        if quote != '"':
            continue
        to = folder_of(target)
        if to is None and "/" in target:
            yield f"{path}:{number}: {target} is in no folder of the table"
        if to is not None and to != folder and to not in ALLOWED[folder]:
            yield f"{path}:{number}: {folder} may not include {target}"
    if folder is not None and name in BAD_NAMES:
        yield f"{path}: a file is one noun, not {name}"


def sources():
    """Files of the tree that people write, without what builds leave beside them."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if f not in SKIPPED)
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def main():
    passed = failed = 0
    for path in sources():
        breaches = list(check(path))
        for b in breaches:
            print(b)
        failed += bool(breaches)
        passed += not breaches
    for folder in ALLOWED:
        ok = os.path.exists(os.path.join(ROOT, folder, "CMakeLists.txt"))
        if not ok:
            print(f"{folder}: no CMakeLists.txt")
        passed += ok
        failed += not ok
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
