"""system_control.clock: time to live, now(), DDL's delays, restore windows follow it; write times never go back; connections do not notice."""
from datetime import datetime, timedelta

import pytest
from cassandra import InvalidRequest

from control import objects, read_clock, release, release_all, set_clock, set_rule
from tally_server import await_active, create_keyspace, create_table, eventually, let_pass, status_of


@pytest.fixture
def session(new_server):
    server = new_server("--mode", "cassandra", "--control", "on")
    with server.cluster() as cluster:
        s = cluster.connect()
        create_keyspace(s, "k")
        create_table(s, "k", "t", "pk int PRIMARY KEY, v text, at timestamp")
        yield s


def test_a_frozen_clock_stands_and_an_advanced_one_ends_times_to_live(session):
    set_clock(session, state="frozen", now=datetime(2031, 5, 6, 7, 8, 9))
    session.execute("INSERT INTO k.t (pk, v, at) VALUES (1, 'a', toTimestamp(now())) USING TTL 100")
    let_pass(1.2)
    row = session.execute("SELECT at, TTL(v) AS ttl FROM k.t WHERE pk = 1").one()
    assert row.at == datetime(2031, 5, 6, 7, 8, 9) and row.ttl == 100
    set_clock(session, advance_ms=40_000)
    assert session.execute("SELECT TTL(v) FROM k.t WHERE pk = 1").one()[0] == 60
    set_clock(session, advance_ms=60_000)
    assert session.execute("SELECT * FROM k.t").one() is None
    assert read_clock(session).state == "frozen" and read_clock(session).now == datetime(2031, 5, 6, 7, 9, 49)


def test_it_runs_on_and_is_set_free(session):
    set_clock(session, advance_ms=3_600_000)
    assert read_clock(session).state == "running" and abs(read_clock(session).ahead_ms - 3_600_000) < 5000
    set_clock(session, state="frozen")
    set_clock(session, state="running")
    assert read_clock(session).state == "running"
    set_clock(session, state="free")
    row = read_clock(session)
    assert row.state == "free" and row.ahead_ms == 0 and abs(row.now - datetime.utcnow()) < timedelta(seconds=5)


def test_write_times_never_go_back(session):
    """A write after the clock has gone back wins over one before it."""
    session.use_client_timestamp = False
    set_clock(session, advance_ms=86_400_000)
    session.execute("INSERT INTO k.t (pk, v) VALUES (1, 'ahead')")
    set_clock(session, state="free")
    session.execute("INSERT INTO k.t (pk, v) VALUES (1, 'after')")
    assert session.execute("SELECT v FROM k.t WHERE pk = 1").one().v == "after"
    session.execute("UPDATE k.t SET v = 'decided' WHERE pk = 1 IF v = 'after'")
    assert session.execute("SELECT v FROM k.t WHERE pk = 1").one().v == "decided"


def test_connections_outlive_35_days_in_a_moment(session):
    set_clock(session, advance_ms=35 * 86_400_000)
    for i in range(5):
        session.execute("INSERT INTO k.t (pk, v) VALUES (%s, 'x')", (i,))
        let_pass(0.3)
    assert len(list(session.execute("SELECT * FROM k.t"))) == 5


def table_after_two_minutes(session, more=""):
    """r.t, by a server whose DDL takes a minute of its clock."""
    session.execute("CREATE KEYSPACE r WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    set_clock(session, advance_ms=60_000)
    await_keyspace(session)
    session.execute("CREATE TABLE r.t (pk int PRIMARY KEY, v int)" + more)
    let_pass(0.3)
    assert status_of(session, "r", "t") == "CREATING"
    set_clock(session, advance_ms=60_000)
    await_active(session, "r", "t")


def test_ddl_waits_for_the_clock(new_server):
    server = new_server("--control", "on", "--ddl-delay", "60000")
    with server.cluster() as cluster:
        table_after_two_minutes(cluster.connect())


def test_recovery_windows_move_with_the_clock(new_server):
    server = new_server("--control", "on", "--ddl-delay", "60000")
    with server.cluster() as cluster:
        session = cluster.connect()
        table_after_two_minutes(session, " WITH CUSTOM_PROPERTIES = {'point_in_time_recovery': {'status': 'enabled'}}")
        session.execute("INSERT INTO r.t (pk, v) VALUES (1, 1)")
        early = read_clock(session).now
        set_clock(session, advance_ms=34 * 86_400_000)
        restore = f"RESTORE TABLE r.%s FROM TABLE r.t WITH restore_timestamp = '{early.isoformat(timespec='milliseconds')}+0000'"
        session.execute(restore % "a")
        set_clock(session, advance_ms=2 * 86_400_000)
        with pytest.raises(InvalidRequest, match="must be between"):
            session.execute(restore % "b")


def test_the_timestamp_now_is_the_servers(session):
    """In a literal, within collections and user types, and in JSON; each form of it that Cassandra takes."""
    at = datetime(2031, 5, 6, 7, 8, 9, 123000)
    session.execute("CREATE TYPE k.u (a timestamp)")
    session.execute("CREATE TABLE k.forms (pk int PRIMARY KEY, a timestamp, l list<timestamp>, m map<timestamp, timestamp>, u u, t tuple<timestamp, int>)")
    set_clock(session, state="frozen", now=at)
    session.execute("INSERT INTO k.forms (pk, a, l, m, u, t) VALUES (1, 'now', ['now', 'NOW'], {'now': 'Now'}, {a: 'now'}, ('now', 1))")
    session.execute("""INSERT INTO k.forms JSON '{"pk": 2, "a": "now", "l": ["now", "now"], "m": {"now": "now"}, "u": {"a": "now"}, "t": ["now", 1]}'""")
    session.execute("INSERT INTO k.forms (pk, a, l) VALUES (3, from_json('\"now\"'), from_json('[\"now\", \"now\"]'))")
    for row in session.execute("SELECT * FROM k.forms"):
        whole = row.pk == 3 or (dict(row.m) == {at: at} and row.u.a == at and row.t == (at, 1))
        assert row.a == at and row.l == [at, at] and whole, row
    set_clock(session, advance_ms=60_000)
    assert sorted(r.pk for r in session.execute("SELECT pk FROM k.forms WHERE a < 'now' ALLOW FILTERING")) == [1, 2, 3]
    assert session.execute("SELECT pk FROM k.forms WHERE a = 'now' ALLOW FILTERING").all() == []


def test_the_partitioner_is_switched_after_ten_minutes(controlled):
    """As on Amazon Keyspaces, with --ddl-delay realistic; held and failed like any DDL; a restart goes on with it."""
    server, session = controlled("--ddl-delay", "realistic")
    murmur, random = (f"org.apache.cassandra.dht.{name}Partitioner" for name in ("Murmur3", "Random"))

    def told():  # to who connects now
        with server.cluster(schema_metadata_enabled=False) as cluster:
            return cluster.connect().execute("SELECT partitioner FROM system.local").one().partitioner

    def switch(s, to):
        s.execute("UPDATE system.local SET partitioner = %s WHERE key = 'local'", (to,))

    set_clock(session, state="frozen")
    switch(session, random)
    row = objects(session, "system")["partitioner", "local"]
    assert (row.statement, row.status, row.held) == ("UPDATE PARTITIONER", "UPDATING", False)
    set_clock(session, advance_ms=599_000)
    let_pass(0.2)
    assert told() == murmur
    server.kill9()
    server.start()
    with server.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        assert told() == murmur and objects(session, "system")  # goes on, with its time anew
        set_clock(session, advance_ms=601_000)
        eventually(lambda: told() == random)
        assert objects(session, "system") == {}
        set_rule(session, "held", "UPDATE PARTITIONER", failure="no luck")
        switch(session, murmur)
        release(session, "system", "local", kind="partitioner")
        assert told() == random  # it failed
        set_rule(session, "held", "UPDATE PARTITIONER", failure="")
        switch(session, murmur)
        set_clock(session, advance_ms=3_600_000)
        assert told() == random and objects(session, "system")["partitioner", "local"].held
        release_all(session)
        assert told() == murmur


def await_keyspace(session):
    eventually(lambda: session.execute("SELECT * FROM system_schema_mcs.keyspaces WHERE keyspace_name = 'r'").one())


def test_what_cannot_be_is_refused_and_changes_nothing(session, new_server):
    for settings in ({"state": "late"}, {"ahead_ms": 5}, {"advance_ms": -5}, {"now": datetime(1960, 1, 1)}, {"now": datetime(2030, 1, 1), "advance_ms": 1}):
        with pytest.raises(InvalidRequest):
            set_clock(session, **settings)
    with pytest.raises(InvalidRequest):
        session.execute("UPDATE system_control.clock SET state = 'frozen' WHERE name = 'other'")
    with pytest.raises(InvalidRequest):
        session.execute("DELETE FROM system_control.clock WHERE name = 'server'")
    assert read_clock(session).state == "free"


def test_without_control_there_is_no_such_table(new_server):
    server = new_server()
    with server.cluster() as cluster:
        with pytest.raises(InvalidRequest):
            cluster.connect().execute("UPDATE system_control.clock SET state = 'frozen' WHERE name = 'server'")
