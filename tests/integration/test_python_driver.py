"""Tally through the DataStax Python driver: connecting, DDL, types, paging, batches, errors, and what every statement cost."""
import contextlib
import datetime
import decimal
import ipaddress
import json
import math
import socket
import struct
import uuid

import pytest
from cassandra import AlreadyExists, ConsistencyLevel, InvalidRequest
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import SyntaxException
from cassandra.query import UNSET_VALUE, BatchStatement, BatchType, SimpleStatement
from cassandra.util import Date, Duration, Time

from control import release_all
from ports import free_port
from tally_server import await_active, create_keyspace, create_table, eventually, status_of

CAPACITY = {"capacity": b""}
FOUNDING = ("pk_col1 int, pk_col2 int, ck_col1 int, ck_col2 int, reg_col1 int, static_col1 int static, "
            "PRIMARY KEY ((pk_col1, pk_col2), ck_col1, ck_col2)")


@pytest.fixture(scope="module")
def session(server):
    with server.cluster(protocol_version=4) as cluster:
        s = cluster.connect()
        create_keyspace(s, "mykeyspace")
        create_table(s, "mykeyspace", "mytable", FOUNDING)
        yield s


def test_keys_of_all_lengths_are_paged_over(session):
    """Shorter and longer than what a read keeps in place (cql/read/kept_key.h), one behind the other, in partitions and in rows."""
    create_table(session, "mykeyspace", "keys", "p text, c text, v int, PRIMARY KEY (p, c)")
    insert = session.prepare("INSERT INTO mykeyspace.keys (p, c, v) VALUES (?, ?, ?)")
    lengths = [1, 16, 62, 63, 64, 65, 100, 800]
    rows = {(f"{n}".ljust(n, "p")[:n], f"{m}".ljust(m, "c")[:m]): n * m for n in lengths for m in lengths}
    for (p, c), v in rows.items():
        session.execute(insert.bind((p, c, v)))
    whole = [tuple(r) for r in session.execute(SimpleStatement("SELECT p, c, v FROM mykeyspace.keys", consistency_level=ConsistencyLevel.LOCAL_QUORUM))]
    assert {(p, c): v for p, c, v in whole} == rows and len(whole) == len(rows)
    for page in (1, 2, 7):
        assert [tuple(r) for r in session.execute(SimpleStatement("SELECT p, c, v FROM mykeyspace.keys", fetch_size=page, consistency_level=ConsistencyLevel.LOCAL_QUORUM))] == whole
    for p in {p for p, _ in rows}:
        down = SimpleStatement("SELECT c FROM mykeyspace.keys WHERE p = %s ORDER BY c DESC", fetch_size=1, consistency_level=ConsistencyLevel.LOCAL_QUORUM)
        assert [r.c for r in session.execute(down, (p,))] == sorted((c for q, c in rows if q == p), reverse=True)


def charge(session, statement, parameters=None, level=ConsistencyLevel.LOCAL_QUORUM):
    """Executes at `level`; returns the total charged and the details, from the payload of the response."""
    if isinstance(statement, str):
        statement = SimpleStatement(statement)
    statement.consistency_level = level
    future = session.execute_async(statement, parameters, custom_payload=CAPACITY)
    future.result()
    payload = future.custom_payload
    return struct.unpack(">d", payload["RequestCharge"])[0], json.loads(payload["capacity"])


# ---------------------------------------------------------------- connecting

@pytest.mark.parametrize("version, compression", [(3, False), (3, "lz4"), (3, "snappy"), (4, False), (4, "lz4"), (4, "snappy"),
                                                   (5, False), (5, "lz4")])
def test_connects_on_every_version_with_and_without_compression(server, session, version, compression):
    with server.cluster(protocol_version=version, compression=compression) as cluster:
        s = cluster.connect()
        row = s.execute("SELECT key, release_version FROM system.local").one()
        assert row == ("local", "3.11.2")
        name = f"v{version}_{compression or 'plain'}"
        create_table(s, "mykeyspace", name, "k int PRIMARY KEY, v text")
        text = "x" * 100_000
        s.execute(f"INSERT INTO mykeyspace.{name} (k, v) VALUES (%s, %s)", (1, text))
        prepared = s.prepare(f"SELECT v FROM mykeyspace.{name} WHERE k = ?")
        assert s.execute(prepared, (1,)).one().v == text


@pytest.mark.parametrize("mode, flags, version", [("keyspaces", (), 4), ("keyspaces", ("--protocol", "5"), 5),
                                                  ("cassandra", (), 5), ("cassandra", ("--protocol", "4"), 4)])
def test_negotiates_a_version_by_itself(new_server, mode, flags, version):
    """Amazon Keyspaces speaks v4: what only v5 has (a keyspace of a single query) must fail here as it does there."""
    server = new_server("--mode", mode, *flags)
    with server.cluster() as cluster:
        cluster.connect()
        assert cluster.protocol_version == version
    with server.cluster(protocol_version=3) as cluster:
        cluster.connect()


def test_a_version_that_is_not_offered_is_refused_in_the_words_of_one_that_does_not_exist(new_server):
    server = new_server()
    for version, flags in ((5, 0), (6, 0x10)):
        with socket.create_connection((server.host, server.port), timeout=300) as c:
            c.sendall(bytes([version, flags, 0, 1, 5, 0, 0, 0, 0]))
            answer = b"".join(iter(lambda: c.recv(4096), b""))  # pylint: disable=cell-var-from-loop
        assert answer[0] == 0x84 and answer[4] == 0
        words = f"Invalid or unsupported protocol version ({version}); supported versions are (3/v3, 4/v4)"
        assert words.encode() in answer


def test_reads_the_schema(server, session):
    cluster = session.cluster
    cluster.refresh_schema_metadata()
    table = cluster.metadata.keyspaces["mykeyspace"].tables["mytable"]
    assert [c.name for c in table.partition_key] == ["pk_col1", "pk_col2"]
    assert [c.name for c in table.clustering_key] == ["ck_col1", "ck_col2"]
    assert table.columns["static_col1"].is_static
    assert "CREATE TABLE mykeyspace.mytable" in table.export_as_string()


# ---------------------------------------------------------------- what statements cost

def test_founding_static_write_is_122_bytes(session):
    units, c = charge(session, "INSERT INTO mykeyspace.mytable (pk_col1, pk_col2, static_col1) VALUES (1, 2, 6)")
    assert (c["static_bytes"], c["row_bytes"]) == (122, 0)
    assert c["static_write_units"] == 1 and units == 1
    assert c["table"] == "mykeyspace.mytable"


def test_founding_mixed_write_is_256_bytes_and_4_units(session):
    units, c = charge(session, "INSERT INTO mykeyspace.mytable (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1, static_col1) "
                               "VALUES (2, 3, 4, 5, 6, 7)")
    assert (c["static_bytes"], c["row_bytes"]) == (122, 134)
    assert units == 4 and c["write_units"] + c["static_write_units"] == 4


def test_a_row_without_static_values_is_134_bytes_and_1_unit(session):
    units, c = charge(session, "INSERT INTO mykeyspace.mytable (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1) VALUES (9, 9, 1, 1, 1)")
    assert (c["static_bytes"], c["row_bytes"], units) == (0, 134, 1)


def test_a_prepared_write_costs_the_same(session):
    insert = session.prepare("INSERT INTO mykeyspace.mytable (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1, static_col1) VALUES (?, ?, ?, ?, ?, ?)")
    units, c = charge(session, insert.bind((2, 3, 4, 5, 6, 7)))
    assert (c["static_bytes"], c["row_bytes"], units) == (122, 134, 4)


def test_25_5_kb_and_1_5_kb_static_are_56_units(session):
    create_table(session, "mykeyspace", "wide", "pk int, ck int, v blob, s blob static, PRIMARY KEY (pk, ck)")
    row, static = 25 * 1024 + 512, 1024 + 512
    key = (4 + 3, 4 + 4)
    v = bytes(row - sum(key) - 100)
    s = bytes(static - key[0] - 104)
    units, c = charge(session, session.prepare("INSERT INTO mykeyspace.wide (pk, ck, v, s) VALUES (1, 1, ?, ?)").bind((v, s)))
    assert (c["row_bytes"], c["static_bytes"]) == (row, static)
    assert units == 2 * 26 + 2 * 2
    # Read together they are one aggregate size: 27 KiB, 4 KiB a unit, half at LOCAL_ONE.
    read = "SELECT * FROM mykeyspace.wide WHERE pk = 1 AND ck = 1"
    units, c = charge(session, read)
    assert units == math.ceil((row + static) / 4096) == 7
    assert (c["row_bytes"], c["static_bytes"], c["query_class"]) == (row, static, "point")
    assert charge(session, read, level=ConsistencyLevel.LOCAL_ONE)[0] == 3.5


def test_reads_say_what_was_read(session):
    create_table(session, "mykeyspace", "reads", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    insert = session.prepare("INSERT INTO mykeyspace.reads (pk, ck, v) VALUES (?, ?, ?)")
    for ck in range(10):
        session.execute(insert, (1, ck, bytes(1000)))
    size = 1000 + 7 + 8 + 100
    units, c = charge(session, "SELECT * FROM mykeyspace.reads WHERE pk = 1")
    assert (c["rows_read"], c["rows_returned"]) == (10, 10)
    assert units == math.ceil(10 * size / 4096)
    assert charge(session, "SELECT * FROM mykeyspace.reads WHERE pk = 1", level=ConsistencyLevel.LOCAL_ONE)[0] == units / 2
    assert charge(session, "SELECT * FROM mykeyspace.reads WHERE pk = 1 AND ck = 3")[0] == 1
    assert charge(session, "SELECT * FROM mykeyspace.reads WHERE pk = 99 AND ck = 3")[0] == 1
    assert charge(session, "SELECT * FROM mykeyspace.reads")[1]["query_class"] == "table_scan"
    assert c["rules"]


def test_the_charge_comes_unasked_and_the_details_do_not(session):
    future = session.execute_async("SELECT * FROM mykeyspace.mytable WHERE pk_col1 = 1 AND pk_col2 = 2")
    future.result()
    assert set(future.custom_payload) == {"RequestCharge"}
    assert struct.unpack(">d", future.custom_payload["RequestCharge"])[0] == 1


def test_batches_cost_the_sum_and_logged_ones_double(session):
    create_table(session, "mykeyspace", "batched", "pk int PRIMARY KEY, v text")
    for kind, factor in ((BatchType.UNLOGGED, 1), (BatchType.LOGGED, 2)):
        batch = BatchStatement(batch_type=kind, consistency_level=ConsistencyLevel.LOCAL_QUORUM)
        for pk in range(3):
            batch.add("INSERT INTO mykeyspace.batched (pk, v) VALUES (%s, %s)", (pk, "x"))
        assert charge(session, batch)[0] == 3 * factor


# ---------------------------------------------------------------- asynchronous DDL

def test_a_table_is_creating_then_active(new_server):
    server = new_server("--control", "on", "--ddl-rules", "CREATE TABLE mykeyspace.slow = held")
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "mykeyspace")
        session.execute("CREATE TABLE mykeyspace.slow (k int PRIMARY KEY)")
        assert status_of(session, "mykeyspace", "slow") == "CREATING"
        with pytest.raises(InvalidRequest) as e:
            session.execute("INSERT INTO mykeyspace.slow (k) VALUES (1)")
        assert "unconfigured table mykeyspace.slow" in str(e.value)
        names = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'mykeyspace' AND table_name = 'slow'"
        assert session.execute(names).one() is None
        release_all(session)
        assert await_active(session, "mykeyspace", "slow")[-1] == "ACTIVE"
        assert session.execute(names).one() is not None
        session.execute("INSERT INTO mykeyspace.slow (k) VALUES (1)")
        session.execute("DROP TABLE mykeyspace.slow")
        with pytest.raises(InvalidRequest):
            session.execute("SELECT * FROM mykeyspace.slow")


def test_creation_goes_on_after_a_restart(new_server):
    server = new_server("--ddl-delay", "none")
    with server.cluster() as cluster:
        create_keyspace(cluster.connect(), "later")
    server.stop()
    server.flags = ("--ddl-delay", "held")
    server.start()
    with server.cluster() as cluster:
        s = cluster.connect()
        s.execute("CREATE TABLE later.t (k int PRIMARY KEY)")
        assert status_of(s, "later", "t") == "CREATING"
    server.stop()
    server.flags = ("--ddl-delay", "none")
    server.start()
    with server.cluster() as cluster:
        s = cluster.connect()
        await_active(s, "later", "t")
        s.execute("INSERT INTO later.t (k) VALUES (1)")
        assert s.execute("SELECT k FROM later.t").one().k == 1
    server.stop()


def test_cassandra_mode_waits_for_its_ddl(cassandra_server):
    with cassandra_server.cluster() as cluster:
        s = cluster.connect()
        create_keyspace(s, "sync")
        s.execute("CREATE TABLE sync.t (k int PRIMARY KEY, v int)")
        s.execute("INSERT INTO sync.t (k, v) VALUES (1, 2)")
        s.execute("ALTER TABLE sync.t ADD w int")
        assert s.execute("SELECT k, v, w FROM sync.t").one() == (1, 2, None)
        assert s.execute("SELECT release_version FROM system.local").one().release_version.startswith("5.0.")
        assert "t" in cluster.metadata.keyspaces["sync"].tables


# ---------------------------------------------------------------- types

SCALARS = {
    "ascii": "plain", "bigint": -2 ** 63, "blob": bytes(range(256)), "boolean": True, "date": Date(datetime.date(1969, 12, 31)),
    "decimal": decimal.Decimal("-123456789.000000000123"), "double": 1e-300, "duration": Duration(14, 3, 4000000000),
    "float": 1.5, "inet": "2001:db8::ff00:42:8329", "int": -2 ** 31, "smallint": -2 ** 15, "text": "héllo 日本 😀",
    "time": Time("23:59:59.999999999"), "timestamp": datetime.datetime(2011, 2, 3, 4, 5, 6, 789000),
    "timeuuid": uuid.UUID("58e0a7d7-eebc-11d8-9669-0800200c9a66"), "tinyint": -128,
    "uuid": uuid.UUID("12345678-1234-4234-9234-123456789012"), "varint": -10 ** 40,
}
COLLECTIONS = {
    "list<int>": [3, 1, 2], "set<text>": {"a", "b"}, "map<text, int>": {"a": 1, "b": 2}, "frozen<list<text>>": ["x", ""],
    "frozen<set<uuid>>": {uuid.UUID(int=0), uuid.UUID(int=2 ** 128 - 1)}, "frozen<map<int, text>>": {1: "a"},
    "map<int, frozen<list<frozen<set<int>>>>>": {1: [{1, 2}, set()]},
    "list<double>": [0.5, -0.5], "set<inet>": {"10.0.0.1"}, "map<date, blob>": {Date(datetime.date(2011, 2, 3)): b"\0"},
}


def plain(value):
    """Sorted sets, ordered maps and the like of the driver as Python's own."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if type(value).__name__ in ("SortedSet", "set", "frozenset"):
        return sorted((plain(v) for v in value), key=repr)
    if type(value).__name__ in ("OrderedMap", "OrderedMapSerializedKey", "dict"):
        return sorted(((plain(k), plain(v)) for k, v in value.items()), key=repr)
    if isinstance(value, (ipaddress.IPv4Address, ipaddress.IPv6Address)):
        return str(value)
    return value


@pytest.mark.parametrize("version", [3, 4, 5])
def test_every_type_comes_back(server, session, version):
    types = {**SCALARS, **COLLECTIONS}
    names = [f"c{i}" for i in range(len(types))]
    table = f"types_v{version}"
    with server.cluster(protocol_version=version) as cluster:
        s = cluster.connect("mykeyspace")
        create_table(s, "mykeyspace", table, "k int PRIMARY KEY, " + ", ".join(f"{n} {t}" for n, t in zip(names, types)))
        insert = s.prepare(f"INSERT INTO mykeyspace.{table} (k, {', '.join(names)}) VALUES ({', '.join('?' * (len(names) + 1))})")
        s.execute(insert, [1, *types.values()])
        s.execute(insert, [2] + [None] * len(types))
        select = s.prepare(f"SELECT {', '.join(names)} FROM mykeyspace.{table} WHERE k = ?")
        row = s.execute(select, (1,)).one()
        for (type_name, sent), got in zip(types.items(), row):
            assert plain(got) == plain(sent), type_name
        assert list(s.execute(select, (2,)).one()) == [None] * len(types)


@pytest.mark.parametrize("type_name", [t for t in SCALARS if t != "duration"])
def test_every_type_is_a_key(session, type_name):
    table = f"key_{type_name}"
    create_table(session, "mykeyspace", table, f"p {type_name}, c {type_name}, v int, PRIMARY KEY (p, c)")
    value = SCALARS[type_name]
    session.execute(session.prepare(f"INSERT INTO mykeyspace.{table} (p, c, v) VALUES (?, ?, 7)"), (value, value))
    row = session.execute(session.prepare(f"SELECT p, c, v FROM mykeyspace.{table} WHERE p = ? AND c = ?"), (value, value)).one()
    assert (plain(row.p), plain(row.c), row.v) == (plain(value), plain(value), 7)


# ---------------------------------------------------------------- statements

@pytest.mark.parametrize("page", [1, 7, 100, 5000])
def test_pages_hold_every_row_once(session, page):
    table = f"pages_{page}"
    create_table(session, "mykeyspace", table, "p int, c int, s int static, PRIMARY KEY (p, c)")
    insert = session.prepare(f"INSERT INTO mykeyspace.{table} (p, c, s) VALUES (?, ?, ?)")
    for p in range(10):
        for c in range(25):
            session.execute(insert, (p, c, p))
    rows = list(session.execute(SimpleStatement(f"SELECT p, c, s FROM mykeyspace.{table}", fetch_size=page)))
    assert len(rows) == 250 and {(r.p, r.c, r.s) for r in rows} == {(p, c, p) for p in range(10) for c in range(25)}
    back = session.execute(SimpleStatement(f"SELECT c FROM mykeyspace.{table} WHERE p = 3 ORDER BY c DESC", fetch_size=page))
    assert [r.c for r in back] == list(reversed(range(25)))


def test_a_page_resumes_by_its_state_on_another_connection(server, session):
    create_table(session, "mykeyspace", "resumed", "p int, c int, PRIMARY KEY (p, c)")
    for c in range(10):
        session.execute("INSERT INTO mykeyspace.resumed (p, c) VALUES (1, %s)", (c,))
    statement = SimpleStatement("SELECT c FROM mykeyspace.resumed WHERE p = 1", fetch_size=4)
    first = session.execute(statement)
    state = first.paging_state
    assert [r.c for r in first.current_rows] == [0, 1, 2, 3]
    with server.cluster(protocol_version=4) as cluster:
        rest = cluster.connect().execute(statement, paging_state=state)
        assert [r.c for r in rest] == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("kind", [BatchType.LOGGED, BatchType.UNLOGGED])
def test_batches_write_all_their_parts(session, kind):
    table = f"batch_{kind}".lower()
    create_table(session, "mykeyspace", table, "p int, c int, v text, PRIMARY KEY (p, c)")
    insert = session.prepare(f"INSERT INTO mykeyspace.{table} (p, c, v) VALUES (?, ?, ?)")
    batch = BatchStatement(batch_type=kind)
    for c in range(5):
        batch.add(insert, (1, c, f"v{c}"))
    batch.add(f"INSERT INTO mykeyspace.{table} (p, c, v) VALUES (2, 0, 'simple')")
    session.execute(batch)
    assert len(list(session.execute(f"SELECT * FROM mykeyspace.{table}"))) == 6


def test_names_unset_and_null(session):
    create_table(session, "mykeyspace", "bound", "k int PRIMARY KEY, v int, w int")
    insert = session.prepare("INSERT INTO mykeyspace.bound (k, v, w) VALUES (:k, :v, :w)")
    session.execute(insert, {"k": 1, "v": 2, "w": 3})
    session.execute(insert, (1, UNSET_VALUE, None))
    assert session.execute("SELECT v, w FROM mykeyspace.bound WHERE k = 1").one() == (2, None)


SIZED = (  # (statement, the values before its key, the size that Cassandra 5.0.8 warns of when a batch has two of them)
    ("UPDATE ks_sizes.t SET s = s + ? WHERE k = ?", ({bytes(3000)},), 6164),
    ("UPDATE ks_sizes.t SET s = ? WHERE k = ?", ({b"x" * 3000, b"yy"},), 6208),
    ("UPDATE ks_sizes.t SET st = st - ? WHERE k = ?", ({"a" * 3000},), 6164),
    ("DELETE s[?] FROM ks_sizes.t WHERE k = ?", (bytes(3000),), 6164),
    ("UPDATE ks_sizes.t SET l = l + ? WHERE k = ?", ([bytes(3000), b"1"],), 6270),
    ("UPDATE ks_sizes.t SET l = ? WHERE k = ?", ([b"", b"1" * 3000],), 6268),
    ("UPDATE ks_sizes.t SET m[?] = ? WHERE k = ?", (bytes(1500), bytes(1500)), 6164),
    ("UPDATE ks_sizes.t SET mt[?] = null WHERE k = ?", ("k" * 3000,), 6164),
    ("UPDATE ks_sizes.t SET mt = ? WHERE k = ?", ({"k" * 3000: 1},), 6172),
    ("UPDATE ks_sizes.t SET u.b = ? WHERE k = ?", ("b" * 3000,), 6168),
    ("INSERT INTO ks_sizes.t (u, k) VALUES ({a: 1, b: ?}, ?)", ("b" * 3000,), 6220))


def test_writes_of_elements_have_the_size_that_cassandra_counts(cassandra_server):
    """An element counts once, by the bytes of its value: a set takes what a list takes, and a batch is as large as on Cassandra."""
    with cassandra_server.cluster(protocol_version=4) as cluster:
        session = cluster.connect()
        create_keyspace(session, "ks_sizes")
        session.execute("CREATE TYPE ks_sizes.ud (a int, b text)")
        create_table(session, "ks_sizes", "t", "k int PRIMARY KEY, s set<blob>, st set<text>, l list<blob>, m map<blob, blob>, mt map<text, int>, u ud")
        for statement, values, size in SIZED:
            prepared = session.prepare(statement)
            batch = BatchStatement(BatchType.UNLOGGED)
            for k in range(2):
                batch.add(prepared, (*values, k))
            warnings = session.execute_async(batch)
            warnings.result()
            assert [w for w in warnings.warnings if f" is of size {size}, exceeding specified threshold" in w], (statement, warnings.warnings)
        for element in (bytes(15 << 20), b"x" * (15 << 20)):
            session.execute(session.prepare("UPDATE ks_sizes.t SET s = s + ? WHERE k = 9"), ({element},))
            session.execute(session.prepare("UPDATE ks_sizes.t SET l = l + ? WHERE k = 9"), ([element],))


def test_a_batch_takes_as_many_statements_as_a_message_can_hold(cassandra_server):
    with cassandra_server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "ks_many")
        create_table(session, "ks_many", "t", "a int, b int, c int, PRIMARY KEY (a, b)")
        insert = session.prepare("INSERT INTO ks_many.t (a, b, c) VALUES (?, ?, ?)")
        batch, spread = BatchStatement(BatchType.UNLOGGED), BatchStatement(BatchType.UNLOGGED)
        for i in range(65535):
            batch.add(insert, (1, i, i))
            spread.add(insert, (i, i, i))
        session.execute(batch)
        rows = session.execute("SELECT b, c FROM ks_many.t WHERE a = 1")
        assert sum(1 for n, row in enumerate(rows) if row == (n, n)) == 65535
        with pytest.raises(InvalidRequest, match="Batch too large"):  # Cassandra bounds the size of a batch over several partitions
            session.execute(spread)


def test_conditional_writes_say_whether_they_applied(session):
    create_table(session, "mykeyspace", "lwt", "k int PRIMARY KEY, v int")
    assert session.execute("INSERT INTO mykeyspace.lwt (k, v) VALUES (1, 1) IF NOT EXISTS").was_applied
    again = session.execute("INSERT INTO mykeyspace.lwt (k, v) VALUES (1, 2) IF NOT EXISTS")
    assert not again.was_applied and again.one().v == 1
    assert session.execute("UPDATE mykeyspace.lwt SET v = 3 WHERE k = 1 IF v = 1").was_applied
    assert session.execute("SELECT v FROM mykeyspace.lwt WHERE k = 1").one().v == 3


def test_ttl_and_timestamp(session):
    create_table(session, "mykeyspace", "aging", "k int PRIMARY KEY, v int")
    session.execute("INSERT INTO mykeyspace.aging (k, v) VALUES (1, 1) USING TTL 1000 AND TIMESTAMP 5")
    row = session.execute("SELECT ttl(v) AS t, writetime(v) AS w FROM mykeyspace.aging").one()
    assert 900 < row.t <= 1000 and row.w == 5


def test_errors_are_the_drivers_own(session):
    with pytest.raises(SyntaxException, match=r"line 1:0 no viable alternative at input 'SELEC'"):
        session.execute("SELEC * FROM mykeyspace.mytable")
    with pytest.raises(InvalidRequest, match="Undefined column name nosuch"):
        session.execute("SELECT nosuch FROM mykeyspace.mytable")
    with pytest.raises(InvalidRequest, match="unconfigured table mykeyspace.nosuch"):
        session.execute("SELECT * FROM mykeyspace.nosuch")
    with pytest.raises(AlreadyExists) as e:
        session.execute(f"CREATE TABLE mykeyspace.mytable ({FOUNDING})")
    assert (e.value.keyspace, e.value.table) == ("mykeyspace", "mytable")
    with pytest.raises(InvalidRequest):
        session.execute("CREATE INDEX ON mykeyspace.mytable (reg_col1)")


def execute_when_back(session, statement, parameters):
    """The driver needs a moment to connect again."""
    def result():
        with contextlib.suppress(NoHostAvailable):
            return (session.execute(statement, parameters),)  # an empty result is false

    return eventually(result, "the driver did not connect again", interval=0.1)[0]


def test_an_unknown_prepared_id_is_prepared_again(new_server):
    """After a restart the server knows no ids; the driver is told so and repeats its PREPARE."""
    server = new_server("--ddl-delay", "none", "--port", str(free_port()))
    with server.cluster() as cluster:
        s = cluster.connect()
        create_keyspace(s, "again")
        create_table(s, "again", "t", "k int PRIMARY KEY")
        insert = s.prepare("INSERT INTO again.t (k) VALUES (?)")
        s.execute(insert, (1,))
        server.stop()
        server.start()
        execute_when_back(s, insert, (2,))
        assert {r.k for r in s.execute("SELECT k FROM again.t")} == {1, 2}
    server.stop()


def test_many_requests_at_once(session):
    create_table(session, "mykeyspace", "many", "k int PRIMARY KEY, v int")
    insert = session.prepare("INSERT INTO mykeyspace.many (k, v) VALUES (?, ?)")
    for f in [session.execute_async(insert, (k, k * k)) for k in range(2000)]:
        f.result()
    select = session.prepare("SELECT v FROM mykeyspace.many WHERE k = ?")
    futures = [(k, session.execute_async(select, (k,))) for k in range(2000)]
    assert all(f.result().one().v == k * k for k, f in futures)


def test_a_traced_request_shows_its_events(session):
    trace = session.execute("SELECT * FROM mykeyspace.mytable", trace=True).get_query_trace(10)
    assert trace.events and trace.request_type


# ---------------------------------------------------------------- events, changed metadata

def test_an_event_tells_when_a_table_is_ready(server, session):
    with server.cluster(schema_event_refresh_window=0, topology_event_refresh_window=0) as cluster:
        cluster.connect()
        session.execute("CREATE TABLE mykeyspace.announced (k int PRIMARY KEY)")
        eventually(lambda: "announced" in cluster.metadata.keyspaces["mykeyspace"].tables, "no event, or one before the table was there")


def test_a_prepared_select_follows_an_altered_table(cassandra_server):
    """Version 5 sends the new columns with the rows and a new id for them; no row is read by the old ones."""
    with cassandra_server.cluster(protocol_version=5) as cluster:
        s = cluster.connect()
        create_keyspace(s, "altered")
        s.execute("CREATE TABLE altered.t (k int PRIMARY KEY, v int)")
        s.execute("INSERT INTO altered.t (k, v) VALUES (1, 2)")
        select = s.prepare("SELECT * FROM altered.t WHERE k = ?")
        assert s.execute(select, (1,)).one() == (1, 2)
        s.execute("ALTER TABLE altered.t ADD a text")
        s.execute("UPDATE altered.t SET a = 'new' WHERE k = 1")
        assert s.execute(select, (1,)).one()._asdict() == {"k": 1, "a": "new", "v": 2}


@pytest.mark.parametrize("mode", ["keyspaces", "cassandra"])
def test_beta_of_the_protocol_is_spoken_with_who_asks_for_it(new_server, mode):
    """Python's driver sets the flag when it is told to; without it the driver goes down to v5. v5 must be offered."""
    server = new_server("--mode", mode, "--ddl-delay", "none", "--protocol", "5")
    with server.cluster(protocol_version=6, allow_beta_protocol_version=True) as cluster:
        session = cluster.connect()
        assert cluster.protocol_version == 6
        session.execute("CREATE KEYSPACE beta WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE beta.t (p int, c int, v text, PRIMARY KEY (p, c))")
        insert = session.prepare("INSERT INTO beta.t (p, c, v) VALUES (?, ?, ?)")
        for c in range(5):
            session.execute(insert, (1, c, "v" * 70000))
        select = session.prepare("SELECT c, v FROM beta.t WHERE p = ?")
        select.fetch_size = 2
        assert [(r.c, len(r.v)) for r in session.execute(select, (1,))] == [(c, 70000) for c in range(5)]
        with pytest.raises(InvalidRequest):
            session.execute("SELECT nosuch FROM beta.t")
    with server.cluster() as cluster:
        cluster.connect()
        assert cluster.protocol_version == 5
