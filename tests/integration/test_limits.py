"""Throughput limits: what a refusal looks like, that it leaves nothing behind, who pays for it, and what the statistics say of it.

A write that costs more than a bucket holds is let through when the bucket is full, and leaves it in debt for seconds: so the next one is refused, however slow the machine.
"""
import json
import struct
import urllib.request

import pytest
from cassandra import ConsistencyLevel, InvalidRequest, ReadTimeout, Unauthorized, WriteTimeout
from cassandra.cluster import NoHostAvailable
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import FallthroughRetryPolicy
from cassandra.protocol import OverloadedErrorMessage
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from ports import free_port
from tally_server import Server, await_active, create_keyspace, eventually, let_pass

BIG = bytes(50_000)  # 49 units and more
QUORUM = ConsistencyLevel.LOCAL_QUORUM


class Limited:
    """A server with limits, and a session on it."""

    def __init__(self, new_server, *flags):
        self.server = new_server("--ddl-delay", "none", *flags)
        self.cluster = self.server.cluster(protocol_version=4)
        self.session = self.cluster.connect()
        create_keyspace(self.session, "lim")

    def table(self, name, definition="pk int, ck int, v blob, PRIMARY KEY (pk, ck)", options=""):
        self.session.execute(f"CREATE TABLE lim.{name} ({definition}) {options}")
        await_active(self.session, "lim", name)

    def insert(self, table, pk, ck, value=b"", session=None):
        return (session or self.session).execute(SimpleStatement(f"INSERT INTO lim.{table} (pk, ck, v) VALUES (%s, %s, %s)", retry_policy=FallthroughRetryPolicy()),
                                                 (pk, ck, value))

    def read(self, table, pk, ck, level=QUORUM):
        query = SimpleStatement(f"SELECT v FROM lim.{table} WHERE pk = %s AND ck = %s", retry_policy=FallthroughRetryPolicy(), consistency_level=level)
        return self.session.execute(query, (pk, ck)).one()

    def throttles(self, limit):
        return {(r.keyspace_name, r.table_name): r for r in self.session.execute("SELECT * FROM system_metering.throttles WHERE limit_name = %s", (limit,))}

    def account(self, table):
        return self.session.execute("SELECT * FROM system_metering.tables WHERE keyspace_name = 'lim' AND table_name = %s", (table,)).one()

    def capacity(self, table):
        return self.session.execute("SELECT * FROM system_metering.capacity WHERE keyspace_name = 'lim' AND table_name = %s", (table,)).one()


@pytest.fixture
def limited(new_server):
    made = []

    def make(*flags):
        made.append(Limited(new_server, *flags))
        return made[-1]

    yield make
    for m in made:
        m.cluster.shutdown()


def refusal_of(future):
    """The error of a future and its payload."""
    with pytest.raises((WriteTimeout, ReadTimeout)) as e:
        future.result()
    return e.value, json.loads(future.custom_payload["throttle"]), struct.unpack(">d", future.custom_payload["RequestCharge"])[0]


def test_a_write_over_an_on_demand_tables_capacity(limited):
    l = limited("--limits", "enforce", "--limit-values", "on-demand-write=10")
    l.table("t")
    l.table("innocent")
    l.insert("t", 1, 1, BIG)
    query = SimpleStatement("INSERT INTO lim.t (pk, ck, v) VALUES (2, 2, 0x00)", retry_policy=FallthroughRetryPolicy())
    error, throttle, charge = refusal_of(l.session.execute_async(query))
    assert isinstance(error, WriteTimeout)
    assert (error.received_responses, error.required_responses, error.write_type, error.consistency) == (0, 2, 0, QUORUM)  # SIMPLE
    text = str(error)
    assert "Operation timed out - received only 0 responses." in text
    assert "The write capacity of table lim.t is exceeded (on-demand-write: 10 write units per second, asked 1); retry in " in text
    assert {k: throttle[k] for k in ("limit", "enforced", "table", "rate", "unit", "asked")} == {
        "limit": "on-demand-write", "enforced": True, "table": "lim.t", "rate": 10, "unit": "write units per second", "asked": 1}
    assert 1000 < throttle["retry_after_ms"] <= 5000 and charge == 0
    assert l.read("t", 2, 2) is None, "a refused write leaves nothing behind"
    assert l.account("t").write_throttles == 1 and l.account("t").read_throttles == 0
    assert l.account("t").write_units == 49, "and is free"
    for i in range(5):
        l.insert("innocent", i, i)
    seen = l.throttles("on-demand-write")
    assert list(seen) == [("lim", "t")]
    assert (seen["lim", "t"].refused, seen["lim", "t"].shadowed, seen["lim", "t"].last_rate) == (1, 0, 10)
    let_pass(throttle["retry_after_ms"] / 1000)
    l.insert("t", 2, 2)  # when it says so, it goes


def test_a_read_is_paid_for_by_those_after_it(limited):
    l = limited("--limits", "enforce", "--limit-values", "on-demand-read=2")
    l.table("t")
    l.insert("t", 1, 1, BIG)
    l.insert("t", 2, 2)
    assert len(l.read("t", 1, 1).v) == len(BIG)  # 13 units: runs, and leaves a debt
    for level, required in ((QUORUM, 2), (ConsistencyLevel.LOCAL_ONE, 1)):
        with pytest.raises(ReadTimeout, match="The read capacity of table lim.t is exceeded .on-demand-read: 2 read units per second") as e:
            l.read("t", 2, 2, level)
        assert (e.value.received_responses, e.value.required_responses, e.value.data_retrieved, e.value.consistency) == (0, required, False, level)
    l.insert("t", 3, 3)  # writes have a capacity of their own
    assert l.account("t").read_throttles == 2


def test_a_read_of_a_table_in_debt_does_not_run(limited):
    l = limited("--limits", "enforce", "--limit-values", "on-demand-read=1,partition-write=40000", "--admin-port", str(free_port()))
    l.table("t")
    for ck in range(30):
        l.insert("t", 1, ck, BIG)
    scan = SimpleStatement("SELECT * FROM lim.t WHERE v = 0x01 ALLOW FILTERING", retry_policy=FallthroughRetryPolicy(), fetch_size=5000)
    l.session.execute(scan)  # 256 units of a page: in debt for minutes
    before = scrape(l.server)
    for _ in range(20):
        with pytest.raises(ReadTimeout, match="on-demand-read: 1 read units per second.; retry in 2[0-9]{5} ms"):
            l.session.execute(scan)
    after = scrape(l.server)
    assert after["tally_offloaded_scans_total"] == before["tally_offloaded_scans_total"], "not one went to a worker"
    assert l.account("t").read_throttles == 20 and l.throttles("on-demand-read")["lim", "t"].refused == 20


def test_a_batch_is_refused_as_a_whole(limited):
    l = limited("--limits", "enforce", "--table-limits", "lim.free=off", "--limit-values", "on-demand-write=10")
    l.table("t")
    l.table("free")
    l.insert("t", 1, 1, BIG)
    for kind, write_type in ((BatchType.UNLOGGED, 2), (BatchType.LOGGED, 1)):
        batch = BatchStatement(kind, retry_policy=FallthroughRetryPolicy())
        for i in range(5):
            batch.add("INSERT INTO lim.free (pk, ck, v) VALUES (%s, 9, 0x00)", (i,))
        batch.add("INSERT INTO lim.t (pk, ck, v) VALUES (9, 9, 0x00)")
        with pytest.raises(WriteTimeout) as e:
            l.session.execute(batch)
        assert e.value.write_type == write_type
    assert not list(l.session.execute("SELECT * FROM lim.free"))
    l.table("n", "pk int PRIMARY KEY, n counter")
    counting = BatchStatement(BatchType.COUNTER)
    for i in range(60):
        counting.add("UPDATE lim.n SET n = n + 1 WHERE pk = %s", (i,))
    l.session.execute(counting)
    for text in ("UPDATE lim.n SET n = n + 1 WHERE pk = 1", "BEGIN COUNTER BATCH UPDATE lim.n SET n = n + 1 WHERE pk = 1; APPLY BATCH"):
        with pytest.raises(WriteTimeout) as e:
            l.session.execute(SimpleStatement(text, retry_policy=FallthroughRetryPolicy()))
        assert e.value.write_type == 3  # COUNTER
    with pytest.raises(WriteTimeout) as e:
        l.session.execute(SimpleStatement("INSERT INTO lim.t (pk, ck) VALUES (9, 9) IF NOT EXISTS", retry_policy=FallthroughRetryPolicy()))
    assert e.value.write_type == 5  # CAS
    for i in range(30):
        l.insert("free", i, i, BIG)


def test_what_several_partitions_draw_from_one_bucket_is_asked_at_once(limited):
    l = limited("--limits", "enforce", "--limit-values", "on-demand-write=10,on-demand-read=1,partition-write=10")
    for table in ("t", "u", "r"):
        l.table(table)

    def batch(table, *keys):
        b = BatchStatement(BatchType.UNLOGGED, retry_policy=FallthroughRetryPolicy())
        for pk, ck in keys:
            b.add(f"INSERT INTO lim.{table} (pk, ck, v) VALUES (%s, %s, %s)", (pk, ck, bytes(20_000)))  # 20 units
        l.session.execute(b)

    batch("t", (1, 1), (2, 1))  # 40 of a table's bucket that is full, and holds 10
    with pytest.raises(WriteTimeout, match="on-demand-write: 10 write units per second, asked 40"):
        batch("t", (3, 1), (4, 1))
    batch("u", (1, 1), (2, 1), (1, 2))  # 40 of a partition's
    for pk in (1, 2):
        l.insert("r", pk, 1, bytes(9_000))  # of each bucket 9
        let_pass(1)
    query = SimpleStatement("SELECT v FROM lim.r WHERE pk IN (1, 2) AND ck = 1", retry_policy=FallthroughRetryPolicy())
    assert len(list(l.session.execute(query))) == 2  # 3 and 3 of 1
    with pytest.raises(ReadTimeout, match="on-demand-read: 1 read units per second"):
        l.session.execute(query)


def test_a_provisioned_table_has_a_burst_of_what_it_did_not_use(limited):
    l = limited("--limits", "enforce", "--limit-values", "burst=3")
    provisioned = "WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 10, 'write_capacity_units': 20}}"
    l.table("t", options=provisioned)
    shown = l.capacity("t")
    assert (shown.capacity_mode, shown.read_capacity, shown.write_capacity, shown.limits) == ("PROVISIONED", 10, 20, "enforce")
    row = bytes(20 * 1024 - 200)  # 20 units
    l.insert("t", 1, 1, row)
    let_pass(3.2)  # 60 units are kept, and no more
    for i in range(3):
        l.insert("t", 1, i, row)
    with pytest.raises(WriteTimeout, match="provisioned-write: 20 write units per second, asked 49"):
        l.insert("t", 1, 5, BIG)
    l.session.execute("ALTER TABLE lim.t WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PAY_PER_REQUEST'}}")
    eventually(lambda: l.capacity("t").capacity_mode == "PAY_PER_REQUEST")
    assert (l.capacity("t").read_capacity, l.capacity("t").write_capacity) == (12000, 4000)
    for i in range(10):
        l.insert("t", 1, i, row)


def test_a_hot_partition_is_refused_beside_a_cool_one(limited):
    l = limited("--limits", "enforce", "--limit-values", "partition-write=10,partition-read=2")
    l.table("t")
    l.insert("t", 1, 1, BIG)
    with pytest.raises(WriteTimeout, match="The write throughput of a partition of lim.t is exceeded .partition-write: 10 write units per second"):
        l.insert("t", 1, 2)
    for pk in range(2, 8):
        l.insert("t", pk, 1)
    l.read("t", 1, 1)
    with pytest.raises(ReadTimeout, match="partition-read: 2 read units per second"):
        l.read("t", 1, 1)
    assert l.read("t", 2, 1)
    metrics = {(r.operation, r.sum) for r in l.session.execute(
        "SELECT * FROM system_metering.metrics WHERE metric_name = 'StoragePartitionThroughputCapacityExceeded'") if r.table_name == "t"}
    assert metrics == {("INSERT", 1.0), ("SELECT", 1.0)}
    hot = [r for r in l.session.execute("SELECT * FROM system_metering.partitions WHERE keyspace_name = 'lim'") if r.throttles]
    assert [r.partition_key for r in hot] == [(1).to_bytes(4, "big")]


def test_a_connection_over_its_rate_pays_and_no_other(limited):
    l = limited("--limits", "enforce", "--limit-values", "connection=150")
    l.table("t")
    with l.server.cluster(protocol_version=4) as cluster:
        guilty = cluster.connect()
        write = guilty.prepare("INSERT INTO lim.t (pk, ck, v) VALUES (?, 1, 0x00)")
        write.retry_policy = FallthroughRetryPolicy()
        results = execute_concurrent_with_args(guilty, write, [(i,) for i in range(900)], concurrency=200, raise_on_first_error=False)
        refused = [r for ok, r in results if not ok]
        assert refused and all(isinstance(r, WriteTimeout) for r in refused)
        assert "This connection's rate of statements is exceeded (connection: 150 statements per second, asked 1)" in str(refused[0])
        for i in range(20):
            l.insert("t", 1000 + i, 1)  # of another connection
    throttles = lambda: [r.throttles for r in l.session.execute("SELECT * FROM system_metering.connections")]
    eventually(lambda: not any(throttles()))  # the guilty connections are closed, ours was never refused
    assert throttles()
    let_pass(1)
    stored = len(list(l.session.execute("SELECT pk FROM lim.t")))
    assert stored == 900 - len(refused) + 20
    assert l.account("t").write_throttles == len(refused)


def test_a_test_moves_a_frozen_clock_over_a_connection_that_is_over_its_rate(limited):
    """No time passes: what is refused stays refused until the clock moves. USE and changes of the schema are no reads and time out on nothing."""
    l = limited("--control", "on", "--limits", "enforce", "--limit-values", "connection=20")
    l.table("t")
    with l.server.cluster(protocol_version=4) as cluster:
        guilty = cluster.connect()
        guilty.execute("UPDATE system_control.clock SET state = 'frozen' WHERE name = 'server'")
        for i in range(20):
            try:
                l.insert("t", i, 1, session=guilty)
            except WriteTimeout:
                break
        with pytest.raises(WriteTimeout):
            l.insert("t", 100, 1, session=guilty)
        for statement in ("USE lim", "CREATE TABLE lim.more (pk int PRIMARY KEY)", "ALTER TABLE lim.t ADD w int"):
            with pytest.raises((OverloadedErrorMessage, NoHostAvailable), match="This connection's rate of statements is exceeded") as refused:
                guilty.execute(SimpleStatement(statement, retry_policy=FallthroughRetryPolicy()))
            assert "Operation timed out" not in str(refused.value)
        l.insert("t", 101, 1)  # another connection is not refused
        for _ in range(30):
            assert guilty.execute("SELECT state FROM system_control.clock").one().state == "frozen"
        guilty.execute("UPDATE system_control.clock SET advance_ms = 1000 WHERE name = 'server'")
        l.insert("t", 100, 1, session=guilty)
        guilty.execute("UPDATE system_control.clock SET state = 'free' WHERE name = 'server'")


def test_statements_that_read_no_table_are_admitted(limited):
    """The cost of DESCRIBE, LIST and CREATE ROLE names no keyspace."""
    l = limited("--mode", "cassandra", "--limits", "enforce", "--guidance", "warn")
    l.table("t")
    assert [r.name for r in l.session.execute("DESCRIBE TABLES") if r.keyspace_name == "lim"] == ["t"]
    for statement in ("DESCRIBE KEYSPACE lim", "DESCRIBE CLUSTER", "LIST ROLES", "LIST ALL PERMISSIONS", "LIST USERS", "CREATE ROLE r", "USE lim"):
        try:
            l.session.execute(statement)
        except (InvalidRequest, Unauthorized):
            pass  # without logins
    l.insert("t", 1, 1)
    assert l.server.alive()


def test_each_subquery_of_an_in_is_a_statement_of_its_connection(limited):
    l = limited("--limits", "enforce", "--limit-values", "connection=200")
    l.table("t")
    ten = SimpleStatement("SELECT * FROM lim.t WHERE pk IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)", retry_policy=FallthroughRetryPolicy())
    with l.server.cluster(protocol_version=4) as cluster:
        s = cluster.connect()
        futures = [s.execute_async(ten) for _ in range(60)]
        refused = 0
        for f in futures:
            try:
                f.result()
            except ReadTimeout as e:
                assert "connection: 200 statements per second, asked 10" in str(e)
                refused += 1
    assert 10 <= refused <= 45


def test_shadow_counts_what_enforce_would_refuse(limited):
    l = limited("--limits", "shadow", "--limit-values", "on-demand-write=10", "--table-limits", "lim.strict=enforce,lim.free=off")
    for table in ("t", "strict", "free"):
        l.table(table)
        l.insert(table, 1, 1, BIG)
    future = l.session.execute_async("INSERT INTO lim.t (pk, ck, v) VALUES (2, 2, 0x00)")
    future.result()
    throttle = json.loads(future.custom_payload["throttle"])
    assert (throttle["limit"], throttle["enforced"]) == ("on-demand-write", False)
    assert l.read("t", 2, 2), "shadow refuses nothing"
    with pytest.raises(WriteTimeout):
        l.insert("strict", 2, 2)
    l.insert("free", 2, 2)
    seen = l.throttles("on-demand-write")
    assert {k: (r.refused, r.shadowed) for k, r in seen.items()} == {("lim", "strict"): (1, 0), ("lim", "t"): (0, 1)}
    assert (l.account("t").write_throttles, l.account("t").write_units) == (1, 50)
    assert {t: l.capacity(t).limits for t in ("t", "strict", "free")} == {"t": "shadow", "strict": "enforce", "free": "off"}


def test_table_and_account_quotas(limited):
    l = limited("--limits", "enforce", "--limit-values", "table-write=10,account-read=2,account-write=2")
    provisioned = "WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 1000, 'write_capacity_units': 1000}}"
    l.table("t")
    l.table("u", options=provisioned)
    l.table("v", options=provisioned)
    l.insert("t", 1, 1, BIG)
    with pytest.raises(WriteTimeout, match="The write capacity of table lim.t is exceeded .table-write: 10 write units per second"):
        l.insert("t", 2, 2)
    l.insert("u", 1, 1, bytes(9000))
    with pytest.raises(WriteTimeout, match="The account's write throughput is exceeded .account-write: 2 write units per second"):
        l.insert("v", 2, 2)
    l.read("u", 1, 1)
    with pytest.raises(ReadTimeout, match="The account's read throughput is exceeded .account-read: 2 read units per second"):
        l.read("v", 1, 1)
    for _ in range(3):
        l.read("t", 1, 1)  # the account's quotas are of provisioned tables


def test_auto_scaling_settings_and_warm_throughput_are_shown(limited):
    l = limited("--limits", "enforce", "--auto-scaling", "simulate")
    l.table("scaled", options="""WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 5, 'write_capacity_units': 5}}
        AND AUTOSCALING_SETTINGS = {'provisioned_write_capacity_autoscaling_update': {'autoscaling_disabled': false, 'minimum_units': 5, 'maximum_units': 50,
            'scaling_policy': {'target_tracking_scaling_policy_configuration': {'target_value': 70}}}}""")
    l.table("warm", options="WITH CUSTOM_PROPERTIES = {'warm_throughput': {'read_units_per_second': 20000, 'write_units_per_second': 8000}}")
    assert l.capacity("scaled").auto_scaling and not l.capacity("scaled").auto_scaled
    warm = l.capacity("warm")
    assert not warm.auto_scaling
    assert (warm.warm_read, warm.warm_write, warm.read_capacity, warm.write_capacity) == (20000, 8000, 20000, 8000)


def test_every_limit_is_shown_with_its_source(limited):
    l = limited("--limit-values", "connection=7000")
    rows = {r.name: r for r in l.session.execute("SELECT * FROM system_metering.limits")}
    assert (rows["connection"].value, rows["connection"].default_value) == (7000, 3000)
    assert (rows["partition-read"].value, rows["partition-write"].value, rows["table-write"].value) == (3000, 1000, 40000)
    assert all("https://" in r.source and r.confidence in ("documented", "inferred", "seen") for r in rows.values())


def scrape(server, query=""):
    with urllib.request.urlopen(f"http://{server.admin}/metrics{query}") as answer:
        lines = answer.read().decode().splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line and not line.startswith("#")}


def test_prometheus_has_cloudwatchs_names_over_all_tables_and_by_table_when_asked(limited):
    l = limited("--limits", "enforce", "--limit-values", "on-demand-write=10", "--admin-port", str(free_port()))
    options = "WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 10, 'write_capacity_units': 20}}"
    l.table("t")
    l.table("p", options=options)
    l.insert("t", 1, 1, BIG)
    l.insert("p", 1, 1)
    with pytest.raises(WriteTimeout):
        l.insert("t", 1, 1)
    low = scrape(l.server)
    assert low["aws_cassandra_consumed_write_capacity_units_total"] == 50
    assert low['aws_cassandra_write_throttle_events_total{operation="INSERT"}'] == 1
    assert low['tally_limit_refusals_total{limit="on-demand-write",enforced="true"}'] == 1 == low["tally_throttled_total"]
    assert not any("table_name" in k for k in low)
    by_table = scrape(l.server, "?per=table")
    assert by_table['aws_cassandra_consumed_write_capacity_units_total{keyspace="lim",table_name="t"}'] == 49
    assert by_table['aws_cassandra_successful_request_count_total{keyspace="lim",table_name="p",operation="INSERT"}'] == 1
    assert by_table['aws_cassandra_ttl_deletes_total{keyspace="lim",table_name="p"}'] == 0
    l.session.execute("DROP TABLE lim.t")
    assert scrape(l.server)["aws_cassandra_consumed_write_capacity_units_total"] == 50, "what a dropped table was charged stays in the sum"
    shown = {r.metric_name: r.sum for r in l.session.execute("SELECT * FROM system_metering.metrics") if r.table_name in ("p", "")}
    assert (shown["ProvisionedReadCapacityUnits"], shown["ProvisionedWriteCapacityUnits"], shown["AccountMaxReads"]) == (10, 20, 80000)


@pytest.mark.parametrize("flags, words", [
    (("--limit-values", "conection=1"), "there is no limit 'conection'"),
    (("--limit-values", "connection=x"), "connection must be a number from 1 to 999999999999, not 'x'"),
    (("--table-limits", "t=enforce"), "'t' is not keyspace.table or keyspace.*"),
    (("--table-limits", "k.t=hard"), "k.t must be off, shadow or enforce, not 'hard'"),
])
def test_wrong_settings_are_named(tmp_path, flags, words):
    with pytest.raises(AssertionError) as e:
        Server(tmp_path, *flags).start()
    assert words in str(e.value)
