"""The row cache and the runs of slices: the same random statements on a server with them and on one without have the same rows, outcomes and charges, whatever is written
between two reads of a row or a slice; and after a restart and after kill -9."""
import json
import random
import struct
import urllib.request
from datetime import datetime

import pytest
from cassandra.query import SimpleStatement

from control import set_clock
from ports import free_port
from tally_server import Server, create_keyspace

SEED, ROUNDS, PARTITIONS, ROWS = 13, 260, 3, 6
TABLES = {"t": "(p int, c int, s text static, v text, w int, m map<int, text>, PRIMARY KEY (p, c)) WITH gc_grace_seconds = 100",
          "plain": "(p int, c int, v text, w int, PRIMARY KEY (p, c))",
          "counts": "(p int, c int, n counter, PRIMARY KEY (p, c))"}
SLICES = ["", " AND c > 1", " AND c >= 1 AND c < 4", " AND c IN (1, 2, 5)", " LIMIT 2", " ORDER BY c DESC", " AND c < 4 ORDER BY c DESC LIMIT 2"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """With a row cache of its usual size, and without one. Nothing is reclaimed, or the bytes that are read would depend on when."""
    flags = ["--ddl-delay", "none", "--control", "on", "--reclaim-rate", "0"]
    servers = [Server(tmp_path_factory.mktemp("row-cache"), *flags, "--admin-port", str(free_port()), *cache) for cache in ((), ("--row-cache", "0"))]
    for server in servers:
        server.start()
    yield servers
    for server in servers:
        server.stop()


def outcome(session, statement, page=5000):
    """Rows of each page or the error, and what it was charged."""
    pages, statement, state = [], SimpleStatement(statement, fetch_size=page), None
    while state or not pages:
        future = session.execute_async(statement, custom_payload={"capacity": b""}, paging_state=state)
        try:
            result = future.result()
        except Exception as e:
            return pages, type(e).__name__, str(e)
        payload, state = future.custom_payload, result.paging_state
        pages.append(([tuple(r) for r in result.current_rows], struct.unpack(">d", payload["RequestCharge"])[0], json.loads(payload["capacity"])))
    return pages


def figures(server):
    with urllib.request.urlopen(f"http://{server.admin}/metrics", timeout=300) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (line.split() for line in lines if line.startswith(("tally_engine_row_cache", "tally_engine_slice_cache")))}


def reads():
    for p in range(PARTITIONS):
        for c in range(ROWS):
            yield f"SELECT * FROM k.t WHERE p = {p} AND c = {c}"
            yield f"SELECT c, v, w, ttl(v), writetime(v) FROM k.plain WHERE p = {p} AND c = {c}"
            yield f"SELECT n FROM k.counts WHERE p = {p} AND c = {c}"
        for slice_ in SLICES:
            yield f"SELECT * FROM k.t WHERE p = {p}{slice_}"
            yield f"SELECT c, v, w, ttl(v), writetime(v) FROM k.plain WHERE p = {p}{slice_}"
            yield f"SELECT * FROM k.plain WHERE p = {p}{slice_}"
        yield f"SELECT c, n FROM k.counts WHERE p = {p}"
        yield f"SELECT count(*), max(w) FROM k.plain WHERE p = {p} AND c < 5"
        yield f"SELECT * FROM k.plain WHERE p = {p} AND w > 500 ALLOW FILTERING"


class Writer:
    """Random statements. Times of writing are given, so that both servers store the same."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.ts = 1_700_000_000_000_000

    def key(self):
        return f"p = {self.random.randrange(PARTITIONS)} AND c = {self.random.randrange(ROWS)}"

    def statement(self):
        self.ts += 1
        r, at, table = self.random, f"USING TIMESTAMP {self.ts}", self.random.choice(["t", "plain"])
        p, c, n = r.randrange(PARTITIONS), r.randrange(ROWS), r.randrange(1000)
        insert = f"INSERT INTO k.{table} (p, c, v, w) VALUES ({p}, {c}, '{n}', {n})"
        return r.choice([
            f"{insert} {at}", f"{insert} {at} AND TTL 50", f"{insert} IF NOT EXISTS",
            f"INSERT INTO k.t (p, s) VALUES ({p}, 'static {n}') {at}",
            f"UPDATE k.{table} {at} SET w = {n} WHERE {self.key()}", f"UPDATE k.{table} {at} AND TTL 50 SET v = 'short {n}' WHERE {self.key()}",
            f"UPDATE k.{table} {at} SET v = null WHERE {self.key()}", f"UPDATE k.t {at} SET m[{n % 3}] = '{n}' WHERE {self.key()}",
            f"UPDATE k.{table} SET w = {n} WHERE {self.key()} IF w < 500", f"UPDATE k.counts SET n = n + {n} WHERE {self.key()}",
            f"DELETE FROM k.{table} {at} WHERE {self.key()}", f"DELETE v FROM k.{table} {at} WHERE {self.key()}", f"DELETE FROM k.{table} WHERE {self.key()} IF EXISTS",
            f"BEGIN BATCH {at} {insert}; UPDATE k.t SET s = 'batch {n}' WHERE p = {p}; DELETE FROM k.t WHERE p = {p} AND c = {(c + 1) % ROWS}; APPLY BATCH",
            f"BEGIN UNLOGGED BATCH {insert} {at}; INSERT INTO k.plain (p, c, v) VALUES ({p}, {c}, 'both {n}') {at}; APPLY BATCH"])

    def rare(self):
        self.ts += 1
        r, at = self.random, f"USING TIMESTAMP {self.ts}"
        return r.choice([f"DELETE FROM k.t {at} WHERE p = {r.randrange(PARTITIONS - 1)}", f"DELETE FROM k.t {at} WHERE p = {r.randrange(PARTITIONS)} AND c > 1 AND c < 4",
                         f"DELETE FROM k.plain {at} WHERE p = {r.randrange(PARTITIONS)} AND c >= 4", "TRUNCATE k.plain", "TRUNCATE k.counts",
                         "ALTER TABLE k.plain DROP w", "ALTER TABLE k.plain ADD w int", "DROP TABLE k.plain", f"CREATE TABLE k.plain {TABLES['plain']}"])


def same(sessions, statement, page=5000):
    outcomes = [outcome(s, statement, page) for s in sessions]
    assert outcomes[0] == outcomes[1], (statement, page)


def read_all(sessions):
    for statement in reads():
        same(sessions, statement)


def test_the_same_with_it_and_without_it(pair):
    """Deleted as rows, ranges and partitions, expired, decided by conditions, counted, batched, truncated, dropped and created again, altered."""
    writer, clusters = Writer(SEED), [s.cluster(schema_metadata_enabled=False) for s in pair]
    sessions = [c.connect() for c in clusters]
    for session in sessions:
        create_keyspace(session, "k")
        for name, definition in TABLES.items():
            session.execute(f"CREATE TABLE k.{name} {definition}")
        set_clock(session, state="frozen", now=datetime(2031, 5, 6, 7, 8, 9))
    statements = list(reads())
    for i in range(ROUNDS):
        same(sessions, writer.rare() if i % 20 == 19 else writer.statement())
        for statement in writer.random.sample(statements, 6):
            page = writer.random.choice([2, 5000, 5000])
            for _ in range(3):
                same(sessions, statement, page)
        if i % 50 == 49:
            for session in sessions:
                set_clock(session, advance_ms=60_000)
    read_all(sessions)
    with_it, without = (figures(s) for s in pair)
    assert with_it["tally_engine_row_cache_hits_total"] > ROUNDS and with_it["tally_engine_row_cache_misses_total"] > 0
    assert with_it["tally_engine_row_cache_rows"] > 0 and with_it["tally_engine_row_cache_bytes"] > 0
    assert with_it["tally_engine_slice_cache_hits_total"] > ROUNDS and with_it["tally_engine_slice_cache_misses_total"] > 0
    assert with_it["tally_engine_slice_cache_runs"] > 0 and with_it["tally_engine_slice_cache_bytes"] > 0
    assert set(without.values()) == {0}
    for c in clusters:
        c.shutdown()


@pytest.mark.parametrize("end", [Server.stop, Server.kill9])
def test_the_same_after_a_restart(pair, end):
    for server in pair:
        end(server)
        server.start()
    clusters = [s.cluster(schema_metadata_enabled=False) for s in pair]
    sessions = [c.connect() for c in clusters]
    for _ in range(3):
        read_all(sessions)
    for c in clusters:
        c.shutdown()
