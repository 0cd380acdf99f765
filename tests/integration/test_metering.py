"""What statements cost: the worked examples of Amazon Keyspaces' published rules, asked of a running server.

Sections are those of the project's reference on Amazon Keyspaces. The founding examples are in test_python_driver.py.
"""
import json
import math
import random
import re
import struct
import time

import cassandra.connection
import pytest
from cassandra import ConsistencyLevel
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from tally_server import HANG, ROOT, Server, await_active, create_keyspace, create_table

ASK = {"capacity": b""}
QUORUM, ONE, LOCAL_ONE = ConsistencyLevel.LOCAL_QUORUM, ConsistencyLevel.ONE, ConsistencyLevel.LOCAL_ONE
UNPAGED = None
KIB = 1024


@pytest.fixture(scope="module")
def session(server):
    with server.cluster(protocol_version=4) as cluster:
        s = cluster.connect()
        create_keyspace(s, "m")
        yield s


@pytest.fixture(scope="module")
def current(tmp_path_factory):
    """A server that sizes rows as published now."""
    server = Server(tmp_path_factory.mktemp("current"), "--size-model", "current", "--ddl-delay", "none").start()
    with server.cluster(protocol_version=4) as cluster:
        s = cluster.connect()
        create_keyspace(s, "m")
        yield s
    server.stop()


class Charge:
    """One response: rows, whether a page follows, the total and the details of its payload."""
    def __init__(self, session, statement, parameters=None, level=QUORUM, page=5000, state=None):
        if isinstance(statement, str):
            statement = SimpleStatement(statement, fetch_size=page)
        statement.consistency_level = level
        future = session.execute_async(statement, parameters, custom_payload=ASK, paging_state=state)
        result = future.result()
        self.rows, self.state = list(result.current_rows), result.paging_state
        self.units = struct.unpack(">d", future.custom_payload["RequestCharge"])[0]
        self.details = json.loads(future.custom_payload["capacity"])
        self.rules = set(self.details["rules"])

    def __getitem__(self, key):
        return self.details[key]


def charge(session, *args, **kwargs):
    return Charge(session, *args, **kwargs)


def pages(session, query, page, **kwargs):
    out, state = [], None
    while True:
        out.append(Charge(session, query, page=page, state=state, **kwargs))
        state = out[-1].state
        if not state:
            return out
        assert len(out) < 100


def fill(session, table, rows, size, pk=1):
    """rows of (pk int, ck int, v blob) that encode to `size` bytes under documented-2022."""
    insert = session.prepare(f"INSERT INTO m.{table} (pk, ck, v) VALUES (?, ?, ?)")
    for ck in rows:
        session.execute(insert, (pk, ck, bytes(size - (4 + 3) - (4 + 4) - 100)))


# ---------------------------------------------------------------- reads: 1.3, 1.4

def test_units_of_reads_and_writes(session):
    create_table(session, "m", "units", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    fill(session, "units", [1], 8 * KIB)
    one = "SELECT * FROM m.units WHERE pk = 1 AND ck = 1"
    assert charge(session, one).units == 2
    assert charge(session, one, level=ONE).units == charge(session, one, level=LOCAL_ONE).units == 1
    blob = bytes(2 * KIB - 115)
    write = charge(session, session.prepare("INSERT INTO m.units (pk, ck, v) VALUES (2, 2, ?)").bind((blob,)))
    assert (write.units, write["row_bytes"]) == (2, 2 * KIB)


def test_a_read_of_nothing_costs_the_minimum(session):
    create_table(session, "m", "nothing", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    for query in ("SELECT * FROM m.nothing WHERE pk = 1 AND ck = 1", "SELECT * FROM m.nothing WHERE pk = 1"):
        c = charge(session, query)
        assert c.units == 1 and "read-minimum" in c.rules
        assert charge(session, query, level=LOCAL_ONE).units == 0.5


RANGE = "pk1 text, pk2 text, pk3 int, ck1 text, ck2 text, ck3 int, value text, PRIMARY KEY ((pk1, pk2, pk3), ck1, ck2, ck3)"


@pytest.mark.parametrize("order", ["ASC", "DESC"])
def test_a_range_reads_the_row_at_its_upper_bound(session, order):
    table = f"range_{order}".lower()
    session.execute(f"CREATE TABLE m.{table} ({RANGE}) WITH CLUSTERING ORDER BY (ck1 ASC, ck2 ASC, ck3 {order})")
    await_active(session, "m", table)
    for ck3, value in ((50, "x" * 5000), (60, "value_1"), (70, "x" * 5000)):
        session.execute(f"INSERT INTO m.{table} (pk1, pk2, pk3, ck1, ck2, ck3, value) VALUES ('a', 'b', 1, 'a', 'b', %s, %s)", (ck3, value))
    where = f"SELECT * FROM m.{table} WHERE pk1 = 'a' AND pk2 = 'b' AND pk3 = 1 AND ck1 = 'a' AND ck2 = 'b' AND "
    c = charge(session, where + "ck3 > 50 AND ck3 < 70")
    assert [r.ck3 for r in c.rows] == [60]
    assert c.units == 2 and "read-upper-bound" in c.rules
    assert charge(session, where + "ck3 > 50 AND ck3 < 70", level=LOCAL_ONE).units == 1
    for rest, units in (("ck3 > 50 AND ck3 <= 60", 1), ("ck3 > 50 AND ck3 < 65", 1), ("ck3 >= 50 AND ck3 <= 70", 3), ("ck3 < 70", 3),
                        ("ck3 > 60", 2), ("ck3 < 50", 2), ("(ck3) < (70)", 3)):
        c = charge(session, where + rest)
        assert c.units == units, rest
        assert ("read-upper-bound" in c.rules) == (rest in ("ck3 < 70", "ck3 < 50", "(ck3) < (70)")), rest


def test_limit_without_page_size_reads_a_page_of_1_mb(session):
    create_table(session, "m", "limited", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    fill(session, "limited", range(25), 100 * KIB)
    c = charge(session, "SELECT ck FROM m.limited WHERE pk = 1 LIMIT 1", page=UNPAGED)
    assert [r.ck for r in c.rows] == [0] and not c.state
    assert c.units == 10 * 100 / 4 and c["rows_read"] == 10 and "read-past-limit" in c.rules
    assert charge(session, "SELECT ck FROM m.limited WHERE pk = 1 LIMIT 1", page=UNPAGED, level=LOCAL_ONE).units == 125
    for size in (1, 5):
        c = charge(session, "SELECT ck FROM m.limited WHERE pk = 1 LIMIT 1", page=size)
        assert (len(c.rows), c["rows_read"], c.units) == (1, size, size * 25)


def test_limit_is_counted_over_pages(session):
    create_table(session, "m", "counted", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    fill(session, "counted", range(20), 200)
    got = pages(session, "SELECT ck FROM m.counted WHERE pk = 1 LIMIT 10", 5)
    assert [len(p.rows) for p in got] == [5, 5]
    got = pages(session, "SELECT ck FROM m.counted WHERE pk = 1 LIMIT 7", 5)
    assert [len(p.rows) for p in got] == [5, 2] and [p["rows_read"] for p in got] == [5, 5]


def test_the_first_page_of_a_partition_pays_for_the_markers_in_it(session):
    session.execute("CREATE TABLE m.marked (pk int, ck int, PRIMARY KEY (pk, ck)) WITH CUSTOM_PROPERTIES = {'client_side_timestamps': {'status': 'enabled'}}")
    await_active(session, "m", "marked")
    for pk in (1, 2):
        for ck in range(6):
            session.execute(f"INSERT INTO m.marked (pk, ck) VALUES ({pk}, {ck})")
        session.execute(f"DELETE FROM m.marked WHERE pk = {pk} AND ck >= 2 AND ck < 3")
        session.execute(f"DELETE FROM m.marked WHERE pk = {pk} AND ck > 3 AND ck <= 4")
    session.execute("DELETE FROM m.marked WHERE pk = 3")
    for order, first in (("", [0, 1]), (" ORDER BY ck DESC", [5, 3])):
        got = pages(session, f"SELECT ck FROM m.marked WHERE pk = 1{order}", 2)
        assert [r.ck for r in got[0].rows] == first and sum(len(p.rows) for p in got) == 4
        assert [p["rows_read"] for p in got[:2]] == [2 + 2, 2] and ["read-deletion-marker" in p.rules for p in got[:2]] == [True, False]
    for page in (1, 3, 5000):
        got = pages(session, "SELECT pk, ck FROM m.marked", page)
        assert (sum(len(p.rows) for p in got), sum(p["rows_read"] for p in got)) == (2 * 4, 2 * (4 + 2) + 1), page


def test_static_data_is_paid_for_by_the_page_that_begins_its_partition(session):
    create_table(session, "m", "paged_statics", "pk int, ck int, s int static, PRIMARY KEY (pk, ck)")
    for pk in range(4):
        for ck in range(3):
            session.execute(f"INSERT INTO m.paged_statics (pk, ck, s) VALUES ({pk}, {ck}, 1)")
    for page in (1, 2, 3, 5):
        got = pages(session, "SELECT * FROM m.paged_statics", page)
        assert sum(len(p.rows) for p in got) == 4 * 3
        assert [p["static_bytes"] for p in got] == [len({r.pk for r in p.rows}) * (4 + 3 + 4 + 104) for p in got], page


def test_a_page_ends_before_1_mb_read(session):
    create_table(session, "m", "wide_pages", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    fill(session, "wide_pages", range(25), 100 * KIB)
    for size in (20, UNPAGED):
        got = pages(session, "SELECT ck FROM m.wide_pages WHERE pk = 1", size)
        assert [len(p.rows) for p in got] == [10, 10, 5]
        assert [p.units for p in got] == [250, 250, 125]
        assert [r.ck for p in got for r in p.rows] == list(range(25))
    for pk in range(2, 10):
        fill(session, "wide_pages", [0, 1], 300 * KIB, pk)
    got = pages(session, "SELECT pk, ck FROM m.wide_pages", 5000)
    keys = [(r.pk, r.ck) for p in got for r in p.rows]
    assert len(keys) == len(set(keys)) == 25 + 16
    assert all(p.units <= 256 for p in got) and len(got) == len([p for p in got if p.rows])


def test_a_row_larger_than_a_page_is_a_page(session):
    create_table(session, "m", "huge", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    fill(session, "huge", range(3), 1100 * KIB)
    assert [[r.ck for r in p.rows] for p in pages(session, "SELECT ck FROM m.huge WHERE pk = 1", 5000)] == [[0], [1], [2]]


def test_filtered_rows_cost_and_count(session):
    create_table(session, "m", "filtered", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    fill(session, "filtered", range(30), 1000)
    session.execute("INSERT INTO m.filtered (pk, ck, v) VALUES (1, 29, 0x01)")
    got = pages(session, "SELECT ck FROM m.filtered WHERE pk = 1 AND v = 0x01 ALLOW FILTERING", 10)
    assert [len(p.rows) for p in got] == [0, 0, 1]
    assert [p["rows_read"] for p in got] == [10, 10, 10]
    assert [p.units for p in got] == [3, 3, 3] and "read-processed" in got[0].rules
    whole = charge(session, "SELECT ck FROM m.filtered WHERE pk = 1 AND v = 0x01 ALLOW FILTERING")
    assert whole.units == math.ceil((29 * 1000 + 116) / 4096)


def test_a_scan_pays_for_empty_storage_partitions(session):
    create_table(session, "m", "scanned", "pk text, ck int, value text, PRIMARY KEY (pk, ck)")
    c = charge(session, "SELECT * FROM m.scanned")
    assert c.units == 4 and "scan-empty-partition" in c.rules
    assert charge(session, "SELECT * FROM m.scanned", level=LOCAL_ONE).units == 2
    for ck, value in ((10, "x" * 4100), (20, "value_1"), (30, "x" * 4100)):
        session.execute("INSERT INTO m.scanned (pk, ck, value) VALUES ('pk', %s, %s)", (ck, value))
    c = charge(session, "SELECT * FROM m.scanned")
    assert (len(c.rows), c.units) == (3, 6)
    assert charge(session, "SELECT * FROM m.scanned WHERE value = 'value_1' ALLOW FILTERING").units == 6
    assert charge(session, "SELECT * FROM m.scanned", level=LOCAL_ONE).units == 3


def quarter_of(token):
    return (token + 2 ** 63) >> 62


def test_of_ranges_of_tokens_the_last_one_pays_for_an_empty_storage_partition(session):
    """As Spark scans: the ring in ranges, token(pk) > a AND token(pk) <= b."""
    create_table(session, "m", "ring", "pk int PRIMARY KEY, v int")
    tokens = sorted((r.t, r.pk) for pk in range(40) for r in session.execute(
        f"INSERT INTO m.ring (pk, v) VALUES ({pk}, {pk})") or session.execute(f"SELECT token(pk) AS t, pk FROM m.ring WHERE pk = {pk}"))
    keep = next(t for t in tokens if quarter_of(t[0]) == 1)          # one row, in the second storage partition
    session.execute(f"DELETE FROM m.ring WHERE pk IN ({', '.join(str(pk) for _, pk in tokens if pk != keep[1])})")
    select = "SELECT v FROM m.ring WHERE token(pk) > {} AND token(pk) <= {}"
    ends = [-2 ** 62, 0, 2 ** 62]                                    # behind the first three storage partitions
    half = -2 ** 63 + 2 ** 61                                        # in the middle of the first
    c = charge(session, select.format(half, 0))
    assert len(c.rows) == 1 and c.units == 1 + 1 and "scan-empty-partition" in c.rules
    assert charge(session, select.format(-2 ** 63, half)).units == 1           # finds nothing, ends no storage partition
    assert charge(session, select.format(half, ends[0] - 2)).units == 1        # all but the end of the first: finds nothing
    assert charge(session, select.format(half, ends[0] + 2)).units == 1        # its end, and nothing else
    assert charge(session, select.format(ends[0], ends[1])).units == 1         # the row
    assert charge(session, select.format(half, 2 ** 63 - 1)).units == 1 + 3    # the row, and three empty ones
    c = charge(session, select.format(half, ends[1] - 2))
    assert len(c.rows) == (keep[0] <= ends[1] - 2) and c.units == 1 + 1
    first = next(t for t in tokens if quarter_of(t[0]) == 0 and t[0] <= half)  # with a row in front of the range the first is not empty
    session.execute(f"INSERT INTO m.ring (pk, v) VALUES ({first[1]}, 1)")
    c = charge(session, select.format(half, 0))
    assert len(c.rows) == 1 and c.units == 1 and "scan-empty-partition" not in c.rules
    assert charge(session, "SELECT v FROM m.ring").units == 1 + 2
    assert charge(session, "SELECT v FROM m.ring WHERE token(pk) > 9223372036854775807").units == 1


def test_expired_rows_cost_until_they_are_removed(session):
    create_table(session, "m", "expired", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    fill(session, "expired", [2], 1000)
    insert = session.prepare("INSERT INTO m.expired (pk, ck, v) VALUES (1, ?, ?) USING TTL 1")
    for ck in (1, 3):
        session.execute(insert, (ck, bytes(8 * KIB - 115)))
    deadline = time.monotonic() + HANG
    query = "SELECT ck FROM m.expired WHERE pk = 1"
    while len(charge(session, query).rows) > 1:
        assert time.monotonic() < deadline
    c = charge(session, query)
    assert [r.ck for r in c.rows] == [2]
    assert c.units == math.ceil((2 * 8 * KIB + 1000) / 4096) == 5 and "read-expired" in c.rules
    c = charge(session, "SELECT ck FROM m.expired WHERE pk = 1 AND ck = 3")
    assert (c.rows, c.units) == ([], 2) and "read-expired" in c.rules
    c = charge(session, "SELECT ck FROM m.expired WHERE pk = 1 LIMIT 1", page=1)
    assert [r.ck for r in c.rows] == [2] and c.units == math.ceil((8 * KIB + 1000) / 4096)


# ---------------------------------------------------------------- IN: 1.4, 1.5

@pytest.fixture(scope="module")
def customers(session):
    create_table(session, "m", "customers", "department_id int, sales_region_id int, sales_representative_id int, customer_name text, "
                                            "PRIMARY KEY (department_id, sales_region_id, sales_representative_id)")
    names = iter("abcdefgh")
    for department in (0, 1):
        for region in (0, 1):
            for representative in (0, 1):
                session.execute("INSERT INTO m.customers (department_id, sales_region_id, sales_representative_id, customer_name) "
                                "VALUES (%s, %s, %s, %s)", (department, region, representative, next(names)))
    return session


def names(c):
    return "".join(r.customer_name for r in c.rows)


def test_in_is_a_query_for_each_element_of_the_product(customers):
    select = "SELECT * FROM m.customers WHERE department_id "
    c = charge(customers, select + "IN (0, 1) AND sales_region_id IN (0, 1)")
    assert (names(c), c.units) == ("abcdefgh", 4) and "read-in-sum" in c.rules
    assert charge(customers, select + "IN (0, 1) AND sales_region_id IN (0, 1)", level=LOCAL_ONE).units == 2
    c = charge(customers, select + "IN (1, 7, 0) AND sales_region_id IN (1, 0)")
    assert (names(c), c.units) == ("ghefcdab", 6)
    c = charge(customers, select + "= 1 AND sales_region_id IN (1, 0) AND sales_representative_id IN (1, 9)")
    assert (names(c), c.units) == ("hf", 4)
    c = charge(customers, select + "= 1 AND sales_region_id IN (1, 0) AND sales_representative_id < 1")
    assert (names(c), c.units, "read-upper-bound" in c.rules) == ("ge", 2, True)


def test_in_breaks_a_page_after_ten_subqueries(customers):
    query = ("SELECT * FROM m.customers WHERE department_id IN (0, 1) AND sales_region_id IN (0, 1) "
             "AND sales_representative_id IN (0, 2, 1, 3, 4, 5)")
    for size in (5000, UNPAGED):
        got = pages(customers, query, size)
        assert [names(p) for p in got] == ["abcd", "efg", "h"]
        assert [p.units for p in got] == [10, 10, 4]
    assert [p.units for p in pages(customers, query, 6)] == [6, 6, 6, 6]
    assert "".join(names(p) for p in pages(customers, query, 1)) == "abcdefgh"


def test_in_is_ordered_within_a_page(customers):
    query = "SELECT * FROM m.customers WHERE department_id IN (1, 0) AND sales_region_id = 0 ORDER BY sales_region_id DESC, sales_representative_id DESC"
    assert names(charge(customers, query)) == "fbea"
    assert names(charge(customers, query + " LIMIT 3")) == "fbe"


# ---------------------------------------------------------------- writes: 1.2, 1.4

def test_static_and_row_are_twice_each_in_every_statement(session):
    create_table(session, "m", "mixed", "pk int, ck int, v blob, s blob static, PRIMARY KEY (pk, ck)")
    v, s = bytes(2 * KIB - 115), bytes(KIB + 1 - 111)
    both = session.prepare("UPDATE m.mixed SET v = ?, s = ? WHERE pk = 1 AND ck = 1")
    c = charge(session, both.bind((v, s)))
    assert (c["row_bytes"], c["static_bytes"]) == (2 * KIB, KIB + 1)
    assert (c["write_units"], c["static_write_units"], c.units) == (4, 4, 8) and "static-and-row-twice" in c.rules
    assert charge(session, session.prepare("UPDATE m.mixed SET s = ? WHERE pk = 1").bind((s,))).units == 2
    assert charge(session, session.prepare("UPDATE m.mixed SET v = ? WHERE pk = 1 AND ck = 1").bind((v,))).units == 2
    batch = BatchStatement(batch_type=BatchType.UNLOGGED)
    batch.add(both, (v, s))
    batch.add("INSERT INTO m.mixed (pk, ck) VALUES (2, 2)")
    assert charge(session, batch).units == 8 + 1
    c = charge(session, "SELECT * FROM m.mixed WHERE pk = 1")
    assert c.units == math.ceil((2 * KIB + KIB + 1) / 4096) == 1 and "read-static-together" in c.rules


@pytest.mark.parametrize("kind, units", [(BatchType.UNLOGGED, 3), (BatchType.LOGGED, 6)])
def test_three_rows_of_1_kb_in_a_batch(session, kind, units):
    table = f"batch_{kind}".lower()
    create_table(session, "m", table, "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    insert = session.prepare(f"INSERT INTO m.{table} (pk, ck, v) VALUES (1, ?, ?)")
    batch = BatchStatement(batch_type=kind)
    for ck in range(3):
        batch.add(insert, (ck, bytes(KIB - 115)))
    c = charge(session, batch)
    assert (c["row_bytes"], c.units) == (3 * KIB, units) and "batch-sum" in c.rules
    assert ("logged-batch-twice" in c.rules) == (kind == BatchType.LOGGED)


def test_conditional_writes(session):
    create_table(session, "m", "lwt", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    v = bytes(2 * KIB - 115)
    insert = session.prepare("INSERT INTO m.lwt (pk, ck, v) VALUES (1, ?, ?) IF NOT EXISTS")
    c = charge(session, insert.bind((1, v)))
    assert (c.rows[0].applied, c.units) == (True, 2) and "lwt-applied" in c.rules
    c = charge(session, insert.bind((1, b"\0")))
    assert (c.rows[0].applied, c.units, c["read_units"]) == (False, 2, 0) and "lwt-failed-existing-row" in c.rules
    c = charge(session, "UPDATE m.lwt SET v = 0x00 WHERE pk = 1 AND ck = 9 IF EXISTS")
    assert (c.rows[0].applied, c.units) == (False, 1) and "lwt-failed-absent-row" in c.rules
    c = charge(session, "UPDATE m.lwt SET v = 0x00 WHERE pk = 1 AND ck = 1 IF v = 0x99")
    assert (c.rows[0].applied, c.units) == (False, 2)
    c = charge(session, "DELETE FROM m.lwt WHERE pk = 1 AND ck = 9 IF v = 0x99")
    assert (c.rows[0].applied, c.units) == (False, 1)


def test_a_row_that_the_condition_does_not_see_is_there(session):
    create_table(session, "m", "lwt_null", "pk int, ck int, v blob, w int, s blob static, PRIMARY KEY (pk, ck)")
    v = bytes(2 * KIB - 115)
    session.execute(session.prepare("UPDATE m.lwt_null SET v = ? WHERE pk = 1 AND ck = 1"), (v,))
    c = charge(session, "UPDATE m.lwt_null SET w = 1 WHERE pk = 1 AND ck = 1 IF w = 5")
    assert (c.rows[0].applied, c.units) == (False, 2) and "lwt-failed-existing-row" in c.rules
    session.execute(session.prepare("UPDATE m.lwt_null SET s = ? WHERE pk = 1"), (bytes(3 * KIB - 111),))
    c = charge(session, "UPDATE m.lwt_null SET w = 1 WHERE pk = 1 AND ck = 1 IF s = 0x01")
    assert (c["static_write_units"], c.units) == (3, 3 + 2)  # the row that is there, and the static data that was tested
    c = charge(session, "UPDATE m.lwt_null SET w = 1 WHERE pk = 1 AND ck = 2 IF s = 0x01")
    assert (c["static_write_units"], c.units) == (3, 3)
    session.execute("DELETE s FROM m.lwt_null WHERE pk = 1")
    assert charge(session, "UPDATE m.lwt_null SET w = 1 WHERE pk = 1 AND ck = 1 IF s = 0x01").units == 2


def test_a_refused_batch_costs_the_rows_whose_condition_was_false(session):
    create_table(session, "m", "lwt_batch", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    fill(session, "lwt_batch", [1], 5 * KIB)
    fill(session, "lwt_batch", [2], 3 * KIB)
    update = "UPDATE m.lwt_batch SET v = 0x00 WHERE pk = 1 AND ck = {} IF {}"
    for conditions, units in (((("1", "EXISTS"), ("2", "v = 0x99")), 3), ((("1", "v = 0x99"), ("2", "v = 0x99")), 8), ((("1", "EXISTS"), ("3", "EXISTS")), 1),
                              ((("1", "v = 0x98"), ("1", "v = 0x99")), 5)):
        batch = BatchStatement(batch_type=BatchType.UNLOGGED)
        for ck, condition in conditions:
            batch.add(update.format(ck, condition))
        c = charge(session, batch)
        assert (c.rows[0].applied, c.units) == (False, units), conditions


@pytest.mark.parametrize("name, options, reads", [
    ("lwt_ttl", "default_time_to_live = 3600", True),
    ("lwt_ttl_on", "CUSTOM_PROPERTIES = {'ttl': {'status': 'enabled'}}", True),
    ("lwt_timestamps", "default_time_to_live = 3600 AND CUSTOM_PROPERTIES = {'client_side_timestamps': {'status': 'enabled'}}", False)])
@pytest.mark.parametrize("level", [QUORUM, ONE])
def test_failed_existence_checks_read_where_there_is_ttl(session, name, options, reads, level):
    name += f"_{level}"
    session.execute(f"CREATE TABLE m.{name} (pk int, ck int, v blob, PRIMARY KEY (pk, ck)) WITH {options}")
    await_active(session, "m", name)
    fill(session, name, [1], 5 * KIB - 20)  # of a column's timestamp there may be
    c = charge(session, f"INSERT INTO m.{name} (pk, ck) VALUES (1, 1) IF NOT EXISTS", level=level)
    assert (c["write_units"], c["read_units"]) == (5, 2 if reads else 0)
    assert ("lwt-failed-ttl-read" in c.rules) == reads
    c = charge(session, f"DELETE FROM m.{name} WHERE pk = 1 AND ck = 2 IF EXISTS", level=level)
    assert (c["write_units"], c["read_units"]) == (1, 1 if reads else 0)
    c = charge(session, f"UPDATE m.{name} SET v = 0x00 WHERE pk = 1 AND ck = 1 IF v = 0x99")
    assert (c["write_units"], c["read_units"]) == (5, 0)


def test_counters_are_ordinary_writes(session):
    create_table(session, "m", "counts", "pk int PRIMARY KEY, n counter")
    c = charge(session, "UPDATE m.counts SET n = n + 1 WHERE pk = 1")
    assert (c.units, c["row_bytes"]) == (1, 4 + 3 + 8 + 100)


def test_rows_read_are_those_that_are_paid_for(session):
    """Returned or not, expired ones and static rows too; not what a deletion took away. bytes_read is what the store went through for them."""
    create_table(session, "m", "told", "pk int, ck int, v blob, s blob static, PRIMARY KEY (pk, ck)")
    fill(session, "told", range(6), 1000)
    session.execute("UPDATE m.told SET s = 0x00 WHERE pk = 1")
    session.execute("DELETE FROM m.told WHERE pk = 1 AND ck = 5")
    c = charge(session, "SELECT ck, s FROM m.told WHERE pk = 1")
    assert (c["rows_read"], c["rows_returned"]) == (5 + 1, 5)
    assert 5 * (1000 - 115) < c["bytes_read"] < 5 * 1000 + 500
    assert charge(session, "SELECT ck FROM m.told WHERE pk = 1")["rows_read"] == 5          # static data is not asked for
    c = charge(session, "SELECT ck FROM m.told WHERE pk = 1 AND v = 0x99 ALLOW FILTERING")
    assert (c["rows_read"], c["rows_returned"]) == (5, 0)
    c = charge(session, "SELECT ck FROM m.told WHERE pk = 1 AND ck IN (1, 2, 9)")
    assert (c["rows_read"], c["rows_returned"]) == (2, 2)
    assert charge(session, "SELECT ck FROM m.told WHERE pk = 1 AND ck = 5")["rows_read"] == 0
    assert charge(session, "UPDATE m.told SET v = 0x01 WHERE pk = 1 AND ck = 1")["rows_read"] == 0
    assert charge(session, "UPDATE m.told SET v = 0x01 WHERE pk = 1 AND ck = 1 IF v = 0x01")["rows_read"] == 1
    assert charge(session, "UPDATE m.told SET v = 0x01 WHERE pk = 1 AND ck = 1 IF v = 0x01 AND s = 0x00")["rows_read"] == 2
    assert charge(session, "UPDATE m.told SET v = 0x01 WHERE pk = 1 AND ck = 5 IF EXISTS")["rows_read"] == 0


def test_rows_and_bytes_read_of_every_kind_of_read(session):
    """A point, a slice, a filter, an aggregate, IN on either key, pages, a scan: rows_read are the rows that were passed, bytes_read what they are stored as."""
    create_table(session, "m", "passed", "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    insert = session.prepare("INSERT INTO m.passed (pk, ck, v) VALUES (?, ?, ?)")
    for pk in (1, 2):
        for ck in range(20):
            session.execute(insert, (pk, ck, bytes([ck]) * 1000))
    cases = [
        ("SELECT v FROM m.passed WHERE pk = 1 AND ck = 3", 1, 1),
        ("SELECT v FROM m.passed WHERE pk = 1 AND ck = 30", 0, 0),
        ("SELECT v FROM m.passed WHERE pk = 1 AND ck >= 5 AND ck <= 9", 5, 5),
        ("SELECT v FROM m.passed WHERE pk = 1 AND ck >= 5 AND ck <= 9 ORDER BY ck DESC", 5, 5),
        ("SELECT ck FROM m.passed WHERE pk = 1 AND v = 0x00 ALLOW FILTERING", 20, 0),
        ("SELECT ck FROM m.passed WHERE v = 0x00 ALLOW FILTERING", 40, 0),
        ("SELECT COUNT(*) FROM m.passed WHERE pk = 1", 20, 1),
        ("SELECT MAX(ck) FROM m.passed", 40, 1),
        ("SELECT pk, COUNT(ck) FROM m.passed GROUP BY pk", 40, 2),
        ("SELECT v FROM m.passed WHERE pk IN (1, 2, 3) AND ck IN (1, 2, 40)", 4, 4),
        ("SELECT v FROM m.passed WHERE pk = 1 AND ck IN (1, 2, 40)", 2, 2),
        ("SELECT * FROM m.passed", 40, 40),
    ]
    stored = None
    for query, rows, returned in cases:
        c = charge(session, query)
        assert (c["rows_read"], c["rows_returned"]) == (rows, returned), query
        stored = stored or c["bytes_read"]  # of the first, which is one row
        assert 1000 < stored < 1200 and rows * 1000 < c["bytes_read"] + 1 <= rows * stored + 1, query
    pages, state, read = 0, None, []
    while state is not None or not pages:
        future = session.execute_async(SimpleStatement("SELECT v FROM m.passed WHERE pk = 1", fetch_size=8), paging_state=state, custom_payload={"capacity": b""})
        result = future.result()
        detail = json.loads(future.custom_payload["capacity"])
        read.append((detail["rows_read"], detail["rows_returned"], len(result.current_rows)))
        pages, state = pages + 1, result.paging_state
    assert [r for r in read if any(r)] == [(8, 8, 8), (8, 8, 8), (4, 4, 4)]


def test_a_column_that_has_expired_counts_until_it_is_removed(session):
    create_table(session, "m", "partly", "pk int, ck int, v blob, w int, s blob static, PRIMARY KEY (pk, ck)")
    session.execute("INSERT INTO m.partly (pk, ck, w) VALUES (1, 1, 1)")
    session.execute(session.prepare("UPDATE m.partly USING TTL 1 SET v = ?, s = ? WHERE pk = 1 AND ck = 1"), (bytes(3000), bytes(2000)))
    deadline = time.monotonic() + HANG
    query = "SELECT * FROM m.partly WHERE pk = 1 AND ck = 1"
    while charge(session, query).rows[0].v is not None:
        assert time.monotonic() < deadline
    for q in (query, "SELECT * FROM m.partly WHERE pk = 1", "SELECT * FROM m.partly"):
        c = charge(session, q)
        assert (c.rows[0].v, c.rows[0].s, c.rows[0].w) == (None, None, 1)
        assert (c["row_bytes"], c["static_bytes"]) == (115 + 4 + 3000, 111 + 2000), q


def test_system_tables_are_free(session):
    for table in ("system.local", "system_schema.columns", "system_schema_mcs.tables"):
        c = charge(session, f"SELECT * FROM {table}")
        assert c.units == 0 and c.rules == {"system-free"}


# ---------------------------------------------------------------- the current size model: 1.1, 8.1

def row_bytes(session, table, statement, parameters=None):
    statement = session.prepare(statement.format(t=f"m.{table}"))
    return charge(session, statement.bind(parameters or ()))["row_bytes"]


def test_current_sizes_of_the_published_examples(current):
    create_table(current, "m", "mytable", "pk_col1 int, pk_col2 int, ck_col1 int, ck_col2 int, reg_col1 int, static_col1 int static, "
                                          "PRIMARY KEY ((pk_col1, pk_col2), ck_col1, ck_col2)")
    assert row_bytes(current, "mytable", "INSERT INTO {t} (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1) VALUES (1, 2, 3, 4, 5)") == 31
    c = charge(current, "SELECT * FROM m.mytable WHERE pk_col1 = 1 AND pk_col2 = 2 AND ck_col1 = 3 AND ck_col2 = 4")
    assert (c["row_bytes"], "size-current" in c.rules) == (31, True)
    c = charge(current, "INSERT INTO m.mytable (pk_col1, pk_col2, static_col1) VALUES (1, 2, 6)")
    assert c["static_bytes"] == 122
    create_table(current, "m", "users", "pk text, ck int, v text, PRIMARY KEY (pk, ck)")
    assert row_bytes(current, "users", "INSERT INTO {t} (pk, ck, v) VALUES ('user-0001', 12345, ?)", ("x" * 500,)) == 533
    create_table(current, "m", "static_text", "pk text, ck int, s int static, PRIMARY KEY (pk, ck)")
    assert charge(current, "INSERT INTO m.static_text (pk, s) VALUES ('12345678901234567890', 7)")["static_bytes"] == 131


def test_current_sizes_of_collections_and_ttl(current):
    create_table(current, "m", "lists", "pk int PRIMARY KEY, l list<text>")
    key, words = 2 * 2 + 1 + 3, ["x" * 10] * 3
    assert row_bytes(current, "lists", "INSERT INTO {t} (pk, l) VALUES (1, ?)", (words,)) == key + 37
    read = "SELECT l FROM m.lists WHERE pk = 1"
    assert charge(current, read)["row_bytes"] == key + 37
    c = charge(current, current.prepare("INSERT INTO m.lists (pk, l) VALUES (1, ?) USING TTL 1000").bind((words,)))
    ttl = 8 + 8  # of the row, and of the key column
    assert c["row_bytes"] == key + 61 + ttl and "size-ttl" in c.rules
    assert charge(current, read)["row_bytes"] == key + 61 + ttl
    # The sample of AWS's row size calculator.
    create_table(current, "m", "sample", "pk text, ck text, v text, PRIMARY KEY (pk, ck)")
    for using, size in (("", 327), (" USING TTL 1000", 359)):
        assert row_bytes(current, "sample", "INSERT INTO {t} (pk, ck, v) VALUES (?, ?, ?)" + using, ("p" * 59, "c", "v" * 200)) == size


def test_both_models_agree_between_writes_reads_and_refusals(session, current):
    for s in (session, current):
        create_table(s, "m", "agree", "pk int, ck text, a text, m map<text, int>, PRIMARY KEY (pk, ck)")
        insert = "INSERT INTO m.agree (pk, ck, a, m) VALUES (12, 'clustering', 'abc', {'x': 1, 'y': 200})"
        written = charge(s, insert)["row_bytes"]
        assert charge(s, "SELECT a FROM m.agree WHERE pk = 12 AND ck = 'clustering'")["row_bytes"] == written
        assert charge(s, insert + " IF NOT EXISTS")["row_bytes"] == written


# ---------------------------------------------------------------- how the charge is told

def payload_of(session, query="SELECT key FROM system.local", ask=False, trace=False):
    future = session.execute_async(query, custom_payload=ASK if ask else None, trace=trace)
    future.result()
    return future.custom_payload or {}


def test_details_come_when_the_request_asks(session):
    assert set(payload_of(session)) == {"RequestCharge"}
    details = json.loads(payload_of(session, ask=True)["capacity"])
    assert set(details) == {"read_units", "write_units", "static_write_units", "row_bytes", "static_bytes", "bytes_read", "rows_read",
                            "rows_returned", "entities", "query_class", "table", "rules"}


def test_details_come_when_the_connection_asks(server, session, monkeypatch):
    startup = cassandra.connection.StartupMessage

    def asking(cqlversion, options):
        return startup(cqlversion=cqlversion, options={**options, "CAPACITY": "full"})

    monkeypatch.setattr(cassandra.connection, "StartupMessage", asking)
    with server.cluster(protocol_version=4) as cluster:
        assert set(payload_of(cluster.connect())) == {"RequestCharge", "capacity"}


@pytest.mark.parametrize("setting, keys", [("full", {"RequestCharge", "capacity"}), ("charge", {"RequestCharge"}), ("off", set())])
def test_details_come_as_the_server_is_set(new_server, setting, keys):
    server = new_server("--capacity-payload", setting)
    with server.cluster(protocol_version=4) as cluster:
        s = cluster.connect()
        assert set(payload_of(s)) == keys
        if setting == "off":
            assert payload_of(s, ask=True) == {}
    server.stop()


def test_metering_that_is_off_charges_and_tells_nothing(new_server):
    """--metering off, with which the bench measures what metering costs."""
    server = new_server("--ddl-delay", "none", "--metering", "off")
    with server.cluster(protocol_version=4) as cluster:
        s = cluster.connect()
        create_keyspace(s, "off")
        create_table(s, "off", "t", "pk int PRIMARY KEY, v int")
        s.execute("INSERT INTO off.t (pk, v) VALUES (1, 2)")
        future = s.execute_async("SELECT v FROM off.t WHERE pk = 1", custom_payload={"capacity": b""})
        assert future.result().one().v == 2 and "RequestCharge" not in (future.custom_payload or {})
        assert s.execute("SELECT read_units, write_units, requests FROM system_metering.tables WHERE keyspace_name = 'off'").one() == (0, 0, 0)


@pytest.mark.parametrize("version", [4, 5])
def test_warnings_and_a_payload_come_together_only_when_asked_for(server, version):
    count = "SELECT count(*) FROM system.local"
    with server.cluster(protocol_version=version) as cluster:
        s = cluster.connect()
        for ask in (False, True):
            future = s.execute_async(count, custom_payload=ASK if ask else None)
            assert future.result().one()[0] == 1
            assert future.warnings == ["Aggregation query used without partition key"]
            assert set(future.custom_payload or {}) == ({"RequestCharge", "capacity"} if ask else set())


@pytest.mark.parametrize("version, compression", [(4, False), (4, "lz4"), (5, False), (5, "lz4")])
def test_answers_that_leave_together_tell_each_its_own_charge(server, session, version, compression):
    """Reads, of rows that go in blocks of their own, too, and writes, as they come: each answer with its own charge, and their sum in the table's."""
    sizes, seed, table = [1, 3, 5, 9, 40, 300], random.Random(version), f"together{version}{compression or ''}"
    create_table(session, "m", table, "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    for ck, size in enumerate(sizes):
        fill(session, table, [ck], size * KIB)
    with server.cluster(protocol_version=version, compression=compression) as cluster:
        s = cluster.connect()
        row = s.prepare(f"SELECT * FROM m.{table} WHERE pk = 1 AND ck = ?")
        first = s.prepare(f"SELECT * FROM m.{table} WHERE pk = 1 AND ck <= 3")
        other = s.prepare(f"SELECT v FROM m.{table} WHERE pk = 2 AND ck = ?")
        insert = s.prepare(f"INSERT INTO m.{table} (pk, ck, v) VALUES (2, ?, ?)")
        asked, reads = [], 0
        for n in range(800):
            level = seed.choice([QUORUM, LOCAL_ONE])
            each = 1 if level == QUORUM else 0.5
            kind = seed.choice(["row"] * 8 + ["missing", "slice", "insert", "other"])
            ck = seed.randrange(len(sizes))
            if kind == "row":
                statement, units = row.bind((ck,)), each * -(-sizes[ck] // 4)
            elif kind == "missing":
                statement, units = row.bind((100,)), each
            elif kind == "slice":
                statement, units = first.bind(()), each * -(-sum(sizes[:4]) // 4)
            elif kind == "other":
                statement, units = other.bind((-1,)), each
            else:
                statement, units, level = insert.bind((n, bytes(KIB - 115))), 1, QUORUM
            statement.consistency_level = level
            reads += units if kind != "insert" else 0
            asked.append((kind, units, s.execute_async(statement)))
            if n % 40 == 39: # what leaves together is told
                for kind, units, future in asked:
                    future.result()
                    assert struct.unpack(">d", future.custom_payload["RequestCharge"])[0] == units, kind
                asked = []
        assert session.execute("SELECT read_units FROM system_metering.tables WHERE keyspace_name = 'm' AND table_name = %s", (table,)).one().read_units == reads


def test_protocol_3_has_no_payload(server):
    with server.cluster(protocol_version=3) as cluster:
        assert payload_of(cluster.connect()) == {}


def test_a_trace_shows_the_charge(session):
    create_table(session, "m", "traced", "pk int PRIMARY KEY, v blob, s text")
    future = session.execute_async("INSERT INTO m.traced (pk, v) VALUES (1, 0x01)", trace=True)
    future.result()
    events = [e.description for e in future.get_query_trace().events]
    assert any(re.fullmatch(r"Charged 0 read units, 1 write units, 0 static write units", e) for e in events), events
    session_id = future.get_query_trace().trace_id
    rows = session.execute("SELECT activity FROM system_traces.events WHERE session_id = %s", (session_id,))
    assert any(r.activity.startswith("Charged ") for r in rows)


# ---------------------------------------------------------------- the rules themselves

def test_the_server_tells_every_rule(session, current):
    published = re.findall(r'^RULE\((\w+), "([^"]+)", "([^"]+)",\s+"((?:[^"\\]|\\.)*)",\s+"([^"]+)",\s+"([^"]+)"\)',
                           (ROOT / "metering" / "rule.def").read_text(), re.M)
    assert len(published) == len(re.findall(r"^RULE\(", (ROOT / "metering" / "rule.def").read_text(), re.M))
    for s in (session, current):
        rows = {r.id: r for r in s.execute("SELECT id, title, text, source, confidence FROM system_metering.rules")}
        assert set(rows) == {name for _, name, *_ in published}
        for _, name, *rest in published:
            assert s.execute("SELECT title, text, source, confidence FROM system_metering.rules WHERE id = %s", (name,)).one() == tuple(rest)
            assert rows[name].confidence in ("documented", "seen", "inferred")
