#!/usr/bin/env python3
"""What a start costs after kill -9: of a store of many rows with so much in its log, several servers in turns on copies of one folder.

    build/venv/bin/python tests/bench/start.py [--rows 2400000] [--log 22] [--turns 5] [--memtables MB] [--binary build/release/bin/tallyd ...]

Writes the rows, lets the server rest, writes more until the log holds --log MB, kills it. Then each binary starts on a copy of the folder, is killed again, and the next one starts. Prints for each
binary the CPU seconds and the time until it is ready: median, least, most; and what of it is one start more, on the folder that it left behind, whose log is short."""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from tally_server import TALLYD, Server  # noqa: E402

MB = 1 << 20
PROFILE = """
schema:
  - "CREATE KEYSPACE IF NOT EXISTS start WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
  - CREATE TABLE IF NOT EXISTS start.%(table)s (p int PRIMARY KEY, v text)
load: {rows: %(rows)d, cql: "INSERT INTO start.%(table)s (p, v) VALUES (?, ?)", values: [sequence(0..%(last)d), text(100)]}
statements:
  - {weight: 1, cql: "SELECT * FROM start.%(table)s WHERE p = ?", values: [uniform(0..%(last)d)]}
"""


def log_bytes(folder):
    return sum(f.stat().st_size for f in folder.glob("data/rows*/*.log"))


def write(server, folder, table, rows):
    profile = folder / "start.yaml"
    profile.write_text(PROFILE % {"table": table, "rows": rows, "last": rows - 1})
    command = [Path(server.binary).parent / "tally", "stress", "--server", f"{server.host}:{server.port}", "--file", profile, "--seconds", "1", "--rate", "10", "--quiet"]
    subprocess.run([str(c) for c in command], stdout=subprocess.DEVNULL, check=True)


def rest(folder):
    """Until what is left in the log is as much as a server at rest leaves."""
    before, end = -1, time.monotonic() + 120
    while log_bytes(folder) != before and time.monotonic() < end:
        before = log_bytes(folder)
        time.sleep(5)


def make(args, folder):
    server = Server(folder, *args.flags, binary=args.binary[0]).start()
    write(server, folder, "rows", args.rows)
    rest(folder)
    for part in range(1000):
        if log_bytes(folder) >= args.log * MB:
            break
        write(server, folder, f"more{part}", 10000)
    server.kill9()
    print(f"{args.rows} rows; the log holds {log_bytes(folder) / MB:.1f} MB", flush=True)


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(args, folder, binary):
    """(CPU seconds, seconds) until it is ready."""
    server, begun = Server(folder, *args.flags, binary=binary), time.monotonic()
    server.start()
    took, cpu = time.monotonic() - begun, cpu_seconds(server.process.pid)
    server.kill9()
    return cpu, took


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2400000, help="of 100 bytes")
    parser.add_argument("--log", type=int, default=22, help="MB")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--memtables", type=int, default=256, help="MB; the log is not longer than a quarter")
    parser.add_argument("--binary", nargs="+", default=[str(TALLYD)], help="the first one writes the rows")
    args = parser.parse_args()
    args.flags = ("--mode", "cassandra", "--durability", "periodic", "--memtables", str(args.memtables))
    scratch = Path(tempfile.mkdtemp(prefix="tally-start-"))
    try:
        kept, copy = scratch / "kept", scratch / "copy"
        kept.mkdir()
        make(args, kept)
        found = {b: ([], []) for b in args.binary}
        for turn in range(args.turns):
            for binary in args.binary[:: 1 if turn % 2 else -1]:
                shutil.copytree(kept, copy, ignore=shutil.ignore_patterns("*.sock"))
                for starts in found[binary]:
                    starts.append(start(args, copy, binary))
                shutil.rmtree(copy)
        for binary, kinds in found.items():
            for what, starts in zip(("with that log", "once more"), kinds):
                print(f"{binary}, {what}: CPU {spread([s[0] for s in starts])} s, ready after {spread([s[1] for s in starts])} s")
    finally:
        shutil.rmtree(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
