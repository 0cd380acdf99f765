"""system_control.clock: time to live, now(), DDL's delays, restore windows follow it; write times never go back; connections do not notice."""
import time
from datetime import datetime, timedelta

import pytest
from cassandra import InvalidRequest

from tally_server import await_active, create_keyspace, create_table, status_of


def clock(session, **settings):
    names = ", ".join(f"{name} = %s" for name in settings)
    session.execute(f"UPDATE system_control.clock SET {names} WHERE name = 'server'", tuple(settings.values()))


def show(session):
    return session.execute("SELECT * FROM system_control.clock").one()


@pytest.fixture
def session(new_server):
    server = new_server("--mode", "cassandra", "--control", "on")
    with server.cluster() as cluster:
        s = cluster.connect()
        create_keyspace(s, "k")
        create_table(s, "k", "t", "pk int PRIMARY KEY, v text, at timestamp")
        yield s


def test_a_frozen_clock_stands_and_an_advanced_one_ends_times_to_live(session):
    clock(session, state="frozen", now=datetime(2031, 5, 6, 7, 8, 9))
    session.execute("INSERT INTO k.t (pk, v, at) VALUES (1, 'a', toTimestamp(now())) USING TTL 100")
    time.sleep(1.2)
    row = session.execute("SELECT at, TTL(v) AS ttl FROM k.t WHERE pk = 1").one()
    assert row.at == datetime(2031, 5, 6, 7, 8, 9) and row.ttl == 100
    clock(session, advance_ms=40_000)
    assert session.execute("SELECT TTL(v) FROM k.t WHERE pk = 1").one()[0] == 60
    clock(session, advance_ms=60_000)
    assert session.execute("SELECT * FROM k.t").one() is None
    assert show(session).state == "frozen" and show(session).now == datetime(2031, 5, 6, 7, 9, 49)


def test_it_runs_on_and_is_set_free(session):
    clock(session, advance_ms=3_600_000)
    assert show(session).state == "running" and abs(show(session).ahead_ms - 3_600_000) < 5000
    clock(session, state="frozen")
    clock(session, state="running")
    assert show(session).state == "running"
    clock(session, state="free")
    row = show(session)
    assert row.state == "free" and row.ahead_ms == 0 and abs(row.now - datetime.utcnow()) < timedelta(seconds=5)


def test_write_times_never_go_back(session):
    """A write after the clock has gone back wins over one before it."""
    session.use_client_timestamp = False
    clock(session, advance_ms=86_400_000)
    session.execute("INSERT INTO k.t (pk, v) VALUES (1, 'ahead')")
    clock(session, state="free")
    session.execute("INSERT INTO k.t (pk, v) VALUES (1, 'after')")
    assert session.execute("SELECT v FROM k.t WHERE pk = 1").one().v == "after"
    session.execute("UPDATE k.t SET v = 'decided' WHERE pk = 1 IF v = 'after'")
    assert session.execute("SELECT v FROM k.t WHERE pk = 1").one().v == "decided"


def test_connections_outlive_35_days_in_a_moment(session):
    clock(session, advance_ms=35 * 86_400_000)
    for i in range(5):
        session.execute("INSERT INTO k.t (pk, v) VALUES (%s, 'x')", (i,))
        time.sleep(0.3)
    assert len(list(session.execute("SELECT * FROM k.t"))) == 5


def test_ddl_waits_for_the_clock_and_recovery_windows_move_with_it(new_server):
    server = new_server("--control", "on", "--ddl-delay", "60000")
    with server.cluster() as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE r WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        clock(session, advance_ms=60_000)
        await_keyspace(session)
        session.execute("CREATE TABLE r.t (pk int PRIMARY KEY, v int) WITH CUSTOM_PROPERTIES = {'point_in_time_recovery': {'status': 'enabled'}}")
        time.sleep(0.3)
        assert status_of(session, "r", "t") == "CREATING"
        clock(session, advance_ms=60_000)
        await_active(session, "r", "t", seconds=5)
        session.execute("INSERT INTO r.t (pk, v) VALUES (1, 1)")
        early = show(session).now
        clock(session, advance_ms=34 * 86_400_000)
        restore = f"RESTORE TABLE r.%s FROM TABLE r.t WITH restore_timestamp = '{early.isoformat(timespec='milliseconds')}+0000'"
        session.execute(restore % "a")
        clock(session, advance_ms=2 * 86_400_000)
        with pytest.raises(InvalidRequest, match="must be between"):
            session.execute(restore % "b")


def await_keyspace(session):
    deadline = time.monotonic() + 5
    while not session.execute("SELECT * FROM system_schema_mcs.keyspaces WHERE keyspace_name = 'r'").one():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_cannot_be_is_refused_and_changes_nothing(session, new_server):
    for settings in ({"state": "late"}, {"ahead_ms": 5}, {"advance_ms": -5}, {"now": datetime(1960, 1, 1)}, {"now": datetime(2030, 1, 1), "advance_ms": 1}):
        with pytest.raises(InvalidRequest):
            clock(session, **settings)
    with pytest.raises(InvalidRequest):
        session.execute("UPDATE system_control.clock SET state = 'frozen' WHERE name = 'other'")
    with pytest.raises(InvalidRequest):
        session.execute("DELETE FROM system_control.clock WHERE name = 'server'")
    assert show(session).state == "free"


def test_without_control_there_is_no_such_table(new_server):
    server = new_server()
    with server.cluster() as cluster:
        with pytest.raises(InvalidRequest):
            cluster.connect().execute("UPDATE system_control.clock SET state = 'frozen' WHERE name = 'server'")
