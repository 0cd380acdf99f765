"""Asynchronous DDL as an application meets it: polling as AWS's documentation recommends, migration tools, what is refused meanwhile, kill -9."""
import threading
import time

import pytest
from cassandra import AlreadyExists, InvalidRequest

from tally_server import await_active, create_keyspace, status_of

KEYSPACE = "CREATE KEYSPACE %s WITH replication = {'class': 'SingleRegionStrategy'}"


@pytest.fixture
def controlled(new_server):
    clusters = []

    def start(*flags):
        server = new_server("--control", "on", *flags)
        clusters.append(server.cluster(schema_metadata_enabled=False))
        return server, clusters[-1].connect()

    yield start
    for c in clusters:
        c.shutdown()


def hold(session, statement, keyspace="*", name="*"):
    session.execute("INSERT INTO system_control.ddl (statement, keyspace_name, name, delay) VALUES (%s, %s, %s, 'held')", (statement, keyspace, name))


def release_all(session):
    session.execute("UPDATE system_control.objects SET held = false WHERE keyspace_name = '*' AND kind = '*' AND name = '*'")


def set_status(session, status):
    session.execute("UPDATE system_control.objects SET status = %s WHERE keyspace_name = 'k' AND kind = 'table' AND name = 't'", (status,))


# ---- docs/ddl.md, "What is answered meanwhile": status x statement -> answer ----

OK, NOTHING = "ok", "nothing"
EXISTS = AlreadyExists


def busy(status, end="ACTIVE", what="Table 't'"):
    return f"{what} is {status}: wait until it is {end}"


LOST = "INACCESSIBLE_ENCRYPTION_CREDENTIALS"
TABLE = {
    # status: (CREATE, CREATE IF NOT EXISTS, ALTER, ALTER ... again, DROP, DROP IF EXISTS, SELECT)
    None: (OK, OK, "Table 'k.t' doesn't exist", OK if False else "Table 'k.t' doesn't exist", "Table 'k.t' doesn't exist", NOTHING, "unconfigured table k.t"),
    "CREATING": (EXISTS, NOTHING, busy("CREATING"), busy("CREATING"), busy("CREATING"), busy("CREATING"), "unconfigured table k.t"),
    "ACTIVE": (EXISTS, NOTHING, OK, OK, OK, OK, OK),
    "UPDATING": (EXISTS, NOTHING, busy("UPDATING"), busy("UPDATING"), busy("UPDATING"), busy("UPDATING"), OK),
    "DELETING": (busy("DELETING", "gone"), busy("DELETING", "gone"), busy("DELETING", "gone"), busy("DELETING", "gone"), NOTHING, NOTHING, "unconfigured table k.t"),
    LOST: (EXISTS, NOTHING, busy(LOST), busy(LOST), OK, OK, busy(LOST)),
}
STATEMENTS = ("CREATE TABLE k.t (p int PRIMARY KEY)", "CREATE TABLE IF NOT EXISTS k.t (p int PRIMARY KEY)", "ALTER TABLE k.t ADD x int", "ALTER TABLE k.t WITH comment = 'new'",
              "DROP TABLE k.t", "DROP TABLE IF EXISTS k.t", "SELECT * FROM k.t")


def bring_to(session, status):
    """k.t into this status, and held there; other changes take no time."""
    release_all(session)
    if status_of(session, "k", "t") == LOST:
        set_status(session, "ACTIVE")
    session.execute("DROP TABLE IF EXISTS k.t")
    verb = {"CREATING": "CREATE", "UPDATING": "ALTER", "DELETING": "DROP"}.get(status)
    if status is None:
        return
    if status != "CREATING":
        session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    if verb:
        hold(session, f"{verb} TABLE", "k", "t")
        session.execute({"CREATE": "CREATE TABLE k.t (p int PRIMARY KEY)", "ALTER": "ALTER TABLE k.t WITH comment = 'old'", "DROP": "DROP TABLE k.t"}[verb])
        session.execute("DELETE FROM system_control.ddl WHERE statement = %s AND keyspace_name = 'k' AND name = 't'", (f"{verb} TABLE",))
    if status == LOST:
        set_status(session, LOST)


def test_every_statement_on_a_table_in_every_status(controlled):
    _, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    for status, answers in TABLE.items():
        for statement, answer in zip(STATEMENTS, answers):
            bring_to(session, status)
            where = f"{status}: {statement}"
            assert status_of(session, "k", "t") == status, where
            if answer in (OK, NOTHING):
                session.execute(statement)
                if answer == NOTHING:
                    assert status_of(session, "k", "t") == status, where
            elif answer is EXISTS:
                with pytest.raises(AlreadyExists):
                    session.execute(statement)
            else:
                with pytest.raises(InvalidRequest, match=answer):
                    session.execute(statement)
                assert status_of(session, "k", "t") == status, where


def test_what_may_be_done_in_a_keyspace_that_comes_or_goes(controlled):
    _, session = controlled("--ddl-delay", "none")
    hold(session, "CREATE KEYSPACE")
    session.execute(KEYSPACE % "k")
    session.execute(KEYSPACE % "IF NOT EXISTS k")
    for statement in ("USE k", "CREATE TABLE k.t (p int PRIMARY KEY)", "SELECT * FROM k.t"):
        with pytest.raises(InvalidRequest, match="unconfigured keyspace k"):
            session.execute(statement)
    for statement in ("ALTER KEYSPACE k WITH durable_writes = false", "DROP KEYSPACE k"):
        with pytest.raises(InvalidRequest, match=busy("CREATING", what="Keyspace 'k'")):
            session.execute(statement)
    assert session.execute("SELECT * FROM system_schema_mcs.keyspaces WHERE keyspace_name = 'k'").one() is None
    release_all(session)
    session.execute("USE k")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    hold(session, "DROP KEYSPACE")
    session.execute("DROP KEYSPACE k")
    session.execute("DROP KEYSPACE k")  # asks for nothing new
    assert session.execute("SELECT * FROM system_schema_mcs.keyspaces WHERE keyspace_name = 'k'").one()  # until it is gone
    assert session.execute("SELECT * FROM system_schema.keyspaces WHERE keyspace_name = 'k'").one() is None
    for statement in (KEYSPACE % "k", KEYSPACE % "IF NOT EXISTS k", "ALTER KEYSPACE k WITH durable_writes = false", "CREATE TABLE k.u (p int PRIMARY KEY)"):
        with pytest.raises(InvalidRequest, match=busy("DELETING", "gone", "Keyspace 'k'")):
            session.execute(statement)
    with pytest.raises(InvalidRequest, match="Keyspace 'k' does not exist"):
        session.execute("USE k")
    release_all(session)
    assert session.execute("SELECT * FROM system_schema_mcs.keyspaces WHERE keyspace_name = 'k'").one() is None
    session.execute(KEYSPACE % "k")


# ---- kill -9 ----

@pytest.mark.parametrize("status", ["CREATING", "UPDATING", "DELETING"])
def test_a_status_survives_kill9_and_goes_on(controlled, status):
    server, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    bring_to(session, status)
    server.kill9()
    server.flags = tuple("held" if f == "none" else f for f in server.flags)
    server.start()
    with server.cluster(schema_metadata_enabled=False) as cluster:
        again = cluster.connect()
        assert status_of(again, "k", "t") == status
        release_all(again)
        assert status_of(again, "k", "t") == (None if status == "DELETING" else "ACTIVE")
        if status == "UPDATING":
            assert again.execute("SELECT comment FROM system_schema.tables WHERE keyspace_name = 'k' AND table_name = 't'").one().comment == "old"
        events = [r.event for r in again.execute("SELECT event FROM system_schema_mcs.tables_history WHERE keyspace_name = 'k'")]
        assert events == {"CREATING": ["CREATE"], "UPDATING": ["CREATE", "ALTER"], "DELETING": ["CREATE", "DROP"]}[status]


# ---- as applications do it ----

def migrate(session, names):
    """What a migration tool does: creates its tables one after the other, each awaited, then works with all of them."""
    for name in names:
        session.execute(f"CREATE TABLE IF NOT EXISTS app.{name} (p int PRIMARY KEY, v text)")
        await_active(session, "app", name)
    for name in names:
        session.execute(f"ALTER TABLE app.{name} ADD w int")
        await_active(session, "app", name)
        session.execute(f"INSERT INTO app.{name} (p, v, w) VALUES (1, '{name}', 2)")
    assert all(list(session.execute(f"SELECT * FROM app.{name}").one()) == [1, name, 2] for name in names)


@pytest.mark.parametrize("delay, tables", [("none", 60), ("lognormal(15, 0.7, 3)", 20), ("uniform(10, 20, 1)", 20)])
def test_a_migration_tool_finds_its_tables(controlled, delay, tables):
    """uniform(10, 20) is `realistic` a thousand times faster."""
    _, session = controlled("--ddl-delay", delay)
    create_keyspace(session, "app")
    migrate(session, [f"t{i}" for i in range(tables)])


def test_a_migration_tool_waits_for_what_is_held(controlled):
    _, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "app")
    hold(session, "CREATE TABLE", "app")
    done = threading.Event()

    def work():
        migrate(session, ["a", "b"])
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for name in ("a", "b"):
            deadline = time.monotonic() + 20
            while status_of(session, "app", name) != "CREATING":
                assert time.monotonic() < deadline and not done.is_set()
                time.sleep(0.01)
            assert not done.is_set()
            session.execute("UPDATE system_control.objects SET held = false WHERE keyspace_name = 'app' AND kind = 'table' AND name = %s", (name,))
        assert done.wait(20)
    finally:
        thread.join()


def test_drop_and_create_again_as_a_truncate_script_does(controlled):
    """AWS's script for a table that is to be emptied: drop, wait until it has vanished, create, wait until it is ACTIVE."""
    _, session = controlled("--ddl-delay", "uniform(20, 60, 5)")
    create_keyspace(session, "k")
    for round_ in range(3):
        session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
        assert await_active(session, "k", "t") in (["CREATING", "ACTIVE"], ["ACTIVE"])
        assert session.execute("SELECT * FROM k.t").all() == []
        session.execute("INSERT INTO k.t (p) VALUES (%s)", (round_,))
        session.execute("DROP TABLE k.t")
        deadline = time.monotonic() + 20
        while status_of(session, "k", "t") is not None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
    events = [(r.table_name, r.event) for r in session.execute("SELECT * FROM system_schema_mcs.tables_history WHERE keyspace_name = 'k'")]
    assert events == [("t", "CREATE"), ("t", "DROP")] * 3


def test_drivers_agree_on_the_schema_while_something_is_under_way(controlled):
    server, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    version = "SELECT schema_version FROM system.local"
    before = session.execute(version).one()
    hold(session, "CREATE TABLE", "k")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    assert session.execute(version).one() == before  # nothing that a driver shows has changed
    with server.cluster() as cluster:
        other = cluster.connect()
        assert "t" not in cluster.metadata.keyspaces["k"].tables
        release_all(session)
        assert session.execute(version).one() != before
        deadline = time.monotonic() + 20
        while "t" not in cluster.metadata.keyspaces["k"].tables:  # it is told by an event
            assert time.monotonic() < deadline
            time.sleep(0.02)
        other.execute("INSERT INTO k.t (p) VALUES (1)")


def test_the_history_of_a_table_has_all_its_lives(controlled):
    _, session = controlled("--ddl-delay", "none", "--ddl-rules", "ALTER TABLE k.t = none")
    create_keyspace(session, "k")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    session.execute("ALTER TABLE k.t WITH CUSTOM_PROPERTIES = {'ttl': {'status': 'enabled'}}")
    session.execute("UPDATE system_control.ddl SET failure = 'no' WHERE statement = 'ALTER TABLE' AND keyspace_name = 'k' AND name = 't'")
    session.execute("ALTER TABLE k.t ADD never int")  # which fails, and so did not happen
    session.execute("UPDATE system_control.ddl SET failure = '' WHERE statement = 'ALTER TABLE' AND keyspace_name = 'k' AND name = 't'")
    await_active(session, "k", "t")
    session.execute("DROP TABLE k.t")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    session.execute("CREATE TABLE k.u (p int PRIMARY KEY)")
    session.execute("DROP KEYSPACE k")
    rows = session.execute("SELECT * FROM system_schema_mcs.tables_history WHERE keyspace_name = 'k'").all()
    assert [(r.table_name, r.event) for r in rows] == [("t", "CREATE"), ("t", "ALTER"), ("t", "DROP"), ("t", "CREATE"), ("t", "DROP"), ("u", "CREATE"), ("u", "DROP")]
    assert [("ttl" in r.custom_properties) for r in rows] == [False, True, True, False, False, False, False]
    times = [r.event_time for r in rows if r.table_name == "t"]
    assert times == sorted(set(times)) and rows[0].creation_time == rows[2].creation_time != rows[3].creation_time


def test_the_history_of_one_name_is_bounded_and_pays_for_itself(controlled):
    _, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    session.execute("CREATE TABLE k.innocent (p int PRIMARY KEY)")
    session.execute("CREATE TABLE k.guilty (p int PRIMARY KEY)")
    for i in range(110):
        session.execute(f"ALTER TABLE k.guilty WITH comment = '{i}'")
    rows = session.execute("SELECT table_name, event FROM system_schema_mcs.tables_history WHERE keyspace_name = 'k'").all()
    guilty = [r.event for r in rows if r.table_name == "guilty"]
    assert guilty == ["ALTER"] * 100
    assert [r.event for r in rows if r.table_name == "innocent"] == ["CREATE"]
