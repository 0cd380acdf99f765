#!/usr/bin/env python3
"""What several servers on one Ceph cluster do: the workloads of tally-bench on one, two and three servers, a partition of many rows, and the stall after an OSD fails.

    build/release/bin/tally-bench --store rados [--seconds 5] [--workload insert,"point read"] [--servers 1,2,3] [--wide 100000] [--stalls 2]
                                                [--rados-conf FILE --rados-pool POOL] [--tallyd PATH] [--json]

Starts three OSDs with bluestore and three copies, or uses the pool of a cluster on this machine that runs already; there is no stall then. Starts the servers, all on this machine. Each workload
(workload.def) is one tally-bench for each server, at the same time, after a short one that fills and warms up. Processor time of servers and OSDs is that of their processes; times of other kinds
depend on what else the machine does. The stall is the longest time without an acknowledged write of eight clients, after an OSD was killed, and after one was paused. Exit code 1: a request failed
in the workloads."""
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
CONNECTIONS, IN_FLIGHT, WARM_UP_S, STALL_ROWS = 8, 8, 0.5, 20000


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
    return [int(file.read_text()) for file in (ceph / "run").glob("osd.*.pid")]


def session_of(server):
    this_one = HostFilterPolicy(RoundRobinPolicy(), lambda host: host.endpoint.port == server.port)
    return server.cluster(execution_profiles={EXEC_PROFILE_DEFAULT: ExecutionProfile(load_balancing_policy=this_one, request_timeout=HANG)}).connect()


def measure(args, server, name, seconds):
    """Begins to measure a workload on one of the servers."""
    command = [args.tally_bench, "--beside", f"{server.host}:{server.port}", "--beside-pid", server.process.pid, "--beside-only", "--workload", name,
               "--connections", CONNECTIONS, "--in-flight", IN_FLIGHT, "--seconds", seconds, "--json"]
    return subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def results(runs):
    return [result for run in runs for result in json.loads(run.communicate()[0])["results"]]


def workload(args, ceph, servers, name):
    warm_ups = [results([measure(args, s, name, WARM_UP_S)]) for s in servers]
    assert all(warm_ups), f"tally-bench has no workload '{name}' for servers that run already"
    osds_before = cpu_s(osd_pids(ceph))
    told = results([measure(args, s, name, args.seconds) for s in servers])
    osds = cpu_s(osd_pids(ceph)) - osds_before
    done = max(sum(t["requests"] for t in told), 1)
    return {"workload": name, "servers": len(servers), "per_second": sum(t["per_second"]["median"] for t in told), "failed": sum(t["failed"] for t in told),
            "server_us": sum(t["cpu_us"]["median"] * t["requests"] for t in told) / done, "osd_us": 1e6 * osds / done}


def wide(args, ceph, server):
    """Rows of one partition until there are enough or the store refuses more."""
    session = session_of(server)
    session.execute("CREATE KEYSPACE IF NOT EXISTS rados WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE IF NOT EXISTS rados.wide (p int, c int, v text, PRIMARY KEY (p, c))")
    insert = session.prepare("BEGIN UNLOGGED BATCH " + "INSERT INTO rados.wide (p, c, v) VALUES (1, ?, ?); " * BATCH + "APPLY BATCH")
    began, before, rows, refused = time.monotonic(), (cpu_s([server.process.pid]), cpu_s(osd_pids(ceph))), 0, None
    while rows < args.wide and not refused:
        some = [[x for c in range(rows + i * BATCH, rows + (i + 1) * BATCH) for x in (c, "x" * 100)] for i in range(100)]
        done = execute_concurrent_with_args(session, insert, some, concurrency=16, raise_on_first_error=False)
        rows += BATCH * sum(d.success for d in done)
        refused = next((str(d.result_or_exc) for d in done if not d.success), None)
    seconds, cpu = time.monotonic() - began, (cpu_s([server.process.pid]) - before[0], cpu_s(osd_pids(ceph)) - before[1])
    read = session.prepare("SELECT c FROM rados.wide WHERE p = 1 AND c >= ? LIMIT 100")
    before = cpu_s([server.process.pid]), cpu_s(osd_pids(ceph))
    slices = [list(session.execute(read, (i * (rows - 100) // 100,))) for i in range(100)]
    assert all(len(s) == 100 for s in slices)
    session.cluster.shutdown()
    return {"rows": rows, "refused": refused, "rows_per_second": rows / seconds, "server_us_per_row": 1e6 * cpu[0] / rows, "osd_us_per_row": 1e6 * cpu[1] / rows,
            "slice_server_us": 1e4 * (cpu_s([server.process.pid]) - before[0]), "slice_osd_us": 1e4 * (cpu_s(osd_pids(ceph)) - before[1])}


class Writers:
    """Clients that write all the time, and the moments of what was acknowledged."""

    def __init__(self, servers):
        self.sessions, self.ends, self.moments, self.failed = [session_of(s) for s in servers], False, [], 0
        self.sessions[0].execute("CREATE KEYSPACE IF NOT EXISTS rados WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        self.sessions[0].execute("CREATE TABLE IF NOT EXISTS rados.stall (p int PRIMARY KEY, v text)")
        self.threads = [threading.Thread(target=self.write, args=(i,)) for i in range(CLIENTS)]
        for t in self.threads:
            t.start()

    def write(self, number):
        session, n = self.sessions[number % len(self.sessions)], number
        insert = session.prepare("INSERT INTO rados.stall (p, v) VALUES (?, 'stall')")
        while not self.ends:
            n += CLIENTS
            try:
                session.execute(insert, (n % STALL_ROWS,))
                self.moments.append(time.monotonic())
            except Exception:  # it timed out: the stall is measured by the others
                self.failed += 1

    def finish(self):
        self.ends = True
        for t in self.threads:
            t.join()
        for s in self.sessions:
            s.cluster.shutdown()


def stall(ceph, servers, how, osd):
    writers = Writers(servers)
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
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--workload", default="insert,point read,update if exists")
    parser.add_argument("--servers", default="1,2,3")
    parser.add_argument("--wide", type=int, default=100000)
    parser.add_argument("--stalls", type=int, default=2)
    parser.add_argument("--rados-conf", type=Path)
    parser.add_argument("--rados-pool", default="tally")
    parser.add_argument("--tallyd", default=str(TALLYD))
    parser.add_argument("--tally-bench", default=str(TALLYD.with_name("tally-bench")), help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    counts = [int(n) for n in args.servers.split(",")]
    folder = Path(tempfile.mkdtemp(prefix="tally-rados-bench-"))
    ceph, servers, result = args.rados_conf.parent if args.rados_conf else folder / "ceph", [], {"workloads": [], "stalls": []}

    def say(text):
        print(text, file=sys.stderr if args.json else sys.stdout, flush=True)

    if not args.rados_conf:
        ceph_do("start", ceph, "--osds", OSDS, "--store", "bluestore")
    try:
        for i in range(max(counts)):
            (folder / f"server{i}").mkdir()
            servers.append(Server(folder / f"server{i}", "--store", "rados", "--rados-conf", args.rados_conf or ceph / "ceph.conf", "--rados-pool", args.rados_pool, "--mode", "cassandra", "--ddl-delay", "none",
                                  binary=args.tallyd).start())
        say(f"{'workload':18} {'servers':>7} {'requests/s':>11} {'server us':>10} {'OSDs us':>9}")
        for n in counts:
            for name in args.workload.split(","):
                w = workload(args, ceph, servers[:n], name)
                result["workloads"].append(w)
                say(f"{w['workload']:18} {n:7} {w['per_second']:11.0f} {w['server_us']:10.0f} {w['osd_us']:9.0f}" + (f"  {w['failed']} FAILED" if w["failed"] else ""))
        w = result["wide"] = wide(args, ceph, servers[0]) if args.wide else None
        if w:
            say(f"one partition: {w['rows']} rows, {w['rows_per_second']:.0f}/s in batches of {BATCH}, {w['server_us_per_row']:.0f} us of the server and {w['osd_us_per_row']:.0f} us of the OSDs a row; "
                f"a slice of 100: {w['slice_server_us']:.0f} and {w['slice_osd_us']:.0f} us" + (f"; then: {w['refused']}" if w["refused"] else ""))
        for i in range(0 if args.rados_conf else args.stalls):
            s = stall(ceph, servers, ("kill", "pause")[i % 2], i % OSDS)
            result["stalls"].append(s)
            say(f"stall after {s['failure']} of an OSD: {s['longest_gap_s']:.2f} s without an acknowledged write, {s['failed']} statements failed")
    finally:
        for s in servers:
            if s.process and s.alive():
                s.kill9()
        if not args.rados_conf:
            ceph_do("wipe", ceph)
        shutil.rmtree(folder, ignore_errors=True)
    if args.json:
        print(json.dumps(result))
    return 1 if any(w["failed"] for w in result["workloads"]) else 0


if __name__ == "__main__":
    sys.exit(main())
