"""Partitions whose rows have all expired and are still stored: their static values are their own in every read, at every page size."""
import json

import pytest
from cassandra.query import SimpleStatement

from control import set_clock
from tally_server import create_keyspace, create_table

PARTITIONS = 24
SIZES = [None, 1, 5]


def blob(p):
    """Values of different lengths and bytes, so that a value in memory that is used again shows."""
    return bytes([p + 1]) * (p * 37 % 900 + 1)


def tags(p):
    return {f"{p}-{i}" for i in range(p % 4 + 1)}


@pytest.fixture(params=["cassandra", "keyspaces"])
def session(new_server, request):
    server = new_server("--mode", request.param, "--control", "on", "--ddl-delay", "none", "--threads", "1")
    with server.cluster() as cluster:
        s = cluster.connect()
        create_keyspace(s, "k")
        create_table(s, "k", "t", "p int, c int, s blob static, n int static, l set<text> static, v blob, PRIMARY KEY (p, c)")
        set_clock(s, state="frozen")
        for p in range(PARTITIONS):
            s.execute("UPDATE k.t SET s = %s, n = %s, l = %s WHERE p = %s", (blob(p), p, tags(p), p))
            for c in range(p % 3 + 1):
                s.execute("INSERT INTO k.t (p, c, v) VALUES (%s, %s, %s) USING TTL 1", (p, c, blob(PARTITIONS + c)))
        set_clock(s, advance_ms=3000)
        yield s


def read(session, what, size):
    return list(session.execute(SimpleStatement(what, fetch_size=size)))


@pytest.mark.parametrize("size", SIZES)
def test_a_scan_returns_each_partitions_own_static_values(session, size):
    def own(rows):
        assert {r.p: (r.s, r.n, set(r.l)) for r in rows} == {p: (blob(p), p, tags(p)) for p in range(PARTITIONS)}

    own(read(session, "SELECT p, s, n, l FROM k.t", size))
    own(read(session, "SELECT p, c, s, n, l, v FROM k.t", size))
    own(read(session, "SELECT DISTINCT p, s, n, l FROM k.t", size))
    own(read(session, "SELECT p, s, n, l FROM k.t WHERE n >= 0 ALLOW FILTERING", size))
    own([r for p in range(PARTITIONS) for r in read(session, f"SELECT p, s, n, l FROM k.t WHERE p = {p}", size)])
    own([r for p in range(PARTITIONS) for r in read(session, f"SELECT p, s, n, l FROM k.t WHERE p = {p} ORDER BY c DESC", size)])


@pytest.mark.parametrize("size", SIZES)
def test_json_and_times_of_a_scan_are_those_of_the_partition(session, size):
    rows = [json.loads(r[0]) for r in read(session, "SELECT JSON p, s, n, l FROM k.t", size)]
    assert {r["p"]: (r["s"], r["n"], set(r["l"])) for r in rows} == {p: ("0x" + blob(p).hex(), p, tags(p)) for p in range(PARTITIONS)}
    written = {r.p: r.w for p in range(PARTITIONS) for r in read(session, f"SELECT p, writetime(s) AS w FROM k.t WHERE p = {p}", None)}
    assert {r.p: r.w for r in read(session, "SELECT p, writetime(s) AS w FROM k.t", size)} == written


def test_a_static_row_is_given_once_when_pages_end_among_expired_rows(session):
    """Pages end by what is read, 1 MB on Keyspaces, and before a group that the next page begins with."""
    for p in (1000, 1001):
        session.execute("UPDATE k.t SET s = %s WHERE p = %s", (blob(p % 7), p))
        for c in range(40):
            session.execute("INSERT INTO k.t (p, c, v) VALUES (%s, %s, %s) USING TTL 1", (p, c, bytes(100_000)))
    set_clock(session, advance_ms=3000)
    for size in (None, 1, 2):
        for order in ("", " ORDER BY c DESC"):
            assert [r.s for r in read(session, f"SELECT s FROM k.t WHERE p = 1000{order}", size)] == [blob(1000 % 7)]
        assert {r.p: r.s for r in read(session, "SELECT p, s FROM k.t WHERE p IN (1001, 1000)", size)} == {p: blob(p % 7) for p in (1000, 1001)}
        found = {r.p: r.s for r in read(session, "SELECT p, s FROM k.t", size)}
        assert len(found) == PARTITIONS + 2 and found[1000] == blob(1000 % 7) and found[1001] == blob(1001 % 7)


def test_aggregates_and_groups_take_the_partitions_own_values(new_server, session):
    assert read(session, "SELECT max(s), sum(n), count(s) FROM k.t", None)[0] == \
        (max(map(blob, range(PARTITIONS))), sum(range(PARTITIONS)), PARTITIONS)
    groups = {r.p: (r.s, r.m) for r in read(session, "SELECT p, s, max(s) AS m FROM k.t GROUP BY p", 5)}
    assert groups == {p: (blob(p), blob(p)) for p in range(PARTITIONS)}
