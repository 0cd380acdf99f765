"""Tables that go: a drop and a truncation answer at once whatever the table holds, the space comes back soon, and those who read beside it do not notice."""
import os
import time

import pytest
from cassandra.concurrent import execute_concurrent_with_args

MB = 1 << 20
LARGE, SMALL = 200 * MB, 2 * MB


def fill(session, table, size, row=64 * 1024):
    session.execute(f"CREATE TABLE k.{table} (p int, c int, v blob, PRIMARY KEY (p, c))")
    insert = session.prepare(f"INSERT INTO k.{table} (p, c, v) VALUES (?, ?, ?)")
    values = ((i % 50, i, os.urandom(row)) for i in range(size // row))
    execute_concurrent_with_args(session, insert, values, concurrency=16, raise_on_first_error=True)


def seconds(run, times=1):
    best = float("inf")
    for _ in range(times):
        start = time.monotonic()
        run()
        best = min(best, time.monotonic() - start)
    return best


@pytest.mark.parametrize("statement", ["DROP TABLE", "TRUNCATE"])
def test_a_large_table_goes_at_once_and_its_space_comes_back(new_server, statement):
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
        reads = lambda: [session.execute(read, (i % 50, i)) for i in range(500)]
        reads()
        calm = seconds(reads, times=3)
        small = seconds(lambda: session.execute(f"{statement} k.small"))
        large = seconds(lambda: session.execute(f"{statement} k.large"))
        assert large < 20 * small + 0.5, f"{statement}: {small:.3f} s for {SMALL} bytes, {large:.3f} s for {LARGE}"
        beside = seconds(reads, times=3)
        assert beside < 4 * calm + 0.2, f"500 reads beside it take {beside:.3f} s, {calm:.3f} s before"
        end = time.monotonic() + 60
        while server.bytes_on_disk() > before + held // 3:
            assert time.monotonic() < end, f"{server.bytes_on_disk() - before} of {held} bytes are still held"
            time.sleep(0.2)
