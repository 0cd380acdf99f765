"""Dropped and truncated tables: their space comes back, and readers of other tables go on. tests/bench/growth.py measures how long the statements take."""
import os
import random
import subprocess
import threading
import time

import pytest
from cassandra.concurrent import execute_concurrent, execute_concurrent_with_args

from tally_server import HANG, TALLY, eventually

MB = 1 << 20
LARGE, SMALL = 200 * MB, 2 * MB


def fill(session, table, size, row=64 * 1024):
    session.execute(f"CREATE TABLE k.{table} (p int, c int, v blob, PRIMARY KEY (p, c))")
    insert = session.prepare(f"INSERT INTO k.{table} (p, c, v) VALUES (?, ?, ?)")
    values = ((i % 50, i, os.urandom(row)) for i in range(size // row))
    execute_concurrent_with_args(session, insert, values, concurrency=16, raise_on_first_error=True)


@pytest.mark.parametrize("statement", ["DROP TABLE", "TRUNCATE"])
def test_the_space_of_a_large_table_comes_back(new_server, statement):
    server = new_server("--mode", "cassandra", "--durability", "none", "--memory", "400")
    with server.cluster(schema_metadata_enabled=False, protocol_version=4) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        fill(session, "small", SMALL)
        fill(session, "neighbour", SMALL, row=512)
        before = server.bytes_on_disk()
        fill(session, "large", LARGE)
        held = server.bytes_on_disk() - before
        assert held > LARGE // 2, f"{held} bytes of {LARGE} are on disk"
        read = session.prepare("SELECT c FROM k.neighbour WHERE p = ? AND c = ?")
        reads = lambda: [session.execute(read, (i % 50, i)).one() == (i,) for i in range(500)]
        session.execute(f"{statement} k.small")
        session.execute(f"{statement} k.large")
        deadline = time.monotonic() + HANG
        while server.bytes_on_disk() > before + held // 3:
            assert reads() == [True] * 500
            assert time.monotonic() < deadline, f"{server.bytes_on_disk() - before} of {held} bytes are still held"


class Most(threading.Thread):
    """The most that the data folder ever took, looked at ten times a second."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.stopped, self.on_disk = server, threading.Event(), 0

    def run(self):
        while not self.stopped.wait(0.1):
            self.on_disk = max(self.on_disk, self.server.bytes_on_disk())


def at_rest(server):
    """Waits until nothing is compacted: the data folder has been as large as it is for a while."""
    sizes = []

    def is_at_rest():
        sizes.append(server.bytes_on_disk())
        return len(sizes) > 3 and len(set(sizes[-4:])) == 1

    eventually(is_at_rest, "the data folder goes on changing", interval=0.1)


def test_rows_that_are_written_again_and_again_take_little_more_than_once_their_space(new_server):
    """Compactions write what they take before the old files go: in pieces, not all of the data at a time. They are waited for after each half of a memtable, so that how fast the machine is does not count."""
    rows, size, memtables = 12_000, 5_000, 8
    batch = memtables * MB // 2 // size  # rows of half a memtable
    server = new_server("--mode", "cassandra", "--durability", "none", "--memtables", str(memtables))
    with server.cluster(schema_metadata_enabled=False, protocol_version=4) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE k.t (p int PRIMARY KEY, v blob)")
        insert = session.prepare("INSERT INTO k.t (p, v) VALUES (?, ?)")
        chance = random.Random(1)

        def write(keys):
            for at in range(0, len(keys), batch):
                execute_concurrent_with_args(session, insert, [(p, os.urandom(size)) for p in keys[at : at + batch]], concurrency=32, raise_on_first_error=True)
                at_rest(server)

        write(range(rows))
        most = Most(server)
        most.start()
        write([chance.randrange(rows) for _ in range(2 * rows)])
        most.stopped.set()
        most.join()
    live = rows * size
    assert most.on_disk > live, f"{most.on_disk} bytes on disk, {live} live"
    assert most.on_disk < 1.6 * live + 2 * memtables * MB, f"{most.on_disk / live:.2f} times what is live, a log of at most {memtables} MB in that"


def test_what_is_not_written_yet_takes_no_space(new_server):
    """Of the log as little is allocated ahead as may be, however large a memtable is."""
    server = new_server("--mode", "cassandra", "--memtables", "192")
    with server.cluster(schema_metadata_enabled=False, protocol_version=4) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        fill(session, "t", SMALL)
        assert SMALL <= server.bytes_on_disk() < SMALL + 4 * MB, f"{server.bytes_on_disk() / MB:.1f} MiB on disk for {SMALL / MB:.0f} MiB of rows"


class Writer(threading.Thread):
    """Keeps so many large writes in flight to a table that others drop, make anew and truncate; what is refused
    meanwhile is no matter."""

    def __init__(self, server, in_flight=64, row=60 * 1024):
        super().__init__(daemon=True)
        self.server, self.in_flight, self.row = server, in_flight, row
        self.stopped, self.written = threading.Event(), 0

    def run(self):
        with self.server.cluster(schema_metadata_enabled=False, protocol_version=4) as cluster:
            session = cluster.connect()
            row, number = os.urandom(self.row).hex()[:self.row], 0
            while not self.stopped.is_set():
                texts = [(f"INSERT INTO k.t (p, v) VALUES ('{self.name} {number + i}', '{row}')", None)
                         for i in range(self.in_flight)]
                number += self.in_flight
                done = execute_concurrent(session, texts, concurrency=self.in_flight, raise_on_first_error=False)
                self.written += sum(ok for ok, _ in done)


def test_tables_that_go_under_late_writes_leave_nothing(new_server):
    """Commits wait for flushes while the table that they write to is dropped or truncated."""
    server = new_server("--mode", "cassandra", "--memtables", "4")
    writers = [Writer(server) for _ in range(4)]
    with server.cluster(schema_metadata_enabled=False, protocol_version=4) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE k.t (p text PRIMARY KEY, v text)")
        for writer in writers:
            writer.start()
        for i in range(8):
            before = sum(w.written for w in writers)
            eventually(lambda: sum(w.written for w in writers) > before + 300)
            if i % 3 == 2:
                session.execute("TRUNCATE k.t")
            else:
                session.execute("DROP TABLE k.t")
                session.execute("CREATE TABLE k.t (p text PRIMARY KEY, v text)")
        session.execute("DROP KEYSPACE k")
        for writer in writers:
            writer.stopped.set()
        for writer in writers:
            writer.join()
    server.stop()
    server.start()
    server.stop()
    command = [TALLY, "verify", *server.place()]
    looked = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert looked.returncode == 0, looked.stdout
