#!/usr/bin/env python3
"""Builds what is needed, runs the tests, and prints a table that ends with one line of totals.

  tools/test.sh [--preset PRESET] [fast|quick|all|STEP...]    without a step: all that must hold before a merge

  fast         layers, unit tests without sanitizers, conformance in keyspaces mode: under two minutes from a built tree
  quick        layers, unit tests with sanitizers, conformance in keyspaces mode, the Python driver
  all          every step, also with sanitized servers and with RocksDB from source: hours
  layers       include rules between and inside rooms, layout of the C code, pages that are generated from tables, links between
               pages, and a guard for every numbered invariant
  changed      the mutants of the files that the last commit and the working tree change (at most 12; TALLYTEST_BASE names another
               commit to compare with)
  mutants      all mutants: small changes that break an invariant, each of which a unit test must notice
  unit         unit tests and fuzzer corpora under AddressSanitizer and UndefinedBehaviorSanitizer
  plain        the same without sanitizers
  threads      the unit tests of what threads share, under ThreadSanitizer
  replay       byte scripts against a sanitized server
  conformance  statements recorded from Apache Cassandra, in both modes on the server of the preset, and in one on the sanitized server;
               conformance:keyspaces, :cassandra or :sanitized is a part
  integration  the server with the drivers of Python, Node, Go, Java, Rust and C++, AWS's SDKs, clients of other projects, cqlsh, and
               kill -9; integration:tls is one file
  packages     the tarball, the Python wheel, the npm package and the JUnit extension, each in an empty root, environment or project
  rados        the store on Ceph: on one OSD in memory with the conformance cases and the integration suite, and under models while
               OSDs and servers, three each, are killed. Installs Ceph's packages. rados:integration is a part
  source       the programs as packages and images ship them, with their own RocksDB (-DTALLY_ROCKSDB=source, twenty minutes of
               processor time to build): unit tests, conformance, models, crashes, damaged and full disks, backups, memory, the package

The steps conformance and integration test the server of the preset release-test, or of --preset: release is optimised across files, as
it ships; each report of the sanitizer of asan or tsan is a failure. Independent jobs run two at a time, files of the integration step
six at a time. No result depends on time: time-outs end what hangs. A driver whose toolchain is missing is reported as not run; with
CI=true that is a failure. The logs are in build/test.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests/layer"))
from invariants import test_file  # noqa: E402
WORK = "build/test"
HANG = 3600  # seconds after which a job is said to hang
CHANGED_MAX = 12  # mutants of the step changed, so that the whole stays within its time
PYTHON = "build/venv/bin/python"
CI = os.environ.get("CI") == "true"
TERMINAL = sys.stdout.isatty()

MERGE = ["layers", "unit", "changed", "threads", "replay", "conformance", "integration"]
SETS = {
    "fast": ["layers", "plain", "conformance:keyspaces"],
    "quick": ["layers", "unit", "conformance:keyspaces", "integration:python_driver"],
    "all": MERGE + ["mutants", "packages", "rados", "conformance:sanitized", "integration:asan", "integration:tsan", "source"],
}
SOURCE_FILES = ("model linearizability kill9 crash storage damaged_store file_faults disk_full verify backup restore snapshots "
                "memory_limit hostile package").split()

PACKAGE_FILES = ["wheel", "tarball", "npm", "junit"]  # all but the wheel are only in the step packages


# ---- counting ----

def count_lines(log, rc):
    """(passed, failed, skipped) from the last line that has such numbers; a command that counts nothing has failed."""
    lines = [line for line in log.split("\n") if re.search(r"\d+ (passed|failed|skipped)", line)]
    numbers = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped)", lines[-1])} if lines else {}
    p, f, s = (numbers.get(word, 0) for word in ("passed", "failed", "skipped"))
    if p + f + s == 0 or (rc and not f):
        f += 1
    return p, f, s


def count_ctest(log, rc):
    """Counts the cmocka tests, and the corpora of fuzzers. cmocka names each failed test more than once."""
    p = log.count("[       OK ]") + len(re.findall(r"Test +#\d+: fuzz_corpus_.*Passed", log))
    f = len(set(re.findall(r"^(?:\d+: )?\[  FAILED  \] ([a-z_0-9]+)$", log, re.M)))
    return p, f or int(rc != 0 or not p), 0


def shorten(log, count):
    """The part of a failed job's log that a person needs."""
    lines = log.split("\n")
    if count is count_ctest:
        noise = re.compile(r"\[ RUN|\[       OK|UpdateCTestConfiguration|^Test (command|timeout)|Passed +[0-9.]+ sec")
        lines = [line for line in lines if not noise.search(line)]
    return "\n".join(lines[-200:])


# ---- jobs ----

class Job:
    def __init__(self, name, command, preset, count=count_lines):
        self.name, self.command, self.preset, self.count = name, command, preset, count
        self.base = os.path.join(WORK, re.sub(r"[^a-z0-9]", "-", name))
        self.seconds = self.cpu = 0
        self.result = None

    def start(self):
        env = dict(os.environ, TALLYTEST_PRESET=self.preset)
        self.reports = os.path.join(ROOT, self.base + ".sanitizer")  # also of servers that a test has killed
        shutil.rmtree(self.reports, ignore_errors=True)
        os.makedirs(self.reports)
        if not self.preset.startswith("release"):
            env["ASAN_OPTIONS"] = f"log_path={self.reports}/asan"
            env["UBSAN_OPTIONS"] = f"print_stacktrace=1:log_path={self.reports}/ubsan"
            env["TSAN_OPTIONS"] = f"log_path={self.reports}/tsan history_size=7 suppressions={ROOT}/tests/tsan.supp"
        self.begun = time.monotonic()
        with open(self.base + ".log", "wb") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env,
                                            start_new_session=True)

    def poll(self):
        """Returns whether the job has ended, and then has counted it."""
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if not pid:
            if time.monotonic() - self.begun > HANG:
                os.killpg(self.process.pid, signal.SIGKILL)
            return False
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds, self.cpu = time.monotonic() - self.begun, usage.ru_utime + usage.ru_stime
        with open(self.base + ".log", encoding="utf-8", errors="replace") as f:
            log = f.read()
        p, failed, s = self.count(log, self.process.returncode)
        for report in sorted(os.listdir(self.reports)):
            with open(os.path.join(self.reports, report), encoding="utf-8", errors="replace") as f:
                log += f.read()
        failed += bool(os.listdir(self.reports))
        if not os.listdir(self.reports):
            os.rmdir(self.reports)
        if CI and s:
            failed, s = failed + s, 0
        self.result = (p, failed, s)
        self.shown = (shorten(log, self.count) if failed else "") + "".join(
            line + "\n" for line in sorted(set(re.findall(r"not run: .*", log))))
        return True

    def stop(self):
        if self.result is None:
            os.killpg(self.process.pid, signal.SIGKILL)


def say(text):
    print(f"\033[1m==>\033[0m {text}", flush=True)


class Runner:
    """Runs jobs and keeps the rows of the table."""

    def __init__(self):
        self.rows, self.running = [], []

    def add(self, name, passed, failed, skipped=0, seconds=0, cpu=0):
        self.rows.append((name, passed, failed, skipped, seconds, cpu))

    def progress(self, done, total):
        if TERMINAL:
            names = ", ".join(job.name for job in self.running)
            print(f"\r\033[K    {done} of {total} done, now: {names}"[:shutil.get_terminal_size().columns + 3], end="", flush=True)

    def run(self, jobs, at_once=2):
        waiting, total = list(jobs), len(jobs)
        while waiting or self.running:
            while waiting and len(self.running) < at_once:
                job = waiting.pop(0)
                if not TERMINAL:
                    say(job.name)
                job.start()
                self.running.append(job)
            self.progress(total - len(waiting) - len(self.running), total)
            time.sleep(0.05)
            ended = [job for job in self.running if job.poll()]
            self.running = [job for job in self.running if job not in ended]
            for job in ended:
                if TERMINAL and job.shown:
                    print("\r\033[K", end="")
                print(job.shown, end="", flush=True)
        if TERMINAL:
            print("\r\033[K", end="")
        for job in jobs:
            self.add(job.name, *job.result, job.seconds, job.cpu)

    def stop(self):
        for job in self.running:
            job.stop()

    def print_table(self):
        passed, failed, skipped = (sum(row[i] for row in self.rows) for i in (1, 2, 3))
        print(f"\n{'step':30} {'passed':>8} {'failed':>8} {'skipped':>8} {'time':>8} {'cpu':>8}")
        for name, p, f, s, seconds, cpu in self.rows:
            print(f"{name:30} {p:8} {f:8} {s:8} {seconds:7.0f}s {cpu:7.0f}s")
        print(f"\n{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
        return 0 if passed and not failed else 1


# ---- steps ----

def setup(*args):
    """Runs a command of tools/setup.sh. Returns whether it succeeded."""
    return subprocess.run(["tools/setup.sh", *args], check=False).returncode == 0


def ctest(preset, *options):
    return ["ctest", "--test-dir", f"build/{preset}", "--output-on-failure", "-j3", "--timeout", str(HANG), "--verbose", *options]


class Steps:
    """One method a step, which returns whether what it needs could be built."""

    def __init__(self, runner, preset):
        self.runner, self.preset = runner, preset

    def job(self, name, command, preset=None, count=count_lines):
        return Job(name, command, preset or self.preset, count)

    def run(self, name, command, preset=None, count=count_lines):
        self.runner.run([self.job(name, command, preset, count)])
        return True

    def clients(self):
        return setup("python", "venv", "tests/integration/requirements.txt")

    def layers(self):
        if not setup("python", "format", "tests/layer/requirements.txt"):
            return False
        self.runner.run([self.job(name, command) for name, command in (
            ("layers", ["python3", "tests/layer/check_layers.py"]),
            ("layout", ["build/format/bin/python", "tests/layer/check_format.py"]),
            ("rules", ["python3", "tools/docs/rules.py", "--check"]),
            ("settings", ["python3", "tools/docs/settings.py", "--check"]),
            ("metrics", ["python3", "tools/docs/metrics.py", "--check"]),
            ("links", ["python3", "tools/docs/links.py", "--check"]),
            ("table_settings", ["python3", "tools/docs/table_settings.py", "--check"]),
            ("invariants", ["python3", "tests/layer/invariants.py"]))])
        return True

    def changed(self):
        base = os.environ.get("TALLYTEST_BASE", "HEAD~1")
        diff = subprocess.run(["git", "diff", "--name-only", base], capture_output=True, text=True, check=False)
        files = set(diff.stdout.split())
        with open("tests/layer/invariants.json", encoding="utf-8") as f:
            names = [m["invariant"] for m in json.load(f) if m["file"] in files or test_file(m["test"]) in files]
        names = list(dict.fromkeys(names))
        if diff.returncode:
            print(f"no mutants: git has no {base}")
        if len(names) > CHANGED_MAX:
            print(f"of {len(names)} invariants with mutants in changed files, {CHANGED_MAX} are tested; tools/test.sh mutants tests all")
        if not names:
            return True
        return setup("build", "asan") and self.run(
            "mutants of changed files", ["python3", "tests/layer/invariants.py", "--mutants", *names[:CHANGED_MAX]])

    def mutants(self):
        return setup("build", "asan") and self.run("mutants", ["python3", "tests/layer/invariants.py", "--mutants"])

    def unit(self):
        return setup("build", "asan") and self.run("unit", ctest("asan"), count=count_ctest)

    def plain(self):
        return setup("build", "release-test") and self.run("unit without sanitizers", ctest("release-test"), count=count_ctest)

    def threads(self):
        return setup("build", "tsan", "thread_tests") and self.run("threads", ctest("tsan", "-L", "threads"), count=count_ctest)

    def replay(self):
        return setup("build", "asan") and self.run("replay", ["python3", "tests/replay/replay.py", "build/asan/bin/tallyd"])

    def cases(self, preset, mode, name="conformance"):
        command = [PYTHON, "tests/conformance/cqlt", "replay", "--server", f"build/{preset}/bin/tallyd", "--mode", mode]
        return self.job(f"{name} {mode} {preset}", command)

    def conformance(self, part=None):
        parts = {"keyspaces": [(self.preset, "keyspaces")], "cassandra": [(self.preset, "cassandra")],
                 "sanitized": [("asan", "keyspaces"), ("asan", "cassandra")],
                 None: [("asan", "cassandra"), (self.preset, "keyspaces"), (self.preset, "cassandra")]}[part]
        if not self.clients() or not all([setup("build", preset, "tallyd") for preset in sorted({p for p, _ in parts})]):
            return False
        self.runner.run([self.cases(*p) for p in parts])
        return True

    def files(self, names, preset, name="integration"):
        pytest = [PYTHON, "-m", "pytest", "-q", "-rsfE", "-p", "no:cacheprovider"]
        return [self.job(f"{name} {n}", [*pytest, f"tests/integration/test_{n}.py"], preset) for n in names]

    def integration(self, part=None):
        preset, name = (part, f"integration {part}") if part in ("asan", "tsan") else (self.preset, "integration")
        names = [os.path.basename(f)[5:-3] for f in sorted(glob.glob("tests/integration/test_*.py"))]
        names = [n for n in names if n not in PACKAGE_FILES[1:]]
        if part and preset != part:
            names = [part]
        if not setup("build", preset, "tallyd", "tally", "tally-bench") or not self.clients():
            return False
        # on two processors: these tests wait two thirds of their time, for disks, timers and programs that start
        self.runner.run(self.files(names, preset, name), at_once=6)
        return True

    def packages(self):
        """Made of a relocatable tree, where the step integration makes the wheel of the programs alone."""
        dist = os.path.abspath("build/test/dist")
        shutil.rmtree(dist, ignore_errors=True)
        if not setup("packages", "release-package") or not self.clients() or subprocess.run(
                ["tools/package/build.sh", "--preset", self.preset, "--dist", dist, "tree"], check=False).returncode:
            return False
        (os.environ["TALLYTEST_TREE"],) = glob.glob(f"{dist}/tally-*")
        self.runner.run(self.files(PACKAGE_FILES, self.preset, "packages"))
        return True

    def rados(self, part=None):
        if subprocess.run(["python3", "tests/rados/cluster.py", "install"], check=False).returncode or not self.clients():
            return False
        if not setup("build", self.preset, "tallyd", "tally", "tally-bench", "rados_tests", "unit_engine_test_model"):
            return False
        for p in [part] if part else ["function", "conformance", "integration", "failures", "servers"]:
            self.run(f"rados {p}", ["/usr/bin/python3", "tests/rados/run.py", "--build", f"build/{self.preset}", "--only", p])
        return True

    def source(self):
        p = "release-source"
        if not (setup("packages", p) and setup("build", p) and setup("build", "release", "tallyd", "tally") and self.clients()):
            return False
        self.run("source unit", ctest(p), count=count_ctest)
        self.runner.run([self.cases(p, mode, "source conformance") for mode in ("keyspaces", "cassandra")] +
                        self.files(SOURCE_FILES, p, "source"))
        return True


def usage(problem):
    print(f"{problem}\n{__doc__}", file=sys.stderr)
    sys.exit(2)


def main():
    args, preset = sys.argv[1:], "release-test"
    if args and args[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    if args and args[0] == "--preset":
        if len(args) < 2:
            usage("--preset needs the name of a preset")
        preset, args = args[1], args[2:]
    names = SETS.get(args[0], args) if len(args) == 1 else args or MERGE
    runner = Runner()
    steps = Steps(runner, preset)
    methods = [n for n in vars(Steps) if n not in ("__init__", "job", "run", "clients", "cases", "files")]
    for name in names:
        if name.split(":")[0] not in methods:
            usage(f"unknown step: {name}")
    os.chdir(ROOT)
    os.makedirs(WORK, exist_ok=True)
    if not setup("packages"):
        return 1
    downloads = None
    if "integration" in names and steps.clients():  # what the tests' programs download arrives while other steps run
        with open(os.path.join(WORK, "programs.log"), "wb") as log:
            downloads = subprocess.Popen([PYTHON, "tests/integration/programs.py"], stdout=log, stderr=log)
    try:
        for name in names:
            step, _, part = name.partition(":")
            if not getattr(steps, step)(*[part] if part else []):
                runner.add(f"{name} (build)", 0, 1)
    finally:
        runner.stop()
        if downloads:
            downloads.terminate()
    return runner.print_table()


if __name__ == "__main__":
    sys.exit(main())
