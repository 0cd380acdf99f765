"""system_control.snapshots: the server's state saved under a name and put back, while drivers stay connected."""
import os
import threading
import time

import pytest
from cassandra import InvalidRequest

from tally_server import await_active, create_keyspace, create_table


def save(session, name):
    session.execute("INSERT INTO system_control.snapshots (name) VALUES (%s)", (name,))


def put_back(session, name):
    session.execute("UPDATE system_control.snapshots SET put_back = true WHERE name = %s", (name,))


def rows(session, table="k.t"):
    return sorted((r.pk, r.v) for r in session.execute(f"SELECT pk, v FROM {table}"))


@pytest.fixture
def session(new_server):
    server = new_server("--mode", "cassandra", "--control", "on")
    with server.cluster() as cluster:
        s = cluster.connect()
        s.server = server
        create_keyspace(s, "k")
        create_table(s, "k", "t", "pk int PRIMARY KEY, v text")
        yield s


def test_each_test_of_a_suite_starts_from_the_same_rows(session):
    insert = session.prepare("INSERT INTO k.t (pk, v) VALUES (?, ?)")
    read = session.prepare("SELECT v FROM k.t WHERE pk = ?")
    for i in range(20):
        session.execute(insert, (i, "first"))
    save(session, "start")
    for turn in range(6):
        session.execute(insert, (1, f"turn {turn}"))
        session.execute(insert, (100 + turn, "more"))
        session.execute("DELETE FROM k.t WHERE pk = 2")
        assert session.execute(read, (1,)).one().v == f"turn {turn}" and len(rows(session)) == 20
        put_back(session, "start")
        assert rows(session) == [(i, "first") for i in range(20)]
        assert session.execute(read, (1,)).one().v == "first"
    assert [r.name for r in session.execute("SELECT * FROM system_control.snapshots")] == ["start"]
    session.execute("DELETE FROM system_control.snapshots WHERE name = 'start'")
    with pytest.raises(InvalidRequest, match="no saved state"):
        put_back(session, "start")


def test_schema_prepared_statements_and_metadata_follow(session):
    session.execute("INSERT INTO k.t (pk, v) VALUES (1, 'a')")
    save(session, "one")
    star = session.prepare("SELECT * FROM k.t WHERE pk = ?")
    session.execute("ALTER TABLE k.t ADD w int")
    session.execute("CREATE TABLE k.later (pk int PRIMARY KEY)")
    later = session.prepare("INSERT INTO k.later (pk) VALUES (?)")
    session.execute(later, (1,))
    session.execute("INSERT INTO k.t (pk, v, w) VALUES (2, 'b', 2)")
    put_back(session, "one")
    assert rows(session) == [(1, "a")]
    assert session.execute(star, (1,)).one()._fields == ("pk", "v")
    with pytest.raises(InvalidRequest):
        session.execute(later, (2,))
    deadline = time.monotonic() + 10
    while "later" in session.cluster.metadata.keyspaces["k"].tables or "w" in session.cluster.metadata.keyspaces["k"].tables["t"].columns:
        assert time.monotonic() < deadline, "the driver was not told"
        time.sleep(0.1)
    # another table of the name is another table, though it may have been given the id of the one that is gone
    session.execute("CREATE TABLE k.later (pk int PRIMARY KEY, x text)")
    session.execute("INSERT INTO k.later (pk, x) VALUES (5, 'x')")
    assert [(r.pk, r.x) for r in session.execute("SELECT * FROM k.later")] == [(5, "x")]


def test_writers_go_on_over_it_and_readers_see_one_state_or_the_other(session):
    for i in range(50):
        session.execute("INSERT INTO k.t (pk, v) VALUES (%s, 'base')", (i,))
    save(session, "base")
    stop, failures = [], []

    def work(n):
        with session.server.cluster() as cluster:
            s = cluster.connect()
            insert = s.prepare("INSERT INTO k.t (pk, v) VALUES (?, ?)")
            i = 0
            while not stop:
                try:
                    s.execute(insert, (1000 * n + i % 500, "w"))
                    assert len([1 for r in s.execute("SELECT pk, v FROM k.t") if r.v == "base"]) == 50
                except Exception as e:  # noqa: BLE001
                    failures.append(e)
                i += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 4)]
    for t in threads:
        t.start()
    for _ in range(8):
        time.sleep(0.15)
        put_back(session, "base")
    stop.append(True)
    for t in threads:
        t.join()
    assert not failures, failures[:3]
    put_back(session, "base")
    assert rows(session) == [(i, "base") for i in range(50)]


def test_after_a_stop_and_after_kill9_it_is_one_state_or_the_other(session):
    server = session.server
    session.execute("INSERT INTO k.t (pk, v) VALUES (1, 'saved')")
    save(session, "s")
    for turn in range(5):
        session.execute("INSERT INTO k.t (pk, v) VALUES (2, 'new')")
        killer = threading.Timer(0.004 * turn, server.kill9)
        killer.start()
        try:
            put_back(session, "s")
        except Exception:  # noqa: BLE001  killed
            pass
        killer.join()
        server.start()
        with server.cluster() as cluster:
            found = rows(cluster.connect())
            assert found in ([(1, "saved")], [(1, "saved"), (2, "new")])
        session = server.cluster().connect()
    put_back(session, "s")
    session.execute("INSERT INTO k.t (pk, v) VALUES (3, 'after')")
    server.stop()
    server.start()
    with server.cluster() as cluster:
        assert rows(cluster.connect()) == [(1, "saved"), (3, "after")]
    server.stop()
    stores = [n for n in os.listdir(server.folder / "data") if n.startswith("rows")]
    assert len(stores) == 1, stores


def test_bad_names_and_missing_control_are_refused(session, new_server):
    for name in ("", "a/b", "..", "x" * 60):
        with pytest.raises(InvalidRequest):
            save(session, name)
    with pytest.raises(InvalidRequest, match="put_back = true"):
        session.execute("UPDATE system_control.snapshots SET put_back = false WHERE name = 'x'")
