"""system_metering.storage: BillableTableSizeInBytes is what a full scan sums up to, at once and whatever happened to the table."""
import random

import pytest

from control import set_clock
from tally_server import Server, create_keyspace, create_table, eventually, let_pass
from test_metering import Charge, pages

MODELS = ["documented-2022", "current"]
DAY_MS = 86_400_000
STORED_ROW = {"documented-2022": 0, "current": 100}  # beside what a row takes of throughput


def start(folder, model, *flags):
    return Server(folder, "--ddl-delay", "none", "--control", "on", "--size-model", model, "--capacity-payload", "full", *flags).start()


@pytest.fixture(params=MODELS)
def served(request, tmp_path):
    server = start(tmp_path, request.param)
    with server.cluster(protocol_version=4) as cluster:
        s = cluster.connect()
        create_keyspace(s, "b")
        yield s, request.param
    server.stop()


def billable(session, table, keyspace="b"):
    row = session.execute("SELECT billable_bytes, rows, static_rows FROM system_metering.storage WHERE keyspace_name = %s AND table_name = %s",
                          (keyspace, table)).one()
    return row and tuple(row)


def scanned(session, table, model):
    """What a full scan read: bytes as stored, rows and static rows."""
    got = pages(session, f"SELECT * FROM b.{table}", 1000)
    rows = sum(p["rows_read"] for p in got)
    return sum(p["row_bytes"] + p["static_bytes"] for p in got), rows, got


def agrees(session, table, model):
    size, n, n_static = billable(session, table)
    bytes_, rows, _ = scanned(session, table, model)
    assert rows == n + n_static
    assert size == bytes_ + STORED_ROW[model] * n
    return size, n, n_static


def test_the_published_example_as_it_is_stored(served):
    s, model = served
    create_table(s, "b", "mytable", "pk_col1 int, pk_col2 int, ck_col1 int, ck_col2 int, reg_col1 int, static_col1 int static, "
                                    "PRIMARY KEY ((pk_col1, pk_col2), ck_col1, ck_col2)")
    assert billable(s, "mytable") == (0, 0, 0)
    s.execute("INSERT INTO b.mytable (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1) VALUES (1, 2, 3, 4, 5)")
    row = {"documented-2022": 134, "current": 131}[model]
    assert billable(s, "mytable") == (row, 1, 0)
    s.execute("INSERT INTO b.mytable (pk_col1, pk_col2, static_col1) VALUES (1, 2, 6)")
    assert billable(s, "mytable") == (row + 122, 1, 1)
    s.execute("DELETE FROM b.mytable WHERE pk_col1 = 1 AND pk_col2 = 2 AND ck_col1 = 3 AND ck_col2 = 4")
    assert billable(s, "mytable") == (122, 0, 1)
    s.execute("DELETE FROM b.mytable WHERE pk_col1 = 1 AND pk_col2 = 2")
    assert billable(s, "mytable") == (0, 0, 0)


TABLE = ("pk int, ck int, a blob, b text, l list<int>, m map<text, int>, s blob static, t set<int> static, PRIMARY KEY (pk, ck)")


def write_at_random(session, rng, n):
    for _ in range(n):
        pk, ck, blob = rng.randrange(12), rng.randrange(8), rng.randbytes(rng.randrange(200))
        where, ttl = f"WHERE pk = {pk} AND ck = {ck}", rng.choice(["", "", " USING TTL 1"])
        session.execute(rng.choice([
            f"INSERT INTO b.t (pk, ck, a, b) VALUES ({pk}, {ck}, 0x{blob.hex()}, 'x'){ttl}",
            f"INSERT INTO b.t (pk, ck, l, m) VALUES ({pk}, {ck}, [1, 22, 333], {{'k{ck}': {pk}}}){ttl}",
            f"UPDATE b.t{ttl} SET l = l + [{pk}], m['z'] = 5 {where}",
            f"UPDATE b.t{ttl} SET a = 0x{blob.hex()} {where}",
            f"UPDATE b.t{ttl} SET s = 0x{blob.hex()}, t = t + {{{ck}}} WHERE pk = {pk}",
            f"UPDATE b.t{ttl} SET s = 0x{blob.hex()} WHERE pk = {pk + 20}",
            f"DELETE a FROM b.t {where}", f"DELETE FROM b.t {where}", f"DELETE s FROM b.t WHERE pk = {pk}",
            f"DELETE FROM b.t WHERE pk = {pk} AND ck > {ck}", f"DELETE FROM b.t WHERE pk = {pk}",
            f"UPDATE b.t SET b = 'y' {where} IF EXISTS"]))


@pytest.mark.parametrize("model", MODELS)
def test_it_is_what_a_full_scan_sums_up_to(tmp_path, model):
    server, rng = start(tmp_path, model), random.Random(model)
    for turn in range(4):
        with server.cluster(protocol_version=4) as cluster:
            s = cluster.connect()
            if turn == 0:
                create_keyspace(s, "b")
                create_table(s, "b", "t", TABLE)
            else:
                agrees(s, "t", model)     # after a start, before anything is written
            for _ in range(6):
                write_at_random(s, rng, 60)
                agrees(s, "t", model)
            let_pass(1.1)  # what had a second to live is over, and stored
            with_expired = agrees(s, "t", model)
            assert with_expired[0] > 0
            s.execute(f"ALTER TABLE b.t ADD c{turn} int")
            agrees(s, "t", model)
        if turn == 1:
            server.kill9()
        else:
            server.stop()
        if turn < 3:
            server.start()


def test_asking_while_others_write_loses_nothing(served):
    """What was counted while a row was on its way is counted again."""
    s, model = served
    create_table(s, "b", "busy", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    insert = s.prepare("INSERT INTO b.busy (pk, ck, v) VALUES (?, ?, ?)")
    for turn in range(20):
        writes = [s.execute_async(insert, (pk, turn, bytes(100))) for pk in range(100)]
        billable(s, "busy")
        for w in writes:
            w.result()
        assert billable(s, "busy")[1] == 100 * (turn + 1)
    agrees(s, "busy", model)


def test_a_table_that_gets_ttl_is_counted_anew(served):
    s, model = served
    create_table(s, "b", "late", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    s.execute("INSERT INTO b.late (pk, ck, v) VALUES (1, 1, 0x00)")
    before = agrees(s, "late", model)[0]
    s.execute("ALTER TABLE b.late WITH CUSTOM_PROPERTIES = {'ttl': {'status': 'enabled'}}")
    assert agrees(s, "late", model)[0] == before + (8 * (1 + 3) if model == "current" else 0)
    s.execute("ALTER TABLE b.late WITH CUSTOM_PROPERTIES = {'client_side_timestamps': {'status': 'enabled'}}")
    assert agrees(s, "late", model)[0] == before + (8 * (1 + 3) if model == "current" else 0) + 20


def test_a_table_that_is_dropped_leaves_nothing(served):
    s, model = served
    for _ in range(2):
        create_table(s, "b", "again", "pk int PRIMARY KEY, v blob")
        assert billable(s, "again") == (0, 0, 0)
        s.execute("INSERT INTO b.again (pk, v) VALUES (1, 0x00)")
        assert agrees(s, "again", model)[1] == 1
        s.execute("DROP TABLE b.again")
        assert billable(s, "again") is None


def test_every_table_of_a_keyspace_and_of_all(served):
    s, model = served
    for name in ("one", "two"):
        create_table(s, "b", name, "pk int PRIMARY KEY, v blob")
        s.execute(f"INSERT INTO b.{name} (pk, v) VALUES (1, 0x00)")
    sizes = {r.table_name: r.billable_bytes for r in s.execute("SELECT * FROM system_metering.storage") if r.keyspace_name == "b"}
    assert set(sizes) == {"one", "two"} and sizes["one"] == sizes["two"] == billable(s, "one")[0]
    assert Charge(s, "SELECT * FROM system_metering.storage").units == 0


def test_ttl_deletes_are_units_of_their_own(served):
    """1 for each started KiB of the row as it was, when it is taken away or loses columns: 2.5 KB are 3, 3.5 KB are 4."""
    s, model = served
    create_table(s, "b", "mortal", "pk int PRIMARY KEY, v blob, w int")
    s.execute("ALTER TABLE b.mortal WITH gc_grace_seconds = 0")  # has no effect on Keyspaces
    s.execute(s.prepare("INSERT INTO b.mortal (pk, v) VALUES (1, ?) USING TTL 1"), (bytes(2500),))
    s.execute("INSERT INTO b.mortal (pk, w) VALUES (2, 1)")
    s.execute(s.prepare("UPDATE b.mortal USING TTL 1 SET v = ? WHERE pk = 2"), (bytes(3500),))
    before = billable(s, "mortal")
    consumed = "SELECT ttl_deletes, read_units, write_units FROM system_metering.tables WHERE keyspace_name = 'b' AND table_name = 'mortal'"
    assert s.execute(consumed).one()[0] == 0
    units = s.execute(consumed).one()[1:]
    set_clock(s, advance_ms=9 * DAY_MS)
    assert pages(s, "SELECT * FROM b.mortal WHERE pk = 1", 100)[0]["rows_read"] == 1, "an expired row is read, and paid for, until it is removed"
    assert billable(s, "mortal")[0] == before[0] and s.execute(consumed).one()[0] == 0
    units = s.execute(consumed).one()[1:]
    set_clock(s, advance_ms=2 * DAY_MS)
    eventually(lambda: billable(s, "mortal")[1] != 2 and billable(s, "mortal")[0] <= before[0] - 6000, "the reclaimer removed nothing", interval=0.5)
    assert s.execute(consumed).one() == (3 + 4, *units)
    assert agrees(s, "mortal", model)[1] == 1
