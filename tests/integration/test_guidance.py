"""Partition guidance after Azure Table Storage: entities a second, rules for batches on one partition, keys that only grow; as warnings and as refusals."""
import datetime
import itertools
import json
import random
import uuid

import pytest
from cassandra import InvalidRequest, ReadTimeout, WriteTimeout
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import BatchStatement, BatchType, SimpleStatement
from cassandra.util import Date

from tally_server import await_active, create_keyspace


@pytest.fixture
def guided(new_server):
    made = []

    def make(*flags):
        server = new_server("--ddl-delay", "none", "--compatibility", "off", *flags)
        made.append(server.cluster(protocol_version=4))
        s = made[-1].connect()
        create_keyspace(s, "gui")
        for table in ("t", "other"):
            s.execute(f"CREATE TABLE gui.{table} (pk int, ck int, v int, PRIMARY KEY (pk, ck))")
            await_active(s, "gui", table)
        return s

    yield make
    for cluster in made:
        cluster.shutdown()


def batch_of(n, pk=1, same_row=False):
    batch = BatchStatement(BatchType.UNLOGGED, retry_policy=FallthroughRetryPolicy())
    for i in range(n):
        batch.add("INSERT INTO gui.t (pk, ck, v) VALUES (%s, %s, 1)", (pk, 0 if same_row else i))
    return batch


def warnings_of(session, statement):
    future = session.execute_async(statement, custom_payload={"capacity": b""})
    future.result()
    return future.warnings or [], future.custom_payload


def throttles(session):
    return {r.limit_name: (r.refused, r.shadowed) for r in session.execute("SELECT * FROM system_metering.throttles")}


def test_batches_on_one_partition_are_checked_against_the_group_rules(guided):
    s = guided("--guidance", "warn", "--limit-values", "group-bytes=20000")
    assert warnings_of(s, batch_of(100))[0] == []
    warnings, payload = warnings_of(s, batch_of(101))
    assert warnings == ["Partition guidance: too many operations in a batch on a partition of gui.t (group-operations: 100 operations, asked 101)"]
    throttle = json.loads(payload["throttle"])
    assert (throttle["limit"], throttle["enforced"], throttle["retry_after_ms"]) == ("group-operations", False, None)
    warnings = warnings_of(s, batch_of(2, same_row=True))[0]
    assert warnings == ["Partition guidance: a batch on a partition of gui.t writes a row more than once (group-same-row: 1 operations, asked 2)"]
    two_partitions = batch_of(60, pk=1)
    for i in range(60):
        two_partitions.add("INSERT INTO gui.t (pk, ck, v) VALUES (2, %s, 1)", (i,))
    assert not [w for w in warnings_of(s, two_partitions)[0] if "Partition guidance" in w]
    assert throttles(s) == {"group-operations": (0, 1), "group-same-row": (0, 1)}
    large = guided_large(s)
    assert any("(group-bytes: 20000 bytes, asked " in w for w in warnings_of(s, large)[0])


def guided_large(session):
    session.execute("CREATE TABLE gui.large (pk int, ck int, v text, PRIMARY KEY (pk, ck))")
    await_active(session, "gui", "large")
    batch = BatchStatement(BatchType.UNLOGGED)
    for i in range(3):
        batch.add("INSERT INTO gui.large (pk, ck, v) VALUES (1, %s, %s)", (i, "x" * 8000))
    return batch


def test_enforced_group_rules_refuse_and_leave_nothing(guided):
    s = guided("--guidance", "enforce")
    with pytest.raises(InvalidRequest, match="Partition guidance: too many operations in a batch on a partition of gui.t") as e:
        s.execute(batch_of(101))
    assert "timed out" not in str(e.value)
    twice = BatchStatement(BatchType.LOGGED)  # with the driver's own retry policy, which repeats a timed-out logged batch
    for v in (1, 2):
        twice.add("INSERT INTO gui.t (pk, ck, v) VALUES (1, 1, %s)", (v,))
    future = s.execute_async(twice)
    with pytest.raises(InvalidRequest, match="writes a row more than once"):
        future.result()
    assert json.loads(future.custom_payload["throttle"])["retry_after_ms"] is None
    assert not list(s.execute("SELECT * FROM gui.t"))
    s.execute(batch_of(100))
    assert len(list(s.execute("SELECT * FROM gui.t"))) == 100
    assert throttles(s) == {"group-operations": (1, 0), "group-same-row": (1, 0)}


def test_entities_are_counted_and_refused_with_a_back_off(guided):
    """A scan of 1,000 rows for 5 is 1,000 entities: at 100 a second its partition is in debt for nine seconds."""
    s = guided("--guidance", "enforce", "--limit-values",
               "entities-partition=100,backoff-minimum=200,backoff-delta=1000,backoff-maximum=5000,group-operations=1000")
    for first in range(0, 1000, 100):
        batch = BatchStatement(BatchType.UNLOGGED)
        for ck in range(first, first + 100):
            batch.add("INSERT INTO gui.t (pk, ck, v) VALUES (%s, %s, %s)", (1 + first, ck, ck % 200))
        s.execute(batch)  # each fills its partition's second
        with pytest.raises(WriteTimeout):
            s.execute(batch)
    for ck in range(100):
        s.execute("INSERT INTO gui.other (pk, ck, v) VALUES (1, %s, %s)", (ck, ck))
    scan = SimpleStatement("SELECT * FROM gui.other WHERE pk = 1 AND v < 5 ALLOW FILTERING", retry_policy=FallthroughRetryPolicy())
    point = SimpleStatement("SELECT * FROM gui.other WHERE pk = 1 AND ck = 1", retry_policy=FallthroughRetryPolicy())
    for _ in range(50):  # reads are asked behind: the scans run until one has made a debt
        future = s.execute_async(scan)
        try:
            assert len(list(future.result())) == 5
        except ReadTimeout:
            break
    else:
        pytest.fail("scans of 100 entities were never refused at 100 entities a second")
    waits = []
    for _ in range(4):
        future = s.execute_async(point)
        try:
            future.result()
        except ReadTimeout as e:
            assert "Partition guidance: too many entities of a partition of gui.other (entities-partition: 100 entities per second, asked 1)" \
                "; the read is a point query" in str(e)
            throttle = json.loads(future.custom_payload["throttle"])
            assert throttle["guidance_class"] == "point query"
            waits.append(throttle["retry_after_ms"])
    assert all(1000 <= w <= 5000 for w in waits)  # 200 + [800, 1200] * (2^x - 1), at most 5000
    assert list(s.execute("SELECT * FROM gui.other WHERE pk = 2 AND ck = 1")) == [], "another partition does not pay"


def test_guidance_off_counts_entities_and_says_nothing(guided):
    s = guided("--limit-values", "entities-partition=1")
    assert warnings_of(s, batch_of(20))[0] == []
    list(s.execute("SELECT * FROM gui.t WHERE pk = 1"))
    row = s.execute("SELECT entities FROM system_metering.tables WHERE keyspace_name = 'gui' AND table_name = 't'").one()
    assert row.entities == 40
    assert throttles(s) == {}


def pattern(session, table):
    return session.execute("SELECT pattern FROM system_metering.tables WHERE keyspace_name = 'gui' AND table_name = %s", (table,)).one().pattern


def test_keys_that_only_grow_or_shrink_are_reported(guided):
    s = guided()
    keys = list(range(100))
    random.Random(5).shuffle(keys)
    for k in keys:
        s.execute("INSERT INTO gui.other (pk, ck, v) VALUES (%s, 1, 1)", (k,))
    assert pattern(s, "other") is None
    for k in range(40):
        s.execute("INSERT INTO gui.t (pk, ck, v) VALUES (%s, 1, 1)", (1000 + k,))
    assert pattern(s, "t") == "append-only"
    assert {r.pattern for r in s.execute("SELECT table_name, pattern FROM system_metering.partitions WHERE keyspace_name = 'gui'")
            if r.table_name == "t"} == {"append-only"}
    for k in range(40):
        s.execute("INSERT INTO gui.t (pk, ck, v) VALUES (%s, 1, 1)", (900 - k,))
    assert pattern(s, "t") == "prepend-only"


DAY = datetime.datetime(1969, 12, 25)  # days from here on pass 1970, where timestamps change their sign
TICKS = 0x1B21DD213814000  # of a timeuuid's clock, 100 ns each, at 1970


def day(i):
    return Date((DAY + datetime.timedelta(days=i)).date())


def timeuuid(i):
    """74 seconds apart: the lowest 32 bits of the clock, which come first in its bytes, wrap every sixth of them."""
    ticks = TICKS + i * 74 * 10_000_000
    return uuid.UUID(fields=(ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, 0x1000 | ticks >> 48, 0x80, 0, 1))


# Types of the partition key, and the i-th key of those that grow.
GROWING = {
    "date": ("date", lambda i: [day(i)]),
    "timestamp": ("timestamp", lambda i: [DAY + datetime.timedelta(days=i)]),
    "timeuuid": ("timeuuid", lambda i: [timeuuid(i)]),
    "int": ("int", lambda i: [i - 15]),
    "bigint": ("bigint", lambda i: [(i - 15) << 33]),
    "varint": ("varint", lambda i: [(i - 15) * 3 ** (20 + abs(i - 15))]),
    "day": ("text", lambda i: [str(day(i))]),
    "number": ("text", lambda i: [str(i + 950)]),
    "prefix": ("text", lambda i: [f"one-beginning-of-all-keys/{i:06}"]),
    "lead": (("date", "text"), lambda i: [day(i), "xyz"[i * 7 % 3]]),
    "lead_wide": (("varint", "int"), lambda i: [10 ** (i // 3), i * 7919 % 10]),
    "behind": (("text", "date"), lambda i: ["one-tenant-of-a-long-name", day(i)]),
    "middle": (("text", "int", "int"), lambda i: ["tenant", i // 2 - 15, i * 7919 % 16]),
}
# Many tenants' days, and buckets of one day in turn: not at one end of the keys.
SPREAD = {
    "tenants": (("text", "date"), lambda i: [f"tenant-{i * 7919 % 101}", day(i)]),
    "buckets": (("int", "date"), lambda i: [i % 10, day(i // 10)]),
    "ids": ("uuid", lambda i: [uuid.UUID(int=random.Random(i).getrandbits(128), version=4)]),
    "times": ("timestamp", lambda i: [DAY + datetime.timedelta(seconds=i * 7919 % 10007)]),
}


def write_keys(session, name, types, keys):
    types = [types] if isinstance(types, str) else types
    columns = [f"k{i}" for i in range(len(types))]
    table = f"gui.{name}"
    declared = ", ".join(f"{c} {t}" for c, t in zip(columns, types))
    session.execute(f"CREATE TABLE IF NOT EXISTS {table} ({declared}, v int, PRIMARY KEY (({', '.join(columns)})))")
    await_active(session, "gui", name)
    marks = ", ".join("?" * len(columns))
    insert = session.prepare(f"INSERT INTO {table} ({', '.join(columns)}, v) VALUES ({marks}, 1)")
    for key in keys:
        session.execute(insert, key)


def test_growing_and_falling_keys_of_every_kind_are_reported_and_spread_ones_are_not(guided):
    s = guided()
    wrong = {}
    for name, (types, key) in itertools.chain(GROWING.items(), SPREAD.items()):
        for told, numbers in (("append-only", range(100)), ("prepend-only", reversed(range(100)))):
            table = f"{name}_{told.partition('-')[0]}"
            write_keys(s, table, types, map(key, numbers))
            found = pattern(s, table)
            if found != (told if name in GROWING else None):
                wrong[table] = found
    assert wrong == {}
