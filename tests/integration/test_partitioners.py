"""An account's partitioner: the tokens that a connection sees, and reads by ranges of them, as Spark's connector sends them."""
import hashlib
import random

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.protocol import ProtocolException

MURMUR3, RANDOM, DEFAULT = "org.apache.cassandra.dht.Murmur3Partitioner", "org.apache.cassandra.dht.RandomPartitioner", "com.amazonaws.cassandra.DefaultPartitioner"
PARTITIONS, ROWS = 150, 3
LEAST = {MURMUR3: -2 ** 63, RANDOM: -1, DEFAULT: -1}
GREATEST = {MURMUR3: 2 ** 63 - 1, RANDOM: 2 ** 127, DEFAULT: 2 ** 127}


def md5_token(key):
    """RandomPartitioner.getToken"""
    return abs(int.from_bytes(hashlib.md5(key).digest(), "big", signed=True))


def switch(server, partitioner):
    with server.cluster(schema_metadata_enabled=False) as cluster:
        cluster.connect().execute("UPDATE system.local SET partitioner = %s WHERE key = 'local'", (partitioner,))


@pytest.fixture
def server(new_server):
    server = new_server("--ddl-delay", "none")
    with server.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SingleRegionStrategy'}")
        session.execute("CREATE TABLE k.t (k text, c int, v int, PRIMARY KEY (k, c))")
        session.execute("CREATE TABLE k.two (a int, b text, v int, PRIMARY KEY ((a, b)))")
        insert = session.prepare("INSERT INTO k.t (k, c, v) VALUES (?, ?, ?)")
        for p in range(PARTITIONS):
            for c in range(ROWS):
                session.execute(insert, (f"key {p}", c, p))
        session.execute("INSERT INTO k.t (k, c, v) VALUES ('a', 0, 0)")
        session.execute("INSERT INTO k.two (a, b, v) VALUES (7, 'b', 0)")
    return server


@pytest.mark.parametrize("partitioner", [RANDOM, DEFAULT])
def test_tokens_are_those_of_md5(server, partitioner):
    switch(server, partitioner)
    with server.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        rows = session.execute("SELECT k, token(k) AS t FROM k.t").all()
        assert len(rows) == PARTITIONS * ROWS + 1 and all(r.t == md5_token(r.k.encode()) for r in rows)
        assert session.execute("SELECT token(k) FROM k.t WHERE k = 'a'").one()[0] == 16955237001963240173058271559858726497
        assert session.execute("SELECT token(a, b) FROM k.two").one()[0] == md5_token(b"\0\4\0\0\0\7\0" + b"\0\1b\0")
        # as on AWS's page on partitioners
        assert len(session.execute("SELECT k FROM k.t WHERE token(k) <= 170141183460469231731687303715884105728").all()) == len(rows)
        assert session.execute("SELECT k FROM k.t WHERE token(k) = 16955237001963240173058271559858726497").one().k == "a"
        for nothing in ("> 170141183460469231731687303715884105728", "> 5 AND token(k) <= 4", "> 5 AND token(k) <= 5", ">= " + "9" * 60, f"> {10 ** 40}", f">= {2 ** 128}", "= -2", "< -2", f"<= {-10 ** 40}"):
            assert not session.execute(f"SELECT k FROM k.t WHERE token(k) {nothing}").all()
        for everything in ("> -1", ">= -1", "<= -1", "= -1", "< -1", "> -2", f"> {-10 ** 60}", f"< {10 ** 40}", f"<= {10 ** 60}", "> -1 AND token(k) <= -1"):
            assert len(session.execute(f"SELECT k FROM k.t WHERE token(k) {everything}").all()) == len(rows)
        for wrong, says in (("'x'", "Invalid STRING constant"), ("1.5", "Invalid FLOAT constant"), ("null", "Invalid null token value")):
            with pytest.raises(InvalidRequest, match=says):
                session.execute(f"SELECT k FROM k.t WHERE token(k) > {wrong}")
        select = session.prepare("SELECT k FROM k.t WHERE token(k) = ?")
        assert select.column_metadata[0].type.typename == "varint" and select.column_metadata[0].name == "partition key token"
        assert [r.k for r in session.execute(select, (md5_token(b"a"),))] == ["a"]
        with pytest.raises(InvalidRequest, match="Invalid null token value"):
            session.execute(select, (None,))


@pytest.mark.parametrize("partitioner", [MURMUR3, RANDOM, DEFAULT])
@pytest.mark.parametrize("ranges, page", [(1, 5000), (16, 5000), (1, 7), (16, 7), (2, 1)])
def test_a_full_scan_by_ranges_returns_each_row_once(server, partitioner, ranges, page):
    switch(server, partitioner)
    rng = random.Random(ranges * page)
    ends = sorted(rng.randrange(LEAST[partitioner] + 1, GREATEST[partitioner]) for _ in range(ranges))
    with server.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        session.default_fetch_size = page
        expected = sorted(map(tuple, session.execute("SELECT k, c, token(k) FROM k.t")))
        assert len(expected) == PARTITIONS * ROWS + 1
        between, above, below = (session.prepare("SELECT k, c, token(k) FROM k.t WHERE " + where)
                                 for where in ("token(k) > ? AND token(k) <= ?", "token(k) > ?", "token(k) <= ?"))
        got = []
        for low, high in zip(ends, ends[1:]):
            rows = list(map(tuple, session.execute(between, (low, high))))
            assert all(low < t <= high for _, _, t in rows)
            got += rows
        got += list(map(tuple, session.execute(above, (ends[-1],)))) + list(map(tuple, session.execute(below, (ends[0],))))
        assert sorted(got) == expected
        # the ring's ends as bounds, as a client writes them that does not leave them out
        ends = [LEAST[partitioner]] + ends + [LEAST[partitioner]]
        assert sorted(tuple(r) for low, high in zip(ends, ends[1:]) for r in session.execute(between, (low, high))) == expected
        # a filter, and a table without rows in most ranges
        filtered = session.prepare("SELECT k, c FROM k.t WHERE token(k) > ? AND token(k) <= ? AND c = 1 ALLOW FILTERING")
        assert len([r for low, high in zip(ends, ends[1:]) for r in session.execute(filtered, (low, high))]) == PARTITIONS
        two = session.prepare("SELECT v FROM k.two WHERE token(a, b) > ? AND token(a, b) <= ?")
        assert len([r for low, high in zip(ends, ends[1:]) for r in session.execute(two, (low, high))]) == 1


def test_a_paging_state_belongs_to_its_range(server):
    switch(server, RANDOM)
    with server.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        session.default_fetch_size = 5
        select = session.prepare("SELECT k, token(k) AS t FROM k.t WHERE token(k) > ? AND token(k) <= ?")
        result = session.execute(select, (0, 2 ** 126))
        state, last = result.paging_state, result.current_rows[-1].t
        with pytest.raises(ProtocolException, match="Invalid value for the paging state"):
            session.execute(select, (last, 2 ** 127), paging_state=state)


def test_a_connection_keeps_the_partitioner_it_began_with(server):
    query = "SELECT token(k) AS t FROM k.t WHERE k = 'a'"
    ranged = "SELECT k FROM k.t WHERE token(k) = ?"
    murmur = -8839064797231613815

    def told(session):
        return session.execute("SELECT partitioner FROM system.local").one().partitioner

    with server.cluster(schema_metadata_enabled=False) as before:
        old = before.connect()
        prepared = old.prepare(ranged)
        switch(server, RANDOM)
        with server.cluster(schema_metadata_enabled=False) as after:
            new = after.connect()
            again = new.prepare(ranged)
            assert prepared.query_id != again.query_id
            for _ in range(2):
                assert told(old) == MURMUR3 and old.execute(query).one().t == murmur
                assert told(new) == RANDOM and new.execute(query).one().t == md5_token(b"a")
                assert old.execute(prepared, (murmur,)).one().k == "a"
                assert new.execute(again, (md5_token(b"a"),)).one().k == "a"
                old.execute("ALTER TABLE k.t WITH default_time_to_live = 1000")  # both are compiled anew


@pytest.mark.parametrize("partitioner", [MURMUR3, RANDOM, DEFAULT])
def test_the_ring_of_the_system_tables_is_that_of_the_tokens(new_server, partitioner):
    server = new_server("--ddl-delay", "none", "--peers", "keyspaces")
    switch(server, partitioner)
    one_host = {EXEC_PROFILE_DEFAULT: ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy(["127.0.0.1"]))}
    with server.cluster(schema_metadata_enabled=False, execution_profiles=one_host) as cluster:
        session = cluster.connect()
        tokens = [int(t) for table in ("local", "peers") for r in session.execute(f"SELECT tokens FROM system.{table}") for t in r.tokens]
        width = GREATEST[partitioner] - LEAST[partitioner]
        assert len(set(tokens)) == 10 and all(LEAST[partitioner] < t <= GREATEST[partitioner] for t in tokens)
        ring = sorted(tokens)
        assert all(abs((b - a) % width - width // 10) < width // 1000 for a, b in zip(ring, ring[1:] + ring[:1]))
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SingleRegionStrategy'}")
        session.execute("CREATE TABLE k.t (k int PRIMARY KEY)")
        estimates = session.execute("SELECT range_start, range_end FROM system.size_estimates WHERE keyspace_name = 'k'").all()
        ends = {int(e.range_start) for e in estimates} | {int(e.range_end) for e in estimates}
        assert len(estimates) == 2 and ends == {LEAST[partitioner], 0 if partitioner == MURMUR3 else 2 ** 126}
