"""Limits on a clock that the test moves (system_control.clock): the same trace gives the same refusals byte for byte; auto scaling acts; what limits know outlives a restart."""
import json
import random
import struct
from datetime import datetime, timedelta

import pytest
from cassandra import ReadTimeout, WriteTimeout
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from tally_server import Server, await_active, create_keyspace, let_pass

NOON = datetime(2026, 5, 6, 12)


class Timed:
    """A server whose clock stands still at noon, a session on it, and a table."""

    def __init__(self, folder, *flags):
        self.server = Server(folder, "--ddl-delay", "none", "--control", "on", "--limits", "enforce", *flags).start()
        self.connect()
        create_keyspace(self.session, "lim")

    def connect(self):
        self.cluster = self.server.cluster(protocol_version=4)
        self.session = self.cluster.connect()

    def table(self, name, options=""):
        self.session.execute(f"CREATE TABLE lim.{name} (pk int, ck int, v blob, PRIMARY KEY (pk, ck)) {options}")
        await_active(self.session, "lim", name)

    def at(self, seconds):
        self.session.execute("UPDATE system_control.clock SET state = 'frozen', now = %s WHERE name = 'server'", (NOON + timedelta(seconds=seconds),))

    def run(self, statement, values=None):
        """None, or the refusal: its text and the payload's."""
        statement.retry_policy = FallthroughRetryPolicy()
        future = self.session.execute_async(statement, values)
        try:
            future.result()
        except (ReadTimeout, WriteTimeout) as e:
            return str(e), future.custom_payload["throttle"]
        return None

    def write(self, table, units, pk=1):
        """A row of so many units."""
        return self.run(SimpleStatement(f"INSERT INTO lim.{table} (pk, ck, v) VALUES (%s, 1, %s)"), (pk, bytes(1024 * (units - 1) + 800)))

    def capacity(self, table):
        return self.session.execute("SELECT * FROM system_metering.capacity WHERE keyspace_name = 'lim' AND table_name = %s", (table,)).one()

    def refused(self, limit):
        return {(r.table_name, r.refused, r.last_rate) for r in self.session.execute("SELECT * FROM system_metering.throttles WHERE limit_name = %s", (limit,))}


@pytest.fixture
def timed(tmp_path):
    made = []

    def make(*flags):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Timed(folder, *flags))
        return made[-1]

    yield make
    for m in made:
        m.cluster.shutdown()
        m.server.stop()


def trace(t):
    """Random reads, writes and batches, as fast as one likes, at times that are the test's; every refusal, in their order."""
    r, refusals, seconds = random.Random(5), [], 0.0
    for step in range(250):
        seconds += r.choice((0, 0, 0.013, 0.2, 1.7))
        t.at(round(seconds, 3))
        kind, table, pk = r.random(), r.choice("tp"), r.randrange(3)
        if kind < 0.5:
            got = t.write(table, r.choice((1, 1, 3, 8, 30)), pk)
        elif kind < 0.8:
            got = t.run(SimpleStatement(f"SELECT * FROM lim.{table} WHERE pk = {pk}"))
        elif kind < 0.9:
            got = t.run(SimpleStatement(f"SELECT * FROM lim.{table} WHERE pk IN (0, 1, 2)"))
        else:
            batch = BatchStatement(BatchType.UNLOGGED)
            for ck in range(r.randrange(2, 9)):
                batch.add(f"INSERT INTO lim.{table} (pk, ck, v) VALUES ({pk}, {ck}, 0x00)")
            got = t.run(batch)
        if got:
            refusals.append((step, *got))
    return refusals


def test_the_same_trace_gives_the_same_refusals_byte_for_byte(timed):
    runs = []
    for _ in range(2):
        t = timed("--limit-values", "on-demand-write=12,on-demand-read=6,partition-write=9,account-write=25,entities-partition=12,backoff-delta=3000,burst=3", "--guidance", "enforce")
        t.at(0)
        t.table("t")
        t.table("p", "WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 1, 'write_capacity_units': 4}}")
        runs.append(trace(t))
    assert runs[0] == runs[1]
    limits = {json.loads(payload)["limit"] for _, _, payload in runs[0]}
    assert limits >= {"on-demand-write", "on-demand-read", "partition-write", "provisioned-write", "provisioned-read", "entities-partition"}, limits


def provisioned(units):
    return f"WITH CUSTOM_PROPERTIES = {{'capacity_mode': {{'throughput_mode': 'PROVISIONED', 'read_capacity_units': 1, 'write_capacity_units': {units}}}}}"


def test_idle_time_before_a_raise_of_the_capacity_counts_at_the_rate_of_then(timed):
    t = timed("--limit-values", "partition-write=40000")
    t.at(0)
    t.table("t", provisioned(10))
    t.table("innocent", provisioned(10))
    assert t.write("t", 10) is None and t.write("t", 1) and t.write("innocent", 10) is None
    t.at(300)
    t.session.execute("ALTER TABLE lim.t " + provisioned(1000))
    await_active(t.session, "lim", "t")
    assert [t.write("t", 500) for _ in range(6)] == [None] * 6, "300 seconds of 10 units"
    assert json.loads(t.write("t", 500)[1])["retry_after_ms"] == 500, "and now 1,000 a second"
    t.at(301)
    assert [t.write("t", 500) for _ in range(2)] == [None] * 2 and t.write("t", 1)
    assert t.write("innocent", 3000) is None and t.write("innocent", 1)


REGIONS = "{'class': 'NetworkTopologyStrategy', 'us-east-1': 3, 'eu-west-1': 3, 'ap-northeast-1': 3}"


@pytest.mark.parametrize("options, values, limit", [
    ("WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 1, 'write_capacity_units': 20}}", "burst=1", "provisioned-write"),
    ("", "on-demand-write=20", "on-demand-write"), ("", "table-write=20", "table-write"), ("", "partition-write=20", "partition-write")])
def test_limits_of_a_keyspace_in_three_regions_count_what_one_region_takes(timed, options, values, limit):
    t = timed("--limit-values", values)
    t.at(0)
    t.session.execute("DROP KEYSPACE lim")
    t.session.execute(f"CREATE KEYSPACE lim WITH replication = {REGIONS}")
    t.table("t", options)
    for second in range(3):
        t.at(second)
        granted = [t.write("t", 1) for _ in range(21)]
        assert granted[:20] == [None] * 20, "20 units a second in each Region are 20 writes"
        assert json.loads(granted[20][1])["limit"] == limit
    t.at(4)
    future = t.session.execute_async("INSERT INTO lim.t (pk, ck, v) VALUES (1, 1, 0x00)")
    future.result()
    assert struct.unpack(">d", future.custom_payload["RequestCharge"])[0] == 3, "the bill alone is the sum over the Regions"
    assert t.session.execute("SELECT write_units FROM system_metering.tables WHERE keyspace_name = 'lim'").one().write_units == 61


SCALED = """WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 5, 'write_capacity_units': 5}}
    AND AUTOSCALING_SETTINGS = {'provisioned_write_capacity_autoscaling_update': {'autoscaling_disabled': false, 'minimum_units': 3, 'maximum_units': 7,
        'scaling_policy': {'target_tracking_scaling_policy_configuration': {'target_value': 70, 'scale_out_cooldown': 300}}}}"""


def busy(t, minute, units):
    t.at(60 * minute)
    assert t.write("t", units) is None, minute


@pytest.mark.parametrize("how", ["simulate", "off"])
def test_auto_scaling_follows_the_target_when_it_is_simulated(timed, how):
    t = timed("--auto-scaling", how)
    t.at(0)
    t.table("t", SCALED)
    shown = t.session.execute("SELECT * FROM system_schema_mcs.autoscaling WHERE keyspace_name = 'lim'").one()
    assert "70" in str(shown.provisioned_write_capacity_autoscaling_update) and "autoscaling_disabled" in str(shown)
    seen = []
    t.write("t", 5)
    for minute in range(1, 12):
        busy(t, minute, 250)  # 4 a second, of 5: 80 % and more than 70 %
        c = t.capacity("t")
        seen.append((c.write_capacity, c.auto_scaled))
        assert c.auto_scaling and c.read_capacity == 5
        row = t.session.execute("SELECT * FROM system_schema_mcs.tables WHERE keyspace_name = 'lim'").one()
        mode = row.custom_properties["capacity_mode"]
        assert (mode["read_capacity_units"], mode["write_capacity_units"]) == ("5", str(c.write_capacity))
    if how == "off":
        assert set(seen) == {(5, False)}
        return
    assert seen[:2] == [(5, False), (5, False)], "an alarm is two minutes long"
    assert seen[2] == (6, True), "4 / 0.7 a second"
    assert set(seen[2:]) == {(6, True)}, "which is 67 %: below the target, and no 20 points"
    for minute in range(12, 27):
        t.at(60 * minute)
        assert t.capacity("t").write_capacity == 6, "15 quiet minutes are not over"
    t.at(60 * 30)
    assert t.capacity("t").write_capacity == 3, "the minimum"
    for minute in (30, 31, 32):
        busy(t, minute, 400 if minute < 32 else 1)
    assert t.capacity("t").write_capacity == 7, "the maximum"


@pytest.mark.parametrize("end", ["stop", "kill9"])
def test_levels_peaks_and_counts_outlive_a_restart(timed, end):
    t = timed("--limit-values", "on-demand-write=10,on-demand-window=60")
    t.at(0)
    t.table("t")
    t.table("p", "WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 2, 'write_capacity_units': 4}}")
    assert t.write("t", 900) is None  # the bucket is full; a minute's mean of 15
    assert t.write("p", 4) is None
    t.at(200)
    assert t.write("t", 900) is None  # with 30 a second
    assert t.write("p", 700) is None  # kept from the 200 seconds
    capacity = t.capacity("t")
    assert (capacity.write_previous_peak, capacity.write_capacity) == (15, 30)
    first = t.write("t", 1)
    assert "on-demand-write: 30 write units per second, asked 1" in first[0]
    first_p = t.write("p", 200)
    counts = t.refused("on-demand-write") | t.refused("provisioned-write")
    assert counts == {("t", 1, 30), ("p", 1, 4)}
    if end == "kill9":
        let_pass(2.5)  # what is older than a second is written
    t.cluster.shutdown()
    t.server.stop() if end == "stop" else t.server.kill9()
    t.server.start()
    t.connect()
    t.at(201)
    assert (t.capacity("t").write_previous_peak, t.capacity("t").write_capacity) == (15, 30)
    assert t.refused("on-demand-write") | t.refused("provisioned-write") == counts
    for table, units, before in (("t", 1, first), ("p", 200, first_p)):
        after = t.write(table, units)
        assert json.loads(after[1])["retry_after_ms"] == json.loads(before[1])["retry_after_ms"] - 1000, "a restart fills no bucket"
    assert t.refused("on-demand-write") | t.refused("provisioned-write") == {("t", 2, 30), ("p", 2, 4)}
