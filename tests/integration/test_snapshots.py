"""system_control.snapshots: the server's state saved under a name and put back, while drivers stay connected."""
import os
import threading
from datetime import datetime, timezone

import pytest
from cassandra import AuthenticationFailed, InvalidRequest, OperationTimedOut, Unauthorized, WriteTimeout
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import NoHostAvailable

from tally_server import await_active, create_keyspace, create_table, eventually, let_pass


def save(session, name, keyspace=None):
    if keyspace:
        session.execute("INSERT INTO system_control.snapshots (name, keyspace_name) VALUES (%s, %s)", (name, keyspace))
    else:
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


@pytest.mark.parametrize("name", ["one\0two", "x" * 64, "one\0", "\0"])
def test_a_name_is_refused_and_not_cut(session, name):
    for keyspace in (None, "k"):
        with pytest.raises(InvalidRequest, match="at most 63 bytes, none of them 0"):
            save(session, name, keyspace)
    save(session, "one")
    with pytest.raises(InvalidRequest, match="at most 63 bytes, none of them 0"):
        put_back(session, name)
    with pytest.raises(InvalidRequest, match="at most 63 bytes, none of them 0"):
        save(session, "two", name)


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
    known = session.cluster.metadata.keyspaces
    eventually(lambda: "later" not in known["k"].tables and "w" not in known["k"].tables["t"].columns, "the driver was not notified")
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
        let_pass(0.15)
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


# ---- one keyspace ----

def write_beside(server, stop, written, failures):
    """Somebody else's rows, one after the other, while keyspaces are put back."""
    with server.cluster() as cluster:
        s = cluster.connect()
        insert = s.prepare("INSERT INTO other.t (pk, v) VALUES (?, ?)")
        while not stop:
            try:
                s.execute(insert, (len(written), "w"))
                written.append(len(written))
            except Exception as e:  # noqa: BLE001
                failures.append(e)


def test_a_keyspace_goes_back_and_everything_else_stays(session):
    create_keyspace(session, "other")
    create_table(session, "other", "t", "pk int PRIMARY KEY, v text")
    session.execute("CREATE TYPE k.kind (a int, b text)")
    session.execute("CREATE TABLE k.many (pk int, ck int, v frozen<kind>, st text static, m map<text, int>, PRIMARY KEY (pk, ck))")
    session.execute("CREATE TABLE k.counted (pk int PRIMARY KEY, n counter)")
    for i in range(30):
        session.execute("INSERT INTO k.t (pk, v) VALUES (%s, 'first')", (i,))
        session.execute("INSERT INTO k.many (pk, ck, v, st, m) VALUES (%s, %s, {a: 1, b: 'x'}, 'static', {'one': 1})", (i % 3, i))
    session.execute("INSERT INTO k.t (pk, v) VALUES (100, 'for a while') USING TTL 600")
    session.execute("DELETE FROM k.t WHERE pk = 29")
    session.execute("UPDATE k.counted SET n = n + 7 WHERE pk = 1")
    save(session, "start", "k")
    assert [(r.name, r.keyspace_name) for r in session.execute("SELECT * FROM system_control.snapshots")] == [("start", "k")]
    many = lambda: sorted(session.execute("SELECT * FROM k.many"))
    at_first, many_at_first = rows(session), many()
    insert, read = session.prepare("INSERT INTO k.t (pk, v) VALUES (?, ?)"), session.prepare("SELECT v FROM k.t WHERE pk = ?")
    changes = (["ALTER TABLE k.t ADD w int", "CREATE TABLE k.later (pk int PRIMARY KEY)", "INSERT INTO k.later (pk) VALUES (1)"],
               ["DROP TABLE k.many", "CREATE TYPE k.second (c int)"],
               ["DROP TABLE k.t", "CREATE TABLE k.t (pk int PRIMARY KEY, other int)"],
               ["TRUNCATE k.t", "ALTER TYPE k.kind ADD c int"],
               ["DROP KEYSPACE k"],
               ["DROP KEYSPACE k", "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}", "CREATE TABLE k.t (x int PRIMARY KEY)"])
    stop, written, failures = [], [], []
    writer = threading.Thread(target=write_beside, args=(session.server, stop, written, failures))
    writer.start()
    for change in changes:
        session.execute(insert, (1, "changed"))
        session.execute(insert, (500, "more"))
        session.execute("UPDATE k.counted SET n = n + 1 WHERE pk = 1")
        for statement in change:
            session.execute(statement)
        put_back(session, "start")
        assert rows(session) == at_first and many() == many_at_first, change
        assert session.execute(read, (1,)).one().v == "first"
        assert session.execute("SELECT n FROM k.counted WHERE pk = 1").one().n == 7
        assert {r.table_name for r in session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'k'")} == {"t", "many", "counted"}
        assert [r.type_name for r in session.execute("SELECT type_name FROM system_schema.types WHERE keyspace_name = 'k'")] == ["kind"]
        events = [(r.table_name, r.event) for r in session.execute("SELECT * FROM system_schema_mcs.tables_history WHERE keyspace_name = 'k'")]
        assert sorted(events) == [("counted", "CREATE"), ("many", "CREATE"), ("t", "CREATE")]
    eventually(lambda: len(written) > 50 or failures)
    stop.append(True)
    writer.join()
    assert not failures, failures[:3]
    assert len(written) > 50 and [r[0] for r in rows(session, "other.t")] == written
    known = session.cluster.metadata.keyspaces
    eventually(lambda: set(known["k"].tables) == {"t", "many", "counted"} and "w" not in known["k"].tables["t"].columns, "the driver was not notified")
    assert 0 < session.execute("SELECT ttl(v) AS left FROM k.t WHERE pk = 100").one().left <= 600
    session.server.stop()
    session.server.start()
    with session.server.cluster() as cluster:
        s = cluster.connect()
        assert rows(s) == at_first and [r[0] for r in rows(s, "other.t")] == written
        s.execute("TRUNCATE k.t")
        put_back(s, "start")
        assert rows(s) == at_first


def test_statements_under_way_elsewhere_stay_under_way(new_server):
    server = new_server("--control", "on", "--ddl-delay", "none")
    with server.cluster() as cluster:
        s = cluster.connect()
        for ks in ("k", "other"):
            create_keyspace(s, ks)
        save(s, "empty", "k")
        for name in ("waits", "fails"):
            s.execute("UPDATE system_control.ddl SET delay = 'held', failure = %s WHERE statement = 'CREATE TABLE' AND keyspace_name = 'other' AND name = %s",
                      ("told to" if name == "fails" else None, name))
            s.execute(f"CREATE TABLE other.{name} (pk int PRIMARY KEY)")
        s.execute("DELETE FROM system_control.ddl WHERE statement = 'CREATE TABLE' AND keyspace_name = 'other' AND name = 'waits'")
        create_table(s, "k", "t", "pk int PRIMARY KEY")
        put_back(s, "empty")
        under_way = {r.name: (r.status, r.held, r.failure) for r in s.execute("SELECT * FROM system_control.objects WHERE keyspace_name = 'other'") if r.kind == "table"}
        assert under_way == {"waits": ("CREATING", True, None), "fails": ("CREATING", True, "told to")}
        s.execute("UPDATE system_control.objects SET held = false WHERE keyspace_name = '*' AND kind = '*' AND name = '*'")
        await_active(s, "other", "waits")
        assert not list(s.execute("SELECT * FROM system_schema_mcs.tables WHERE keyspace_name = 'k'"))


def test_tables_with_recovery_bring_their_history_along(new_server):
    server = new_server("--control", "on", "--ddl-delay", "none")
    pitr = "CUSTOM_PROPERTIES = {'point_in_time_recovery': {'status': 'enabled'}}"
    with server.cluster() as cluster:
        s = cluster.connect()
        create_keyspace(s, "k")
        s.execute(f"CREATE TABLE k.t (pk int PRIMARY KEY, v text) WITH {pitr}")
        await_active(s, "k", "t")
        s.execute("INSERT INTO k.t (pk, v) VALUES (1, 'early')")
        let_pass(0.005)
        early = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "+0000")
        let_pass(0.005)
        s.execute("INSERT INTO k.t (pk, v) VALUES (1, 'saved')")
        save(s, "one", "k")
        for turn in range(3):
            s.execute("INSERT INTO k.t (pk, v) VALUES (1, 'lost')")
            s.execute("DROP TABLE k.t")
            put_back(s, "one")
            s.execute(f"RESTORE TABLE k.early FROM TABLE k.t WITH restore_timestamp = '{early}'")
            s.execute("RESTORE TABLE k.late FROM TABLE k.t")
            for table, v in (("early", "early"), ("late", "saved")):
                await_active(s, "k", table)
                assert rows(s, f"k.{table}") == [(1, v)]
        put_back(s, "one")
        histories = [(r.table_name, r.restorable_until_time) for r in s.execute("SELECT * FROM system_metering.recovery")]
        assert histories == [("t", None)]


def test_a_keyspace_after_kill9_is_one_or_the_other_and_the_rest_is_there(session):
    server = session.server
    create_keyspace(session, "other")
    create_table(session, "other", "t", "pk int PRIMARY KEY, v text")
    session.execute("INSERT INTO k.t (pk, v) VALUES (1, 'saved')")
    save(session, "s", "k")
    for turn in range(6):
        session.execute("INSERT INTO other.t (pk, v) VALUES (%s, 'kept')", (turn,))
        session.execute("INSERT INTO k.t (pk, v) VALUES (2, 'new')")
        killer = threading.Timer(0.003 * turn, server.kill9)
        killer.start()
        try:
            put_back(session, "s")
        except Exception:  # noqa: BLE001  killed
            pass
        killer.join()
        server.start()
        session = server.cluster().connect()
        assert rows(session) in ([(1, "saved")], [(1, "saved"), (2, "new")])
        assert rows(session, "other.t") == [(i, "kept") for i in range(turn + 1)]
    put_back(session, "s")
    assert rows(session) == [(1, "saved")]


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
    with pytest.raises(InvalidRequest, match="Keyspace 'nowhere' doesn't exist"):
        save(session, "x", "nowhere")
    with pytest.raises(InvalidRequest, match="the server's own"):
        save(session, "x", "system_schema")
    with pytest.raises(InvalidRequest, match="is set when a state is saved"):
        session.execute("UPDATE system_control.snapshots SET put_back = true, keyspace_name = 'k' WHERE name = 'x'")
