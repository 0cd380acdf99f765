#!/usr/bin/env python3
"""An hour under a steady mixed load over data that do not grow: neither may the server's memory, its files, its descriptors or its threads.

    build/venv/bin/python tests/bench/soak.py [--seconds 3600] [--rate 200] [--interval 60] [--binary build/release/bin/tallyd]

`tally stress` sends what PROFILE says; between two samples a client that connects anew makes and drops a table, prepares statements that nobody else has, saves a state and goes.
Prints a line per sample, then for each figure how much it would have grown over the run by the slope of its samples, and PASS or GROWTH. Exit code 1: growth, or a request failed."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from tally_server import TALLYD, Server  # noqa: E402

MB = 1 << 20
WARM_UP = 1 / 4  # of the samples: caches fill, the first table files are made
PROFILE = """
schema:
  - "CREATE KEYSPACE IF NOT EXISTS soak WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
  - CREATE TABLE IF NOT EXISTS soak.rows (p int, c int, s text static, v text, l list<int>, m map<int, text>, PRIMARY KEY (p, c))
  - CREATE TABLE IF NOT EXISTS soak.once (p int PRIMARY KEY, v text)
  - CREATE TABLE IF NOT EXISTS soak.counts (p int PRIMARY KEY, n counter)
statements:
  - {weight: 8, cql: "SELECT * FROM soak.rows WHERE p = ? AND c = ?", values: [uniform(0..999), uniform(0..9)]}
  - {weight: 2, cql: "SELECT * FROM soak.rows WHERE p = ?", values: [uniform(0..999)]}
  - {weight: 1, cql: "SELECT p, c FROM soak.rows LIMIT 200", page_size: 100}
  - {weight: 6, cql: "INSERT INTO soak.rows (p, c, v) VALUES (?, ?, ?)", values: [uniform(0..999), uniform(0..9), text(20..400)]}
  - {weight: 1, cql: "INSERT INTO soak.rows (p, c, v) VALUES (?, ?, ?) USING TTL 30", values: [uniform(0..999), uniform(10..19), text(100)]}
  - {weight: 1, cql: "INSERT INTO soak.rows (p, s) VALUES (?, ?)", values: [uniform(0..999), text(40)]}
  - {weight: 1, cql: "UPDATE soak.rows SET m[?] = ? WHERE p = ? AND c = ?", values: [uniform(0..9), text(20), uniform(0..99), uniform(0..9)]}
  - {weight: 1, cql: "UPDATE soak.rows SET l = l + [1] WHERE p = ? AND c = ?", values: [uniform(0..99), uniform(0..9)]}
  - {weight: 1, cql: "DELETE FROM soak.rows WHERE p = ? AND c = ?", values: [uniform(0..99), uniform(0..9)]}
  - {weight: 1, cql: "DELETE FROM soak.rows WHERE p = ? AND c > ?", values: [uniform(0..999), uniform(5..9)]}
  - {weight: 1, cql: "INSERT INTO soak.once (p, v) VALUES (?, ?) IF NOT EXISTS", values: [uniform(0..999), text(100)]}
  - {weight: 1, cql: "DELETE FROM soak.once WHERE p = ? IF EXISTS", values: [uniform(0..999)]}
  - {weight: 1, cql: "UPDATE soak.counts SET n = n + 1 WHERE p = ?", values: [uniform(0..999)]}
  - {weight: 1, cql: "BEGIN BATCH INSERT INTO soak.rows (p, c, v) VALUES (?, 1, ?); UPDATE soak.rows SET v = ? WHERE p = ? AND c = 2; APPLY BATCH",
     values: [uniform(0..999), text(100), text(100), uniform(0..999)]}
"""
# name: (unit, what it may vary by without being growth: the load's own waves, such as a memtable that fills)
FIGURES = {"resident": (MB, 24 * MB), "on disk": (MB, 24 * MB), "files": (1, 12), "descriptors": (1, 12), "threads": (1, 2)}


def sample(server):
    proc = Path(f"/proc/{server.process.pid}")
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    return {
        "resident": int(status["VmRSS"].split()[0]) * 1024,
        "on disk": server.bytes_on_disk(),
        "files": sum(len(names) for _, _, names in os.walk(server.folder / "data")),
        "descriptors": len(os.listdir(proc / "fd")),
        "threads": int(status["Threads"]),
    }


def come_and_go(server, n):
    """What leaves something behind if anything does: a connection, a table, statements, a saved state."""
    with server.cluster() as cluster:
        session = cluster.connect()
        session.execute("CREATE TABLE soak.passing (p int PRIMARY KEY, v text)")
        for i in range(20):
            session.execute(session.prepare(f"INSERT INTO soak.passing (p, v) VALUES (?, '{n} {i}')"), (i,))
        session.execute("INSERT INTO system_control.snapshots (name) VALUES ('soak')")
        session.execute("DELETE FROM system_control.snapshots WHERE name = 'soak'")
        session.execute("DROP TABLE soak.passing")


def slope(values):
    """Theil and Sen's: the median of the slopes between any two samples, per sample."""
    return statistics.median((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(values), 2))


def verdict(samples):
    """Yields (name, text, whether it grows) of what came behind the warm-up."""
    samples = samples[int(len(samples) * WARM_UP):]
    for name, (unit, wave) in FIGURES.items():
        values = [s[name] for s in samples]
        grown = slope(values) * (len(values) - 1)
        allowed = max(wave, statistics.median(values) * 0.05)
        yield name, f"{min(values) / unit:.0f} to {max(values) / unit:.0f}, by the slope {grown / unit:+.1f}, of {allowed / unit:.0f} allowed", grown > allowed


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--rate", type=int, default=200, help="requests a second")
    parser.add_argument("--interval", type=float, default=60, help="seconds between two samples")
    parser.add_argument("--binary", default=TALLYD)
    return parser.parse_args()


def drive(args, server, folder):
    """Returns (samples, report of tally stress)."""
    profile, samples = folder / "soak.yaml", []
    profile.write_text(PROFILE)
    command = [Path(args.binary).parent / "tally", "stress", "--server", f"{server.host}:{server.port}", "--file", profile, "--seconds", args.seconds, "--rate", args.rate, "--json"]
    with open(folder / "report.json", "w") as out:
        stress = subprocess.Popen([str(c) for c in command], stdout=out, stderr=subprocess.DEVNULL)
    began = time.monotonic()
    time.sleep(min(args.interval / 2, 5))  # tables are made
    while stress.poll() is None:
        samples.append(sample(server))
        now = samples[-1]
        print(f"{time.monotonic() - began:6.0f} s  " + "  ".join(f"{name} {now[name] / unit:.0f}" for name, (unit, _) in FIGURES.items()), flush=True)
        come_and_go(server, len(samples))
        try:
            stress.wait(max(0, began + len(samples) * args.interval - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
    return samples, json.loads((folder / "report.json").read_text())


def main():
    args = parsed()
    folder = Path(tempfile.mkdtemp(prefix="tally-soak-"))
    # the least memory: what fills is full soon, and shows if it goes on growing
    server = Server(folder, "--mode", "cassandra", "--control", "on", "--memory", "344", "--memtables", "16", binary=args.binary).start()
    try:
        samples, report = drive(args, server, folder)
        server.stop()
    finally:
        if server.alive():
            server.kill9()
        shutil.rmtree(folder)
    found = list(verdict(samples))
    for name, text, grows in found:
        print(f"{name:12} {text}{'  GROWTH' if grows else ''}")
    failed = report["failed"] + report["unanswered"]
    grows = any(g for _, _, g in found)
    print(f"{report['requests']} requests, {failed} failed; {'GROWTH' if grows else 'PASS: no growth' if not failed else 'FAILED'}")
    return 1 if grows or failed else 0


if __name__ == "__main__":
    sys.exit(main())
