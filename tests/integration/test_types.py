"""User types and changes of tables as applications meet them through a driver: metadata, values, statements that follow, kill -9 in between."""
import random
import threading
import time
from collections import namedtuple

import pytest
from cassandra import InvalidRequest

from tally_server import await_active, create_keyspace, eventually, let_pass

KEYSPACE = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
Address = namedtuple("Address", "street zip")
Person = namedtuple("Person", "name homes")


@pytest.fixture
def cassandra(new_server):
    server = new_server("--mode", "cassandra")
    clusters = []

    def connect(**options):
        clusters.append(server.cluster(**options))
        return clusters[-1], clusters[-1].connect()

    connect.server = server
    yield connect
    for c in clusters:
        c.shutdown()


def of_type(session, keyspace, name):
    rows = session.execute("SELECT * FROM system_schema_mcs.types WHERE keyspace_name = %s AND type_name = %s", (keyspace, name))
    return rows.one()


def await_type(session, keyspace, name):
    eventually(lambda: of_type(session, keyspace, name).status == "ACTIVE")


# ---- values and metadata ----

def test_a_driver_maps_user_types_to_its_own_classes(cassandra):
    cluster, session = cassandra()
    session.execute(KEYSPACE)
    session.execute("CREATE TYPE k.address (street text, zip int)")
    session.execute("CREATE TYPE k.person (name text, homes list<frozen<address>>)")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY, who frozen<person>, home address, places map<text, frozen<address>>)")
    cluster.register_user_type("k", "address", Address)
    cluster.register_user_type("k", "person", Person)
    insert = session.prepare("INSERT INTO k.t (p, who, home, places) VALUES (?, ?, ?, ?)")
    who = Person("Ada", [Address("here", 1), Address("there", None)])
    session.execute(insert, (1, who, Address(None, 7), {"x": Address("there", 2)}))
    row = session.execute("SELECT who, home, places, who.name AS name FROM k.t").one()
    assert (row.who.name, [tuple(h) for h in row.who.homes], tuple(row.home), row.name) == ("Ada", [("here", 1), ("there", None)], (None, 7), "Ada")
    assert {k: tuple(v) for k, v in row.places.items()} == {"x": ("there", 2)}
    assert isinstance(row.home, Address)
    session.execute(session.prepare("UPDATE k.t SET home.street = ?, home.zip = ? WHERE p = 1"), ("new", None))
    assert tuple(session.execute("SELECT home FROM k.t").one().home) == ("new", None)


def fields_of(cluster, name):
    types = cluster.metadata.keyspaces["k"].user_types if "k" in cluster.metadata.keyspaces else {}
    return types[name].field_names if name in types else None


def test_metadata_tells_types_and_follows_their_changes(cassandra):
    cluster, session = cassandra()
    watching, _ = cassandra()  # hears of changes by events alone
    session.execute(KEYSPACE)
    eventually(lambda: "k" in watching.metadata.keyspaces)  # the driver loses what it hears of a keyspace that it is still reading
    session.execute('CREATE TYPE k."Inner" (a int, "B" text)')
    session.execute('CREATE TYPE k.outer (i frozen<"Inner">, l list<int>)')
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY, v frozen<outer>)")
    for c in (cluster, watching):
        eventually(lambda: fields_of(c, "outer") and fields_of(c, "Inner") and "t" in c.metadata.keyspaces["k"].tables)
        types = c.metadata.keyspaces["k"].user_types
        assert (types["outer"].field_names, types["outer"].field_types) == (["i", "l"], ['frozen<"Inner">', "list<int>"])
        assert types["Inner"].as_cql_query() == 'CREATE TYPE k."Inner" (a int, "B" text)'
        text = c.metadata.keyspaces["k"].export_as_string()
        assert text.index('CREATE TYPE k."Inner"') < text.index("CREATE TYPE k.outer") < text.index("CREATE TABLE k.t")
    session.execute("ALTER TYPE k.outer ADD extra text")
    session.execute('ALTER TYPE k."Inner" RENAME a TO aa')
    eventually(lambda: fields_of(watching, "outer") == ["i", "l", "extra"])
    eventually(lambda: fields_of(watching, "Inner") == ["aa", "B"])
    session.execute("DROP TABLE k.t")
    session.execute("DROP TYPE k.outer")
    eventually(lambda: fields_of(watching, "outer") is None and fields_of(watching, "Inner"))


@pytest.mark.parametrize("version", [3, 4, 5])
def test_user_types_in_every_protocol_version(cassandra, version):
    _, session = cassandra(protocol_version=version)
    session.execute(KEYSPACE)
    session.execute("CREATE TYPE k.u (a tinyint, d date, t duration, l frozen<list<int>>)")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY, v frozen<u>, n u)")
    session.execute("INSERT INTO k.t (p, v, n) VALUES (1, {a: 1, d: '2024-02-29', t: 1mo2d3h, l: [1, 2]}, {a: 2})")
    row = session.execute("SELECT * FROM k.t").one()
    assert (row.v.a, str(row.v.d), row.v.t.months, row.v.l, row.n.a, row.n.d) == (1, "2024-02-29", 1, [1, 2], 2, None)


# ---- Keyspaces' way ----

def test_types_come_and_go_as_tables_do_on_keyspaces(new_server):
    server = new_server("--ddl-delay", "300", "--compatibility", "strict")
    with server.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        create_keyspace(session, "k")
        session.execute("CREATE TYPE k.u (a int)")
        assert of_type(session, "k", "u").status == "CREATING"
        assert not session.execute("SELECT * FROM system_schema.types WHERE keyspace_name = 'k'").all()
        with pytest.raises(InvalidRequest, match="UDT u does not exist"):
            session.execute("CREATE TABLE k.t (p int PRIMARY KEY, v frozen<u>)")
        await_type(session, "k", "u")
        session.execute("CREATE TYPE k.w (x frozen<u>, y frozen<list<u>>)")
        await_type(session, "k", "w")
        session.execute("CREATE TABLE k.t (p int PRIMARY KEY, v frozen<w>, n u)")
        await_active(session, "k", "t")
        u, w = of_type(session, "k", "u"), of_type(session, "k", "w")
        assert (u.direct_parent_types, u.direct_referring_tables, u.max_nesting_depth) == (["w"], ["t"], 1)
        assert (w.direct_parent_types, w.direct_referring_tables, w.max_nesting_depth) == (None, ["t"], 2)
        assert (w.field_names, w.field_types) == (["x", "y"], ["frozen<u>", "frozen<list<frozen<u>>>"])
        with pytest.raises(InvalidRequest, match="Cannot drop user type k.u as it is still used by user type w"):
            session.execute("DROP TYPE k.u")
        for refused in ("ALTER TYPE k.u ADD b int", "ALTER TYPE k.u RENAME a TO b", "TRUNCATE k.t", "ALTER TABLE k.t DROP v", "ALTER TABLE k.t RENAME p TO q"):
            with pytest.raises(InvalidRequest, match="is not yet supported"):
                session.execute(refused)
        session.execute("DROP KEYSPACE k")
        eventually(lambda: of_type(session, "k", "u") is None)


# ---- statements that follow ----

def test_prepared_statements_follow_every_change(cassandra):
    _, session = cassandra(schema_metadata_enabled=False)
    session.execute(KEYSPACE)
    session.execute("CREATE TYPE k.u (a int)")
    session.execute("CREATE TABLE k.t (p int, c int, v frozen<u>, n u, x int, PRIMARY KEY (p, c))")
    insert = session.prepare("INSERT INTO k.t (p, c, v, x) VALUES (?, ?, ?, ?)")
    select = session.prepare("SELECT * FROM k.t WHERE p = ?")
    session.execute(insert, (1, 1, (5,), 1))
    assert session.execute(select, (1,)).one().v.a == 5
    session.execute("ALTER TYPE k.u ADD b text")
    row = session.execute(select, (1,)).one()
    assert (row.v.a, row.v.b, row.n) == (5, None, None)
    insert = session.prepare("INSERT INTO k.t (p, c, v, x) VALUES (?, ?, ?, ?)")  # a driver binds with the fields that it was told of
    session.execute(insert, (1, 2, (6, "six"), 2))
    assert [(r.v.a, r.v.b) for r in session.execute(select, (1,))] == [(5, None), (6, "six")]
    session.execute("ALTER TYPE k.u RENAME a TO first")
    assert [r.v.first for r in session.execute(select, (1,))] == [5, 6]
    session.execute("ALTER TABLE k.t DROP x")
    assert "x" not in session.execute(select, (1,)).one()._fields
    with pytest.raises(InvalidRequest, match="Undefined column name x"):
        session.execute(insert, (1, 3, (6, "six"), 2))
    session.execute("ALTER TABLE k.t ADD x int")
    assert [r.x for r in session.execute(select, (1,))] == [None, None]
    session.execute(insert, (1, 3, (7, "seven"), 3))
    assert [r.x for r in session.execute(select, (1,))] == [None, None, 3]
    session.execute("ALTER TABLE k.t RENAME c TO position")
    assert [r.position for r in session.execute(select, (1,))] == [1, 2, 3]
    session.execute("TRUNCATE k.t")
    assert not session.execute(select, (1,)).all()


# ---- truncation under load ----

def test_a_truncation_takes_all_that_was_before_and_nothing_that_comes_after(cassandra):
    _, session = cassandra(schema_metadata_enabled=False)
    session.execute(KEYSPACE)
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY, v int)")
    session.execute("CREATE TABLE k.bystander (p int PRIMARY KEY, v int)")
    insert = session.prepare("INSERT INTO k.t (p, v) VALUES (?, 1)")
    session.execute("INSERT INTO k.bystander (p, v) VALUES (1, 1)")
    began, ended, stop, lock, errors = {}, {}, threading.Event(), threading.Lock(), []

    def write(first):
        p = first
        while not stop.is_set():
            with lock:
                began[p] = time.monotonic()
            try:
                session.execute(insert, (p,))
            except Exception as e:
                errors.append(e)
                return
            with lock:
                ended[p] = time.monotonic()
            p += 8

    writers = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for w in writers:
        w.start()
    truncated = []
    for _ in range(5):
        let_pass(0.3)
        start = time.monotonic()
        session.execute("TRUNCATE k.t")
        truncated.append((start, time.monotonic()))

    def written_since():
        with lock:
            return sum(began[p] > truncated[-1][1] for p in ended)

    eventually(lambda: errors or written_since() > 100)
    stop.set()
    for w in writers:
        w.join()
    assert not errors
    found = {r.p for r in session.execute("SELECT p FROM k.t")}
    last_start, last_end = truncated[-1]
    lost = [p for p in ended if began[p] > last_end and p not in found]
    left = [p for p in found if ended[p] < last_start]
    assert len(found) > 100 and not lost and not left, f"{len(lost)} lost, {len(left)} left of {len(ended)}"
    assert session.execute("SELECT count(*) FROM k.bystander").one()[0] == 1


# ---- kill -9 ----

def test_changes_of_types_and_tables_survive_kill9(cassandra):
    """Whatever was acknowledged is there after each kill; what was not is there wholly or not at all, and rows read either way."""
    rng = random.Random(7)
    _, session = cassandra(schema_metadata_enabled=False)
    session.execute(KEYSPACE)
    session.execute("CREATE TYPE k.u (f0 int)")
    session.execute("CREATE TABLE k.t (p int, c frozen<u>, n u, PRIMARY KEY (p, c))")
    fields, columns, rows = ["f0"], [], 0
    for i in range(1, 7):
        session.execute(f"INSERT INTO k.t (p, c, n) VALUES ({i}, {{f0: {i}}}, {{{fields[-1]}: {i}}})")
        rows += 1
        acked, stop = {"fields": len(fields), "columns": len(columns)}, threading.Event()

        def change(number=i):
            try:
                session.execute(f"ALTER TYPE k.u ADD f{number} int")
                acked["fields"] += 1
                session.execute(f"ALTER TABLE k.t ADD x{number} frozen<u>")
                acked["columns"] += 1
                session.execute(f"CREATE TYPE k.w{number} (a frozen<u>)")
                session.execute(f"DROP TYPE k.w{number}")
                if number > 1:
                    session.execute(f"ALTER TABLE k.t DROP x{number - 1}")
            except Exception:
                pass

        thread = threading.Thread(target=change)
        thread.start()
        let_pass(rng.uniform(0, 0.06))
        cassandra.server.kill9()
        thread.join()
        cassandra.server.start()
        _, session = cassandra(schema_metadata_enabled=False)
        got = session.execute("SELECT field_names FROM system_schema.types WHERE keyspace_name = 'k' AND type_name = 'u'").one().field_names
        assert got[: acked["fields"]] == [f"f{n}" for n in range(acked["fields"])] or set(fields) <= set(got)
        assert set(fields) <= set(got) and len(got) >= acked["fields"]
        fields = list(got)
        found = session.execute("SELECT p, c, n FROM k.t").all()
        assert sorted(r.p for r in found) == list(range(1, rows + 1))
        assert all(r.c.f0 == r.p for r in found)
        if f"f{i}" not in fields:
            session.execute(f"ALTER TYPE k.u ADD f{i} int")
            fields.append(f"f{i}")
        columns = [r.column_name for r in session.execute("SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'k' AND table_name = 't'")]
    assert "set aside" not in cassandra.server.log_tail()


def test_a_truncation_survives_kill9(cassandra):
    _, session = cassandra(schema_metadata_enabled=False)
    session.execute(KEYSPACE)
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY, v int)")
    for round_number in range(4):
        for p in range(20):
            session.execute(f"INSERT INTO k.t (p, v) VALUES ({p}, {round_number})")
        session.execute("TRUNCATE k.t")
        session.execute(f"INSERT INTO k.t (p, v) VALUES (100, {round_number})")
        cassandra.server.kill9()
        cassandra.server.start()
        _, session = cassandra(schema_metadata_enabled=False)
        assert [(r.p, r.v) for r in session.execute("SELECT * FROM k.t")] == [(100, round_number)]
        let_pass(1.2 if round_number == 0 else 0)  # what was in the old place is freed
        assert [(r.p, r.v) for r in session.execute("SELECT * FROM k.t")] == [(100, round_number)]
        session.execute("TRUNCATE k.t")
