#!/usr/bin/env python3
"""Lists the numbered invariants of the sources and fails on one that nothing guards.

A comment states an invariant once: "Invariant 7: ..." or, at the start of a line, "A1. ...", "A1: ..." or "A1  ...". Names are
unique in the tree. Guards are an assert whose comment names the invariant ("invariant 7", "A1"), and a mutant of invariants.json:
a small change to one file that breaks the invariant, and the unit test that then fails.

  invariants.py             checks the list; that each mutant's text is in its file once, and that its test exists
  invariants.py --list      prints each invariant with its guards, too
  invariants.py --mutants [NAME...]   compiles each mutant with a unit test of build/asan (or --build DIR) and runs the test, which must fail

Prints each fault, and "N passed, N failed" (invariants, or mutants).
"""
import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MUTANTS = os.path.join(ROOT, "tests/layer/invariants.json")
SKIPPED = {"build", "tests", ".git"}
HANG = 600  # seconds after which a test program is said to hang
STATED = re.compile(r"^\s*(?:/?\*)\s*(?:Invariant (\d+):|([A-Z]\d{1,2})(?:[.:]| {2,})\s*\S)")
ASSERT = re.compile(r"\b(?:_Static_)?assert\(.*/\*(.*)\*/")
NUMBERS = re.compile(r"\binvariants? ((?:\d+(?: \([a-z]\))?(?:, | and )?)+)", re.I)
LETTERS = re.compile(r"\b[A-Z]\d{1,2}\b")


class Invariant:
    def __init__(self, name, place):
        self.name, self.place, self.asserts, self.mutants = name, place, [], []


def sources():
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if f not in SKIPPED or folder != ROOT)
        for f in sorted(files):
            if f.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(folder, f), ROOT)


def names_in(comment):
    names = {n for m in NUMBERS.finditer(comment) for n in re.findall(r"\d+", m.group(1))}
    return names | set(LETTERS.findall(comment))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def collect(faults):
    """name -> Invariant, with the asserts that name it."""
    found, asserts = {}, []
    for path in sources():
        for number, line in enumerate(read(path).split("\n"), 1):
            place, stated, asserted = f"{path}:{number}", STATED.match(line), ASSERT.search(line)
            if stated:
                name = stated.group(1) or stated.group(2)
                if name in found:
                    faults.append(f"{place}: {name} is stated at {found[name].place}, too: give one of them another name")
                found.setdefault(name, Invariant(name, place))
            elif asserted:
                asserts += [(name, place) for name in names_in(asserted.group(1))]
    for name, place in asserts:
        if name in found:
            found[name].asserts.append(place)
        elif name.isdigit() or any(n[0] == name[0] for n in found):
            faults.append(f"{place}: names {name}, which no comment states")
    return found


def test_file(test):
    """unit_metering_ledger_test_heavy: tests/unit/metering/ledger/test_heavy.c"""
    room, _, name = test.removeprefix("unit_").partition("_test_")
    folders = [os.path.relpath(folder, ROOT) for folder, _, _ in os.walk(os.path.join(ROOT, "tests/unit"))]
    folder = next((f for f in folders if f.removeprefix("tests/unit/").replace("/", "_") == room), f"tests/unit/{room}")
    return f"{folder}/test_{name}.c"


def check_mutant(m, found, faults):
    before = len(faults)
    if m["invariant"] not in found:
        faults.append(f"invariants.json: no comment states {m['invariant']}")
    if not os.path.exists(os.path.join(ROOT, m["file"])) or read(m["file"]).count(m["old"]) != 1:
        faults.append(f"invariants.json: {m['invariant']}: {m['file']} does not have this text once: {m['old']}")
    path = test_file(m["test"])
    if not os.path.exists(os.path.join(ROOT, path)) or f"{m['fails']}(" not in read(path):
        faults.append(f"invariants.json: {m['invariant']}: {path} has no {m['fails']}")
    if len(faults) == before:
        found[m["invariant"]].mutants.append(f"mutant of {m['file']} fails {m['fails']}")


def check(mutants, listed):
    faults = []
    found = collect(faults)
    for m in mutants:
        check_mutant(m, found, faults)
    bare = [i for i in found.values() if not i.asserts and not i.mutants]
    faults += [f"{i.place}: {i.name} has neither an assert that names it nor a mutant in invariants.json" for i in bare]
    if listed:
        for i in sorted(found.values(), key=lambda i: i.place):
            print(f"{i.name:3} {i.place}\n      " + "\n      ".join(i.asserts + i.mutants or ["no guard"]))
    for fault in faults:
        print(fault)
    print(f"{len(found) - len(bare)} passed, {len(faults)} failed")
    return 1 if faults else 0


# ---- mutants ----

def commands(build, target):
    out = subprocess.run(["ninja", "-C", build, "-t", "commands", target], capture_output=True, text=True, check=True)
    return out.stdout.strip().split("\n")


def compile_mutant(m, build, work):
    """The object of the changed file, or the objects of all sources in its folder if it is a header."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        entries = {os.path.relpath(e["file"], ROOT): e for e in json.load(f)}
    text = read(m["file"]).replace(m["old"], m["new"])
    changed = os.path.join(work, m["file"])
    os.makedirs(os.path.dirname(changed))
    with open(changed, "w", encoding="utf-8") as f:
        f.write(f'#line 1 "{os.path.join(ROOT, m["file"])}"\n{text}')
    sources = [m["file"]]
    if m["file"].endswith(".h"):
        sources = [s for s in entries if os.path.dirname(s) == os.path.dirname(m["file"])]
    targets = []
    for source in sources:
        entry = entries[source]
        targets.append(os.path.join(work, f"mutant{len(targets)}.o"))
        command = re.sub(r" -o \S+", f" -o {targets[-1]}", entry["command"]).replace(" -I", f" -I{work} -I", 1).replace(" -Werror ", " ")
        if source == m["file"]:
            command = command.replace(entry["file"], changed)
        subprocess.run(command, shell=True, cwd=entry["directory"], check=True, stderr=subprocess.DEVNULL)
    return " ".join(targets)


def failed_tests(out, returncode):
    """The tests that have failed so far; the one that ran last, if the program crashed."""
    failed = [line.split("] ")[1] for line in out.split("\n") if line.startswith("[  FAILED  ] test_")]
    if (returncode or 0) < 0 or "AddressSanitizer" in out or "Assertion" in out:
        failed += [line.split("] ")[1] for line in out.split("\n") if line.startswith("[ RUN      ] ")][-1:]
    return failed


def run_until_failure(program, test, output):
    """Runs the program until the test has failed, and returns the tests that failed. What a failed test leaves may make later ones hang."""
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
    end = time.monotonic() + HANG
    with open(output, "w", encoding="utf-8") as f:
        run = subprocess.Popen([program], stdout=f, stderr=subprocess.STDOUT, env=env, start_new_session=True)
    while True:
        rc = run.poll()
        with open(output, encoding="utf-8", errors="replace") as f:
            failed = failed_tests(f.read(), rc)
        if rc is not None or test in failed or time.monotonic() > end:
            break
        time.sleep(0.1)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    return failed


def survives(m, build):
    """None, or why the mutant is not killed by its test."""
    target = f"tests/{m['test']}"
    subprocess.run(["ninja", "-C", build, target], check=True, stdout=subprocess.DEVNULL)
    link = commands(build, target)[-1]
    with tempfile.TemporaryDirectory() as work:
        mutant, program = compile_mutant(m, build, work), os.path.join(work, "test")
        link = link.replace(f" -o {target} ", f" -o {program} {mutant} ")  # in front of the archives: they have the original
        subprocess.run(link, shell=True, cwd=build, check=True)
        failed = run_until_failure(program, m["fails"], os.path.join(work, "output"))
    if m["fails"] in failed:
        return None
    return f"{m['fails']} passes with it" + (f" ({', '.join(dict.fromkeys(failed))} fails)" if failed else "")


def kill(mutants, build):
    failed = 0
    for m in mutants:
        why = survives(m, build)
        failed += why is not None
        print(f"{m['invariant']}: {m['file']}: {why or 'killed by ' + m['fails']}", flush=True)
    print(f"{len(mutants) - failed} passed, {failed} failed")
    return 1 if failed or not mutants else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--list", action="store_true")
    p.add_argument("--mutants", nargs="*", metavar="NAME")
    p.add_argument("--build", default=os.path.join(ROOT, "build/asan"))
    args = p.parse_args()
    with open(MUTANTS, encoding="utf-8") as f:
        mutants = json.load(f)
    if args.mutants is None:
        return check(mutants, args.list)
    return kill([m for m in mutants if not args.mutants or m["invariant"] in args.mutants], os.path.abspath(args.build))


if __name__ == "__main__":
    sys.exit(main())
