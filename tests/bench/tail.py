#!/usr/bin/env python3
"""Ten minutes of a mixed load over data larger than the memtables, which are flushed and compacted all the time: no minute's slowest answers may stand out.

    build/venv/bin/python tests/bench/tail.py [--minutes 10] [--rows 500000] [--rate 2000] [--memory MIB] [--binary build/release/bin/tallyd]

Each minute is one `tally stress`. Prints a line per minute, then PASS or what does not hold: p99.9 of each minute is at most 3 times that of the median minute; resident memory stays under
--memory; the data folder takes at most 1.6 times the keys and values that are live in it, as a scan of all of them counts. Exit code 1: one does not, or a request failed."""
import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from tally_server import TALLYD, Server  # noqa: E402

MB = 1 << 20
TAIL, SPACE = 3, 1.6
PROFILE = """
schema:
  - "CREATE KEYSPACE IF NOT EXISTS tail WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
  - CREATE TABLE IF NOT EXISTS tail.rows (p int PRIMARY KEY, v text, w text)
load: {rows: %(rows)d, cql: "INSERT INTO tail.rows (p, v) VALUES (?, ?)", values: [sequence(0..%(last)d), text(300)]}
statements:
  - {weight: 10, cql: "SELECT * FROM tail.rows WHERE p = ?", values: [uniform(0..%(last)d)]}
  - {weight: 6, cql: "INSERT INTO tail.rows (p, v) VALUES (?, ?)", values: [uniform(0..%(last)d), text(300)]}
  - {weight: 2, cql: "UPDATE tail.rows SET w = ? WHERE p = ?", values: [text(30), uniform(0..%(last)d)]}
  - {weight: 1, cql: "DELETE w FROM tail.rows WHERE p = ?", values: [uniform(0..%(last)d)]}
  - {weight: 1, cql: "UPDATE tail.rows SET w = ? WHERE p = ? IF EXISTS", values: [text(30), uniform(0..%(last)d)]}
"""


class Watch(threading.Thread):
    """The most memory and space that were ever seen, looked at every second."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.stopped, self.resident, self.on_disk = server, threading.Event(), 0, 0

    def run(self):
        status = Path(f"/proc/{self.server.process.pid}/status")
        while not self.stopped.wait(1):
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
            self.resident = max(self.resident, int(lines["VmRSS"].split()[0]) * 1024)
            self.on_disk = max(self.on_disk, self.server.bytes_on_disk())


def stress(args, server, profile, seconds, *flags):
    command = [Path(args.binary).parent / "tally", "stress", "--server", f"{server.host}:{server.port}", "--file", profile, "--seconds", seconds, "--rate", args.rate, "--json", "--quiet", *flags]
    return json.loads(subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, check=False).stdout)


def live_bytes(server):
    with server.cluster() as cluster:
        future = cluster.connect().execute_async("SELECT count(*) FROM tail.rows", custom_payload={"capacity": b"1"}, timeout=600)
        future.result()
        return json.loads(future.custom_payload["capacity"])["bytes_read"]


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--rows", type=int, default=500000, help="of 300 bytes")
    parser.add_argument("--rate", type=int, default=2000, help="requests a second, in an open loop")
    parser.add_argument("--memory", type=int, default=600, help="MiB; a few memtables of it are full every minute")
    parser.add_argument("--binary", default=TALLYD)
    return parser.parse_args()


def drive(args, server, folder):
    """Returns (reports, the watch, live bytes)."""
    profile, reports, watch = folder / "tail.yaml", [], Watch(server)
    profile.write_text(PROFILE % {"rows": args.rows, "last": args.rows - 1})
    reports.append(stress(args, server, profile, 1))  # writes the rows; its second is nobody's minute
    watch.start()
    for minute in range(args.minutes):
        reports.append(stress(args, server, profile, 60, "--no-load"))
        r = reports[-1]
        print(f"minute {minute + 1:3}  {r['per_second']:6.0f} requests/s  p50 {r['p50_ns'] / 1e6:.2f} ms  p99 {r['p99_ns'] / 1e6:.2f} ms  p99.9 {r['p999_ns'] / 1e6:.2f} ms  "
              f"most resident {watch.resident / MB:.0f} MiB, on disk {watch.on_disk / MB:.0f} MiB", flush=True)
    watch.stopped.set()
    return reports, watch, live_bytes(server)


def main():
    args = parsed()
    folder = Path(tempfile.mkdtemp(prefix="tally-tail-"))
    server = Server(folder, "--mode", "cassandra", "--memory", str(args.memory), binary=args.binary).start()
    try:
        reports, watch, live = drive(args, server, folder)
        server.stop()
    finally:
        if server.alive():
            server.kill9()
        shutil.rmtree(folder)
    tails = [r["p999_ns"] / 1e6 for r in reports[1:]]
    failed = sum(r["failed"] + r["unanswered"] for r in reports)
    found = [("p99.9 of the slowest minute : the median minute", max(tails) / statistics.median(tails), TAIL),
             ("most memory : --memory", watch.resident / (args.memory * MB), 1),
             ("most space on disk : live keys and values", watch.on_disk / live, SPACE)]
    for what, value, bound in found:
        print(f"{what}: {value:.2f} (at most {bound}){'' if value <= bound else '  DOES NOT HOLD'}")
    holds = all(value <= bound for _, value, bound in found)
    print(f"{sum(r['requests'] for r in reports)} requests, {failed} failed; {'PASS' if holds and not failed else 'FAIL'}")
    return 0 if holds and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
