"""system_control.snapshots: the server's state saved under a name and put back, while drivers stay connected."""
import os
import threading
import time

import pytest
from cassandra import AuthenticationFailed, InvalidRequest, OperationTimedOut, Unauthorized, WriteTimeout
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import NoHostAvailable

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


# ---- what the server keeps in memory of the store ----

def log_in(server, name, password):
    return server.cluster(auth_provider=PlainTextAuthProvider(name, password)).connect()


def may_not_log_in(server, name, password):
    with pytest.raises(NoHostAvailable) as e:
        log_in(server, name, password)
    assert isinstance(next(iter(e.value.errors.values())), AuthenticationFailed)


def test_roles_passwords_and_permissions_are_those_of_the_state(new_server):
    server = new_server("--mode", "cassandra", "--control", "on", "--auth", "password")
    root = log_in(server, "cassandra", "cassandra")
    create_keyspace(root, "k")
    for table in ("t", "u"):
        create_table(root, "k", table, "pk int PRIMARY KEY, v text")
    for name in ("ada", "bob", "eve"):
        root.execute(f"CREATE ROLE {name} WITH PASSWORD = 'first' AND LOGIN = true")
        root.execute(f"GRANT SELECT ON k.t TO {name}")
    save(root, "roles")
    connected = log_in(server, "ada", "first")
    connected.execute("SELECT * FROM k.t")
    # of each way in which memory may be another than the store
    root.execute("DROP ROLE ada")
    root.execute("ALTER ROLE bob WITH PASSWORD = 'second'")
    root.execute("REVOKE SELECT ON k.t FROM eve")
    root.execute("GRANT MODIFY ON k.u TO eve")
    root.execute("CREATE ROLE late WITH PASSWORD = 'first' AND LOGIN = true")
    root.execute("DROP TABLE k.t")  # takes what was granted on it along
    create_table(root, "k", "t", "pk int PRIMARY KEY, v text")
    eve = log_in(server, "eve", "first")
    eve.execute("INSERT INTO k.u (pk, v) VALUES (1, 'x')")
    with pytest.raises(Unauthorized):
        eve.execute("SELECT * FROM k.t")
    for turn in range(2):
        put_back(root, "roles")
        assert list(log_in(server, "ada", "first").execute("SELECT * FROM k.t")) == []
        assert list(connected.execute("SELECT * FROM k.t")) == []
        may_not_log_in(server, "bob", "second")
        log_in(server, "bob", "first").execute("SELECT * FROM k.t")
        may_not_log_in(server, "late", "first")
        assert list(eve.execute("SELECT * FROM k.t")) == []
        with pytest.raises(Unauthorized):
            eve.execute("INSERT INTO k.u (pk, v) VALUES (1, 'x')")
        assert sorted(r.role for r in root.execute("LIST ROLES")) == ["ada", "bob", "cassandra", "eve"]
        root.execute("DROP ROLE ada")
    server.stop()
    server.start()
    may_not_log_in(server, "ada", "first")
    log_in(server, "bob", "first").execute("SELECT * FROM k.t")


def test_sizes_estimates_and_settings_are_those_of_the_state_and_bills_and_write_times_go_on(new_server):
    server = new_server("--control", "on", "--ddl-delay", "none", "--limits", "enforce")
    s = server.cluster().connect()
    create_keyspace(s, "k")
    create_table(s, "k", "t", "pk int PRIMARY KEY, v text")
    provisioned = "{'capacity_mode': {'throughput_mode': '%s'%s}}"
    s.execute("ALTER TABLE k.t WITH CUSTOM_PROPERTIES = " + provisioned % ("PROVISIONED", ", 'read_capacity_units': 500, 'write_capacity_units': 5"))
    await_active(s, "k", "t")

    def stored():
        size = s.execute("SELECT billable_bytes, rows FROM system_metering.storage WHERE keyspace_name = 'k' AND table_name = 't'").one()
        partitions = sum(r.partitions_count for r in s.execute("SELECT * FROM system.size_estimates WHERE keyspace_name = 'k' AND table_name = 't'"))
        return size.billable_bytes, size.rows, partitions

    def charged():
        return s.execute("SELECT write_units FROM system_metering.tables WHERE keyspace_name = 'k' AND table_name = 't'").one().write_units

    s.execute("INSERT INTO k.t (pk, v) VALUES (1, 'aaaa')")
    at_first = stored()
    assert at_first[1:] == (1, 1)
    save(s, "one")
    s.execute("ALTER TABLE k.t WITH CUSTOM_PROPERTIES = " + provisioned % ("PAY_PER_REQUEST", ""))
    await_active(s, "k", "t")
    for i in range(2, 30):
        s.execute("INSERT INTO k.t (pk, v) VALUES (%s, 'more')", (i,))
    newest = s.execute("SELECT WRITETIME(v) AS w FROM k.t WHERE pk = 29").one().w
    before = charged()
    assert stored() != at_first
    put_back(s, "one")
    assert stored() == at_first
    assert charged() == before, "a bill does not go back with the rows"
    s.execute("INSERT INTO k.t (pk, v) VALUES (2, 'b')")
    assert s.execute("SELECT WRITETIME(v) AS w FROM k.t WHERE pk = 2").one().w > newest
    with pytest.raises((WriteTimeout, OperationTimedOut)):  # five units a second again, for 1 KB each
        for i in range(30):
            s.execute("INSERT INTO k.t (pk, v) VALUES (%s, %s)", (i, "x" * 4000))


def test_bad_names_and_missing_control_are_refused(session, new_server):
    for name in ("", "a/b", "..", "x" * 60):
        with pytest.raises(InvalidRequest):
            save(session, name)
    with pytest.raises(InvalidRequest, match="put_back = true"):
        session.execute("UPDATE system_control.snapshots SET put_back = false WHERE name = 'x'")
