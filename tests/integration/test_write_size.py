"""--write-size: whether a write is sized by the row as it stands after it, or by what it writes (docs/metering.md, "Writes").

Sizes here are those of documented-2022: a key column is its data and 3 or 4, another column its data, a row adds 100, static data 104.
"""
import json
import random
import re
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from cassandra import InvalidRequest
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import BatchStatement, BatchType

from ports import free_port
from tally_server import Server, await_active, create_keyspace, create_table
from test_metering import charge

KIB = 1024
KEY = (4 + 3) + (4 + 4) + 100          # of a row of (pk int, ck int)
STATIC = (4 + 3) + 104                 # of static data of (pk int)
TABLE = "pk int, ck int, a blob, b blob, s blob static, z blob static, PRIMARY KEY (pk, ck)"


def serve(folder, *flags):
    server = Server(folder, "--ddl-delay", "none", *flags).start()
    return server, server.cluster(protocol_version=4)


@pytest.fixture(scope="module")
def row(tmp_path_factory):
    server, cluster = serve(tmp_path_factory.mktemp("row"))
    with cluster:
        s = cluster.connect()
        create_keyspace(s, "w")
        yield s
    server.stop()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    server, cluster = serve(tmp_path_factory.mktemp("written"), "--write-size", "written")
    with cluster:
        s = cluster.connect()
        create_keyspace(s, "w")
        yield s
    server.stop()


def table(session, name, definition=TABLE):
    create_table(session, "w", name, definition)
    return f"w.{name}"


def put(session, t, ck, a, b, pk=1):
    session.execute(session.prepare(f"INSERT INTO {t} (pk, ck, a, b) VALUES (?, ?, ?, ?)"), (pk, ck, bytes(a), bytes(b)))


def both(c):
    return (c["row"] and c["row"]["units"], c["written"]["units"])


# ---------------------------------------------------------------- one row

def test_an_update_is_sized_by_the_row_it_leaves(row, written):
    for s, units, size in ((row, 4, KEY + 3000 + 10), (written, 1, KEY + 10)):
        t = table(s, "updated")
        put(s, t, 1, 3000, 1)
        c = charge(s, f"UPDATE {t} SET b = 0x{'00' * 10} WHERE pk = 1 AND ck = 1")
        assert (c.units, c["row_bytes"]) == (units, size)
    assert charge(row, "UPDATE w.updated SET b = 0x00 WHERE pk = 1 AND ck = 1").rules >= {"write-row-after", "write-1k"}
    assert charge(written, "UPDATE w.updated SET b = 0x00 WHERE pk = 1 AND ck = 1").rules >= {"update-written-columns", "write-1k"}


def test_an_insert_of_some_columns_is_sized_by_the_row_it_leaves(row, written):
    for s, units in ((row, 4), (written, 1)):
        t = table(s, "inserted")
        put(s, t, 1, 3000, 1)
        assert charge(s, f"INSERT INTO {t} (pk, ck, b) VALUES (1, 1, 0x00)").units == units
        assert charge(s, f"INSERT INTO {t} (pk, ck) VALUES (1, 1)").units == units
        unset = s.prepare(f"INSERT INTO {t} (pk, ck, a, b) VALUES (:pk, :ck, :a, :b)")
        assert charge(s, unset.bind({"pk": 1, "ck": 1, "b": b"\0"})).units == units


def test_a_delete_is_sized_by_the_row_that_was_there(row, written):
    for s, units, size in ((row, 100, 100 * KIB), (written, 1, KEY)):
        t = table(s, "deleted")
        put(s, t, 1, 100 * KIB - KEY - 1, 1)
        c = charge(s, f"DELETE FROM {t} WHERE pk = 1 AND ck = 1")
        assert (c.units, c["row_bytes"]) == (units, size)
        c = charge(s, f"DELETE FROM {t} WHERE pk = 1 AND ck = 1")
        assert (c.units, c["row_bytes"]) == (1, 0 if s is row else KEY)


def test_a_delete_of_columns_is_sized_by_the_row_that_was_there(row):
    t = table(row, "cut")
    put(row, t, 1, 3000, 2000)
    assert charge(row, f"DELETE a FROM {t} WHERE pk = 1 AND ck = 1").units == 5
    assert charge(row, f"UPDATE {t} SET b = null WHERE pk = 1 AND ck = 1").units == 1


def test_both_figures_stand_in_the_payload(row, written):
    for s in (row, written):
        t = table(s, "told")
        put(s, t, 1, 3000, 1)
        c = charge(s, f"UPDATE {t} SET b = 0x0000 WHERE pk = 1 AND ck = 1")
        assert c["write_size"] == ("row" if s is row else "written")
        assert c["written"] == {"row_bytes": KEY + 2, "static_bytes": 0, "units": 1}
        assert c["row"] == ({"row_bytes": KEY + 3002, "static_bytes": 0, "units": 4} if s is row else None)
        c = charge(s, s.prepare(f"INSERT INTO {t} (pk, ck, a, b) VALUES (1, 1, ?, 0x00)").bind((bytes(2000),)))
        assert c["row"] == c["written"] == {"row_bytes": KEY + 2001, "static_bytes": 0, "units": 3}
        assert "row" not in charge(s, f"SELECT * FROM {t} WHERE pk = 1").details


def test_a_row_that_is_given_whole_is_not_read(row):
    """By an INSERT, or an UPDATE of every column: neither waits for whoever holds the partition, and what was there does not show."""
    t = table(row, "whole", "pk int, ck int, a blob, b blob, PRIMARY KEY (pk, ck)")
    put(row, t, 1, 5000, 5000)
    c = charge(row, f"UPDATE {t} SET a = 0x00, b = 0x00 WHERE pk = 1 AND ck = 1")
    assert (c.units, c["row_bytes"]) == (1, KEY + 2) and "write-row-after" not in c.rules
    put(row, t, 1, 5000, 5000)
    c = charge(row, f"INSERT INTO {t} (pk, ck, a, b) VALUES (1, 1, 0x00, 0x00)")
    assert (c.units, c["row_bytes"]) == (1, KEY + 2) and "write-row-after" not in c.rules


def test_reading_to_size_a_write_costs_nothing(row):
    t = table(row, "unread")
    put(row, t, 1, 3000, 1)
    c = charge(row, f"UPDATE {t} SET b = 0x00 WHERE pk = 1 AND ck = 1")
    assert (c["read_units"], c["rows_read"], c["bytes_read"]) == (0, 0, 0)
    assert charge(row, f"DELETE FROM {t} WHERE pk = 1")["read_units"] == 0


# ---------------------------------------------------------------- static data

def test_static_data_is_sized_by_what_it_is_after_the_write(row, written):
    for s, units in ((row, 4), (written, 1)):
        t = table(s, "statics")
        s.execute(s.prepare(f"UPDATE {t} SET s = ?, z = 0x00 WHERE pk = 1"), (bytes(3000),))
        c = charge(s, f"UPDATE {t} SET z = 0x0000 WHERE pk = 1")
        assert (c.units, c["static_write_units"]) == (units, units)
        assert c["static_bytes"] == STATIC + 2 + (3000 if s is row else 0)
        c = charge(s, f"UPDATE {t} SET z = 0x00, a = 0x00 WHERE pk = 1 AND ck = 1")
        assert (c["static_write_units"], c["write_units"]) == (2 * units, 2)
        assert charge(s, f"DELETE z FROM {t} WHERE pk = 1").units == units


# ---------------------------------------------------------------- ranges and partitions

def test_a_range_is_deleted_row_by_row(row, written):
    for s, each, rest in ((row, [2, 1, 1], [3]), (written, [1], [1])):
        t = table(s, "ranges")
        for ck, a in ((1, 1500), (2, 100), (3, 900), (4, 2500)):
            put(s, t, ck, a, 0)
        c = charge(s, f"DELETE FROM {t} WHERE pk = 1 AND ck >= 1 AND ck < 4")
        assert c.units == sum(each) and ("delete-each-row" in c.rules) == (s is row)
        if s is row:
            assert c["row_bytes"] == 3 * KEY + 1500 + 100 + 900
        assert charge(s, f"DELETE FROM {t} WHERE pk = 1 AND ck > 1").units == sum(rest)
        assert charge(s, f"DELETE FROM {t} WHERE pk = 1 AND ck > 1").units == 1


def test_a_partition_is_deleted_with_its_static_data(row, written):
    for s, write, static in ((row, 3 + 1, 3), (written, 1, 0)):
        t = table(s, "partitions")
        put(s, t, 1, 2500, 1)
        put(s, t, 2, 1, 1)
        s.execute(s.prepare(f"UPDATE {t} SET s = ? WHERE pk = 1"), (bytes(2500),))
        c = charge(s, f"DELETE FROM {t} WHERE pk = 1")
        assert (c["write_units"], c["static_write_units"]) == (write, static)
        assert charge(s, f"DELETE FROM {t} WHERE pk = 1").units == 1


# ---------------------------------------------------------------- several statements on one row

def batch_of(kind, *statements):
    b = BatchStatement(batch_type=kind)
    for s in statements:
        b.add(s)
    return b


@pytest.mark.parametrize("kind, factor", [(BatchType.UNLOGGED, 1), (BatchType.LOGGED, 2)])
def test_statements_of_a_batch_are_each_sized_by_the_row_after_it(row, kind, factor):
    t = table(row, f"batch_{kind}".lower())
    a, b = (row.prepare(f"UPDATE {t} SET {c} = ? WHERE pk = 1 AND ck = 1") for c in "ab")
    c = charge(row, batch_of(kind, a.bind((bytes(600),)), b.bind((bytes(600),))))
    assert c.units == factor * (1 + 2) and c["row_bytes"] == (KEY + 600) + (KEY + 1200)
    c = charge(row, batch_of(kind, a.bind((bytes(3000),)), a.bind((b"",)), b.bind((bytes(600),))))
    assert c["row"]["units"] == c.units


def test_a_deletion_in_a_batch_meets_what_the_batch_wrote_before(row):
    t = table(row, "mixed")
    put(row, t, 1, 3000, 0)
    put(row, t, 2, 3000, 0)
    update = row.prepare(f"UPDATE {t} USING TIMESTAMP 1 SET b = ? WHERE pk = 1 AND ck = 9")
    c = charge(row, batch_of(BatchType.UNLOGGED, update.bind((bytes(2000),)), row.prepare(f"DELETE FROM {t} WHERE pk = 1").bind(())))
    assert c.units == 3 + (3 + 4 + 4)  # the update; and the rows 9, 1 and 2 that the deletion takes away
    assert not charge(row, f"SELECT * FROM {t} WHERE pk = 1").rows


def test_rows_of_an_in_are_sized_one_by_one(row):
    t = table(row, "many")
    put(row, t, 1, 3000, 0)
    put(row, t, 2, 1000, 0)
    c = charge(row, f"DELETE FROM {t} WHERE pk = 1 AND ck IN (1, 2, 3)")
    assert c.units == 4 + 2 + 1


# ---------------------------------------------------------------- what else reads before it writes

def test_an_applied_condition_costs_the_new_row(row, written):
    for s, units in ((row, 4), (written, 1)):
        t = table(s, "lwt")
        put(s, t, 1, 3000, 1)
        c = charge(s, f"UPDATE {t} SET b = 0x02 WHERE pk = 1 AND ck = 1 IF b = 0x00")
        assert (c.rows[0].applied, c.units) == (True, units) and "lwt-applied" in c.rules
        c = charge(s, f"DELETE FROM {t} WHERE pk = 1 AND ck = 1 IF EXISTS")
        assert (c.rows[0].applied, c.units) == (True, units)


def test_counters_are_sized_by_the_row_after_all_that_was_counted(row):
    t = table(row, "counters", "pk int, ck int, n counter, m counter, PRIMARY KEY (pk, ck)")
    c = charge(row, f"UPDATE {t} SET n = n + 1 WHERE pk = 1 AND ck = 1")
    assert c["row_bytes"] == KEY + 8
    c = charge(row, f"UPDATE {t} SET m = m + 1 WHERE pk = 1 AND ck = 1")
    assert c["row_bytes"] == KEY + 16
    one = row.prepare(f"UPDATE {t} SET n = n + ? WHERE pk = 1 AND ck = 1")
    c = charge(row, batch_of(BatchType.COUNTER, one.bind((1,)), one.bind((2,))))
    assert (c["row_bytes"], c.units) == (2 * (KEY + 16), 2)
    assert charge(row, f"DELETE FROM {t} WHERE pk = 1 AND ck = 1")["row_bytes"] == KEY + 16


def test_collections_are_sized_by_all_their_elements(row):
    t = table(row, "lists", "pk int PRIMARY KEY, l list<blob>, m map<int, blob>, v int")
    insert = row.prepare(f"INSERT INTO {t} (pk, l, m, v) VALUES (1, ?, ?, 7)")
    row.execute(insert, ([bytes(1000), bytes(1000)], {1: bytes(500)}))
    size = (4 + 3) + 2000 + (4 + 500) + 4 + 100
    c = charge(row, row.prepare(f"UPDATE {t} SET l = l + ? WHERE pk = 1").bind(([bytes(10)],)))
    assert c["row_bytes"] == size + 10
    c = charge(row, row.prepare(f"UPDATE {t} SET l[0] = ? WHERE pk = 1").bind((bytes(20),)))
    assert c["row_bytes"] == size + 10 - 980
    c = charge(row, f"DELETE m[1] FROM {t} WHERE pk = 1")
    assert c["row_bytes"] == size + 10 - 980
    c = charge(row, f"UPDATE {t} SET v = 8 WHERE pk = 1")
    assert c["row_bytes"] == size + 10 - 980 - 504


def test_expired_data_counts_until_it_is_removed(row):
    t = table(row, "expired")
    row.execute(row.prepare(f"INSERT INTO {t} (pk, ck, a, b) VALUES (1, 1, ?, 0x00) USING TTL 1"), (bytes(3000),))
    while charge(row, f"SELECT * FROM {t} WHERE pk = 1 AND ck = 1").rows:
        pass
    assert charge(row, f"UPDATE {t} SET b = 0x00 WHERE pk = 1 AND ck = 1").units == 4
    assert charge(row, f"DELETE FROM {t} WHERE pk = 1 AND ck = 1").units == 4
    assert charge(row, f"UPDATE {t} SET b = 0x00 WHERE pk = 1 AND ck = 1").units == 1  # what a deletion covers is gone


def test_what_an_older_deletion_covers_does_not_count(row):
    t = table(row, "covered")
    put(row, t, 1, 3000, 1)
    row.execute(f"DELETE FROM {t} WHERE pk = 1")
    c = charge(row, f"UPDATE {t} SET b = 0x00 WHERE pk = 1 AND ck = 1")
    assert (c.units, c["row_bytes"]) == (1, KEY + 1)
    put(row, t, 1, 3000, 1)
    row.execute(f"DELETE FROM {t} WHERE pk = 1 AND ck > 0")
    assert charge(row, f"UPDATE {t} SET b = 0x00 WHERE pk = 1 AND ck = 1")["row_bytes"] == KEY + 1
    c = charge(row, f"UPDATE {t} USING TIMESTAMP 1 SET a = 0x{'00' * 500} WHERE pk = 1 AND ck = 1")
    assert c["row_bytes"] == KEY + 1  # it is older than the deletion, and leaves nothing


def test_updates_at_the_same_time_see_each_other(row):
    """Each adds 100 bytes to a row of its own columns: the sizes are those of some order, so every length occurs once."""
    n = 24
    columns = [f"c{i}" for i in range(n)]
    t = table(row, "crowd", "pk int PRIMARY KEY, " + ", ".join(f"{c} blob" for c in columns))
    updates = [row.prepare(f"UPDATE {t} SET {c} = ? WHERE pk = ?") for c in columns]
    for pk in range(8):
        order = random.Random(pk).sample(updates, n)
        with ThreadPoolExecutor(12) as pool:
            sizes = list(pool.map(lambda u: charge(row, u.bind((bytes(100), pk)))["row_bytes"], order))
        assert sorted(sizes) == [4 + 3 + 100 + 100 * (i + 1) for i in range(n)]


def test_the_mode_chooses_and_the_log_says_so(tmp_path):
    for n, (flags, said) in enumerate(((["--mode", "cassandra"], "size model documented-2022, write size written"),
                                       (["--mode", "cassandra", "--write-size", "row"], "size model documented-2022, write size row"),
                                       (["--size-model", "current"], "size model current, write size row"))):
        (tmp_path / str(n)).mkdir()
        server, cluster = serve(tmp_path / str(n), *flags)
        cluster.shutdown()
        server.stop()
        lines = [line for line in server.log.read_text().splitlines() if "metering: " in line]
        assert len(lines) == 1 and said in lines[0] and "describes the model current" in lines[0]


# ---------------------------------------------------------------- who pays for what sizing reads

MANY, TOO_MANY = 20_000, 100_001


def fill(session, t, pk, rows, size=200):
    insert = session.prepare("BEGIN UNLOGGED BATCH " + " ".join(f"INSERT INTO {t} (pk, ck, v) VALUES (:pk, :c{i}, 1)" for i in range(size)) + " APPLY BATCH")
    args = [{"pk": pk, **{f"c{i}": from_ck + i for i in range(size)}} for from_ck in range(0, rows, size)]
    for done, result in execute_concurrent_with_args(session, insert, args, concurrency=8):
        assert done, result


class Neighbour:
    """Point reads, whole-row inserts and updates that read first in partitions of its own, and point reads in partition 1: nothing fails, and what is
    read was written."""

    def __init__(self, session, t):
        self.session = session
        self.insert = session.prepare(f"INSERT INTO {t} (pk, ck, v) VALUES (?, ?, ?)")
        self.update = session.prepare(f"UPDATE {t} SET v = ? WHERE pk = ? AND ck = ?")
        self.read = session.prepare(f"SELECT v FROM {t} WHERE pk = ? AND ck = ?")
        self.n = 0

    def round(self):
        self.n += 1
        results = []
        for run in (lambda: self.session.execute(self.insert, (100 + self.n % 50, self.n, 0)),
                    lambda: self.session.execute(self.update, (self.n, 100 + self.n % 50, self.n)),
                    lambda: self.session.execute(self.read, (100 + self.n % 50, self.n)),
                    lambda: self.session.execute(self.read, (1, MANY + 1))):
            results.append([r.v for r in run()] if len(results) > 1 else run())
        assert results[2:] == [[self.n], [7]]  # the second is of partition 1, and newer than what is deleted of it


def test_deletions_of_many_rows_do_not_hold_up_a_neighbour(tmp_path):
    """Deletions of a partition of 20,000 rows that leave it as it is, so that each is sized by reading all of them; eight at a time, more than
    there are threads for them. A neighbour's statements are answered before the deletions that were sent ahead of them."""
    server, cluster = serve(tmp_path, "--write-timeout", "600000", "--update-workers", "1")  # the guilty wait for each other
    with cluster, server.cluster(protocol_version=4) as other:
        s, guilty = cluster.connect(), other.connect()
        create_keyspace(s, "w")
        t = table(s, "beside", "pk int, ck int, v int, PRIMARY KEY (pk, ck)")
        fill(s, t, 1, MANY)
        s.execute(f"INSERT INTO {t} (pk, ck, v) VALUES (1, {MANY + 1}, 7)")
        neighbour = Neighbour(s, t)
        delete = guilty.prepare(f"DELETE FROM {t} USING TIMESTAMP 1 WHERE pk = 1")
        for _ in range(3):
            waiting = [guilty.execute_async(delete, timeout=600) for _ in range(64)]
            neighbour.round()
            behind = sum(not f._event.is_set() for f in waiting)
            for f in waiting:
                f.result()
            assert behind, "all deletions were over before the neighbour had its answers"
    server.stop()


def too_many(session):
    t = table(session, "too_many", "pk int, ck int, v int, PRIMARY KEY (pk, ck)")
    fill(session, t, 1, TOO_MANY - 1)
    session.execute(f"INSERT INTO {t} (pk, ck, v) VALUES (1, {TOO_MANY - 1}, 1)")
    return t


def test_a_deletion_over_too_many_rows_is_refused_and_writes_nothing(row):
    t = too_many(row)
    last = f"SELECT v FROM {t} WHERE pk = 1 AND ck = {TOO_MANY - 1}"
    words = "The deletion is over more than 100000 rows, which it is sized by one by one. Delete in smaller ranges, or fewer ranges a batch."
    half = row.prepare(f"DELETE FROM {t} WHERE pk = 1 AND ck >= ?")
    for refused in (f"DELETE FROM {t} WHERE pk = 1", batch_of(BatchType.UNLOGGED, half.bind((TOO_MANY // 2,)), half.bind((0,)))):
        with pytest.raises(InvalidRequest, match=re.escape(words)):
            row.execute(refused)
        assert row.execute(last).one().v == 1
    assert charge(row, half.bind((1,))).units == TOO_MANY - 1
    assert not row.execute(last).one() and row.execute(f"SELECT v FROM {t} WHERE pk = 1 AND ck = 0").one().v == 1
    assert charge(row, f"DELETE FROM {t} WHERE pk = 1").units == 1  # rows that were deleted before are no part of it


def test_a_deletion_that_is_only_reported_is_not_refused_for_its_rows(tmp_path):
    server, cluster = serve(tmp_path, "--compatibility", "report", "--write-size", "written")
    with cluster:
        s = cluster.connect()
        create_keyspace(s, "w")
        t = too_many(s)
        c = charge(s, f"DELETE FROM {t} WHERE pk = 1 AND ck >= 99000")
        assert (c.units, c["row"] and c["row"]["units"]) == (1, TOO_MANY - 99000)
        insert = s.prepare(f"INSERT INTO {t} (pk, ck, v) VALUES (1, ?, 1)")
        for done, result in execute_concurrent_with_args(s, insert, [(ck,) for ck in range(99000, TOO_MANY)]):
            assert done, result
        c = charge(s, f"DELETE FROM {t} WHERE pk = 1")
        assert (c.units, c["row"]) == (1, None)
        assert not s.execute(f"SELECT v FROM {t} WHERE pk = 1 LIMIT 1").one()
        assert "range-delete" in str(list(s.execute("SELECT * FROM system_metering.compatibility")))
    server.stop()


def test_newer_rows_do_not_hide_the_rows_that_a_deletion_takes_away(tmp_path):
    """With --write-size written rows under a deletion are read for Keyspaces' rule of 1,000 alone, at most 100,000 of them, and the first may all be newer than it."""
    server, cluster = serve(tmp_path, "--compatibility", "strict", "--write-size", "written")
    with cluster:
        s = cluster.connect()
        create_keyspace(s, "w")
        t = "w.behind"
        s.execute(f"CREATE TABLE {t} (pk int, ck int, v int, PRIMARY KEY (pk, ck)) "
                  "WITH CUSTOM_PROPERTIES = {'client_side_timestamps': {'status': 'enabled'}}")
        await_active(s, "w", "behind")
        fill(s, t, 1, TOO_MANY, size=30)
        past = int(time.time() * 1e6) - 3_600_000_000
        old = s.prepare(f"INSERT INTO {t} (pk, ck, v) VALUES (1, ?, 1) USING TIMESTAMP {past - 1}")
        for done, result in execute_concurrent_with_args(s, old, [(ck,) for ck in range(TOO_MANY + 100, TOO_MANY + 1300)]):
            assert done, result
        last = f"SELECT v FROM {t} WHERE pk = 1 AND ck = {TOO_MANY + 100}"
        with pytest.raises(InvalidRequest, match="Range delete requests are limited"):
            s.execute(f"DELETE FROM {t} USING TIMESTAMP {past} WHERE pk = 1")
        assert s.execute(last).one()
        s.execute(f"DELETE FROM {t} USING TIMESTAMP {past} WHERE pk = 1 AND ck > {TOO_MANY + 400}")
        assert s.execute(last).one() and not s.execute(f"SELECT v FROM {t} WHERE pk = 1 AND ck = {TOO_MANY + 401}").one()
    server.stop()


COLUMNS = 24


def test_concurrent_updates_of_a_row_are_sized_one_after_the_other(tmp_path):
    """Of each column once, all at the same time and by several loops: whatever the order, each update leaves a row that is one column larger than the one before it."""
    server, cluster = serve(tmp_path, "--threads", "3")
    with cluster, server.cluster(protocol_version=4) as second, server.cluster(protocol_version=4) as third:
        sessions = [c.connect() for c in (cluster, second, third)]
        create_keyspace(sessions[0], "w")
        t = table(sessions[0], "wide", "pk int, ck int, " + ", ".join(f"c{i} blob" for i in range(COLUMNS)) + ", PRIMARY KEY (pk, ck)")
        updates = [sessions[i % 3].prepare(f"UPDATE {t} SET c{i} = ? WHERE pk = ? AND ck = ?") for i in range(COLUMNS)]
        for row in range(30):
            order = random.Random(row).sample(range(COLUMNS), COLUMNS)
            futures = [sessions[i % 3].execute_async(updates[i], (bytes(100), row // 3, row % 3), custom_payload={"capacity": b""}) for i in order]
            sizes = []
            for f in futures:
                f.result()
                sizes.append(json.loads(f.custom_payload["capacity"])["row_bytes"])
            assert sorted(sizes) == [KEY + 100 * (i + 1) for i in range(COLUMNS)], row
    server.stop()


def test_an_update_of_a_row_in_memory_leaves_no_loop(tmp_path):
    """Nor does one that decides by it: a condition, a count. What waits for a worker is a range, a partition, a place in a list, a condition on whatever row there is."""
    server, cluster = serve(tmp_path, "--admin-port", str(free_port()))
    with cluster:
        s = cluster.connect()
        create_keyspace(s, "w")
        t = table(s, "near")
        s.execute("CREATE TABLE w.counts (pk int PRIMARY KEY, n counter)")
        s.execute("CREATE TABLE w.lists (pk int PRIMARY KEY, l list<int>)")

        def offloaded():
            with urllib.request.urlopen(f"http://{server.admin}/metrics") as answer:
                return int(re.search(r"^tally_offloaded_updates_total (\d+)", answer.read().decode(), re.M)[1])

        before = offloaded()
        for ck in range(20):
            s.execute(f"UPDATE {t} SET a = 0x00 WHERE pk = 1 AND ck = {ck}")
            s.execute(f"UPDATE {t} SET s = 0x00 WHERE pk = 1")
            s.execute(f"DELETE a FROM {t} WHERE pk = 1 AND ck = {ck}")
            s.execute(batch_of(BatchType.UNLOGGED, f"INSERT INTO {t} (pk, ck, b) VALUES (1, {ck}, 0x01)", f"DELETE FROM {t} WHERE pk = 1 AND ck = {ck}"))
            assert s.execute(f"INSERT INTO {t} (pk, ck, b) VALUES (1, {ck}, 0x01) IF NOT EXISTS").was_applied
            assert not s.execute(f"UPDATE {t} SET a = 0x00 WHERE pk = 1 AND ck = {ck} IF b = 0x00").was_applied
            s.execute("UPDATE w.counts SET n = n + 1 WHERE pk = 1")
        assert offloaded() == before
        assert s.execute("SELECT n FROM w.counts").one().n == 20
        s.execute(f"DELETE FROM {t} WHERE pk = 1 AND ck > 5")
        s.execute(f"DELETE FROM {t} WHERE pk = 1")
        s.execute(f"UPDATE {t} SET a = 0x00 WHERE pk = 1 AND ck = 1 IF s = null")
        s.execute(f"UPDATE {t} SET a = 0x00 WHERE pk IN (1, 2) AND ck = 1")
        s.execute("UPDATE w.lists SET l = l - [1] WHERE pk = 1")
        assert offloaded() == before + 5
    server.stop()
