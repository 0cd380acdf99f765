#!/usr/bin/env python3
"""Walks the #include lines of every source file and proves that the arrows between rooms go one way.

Also: one CMake library per room of the table, no umbrella headers' names, and no path of one machine in the tree.
Prints each breach, and "N passed, N failed" (files).
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# The rooms from the ground up: a room may include itself and those named here. No room is named before it stands, so there is no circle.
ALLOWED = {}


def room(name, *below):
    """A room, the rooms it may include, and (with +) all that those may include."""
    allowed = set()
    for b in below:
        deep, b = b.startswith("+"), b.lstrip("+")
        allowed |= {b} | (ALLOWED[b] if deep else set())
    assert allowed <= set(ALLOWED), name
    ALLOWED[name] = allowed


room("base")
room("types", "base")
room("metering/size", "+types")
room("engine", "base", "metering/size")
room("system_schema", "+engine", "types")
room("cql/syntax", "base", "types")
room("cql/row", "+system_schema")
room("cql/request", "+system_schema", "cql/syntax")
room("cql/expr", "+cql/request", "cql/row")
room("cql/where", "+cql/expr")
room("cql/read", "+cql/where")
room("cql/write", "+cql/where")
room("cql/schema", "+cql/expr")
room("cql", "+cql/read", "+cql/write", "cql/schema")
room("metering", "+metering/size")
# The door of cql, and the shape of a request behind it; not its other rooms.
room("native_protocol", "+system_schema", "cql", "cql/request", "metering")
room("server", "+native_protocol")
ENGINE_ONLY = re.compile(r"rocksdb/c\.h")
BAD_NAMES = {"util.c", "util.h", "common.h", "common.c", "misc.c", "misc.h"}
SUFFIXES = (".c", ".h", ".y", ".def", ".py", ".sh", ".txt", ".md", ".cmake", ".js", ".go", ".rs", ".java")
SKIPPED = {".git", "build", "data", "tally-data", "node_modules", "target", "__pycache__", ".venv", ".cache"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
MACHINE_PATH = re.compile(r"(^|[^A-Za-z0-9_.])/(work|farm|home/[a-z]+|root)/")


def room_of(path):
    """The innermost room that a path stands in; None: outside of the table."""
    folder = os.path.dirname(path)
    while folder and folder not in ALLOWED:
        folder = os.path.dirname(folder)
    return folder or None


def check(path):
    """Yields what is wrong with one file."""
    folder = room_of(path)
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
        to = room_of(target)
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
