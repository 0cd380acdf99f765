#!/usr/bin/python3
"""Runs the tests of the store on Ceph: the functions, the conformance cases and the integration suite on one OSD in memory, then clients under a model on three OSDs
with bluestore that are killed and paused, then three servers under one model, which fail as well as the OSDs.

    tests/rados/run.py [--build FOLDER] [--kills N] [--events N] [--only function|conformance|integration|failures|servers] [NAME...]

NAME: with --only integration, tests/integration/test_NAME.py alone. tests/integration/rados_exceptions.py has the tests that are not run, and why.

Prints what each part did, and "N passed, N failed" at the end.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

import cluster as ceph  # noqa: E402
import rados_exceptions  # noqa: E402

ROOT = HERE.parents[1]
PROGRESS = 200  # writes that must be acknowledged between two failures, so that each meets clients at work
# Recorded answers that a server on a cluster gives otherwise: file, case, and the reason.
EXCEPTIONS = {("schema_tables.cqlt", "local_and_peers"): "system.local shows the server's 16 tokens of the ring that all servers on the store have, not the one of a single server"}


def run(cluster, program, *args, **more):
    environment = dict(os.environ, TALLY_RADOS_CONF=str(cluster.conf))
    return subprocess.Popen([str(program), *args], env=environment, **more)


def functions(build, folder):
    cluster = ceph.Cluster(folder / "function").start()
    try:
        passed = failed = 0
        for program in (*(f"rados_{source.stem}" for source in sorted(HERE.glob("test_*.c"))), "unit_engine_test_model"):
            done = run(cluster, build / "tests" / program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            output, _ = done.communicate(timeout=600)
            print(output)
            passed += output.count("[       OK ]")
            failed += max(output.count("[  FAILED  ] test_") // 2, done.returncode != 0)
        return passed, failed
    finally:
        cluster.wipe()


def conformance(build, folder):
    """The recorded statements, in both modes, by a server whose store is the cluster."""
    passed = failed = 0
    for mode in ("keyspaces", "cassandra"):
        cluster = ceph.Cluster(folder / mode).start()
        try:
            command = [ROOT / "build" / "venv" / "bin" / "python", ROOT / "tests" / "conformance" / "cqlt", "replay", "--server", build / "bin" / "tallyd",
                       "--mode", mode, "--flags", f"--store rados --rados-conf {cluster.conf} --rados-pool {ceph.POOL}"]
            done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3000, check=False)
            print(done.stdout[-4000:])
            counts = re.findall(r"(\d+) passed, (\d+) failed", done.stdout)
            explained = [case for case in re.findall(r"^(\w+\.cqlt):\d+: (\w+)$", done.stdout, re.MULTILINE) if case in EXCEPTIONS]
            for case in explained:
                print(f"explained: {' '.join(case)}: {EXCEPTIONS[case]}")
            passed += int(counts[-1][0]) if counts else 0
            failed += max(int(counts[-1][1]) if counts else 0, done.returncode != 0) - len(explained)
            failed += len(EXCEPTIONS.keys() - set(explained))  # an exception that is none any more
        finally:
            cluster.wipe()
    return passed, failed


def integration_file(file, build, logs):
    """One file of the suite, with a cluster of its own: {passed, failed, skipped, exceptions} and what went wrong."""
    command = [ROOT / "build" / "venv" / "bin" / "python", "-m", "pytest", "-q", "-rfEx", "--show-capture=no", "-p", "no:cacheprovider", "--store", "rados", file]
    done = subprocess.run(list(map(str, command)), env=dict(os.environ, TALLYTEST_PRESET=build.name), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    (logs / f"{file.stem}.log").write_text(done.stdout)
    last = done.stdout.rstrip().splitlines()[-1]
    counts = {what: sum(int(n) for n in re.findall(rf"(\d+) (?:{words})", last))
              for what, words in (("passed", "passed"), ("failed", "failed|errors?|xpassed"), ("skipped", "skipped"), ("exceptions", "xfailed"))}
    unused = rados_exceptions.unused(file.name, re.findall(r"^XFAIL \S+::(.+?)(?: - .*)?$", done.stdout, re.MULTILINE))
    wrong = [f"rados_exceptions.py: no test has the name {name}" for name in sorted(unused)]
    if counts["passed"] and "0 databases in pools of the cluster" in done.stdout.splitlines():
        wrong.append(f"{file.name} starts no server on the cluster: rados_exceptions.py should say so")
    if done.returncode:
        counts["failed"] = max(counts["failed"], 1)
        wrong.insert(0, done.stdout[-6000:])
    elif wrong:
        counts["failed"] = len(wrong)
    return counts, "\n".join(wrong)


def integration(build, folder, names):
    """The integration suite, four files at a time: half of their time these tests wait."""
    files = sorted((ROOT / "tests" / "integration").glob("test_*.py"))
    if names:
        files = [f for f in files if f.stem.removeprefix("test_") in names]
    logs = folder / "integration"
    logs.mkdir()
    total = dict.fromkeys(("passed", "failed", "skipped", "exceptions"), 0)
    with ThreadPoolExecutor(4) as at_once:
        for file, (counts, words) in zip(files, at_once.map(lambda f: integration_file(f, build, logs), files)):
            print(f"{file.stem:30}", *(f"{n:4} {what}" for what, n in counts.items() if n), flush=True)
            print(words, end="\n" if words else "", flush=True)
            for what, n in counts.items():
                total[what] += n
    print("integration suite:", ", ".join(f"{n} {what}" for what, n in total.items()))
    return total["passed"], total["failed"] + (total["skipped"] if os.environ.get("CI") == "true" else 0)


class Stress:
    """The model's clients, which tell how many writes were acknowledged."""

    def __init__(self, cluster, build):
        self.process = run(cluster, build / "tests" / "rados_stress", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = []

    def writes(self):
        self.process.stdin.write(".")
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the clients have ended: " + "".join(self.lines))
            if line.strip().isdigit():
                return int(line)
            self.lines.append(line)

    def wait_for_progress(self):
        goal = self.writes() + PROGRESS
        ceph.wait_for("writes are acknowledged", lambda: self.writes() >= goal)

    def end(self):
        rest, _ = self.process.communicate(timeout=600)
        print("".join(self.lines) + rest)
        return self.process.returncode


def failures(build, folder, kills):
    """Every failure takes one OSD of three away, waits until the others serve the clients again, and brings it back."""
    cluster = ceph.Cluster(folder / "failures").start(3, "bluestore")
    monitor = cluster.connect()
    choice = random.Random(30)
    try:
        stress = Stress(cluster, build)
        for i in range(kills):
            osd, pause = choice.randrange(3), choice.random() < 0.3
            stress.wait_for_progress()
            (cluster.pause if pause else cluster.kill)(osd)
            stress.wait_for_progress()
            (cluster.resume if pause else cluster.start_osd)(osd)
            cluster.wait_up(monitor, 3)
            stress.wait_for_progress()
            print(f"{'pause' if pause else 'kill'} {i + 1} of {kills}: OSD {osd}, {stress.writes()} writes acknowledged", flush=True)
        return (1, 0) if stress.end() == 0 else (0, 1)
    finally:
        monitor.shutdown()
        cluster.wipe()


def servers(build, events):
    """tests/integration/test_rados_faults.py in its long form."""
    command = [ROOT / "build" / "venv" / "bin" / "python", "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", ROOT / "tests" / "integration" / "test_rados_faults.py"]
    environment = dict(os.environ, TALLYTEST_RADOS_EVENTS=str(events), TALLYTEST_PRESET=build.name)
    return (1, 0) if subprocess.run(list(map(str, command)), env=environment, check=False).returncode == 0 else (0, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--events", type=int, default=50, help="failures of servers and OSDs")
    parser.add_argument("--only", choices=["function", "conformance", "integration", "failures", "servers"])
    parser.add_argument("names", nargs="*", metavar="NAME", help="files of the integration suite")
    a = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="tally-rados-") as folder:
        for name, part in (("function", lambda: functions(a.build, Path(folder))),
                           ("conformance", lambda: conformance(a.build, Path(folder))),
                           ("integration", lambda: integration(a.build, Path(folder), a.names)),
                           ("failures", lambda: failures(a.build, Path(folder), a.kills)),
                           ("servers", lambda: servers(a.build, a.events))):
            if a.only in (None, name):
                p, f = part()
                passed, failed = passed + p, failed + f
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
