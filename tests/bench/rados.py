#!/usr/bin/env python3
"""What several servers on one Ceph cluster do: throughput and processor time of one, two and three of them, a partition of many rows, and the stall after an OSD fails.

    build/venv/bin/python tests/bench/rados.py [--seconds 10] [--rows 20000] [--wide 100000] [--stalls 2] [--servers 1,2,3] [--binary build/release/bin/tallyd] [--json]

Starts three OSDs with bluestore and three copies, and the servers, all on this machine. Each workload is one `tally stress` for each server, at the same time. Processor time of servers and
OSDs is that of their processes; times of other kinds depend on what else the machine does. The stall is the longest time without an acknowledged write of eight clients, after an OSD was killed,
and after one was paused. Exit code 1: a request failed in the workloads."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile  # noqa: E402
from cassandra.concurrent import execute_concurrent_with_args  # noqa: E402
from cassandra.policies import HostFilterPolicy, RoundRobinPolicy  # noqa: E402
from tally_server import HANG, TALLYD, Server  # noqa: E402

CLUSTER, SYSTEM_PYTHON, OSDS = ROOT / "tests" / "rados" / "cluster.py", "/usr/bin/python3", 3
CLIENTS, BATCH = 8, 50
PROFILE = """
schema:
  - "CREATE KEYSPACE IF NOT EXISTS bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
  - CREATE TABLE IF NOT EXISTS bench.rows (p int PRIMARY KEY, v text)
load: {rows: %(rows)d, cql: "INSERT INTO bench.rows (p, v) VALUES (?, ?)", values: [sequence(0..%(last)d), text(100)]}
statements:
  - {weight: 1, cql: "%(cql)s", values: [%(values)s]}
"""
KEY = "uniform(0..%(last)d)"
WORKLOADS = {"insert": ("INSERT INTO bench.rows (p, v) VALUES (?, ?)", KEY + ", text(100)"),
             "point read": ("SELECT v FROM bench.rows WHERE p = ?", KEY),
             "update if exists": ("UPDATE bench.rows SET v = ? WHERE p = ? IF EXISTS", "text(100), " + KEY)}


def ceph_do(*arguments):
    subprocess.run([SYSTEM_PYTHON, CLUSTER, *map(str, arguments)], check=True)


def cpu_s(pids):
    """Processor seconds that the processes have used."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def osd_pids(ceph):
    return [int((ceph / "run" / f"osd.{i}.pid").read_text()) for i in range(OSDS)]


def session_of(server):
    this_one = HostFilterPolicy(RoundRobinPolicy(), lambda host: host.endpoint.port == server.port)
    return server.cluster(execution_profiles={EXEC_PROFILE_DEFAULT: ExecutionProfile(load_balancing_policy=this_one, request_timeout=HANG)}).connect()


def stress(args, server, profile, seconds, *flags):
    command = [Path(args.binary).parent / "tally", "stress", "--server", f"{server.host}:{server.port}", "--file", profile, "--seconds", seconds, "--json", "--quiet", *flags]
    return subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True)


def profile_of(args, folder, name):
    cql, values = WORKLOADS[name]
    numbers = {"rows": args.rows, "last": args.rows - 1}
    path = folder / f"{name.replace(' ', '_')}.yaml"
    path.write_text(PROFILE % {**numbers, "cql": cql, "values": values % numbers})
    return path


def workload(args, folder, ceph, servers, name):
    profile, fronts = profile_of(args, folder, name), [s.process.pid for s in servers]
    before = cpu_s(fronts), cpu_s(osd_pids(ceph))
    runs = [stress(args, s, profile, args.seconds, "--no-load") for s in servers]
    told = [json.loads(r.communicate()[0]) for r in runs]
    after = cpu_s(fronts), cpu_s(osd_pids(ceph))
    done = sum(t["requests"] for t in told)
    return {"workload": name, "servers": len(servers), "per_second": done / args.seconds, "failed": sum(t["failed"] for t in told),
            "server_us": 1e6 * (after[0] - before[0]) / max(done, 1), "osd_us": 1e6 * (after[1] - before[1]) / max(done, 1)}


def wide(args, ceph, server):
    """Rows of one partition until there are enough or the store refuses more."""
    session = session_of(server)
    session.execute("CREATE TABLE bench.wide (p int, c int, v text, PRIMARY KEY (p, c))")
    insert = session.prepare("BEGIN UNLOGGED BATCH " + "INSERT INTO bench.wide (p, c, v) VALUES (1, ?, ?); " * BATCH + "APPLY BATCH")
    began, before, rows, refused = time.monotonic(), (cpu_s([server.process.pid]), cpu_s(osd_pids(ceph))), 0, None
    while rows < args.wide and not refused:
        some = [[x for c in range(rows + i * BATCH, rows + (i + 1) * BATCH) for x in (c, "x" * 100)] for i in range(100)]
        done = execute_concurrent_with_args(session, insert, some, concurrency=16, raise_on_first_error=False)
        rows += BATCH * sum(d.success for d in done)
        refused = next((str(d.result_or_exc) for d in done if not d.success), None)
    seconds, cpu = time.monotonic() - began, (cpu_s([server.process.pid]) - before[0], cpu_s(osd_pids(ceph)) - before[1])
    read = session.prepare("SELECT c FROM bench.wide WHERE p = 1 AND c >= ? LIMIT 100")
    before = cpu_s([server.process.pid]), cpu_s(osd_pids(ceph))
    slices = [list(session.execute(read, (i * (rows - 100) // 100,))) for i in range(100)]
    assert all(len(s) == 100 for s in slices)
    session.cluster.shutdown()
    return {"rows": rows, "refused": refused, "rows_per_second": rows / seconds, "server_us_per_row": 1e6 * cpu[0] / rows, "osd_us_per_row": 1e6 * cpu[1] / rows,
            "slice_server_us": 1e4 * (cpu_s([server.process.pid]) - before[0]), "slice_osd_us": 1e4 * (cpu_s(osd_pids(ceph)) - before[1])}


class Writers:
    """Clients that write all the time, and the moments of what was acknowledged."""

    def __init__(self, servers, rows):
        self.sessions, self.rows, self.ends, self.moments, self.failed = [session_of(s) for s in servers], rows, False, [], 0
        self.threads = [threading.Thread(target=self.write, args=(i,)) for i in range(CLIENTS)]
        for t in self.threads:
            t.start()

    def write(self, number):
        session, n = self.sessions[number % len(self.sessions)], number
        insert = session.prepare("INSERT INTO bench.rows (p, v) VALUES (?, 'stall')")
        while not self.ends:
            n += CLIENTS
            try:
                session.execute(insert, (n % self.rows,))
                self.moments.append(time.monotonic())
            except Exception:  # it timed out: the stall is measured by the others
                self.failed += 1

    def finish(self):
        self.ends = True
        for t in self.threads:
            t.join()
        for s in self.sessions:
            s.cluster.shutdown()


def stall(args, ceph, servers, how, osd):
    writers = Writers(servers, args.rows)
    time.sleep(3)
    failed_at = time.monotonic()
    ceph_do(how, ceph, osd)
    time.sleep(20)
    ceph_do("start-osd" if how == "kill" else "resume", ceph, osd)
    ceph_do("wait-up", ceph)
    writers.finish()
    moments = sorted(m for m in writers.moments if failed_at - 1 < m < failed_at + 20)
    return {"failure": how, "longest_gap_s": max(b - a for a, b in zip(moments, moments[1:])), "acknowledged": len(moments), "failed": writers.failed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--wide", type=int, default=100000)
    parser.add_argument("--stalls", type=int, default=2)
    parser.add_argument("--servers", default="1,2,3")
    parser.add_argument("--binary", default=str(TALLYD))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    counts = [int(n) for n in args.servers.split(",")]
    folder = Path(tempfile.mkdtemp(prefix="tally-rados-bench-"))
    ceph, servers, result = folder / "ceph", [], {"workloads": [], "stalls": []}

    def say(text):
        print(text, file=sys.stderr if args.json else sys.stdout, flush=True)

    ceph_do("start", ceph, "--osds", OSDS, "--store", "bluestore")
    try:
        for i in range(max(counts)):
            (folder / f"server{i}").mkdir()
            servers.append(Server(folder / f"server{i}", "--store", "rados", "--rados-conf", ceph / "ceph.conf", "--rados-pool", "tally", "--mode", "cassandra", "--ddl-delay", "none",
                                  binary=args.binary).start())
        stress(args, servers[0], profile_of(args, folder, "insert"), 1).communicate()
        say(f"{'workload':18} {'servers':>7} {'requests/s':>11} {'server us':>10} {'OSDs us':>9}")
        for n in counts:
            for name in WORKLOADS:
                w = workload(args, folder, ceph, servers[:n], name)
                result["workloads"].append(w)
                say(f"{w['workload']:18} {n:7} {w['per_second']:11.0f} {w['server_us']:10.0f} {w['osd_us']:9.0f}" + (f"  {w['failed']} FAILED" if w["failed"] else ""))
        w = result["wide"] = wide(args, ceph, servers[0])
        say(f"one partition: {w['rows']} rows, {w['rows_per_second']:.0f}/s in batches of {BATCH}, {w['server_us_per_row']:.0f} us of the server and {w['osd_us_per_row']:.0f} us of the OSDs a row; "
            f"a slice of 100: {w['slice_server_us']:.0f} and {w['slice_osd_us']:.0f} us" + (f"; then: {w['refused']}" if w["refused"] else ""))
        for i in range(args.stalls):
            s = stall(args, ceph, servers, ("kill", "pause")[i % 2], i % OSDS)
            result["stalls"].append(s)
            say(f"stall after {s['failure']} of an OSD: {s['longest_gap_s']:.2f} s without an acknowledged write, {s['failed']} statements failed")
    finally:
        for s in servers:
            if s.process and s.alive():
                s.kill9()
        ceph_do("wipe", ceph)
        shutil.rmtree(folder, ignore_errors=True)
    if args.json:
        print(json.dumps(result))
    return 1 if any(w["failed"] for w in result["workloads"]) else 0


if __name__ == "__main__":
    sys.exit(main())
