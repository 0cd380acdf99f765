#!/usr/bin/env python3
"""Walks the #include lines of every source file and proves that the arrows between rooms go one way, and those between the files of a room, too.

Also: one CMake library and, at the top, one README per room of the table, no umbrella headers' names, and no path of one machine in the tree.
Prints each breach, and "N passed, N failed" (files).
"""
import functools
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
room("metering/capture", "base")
room("server/http", "base")
room("keyspaces", "base")
room("types", "base")
room("metering/size", "+types")
# engine/ is the door: what others may include. Who implements it is behind it; a store's rooms know nothing of one another.
room("engine", "base", "types", "metering/size")
room("engine/rows", "+engine")
room("engine/front", "+engine/rows")
room("engine/local/rocksdb", "+engine/rows")
room("engine/memory", "+engine/local/rocksdb")
room("engine/rados", "+engine/rows")
room("engine/local", "+engine/front", "engine/local/rocksdb")
room("engine/open", "+engine/local", "engine/memory", "engine/rados")
room("settings", "base", "types", "keyspaces")
room("membership", "+engine")
room("system_schema/objects", "+engine", "types", "keyspaces", "settings")
room("system_schema/recovery", "+system_schema/objects")
room("system_schema/ddl", "+system_schema/recovery", "membership")
room("system_schema/system_tables", "+system_schema/ddl")
room("system_schema", "+system_schema/system_tables")
room("access", "+system_schema")
room("metering", "+metering/size")
room("cql/syntax", "base", "keyspaces", "types")
room("cql/row", "+system_schema")
room("cql/request", "+system_schema", "cql/syntax")
room("cql/compat", "+cql/request")
room("cql/expr", "+cql/request", "cql/row")
room("cql/where", "+cql/expr")
room("cql/read", "+cql/where")
room("cql/write", "+cql/where")
room("cql/schema", "+cql/expr")
room("cql/roles", "+cql/expr", "access")
room("cql", "+cql/read", "+cql/write", "+cql/roles", "cql/schema", "cql/compat", "metering")
room("metering/ledger", "+metering")
room("metering/limits", "+metering")
# The door of cql, and the shape of a request behind it; not its other rooms.
room("native_protocol/faults", "+cql/request", "cql")
# cql/syntax: the rows of stmt.def say how the audit log and the ledger class a statement.
room("native_protocol", "metering/capture", "+system_schema", "access", "cql", "cql/request", "cql/syntax", "native_protocol/faults", "metering/ledger", "metering/limits", "metering")
room("control_plane", "+system_schema", "access", "cql", "cql/request", "cql/syntax", "metering", "server/http")
room("server/page", "+native_protocol", "server/http")
room("server", "+native_protocol", "keyspaces", "metering/capture", "server/http", "server/page", "control_plane")
room("tools/page", "base")
room("tools/client", "base", "types", "access", "native_protocol")
# What a statement comes to offline is what the server makes of it: its limits, too, are asked as the server asks them.
room("tools/tally", "tools/client", "tools/page", "metering/capture", "+system_schema", "cql", "cql/compat", "cql/request", "cql/syntax", "metering", "metering/limits", "native_protocol", "server",
     "access", "metering/ledger", "membership")
room("tools/tally/capacity", "+tools/tally", "metering/limits")
room("tools/tally/cql", "+tools/tally")
room("tools/tally/stress", "+tools/tally", "metering/limits")

ROCKSDB_ONLY = re.compile(r"rocksdb/c\.h")
# A wait until a moment of the wall clock hangs when the clock steps back: base/clock.h has the waits that do not.
TIMED_WAIT = re.compile(r"\b(pthread_(cond|mutex|rwlock)_(timed|clock)(wait|lock|rdlock|wrlock)|sem_(timed|clock)wait|timerfd_create\(CLOCK_REALTIME)")
TIMED_WAIT_IN = {"base/clock.c", "tests/fault/stepped_clock.c", "tests/layer/check_layers.py"}
BAD_NAMES = {"util.c", "util.h", "common.h", "common.c", "misc.c", "misc.h"}
SUFFIXES = (".c", ".h", ".y", ".def", ".py", ".sh", ".txt", ".md", ".cmake", ".js", ".go", ".rs", ".java")
SKIPPED = {".git", "build", "data", "tally-data", "node_modules", "target", "__pycache__", ".venv", ".cache"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# A header whose first comment has this sentence is included by files of that folder and of the folders in it, and by tests.
INSIDE = re.compile(r"\bInside ([a-z_/0-9]+) only\.")
MACHINE_PATH = re.compile(r"(^|[^A-Za-z0-9_.])/(work|farm|home/[a-z]+|root)/")


def room_of(path):
    """The innermost room that a path stands in; None: outside of the table."""
    folder = os.path.dirname(path)
    while folder and folder not in ALLOWED:
        folder = os.path.dirname(folder)
    return folder or None


@functools.lru_cache(maxsize=None)
def inside(header):
    """The folder whose files alone may include the header; None: no such folder is named."""
    path = os.path.join(ROOT, header)
    if not header.endswith(".h") or not os.path.exists(path):
        return None
    with open(path, encoding="utf-8", errors="replace") as f:
        comment = f.read().partition("*/")[0]
    m = INSIDE.search(re.sub(r"\s*\n \* ", " ", comment))
    if m and not os.path.isdir(os.path.join(ROOT, m.group(1))):
        raise SystemExit(f"{header}: no folder {m.group(1)}")
    return m.group(1) if m else None


def check(path):
    """Yields what is wrong with one file."""
    folder = room_of(path)
    name = os.path.basename(path)
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as f:
        lines = f.read().split("\n")
    for number, line in enumerate(lines, 1):
        if MACHINE_PATH.search(line) and path != "tests/layer/check_layers.py":
            yield f"{path}:{number}: names a path of one machine"
        if TIMED_WAIT.search(line) and path not in TIMED_WAIT_IN:
            yield f"{path}:{number}: waits with a time-out are those of base/clock.h, which do not follow the wall clock"
        m = INCLUDE.match(line)
        if not m or folder is None:
            continue
        quote, target = m.groups()
        if ROCKSDB_ONLY.search(target) and folder != "engine/local/rocksdb":
            yield f"{path}:{number}: only engine/local/rocksdb may include {target}"
        if quote != '"':
            continue
        to = room_of(target)
        owner = inside(target)
        if owner and not path.startswith((owner + "/", "tests/")):
            yield f"{path}:{number}: {target} is for {owner} alone"
        if to is None and "/" in target:
            yield f"{path}:{number}: {target} is in no folder of the table"
        if to is not None and to != folder and to not in ALLOWED[folder]:
            yield f"{path}:{number}: {folder} may not include {target}"
    if folder is not None and name in BAD_NAMES:
        yield f"{path}: a file is one noun, not {name}"


LINE_MAX = 120
TABS = (".c", ".h", ".y", ".def", ".py", ".sh")


def check_text(path):
    """What .editorconfig asks of a file that people write."""
    with open(os.path.join(ROOT, path), "rb") as f:
        content = f.read()
    if path.startswith("tests/") and path.endswith(".txt"):
        return  # recorded words
    if b"\r" in content:
        yield f"{path}: lines end with LF"
    if content and not content.endswith(b"\n"):
        yield f"{path}: the last line has an end"
    if path.endswith(TABS) and b"\t" in content:
        yield f"{path}: no tabs"
    for number, line in enumerate(content.split(b"\n"), 1):
        if line != line.rstrip():
            yield f"{path}:{number}: blanks at the end"
        if path.endswith((".c", ".h")) and len(line.decode(errors="replace")) > LINE_MAX:
            yield f"{path}:{number}: longer than {LINE_MAX} columns"
        if path.startswith("tests/integration/") and re.search(rb"monotonic\(\) \+ \d", line):
            yield f"{path}:{number}: a deadline of so many seconds depends on the machine; HANG is the one for what never comes"
        if path.startswith("tests/integration/") and path.endswith(".py") and b"time.sleep(" in line and not path.endswith("/tally_server.py"):
            yield f"{path}:{number}: wait for a condition (eventually); let_pass is for tests of what the passing of time does"


def sources():
    """Files of the tree that people write, without what builds leave beside them."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if f not in SKIPPED)
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def module(path):
    """A header and its source are one; a table or a grammar stands for itself."""
    stem, suffix = os.path.splitext(path)
    return stem if suffix in (".c", ".h") else path


def arrows_inside_rooms():
    """Module -> the modules of its own room that it includes."""
    arrows = {}
    for path in sources():
        folder, a = room_of(path), module(path)
        if folder is None:
            continue
        with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as f:
            targets = [m.group(2) for m in map(INCLUDE.match, f) if m and m.group(1) == '"']
        to = {module(t) for t in targets if room_of(t) == folder}
        arrows.setdefault(a, set()).update(b for b in to if b != a)
    return arrows


def rings(arrows):
    """Yields each way round that a walk along the arrows comes back on, once for the arrow that closes it."""
    done, way = set(), []

    def walk(a):
        way.append(a)
        for b in sorted(arrows.get(a, ())):
            if b in way:
                yield way[way.index(b) :] + [b]
            elif b not in done:
                yield from walk(b)
        done.add(way.pop())

    for a in sorted(arrows):
        if a not in done:
            yield from walk(a)


def check_readme(folder):
    """A room at the top has a README that says what it may include, as the table does."""
    path = os.path.join(ROOT, folder, "README.md")
    if not os.path.exists(path):
        yield f"{folder}: no README.md"
        return
    others = sorted(r for r in ALLOWED[folder] if not r.startswith(folder + "/"))
    due = ", ".join(f"`{r}`" for r in others) or "nothing else of the tree"
    with open(path, encoding="utf-8") as f:
        if f"It may include: {due}." not in f.read():
            yield f"{folder}/README.md does not say: It may include: {due}."


def main():
    passed = failed = 0
    for ring in rings(arrows_inside_rooms()):
        print("a ring inside a room: " + " -> ".join(ring))
        failed += 1
    for path in sources():
        breaches = list(check(path)) + list(check_text(path))
        for b in breaches:
            print(b)
        failed += bool(breaches)
        passed += not breaches
    for folder in ALLOWED:
        for b in check_readme(folder) if "/" not in folder else ():
            print(b)
            failed += 1
        ok = os.path.exists(os.path.join(ROOT, folder, "CMakeLists.txt"))
        if not ok:
            print(f"{folder}: no CMakeLists.txt")
        passed += ok
        failed += not ok
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
