#!/usr/bin/env python3
"""Benchmarks of what grows: states saved and put back, tables that go, catalogues of thousands of tables. Each against a server of its own.

    build/venv/bin/python tests/bench/growth.py [--binary build/release/bin/tallyd] [--only NAME]...

A row is: name, what was measured, the figure that README and docs promise where they promise one. It is no test: figures are a quiet machine's."""
import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from cassandra.concurrent import execute_concurrent_with_args  # noqa: E402

from tally_server import TALLYD, Server  # noqa: E402

MB = 1 << 20
TABLE = "(pk int, ck int, a text, b text, st int static, PRIMARY KEY (pk, ck))"


def row(name, text, promised=""):
    print(f"{name:12} {text}" + (f"   [{promised}]" if promised else ""), flush=True)


def median(times):
    return sorted(times)[len(times) // 2]


def shown(times):
    return f"{min(times) * 1000:.1f} to {max(times) * 1000:.1f} ms, median {median(times) * 1000:.1f} ms"


class Run:
    """A server in a scratch folder, and a session that does not follow the schema."""

    def __init__(self, binary, *flags):
        self.folder = tempfile.mkdtemp(prefix="tally-growth-")
        self.server = Server(self.folder, "--mode", "cassandra", "--control", "on", *flags, binary=binary).start()
        self.connect()
        self.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")

    def connect(self):
        self.cluster = self.server.cluster(schema_metadata_enabled=False, token_metadata_enabled=False, protocol_version=4)
        self.session = self.cluster.connect()

    def run(self, statement, *args):
        start = time.perf_counter()
        self.session.execute(statement, *args, timeout=600)
        return time.perf_counter() - start

    def fill(self, table, size, value=16 * 1024):
        self.run(f"CREATE TABLE k.{table} (p int, c int, v blob, PRIMARY KEY (p, c))")
        insert = self.session.prepare(f"INSERT INTO k.{table} (p, c, v) VALUES (?, ?, ?)")
        values = ((i % 64, i, os.urandom(value)) for i in range(size // value))
        execute_concurrent_with_args(self.session, insert, values, concurrency=32)

    def cpu(self):
        """Seconds that the server has used."""
        fields = Path(f"/proc/{self.server.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cluster.shutdown()
        if self.server.alive():
            self.server.kill9()
        shutil.rmtree(self.folder)


def put_back_times(r, name, n, rest):
    times = []
    for i in range(n):
        r.run("INSERT INTO k.t (p, c, v) VALUES (%s, %s, 0x00)", (i, 1 << 20))
        time.sleep(rest)
        times.append(r.run("UPDATE system_control.snapshots SET put_back = true WHERE name = %s", (name,)))
    return times


def bench_state(binary):
    with Run(binary, "--durability", "none") as r:
        for size in (1, 100):
            r.run("DROP TABLE IF EXISTS k.t")
            r.fill("t", size * MB)
            saved = r.run("INSERT INTO system_control.snapshots (name) VALUES ('all')")
            row("state", f"{size} MB saved in {saved * 1000:.0f} ms, put back in {shown(put_back_times(r, 'all', 9, 0.2))}", "100 MB put back in under 100 ms")


def bench_keyspace(binary):
    with Run(binary, "--durability", "none") as r:
        for size in (1, 100):
            r.run("DROP TABLE IF EXISTS k.t")
            r.fill("t", size * MB)
            saved = r.run("INSERT INTO system_control.snapshots (name, keyspace_name) VALUES ('one', 'k')")
            time.sleep(0.05 * size)
            row("keyspace", f"{size} MB saved in {saved * 1000:.0f} ms, put back in {shown(put_back_times(r, 'one', 9, 0.05 * size))}", "100 MB put back in under 100 ms")
            row("keyspace", f"{size} MB put back again at once, {shown(put_back_times(r, 'one', 3, 0))}")


def bench_gone(binary):
    for statement in ("DROP TABLE", "TRUNCATE"):
        with Run(binary, "--durability", "none", "--memory", "400") as r:
            r.fill("t", 1024 * MB, value=64 * 1024)
            held = r.server.bytes_on_disk()
            took, start = r.run(f"{statement} k.t"), time.perf_counter()
            while r.server.bytes_on_disk() > held // 10 and time.perf_counter() < start + 120:
                time.sleep(0.1)
            row("gone", f"{statement} of {held / MB:.0f} MB answered in {took * 1000:.0f} ms, off the disk {time.perf_counter() - start:.1f} s later", "at once, and soon")


def create(r, first, n):
    return [r.run(f"CREATE TABLE k.t{i:06d} {TABLE}") for i in range(first, first + n)]


def bench_tables(binary):
    with Run(binary) as r:
        times = create(r, 0, 1000)
        row("tables", f"1,000 tables in {sum(times):.2f} s, one after the other, each on disk", "under 10 s")


def bench_create(binary):
    """On two servers in turns, so that what else the machine does disturbs both alike."""
    with Run(binary) as few, Run(binary) as many:
        create(few, 0, 10)
        create(many, 0, 2000)
        for statement in ("CREATE TABLE", "DROP TABLE"):
            times, cpu = ([], []), (few.cpu(), many.cpu())
            for i in range(5000, 5400):
                for n, r in enumerate((few, many)):
                    times[n].append(r.run(f"{statement} k.t{i:06d}" + (f" {TABLE}" if statement == "CREATE TABLE" else "")))
            used = ((few.cpu() - cpu[0]) / 400, (many.cpu() - cpu[1]) / 400)
            for what, a, b in (("median", median(times[0]), median(times[1])), ("CPU of the server", *used)):
                row("create", f"{statement}, {what}: {a * 1000:.2f} ms beside 10 tables, {b * 1000:.2f} ms beside 2,000: {b / a:.2f} times", "at most 1.3 times")


def bench_start(binary):
    with Run(binary, "--durability", "none") as r:
        create(r, 0, 5000)
        times = []
        for _ in range(3):
            r.server.stop()
            start = time.perf_counter()
            r.server.start()
            times.append(time.perf_counter() - start)
        row("start", f"with 5,000 tables {min(times):.2f} to {max(times):.2f} s until ready", "under 2 s")


BENCHES = {name[6:]: fn for name, fn in globals().items() if name.startswith("bench_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=TALLYD, type=Path)
    parser.add_argument("--only", action="append", choices=BENCHES)
    args = parser.parse_args()
    for name in args.only or BENCHES:
        BENCHES[name](args.binary)


if __name__ == "__main__":
    main()
