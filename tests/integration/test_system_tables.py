"""The system keyspaces as the reported release has them, and as Amazon Keyspaces fills them."""
import re

import pytest
from cassandra import ConsistencyLevel, InvalidRequest, Unauthorized
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.protocol import ConfigurationException

from tally_server import create_keyspace, eventually

CASSANDRA = {  # tables of keyspace system, from SystemKeyspace of each release
    "3.11.10": {"IndexInfo", "available_ranges", "batches", "built_views", "compaction_history", "local", "paxos", "peer_events", "peers", "prepared_statements",
                "range_xfers", "size_estimates", "sstable_activity", "transferred_ranges", "views_builds_in_progress"},
    "4.0.9": {"IndexInfo", "available_ranges", "available_ranges_v2", "batches", "built_views", "compaction_history", "local", "paxos", "peer_events", "peer_events_v2",
              "peers", "peers_v2", "prepared_statements", "repairs", "size_estimates", "sstable_activity", "table_estimates", "transferred_ranges",
              "transferred_ranges_v2", "view_builds_in_progress"},
}
CASSANDRA["4.1.3"] = CASSANDRA["4.0.9"] | {"paxos_repair_history", "sstable_activity_v2", "top_partitions"}
CASSANDRA["5.0.8"] = CASSANDRA["4.1.3"]
TABLE_COLUMNS = {  # of system_schema.tables: some that came or went
    "3.11.10": ({"dclocal_read_repair_chance"}, {"additional_write_policy", "memtable", "incremental_backups"}),
    "4.0.9": ({"additional_write_policy", "read_repair"}, {"memtable", "incremental_backups"}),
    "4.1.3": ({"additional_write_policy", "memtable"}, {"incremental_backups"}),
    "5.0.8": ({"memtable", "incremental_backups", "allow_auto_snapshot"}, set()),
}
TABLES_3_11 = ("keyspace_name text, table_name text, bloom_filter_fp_chance double, caching frozen<map<text, text>>, cdc boolean, comment text, "
               "compaction frozen<map<text, text>>, compression frozen<map<text, text>>, crc_check_chance double, dclocal_read_repair_chance double, default_time_to_live int, "
               "extensions frozen<map<text, blob>>, flags frozen<set<text>>, gc_grace_seconds int, id uuid, max_index_interval int, memtable_flush_period_in_ms int, "
               "min_index_interval int, read_repair_chance double, speculative_retry text")
COLUMNS_3_11 = "keyspace_name text, table_name text, column_name text, clustering_order text, column_name_bytes blob, kind text, position int, type text"
SETTINGS = "map<text, frozen<map<text, text>>>"
SCALING = "provisioned_read_capacity_autoscaling_update text, provisioned_write_capacity_autoscaling_update text"
KEYSPACES_COLUMNS = {  # https://docs.aws.amazon.com/keyspaces/latest/devguide/working-with-keyspaces.html; the types are Cassandra 3.11's
    "system.local": "key text, bootstrapped text, broadcast_address inet, cluster_name text, cql_version text, data_center text, gossip_generation int, host_id uuid, "
                    "listen_address inet, native_protocol_version text, partitioner text, rack text, release_version text, rpc_address inet, schema_version uuid, "
                    "thrift_version text, tokens set<text>, truncated_at map<uuid, blob>",
    "system.peers": "peer inet, data_center text, host_id uuid, preferred_ip inet, rack text, release_version text, rpc_address inet, schema_version uuid, tokens set<text>",
    "system.size_estimates": "keyspace_name text, table_name text, range_start text, range_end text, mean_partition_size bigint, partitions_count bigint",
    "system.prepared_statements": "prepared_id blob, logged_keyspace text, query_string text",
    "system_schema.keyspaces": "keyspace_name text, durable_writes boolean, replication frozen<map<text, text>>",
    "system_schema.tables": TABLES_3_11, "system_schema.columns": COLUMNS_3_11,
    "system_schema_mcs.keyspaces": "keyspace_name text, durable_writes boolean, replication frozen<map<text, text>>",
    "system_schema_mcs.tables": f"{TABLES_3_11}, creation_time timestamp, custom_properties {SETTINGS}, latest_stream_arn text, status text",
    "system_schema_mcs.tables_history": f"keyspace_name text, table_name text, event_time timestamp, creation_time timestamp, custom_properties {SETTINGS}, event text",
    "system_schema_mcs.columns": COLUMNS_3_11,
    "system_schema_mcs.types": "keyspace_name text, type_name text, field_names frozen<list<text>>, field_types frozen<list<text>>, max_nesting_depth int, "
                               "last_modified_timestamp timestamp, status text, direct_referring_tables list<text>, direct_parent_types list<text>",
    "system_schema_mcs.tags": "resource_id text, keyspace_name text, resource_name text, resource_type text, tags map<text, text>",
    "system_schema_mcs.autoscaling": f"keyspace_name text, table_name text, {SCALING}",
    "system_multiregion_info.keyspaces": "keyspace_name text, region text, status text, tables_replication_progress text",
    "system_multiregion_info.tables": "keyspace_name text, table_name text, region text, status text",
    "system_multiregion_info.types": "keyspace_name text, type_name text, region text, status text",
    "system_multiregion_info.autoscaling": f"keyspace_name text, table_name text, region text, {SCALING}",
}
PARTITIONERS = ["org.apache.cassandra.dht.RandomPartitioner", "com.amazonaws.cassandra.DefaultPartitioner", "org.apache.cassandra.dht.Murmur3Partitioner"]


@pytest.fixture
def connect(new_server):
    clusters = []

    def start(*flags, metadata=False):
        server = new_server("--ddl-delay", "none", *flags)
        clusters.append(server.cluster(schema_metadata_enabled=metadata))
        return server, clusters[-1], clusters[-1].connect()

    yield start
    for c in clusters:
        c.shutdown()


def tables_of(session, keyspace):
    return {r.table_name for r in session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s", (keyspace,))}


def columns_of(session, keyspace, table):
    return {r.column_name for r in session.execute("SELECT column_name FROM system_schema.columns WHERE keyspace_name = %s AND table_name = %s", (keyspace, table))}


@pytest.mark.parametrize("release", sorted(CASSANDRA))
def test_a_release_shows_its_tables_and_columns(connect, release):
    _, cluster, session = connect("--mode", "cassandra", "--release-version", release, metadata=True)
    assert session.execute("SELECT release_version FROM system.local").one().release_version == release
    assert tables_of(session, "system") == CASSANDRA[release]
    there, absent = TABLE_COLUMNS[release]
    columns = columns_of(session, "system_schema", "tables")
    assert there <= columns and not absent & columns
    for table in sorted(CASSANDRA[release]):  # each of them can be read, by what it says of itself
        row = session.execute(f'SELECT * FROM system."{table}"').one()
        assert row is None or set(row._fields) == columns_of(session, "system", table)
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY, v text)")
    cluster.refresh_schema_metadata()  # the driver reads what it knows of this release
    assert list(cluster.metadata.keyspaces["k"].tables["t"].columns) == ["p", "v"]


def test_keyspaces_shows_what_aws_lists_and_4_1_when_asked(connect, tmp_path):
    _, _, session = connect()
    assert {"local", "peers", "size_estimates", "prepared_statements"} <= tables_of(session, "system")
    assert "compaction_history" not in tables_of(session, "system")
    assert tables_of(session, "system_multiregion_info") == {"keyspaces", "tables", "types", "autoscaling"}


def test_keyspaces_shows_the_columns_that_aws_documents(connect):
    _, _, session = connect()
    found = {}
    for r in session.execute("SELECT * FROM system_schema.columns"):
        found.setdefault(f"{r.keyspace_name}.{r.table_name}", set()).add(f"{r.column_name} {r.type}")
    for table, columns in KEYSPACES_COLUMNS.items():
        want = set(re.split(r", (?=\w+ [\w<])", columns))
        assert found[table] == want, table
    system = {r.keyspace_name: (r.durable_writes, dict(r.replication)) for r in session.execute("SELECT * FROM system_schema.keyspaces")}
    shown = (True, {"class": "org.apache.cassandra.locator.SimpleStrategy", "replication_factor": "3"})
    assert all(system[name] == shown for name in ("system", "system_schema", "system_schema_mcs", "system_multiregion_info"))


OWN = {"system_metering", "system_schema_mcs", "system_control"}


@pytest.mark.parametrize("listed", ["unlisted", "listed"])
def test_cassandra_lists_the_keyspaces_of_a_node(connect, listed):
    """Tally's own are not listed unless --own-keyspaces says so; statements that name them find them all the same."""
    _, cluster, session = connect("--mode", "cassandra", "--control", "on", "--own-keyspaces", listed, metadata=True)
    node = {"system", "system_auth", "system_distributed", "system_schema", "system_traces", "system_views", "system_virtual_schema"}
    expected = node | (OWN if listed == "listed" else set())
    assert set(cluster.metadata.keyspaces) == expected
    assert {r[0] for r in session.execute("DESCRIBE KEYSPACES")} == expected
    assert {r[0] for r in session.execute("DESCRIBE TABLES")} == {r[0] for r in session.execute("DESCRIBE FULL SCHEMA")} == expected
    for table in ("keyspaces", "tables", "columns", "types", "dropped_columns"):
        assert {r[0] for r in session.execute(f"SELECT keyspace_name FROM system_schema.{table}")} <= expected
        if table in ("keyspaces", "tables", "columns"):
            assert all(list(session.execute(f"SELECT * FROM system_schema.{table} WHERE keyspace_name = %s", (own,))) for own in OWN)
    assert OWN - {"system_control"} < {r[0] for r in session.execute("SELECT keyspace_name FROM system_schema_mcs.keyspaces")}
    assert list(session.execute("DESCRIBE KEYSPACE system_metering"))
    assert session.execute(session.prepare("SELECT * FROM system_metering.limits WHERE name = ?"), ("account-read",)).one()
    session.set_keyspace("system_metering")
    assert {r[0] for r in session.execute("DESCRIBE TABLES")} == {"system_metering"} and session.execute("SELECT * FROM limits").one()


def test_keyspaces_may_report_another_release(connect):
    _, cluster, session = connect("--release-version", "4.1.3", metadata=True)
    assert "peers_v2" in tables_of(session, "system") and "system_multiregion_info" in cluster.metadata.keyspaces
    create_keyspace(session, "k")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    row = session.execute("SELECT * FROM system_schema.tables WHERE keyspace_name = 'k'").one()
    assert row.additional_write_policy == "99p" and row.read_repair == "BLOCKING"


def session_on(cluster_of, address):
    """A cluster whose only host is this address, which must be closed, and its session."""
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([address]), consistency_level=ConsistencyLevel.LOCAL_QUORUM, request_timeout=300)
    cluster = cluster_of(contact=address, schema_metadata_enabled=False, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    return cluster, cluster.connect()


def ring(server, address):
    """What a client that has reached this address is told of the whole: address -> (host id, tokens)."""
    cluster, session = session_on(server.cluster, address)
    with cluster:
        local = session.execute("SELECT * FROM system.local").one()
        rows = session.execute("SELECT * FROM system.peers").all()
    assert local.rpc_address == address
    assert {r.data_center for r in rows} == {local.data_center} == {"us-east-1"}
    assert {r.schema_version for r in rows} == {local.schema_version}  # nobody has to wait for agreement
    assert len(rows) == 9 and local.rpc_address not in {r.peer for r in rows}
    return {r.rpc_address: (r.host_id, list(r.tokens)) for r in [local, *rows]}


def test_the_region_is_the_data_centre_and_peers_are_nine(connect):
    """Each of the ten addresses answers, and tells of the same ring; also after a restart."""
    server, _, _ = connect("--region", "us-east-1", "--peers", "keyspaces")
    addresses = [f"127.0.0.{i}" for i in range(1, 11)]
    told = ring(server, addresses[0])
    assert sorted(told) == sorted(addresses) and len({host for host, _ in told.values()}) == 10
    tokens = [t for _, theirs in told.values() for t in theirs]
    assert len(set(tokens)) == 10 and all(-2**63 <= int(t) < 2**63 for t in tokens)
    for address in addresses[1:]:
        assert ring(server, address) == told
    server.kill9()
    server.start()
    assert {a: host for a, (host, _) in ring(server, addresses[3]).items()} == {a: host for a, (host, _) in told.items()}


@pytest.mark.parametrize("setting, answering", [("keyspaces", 10), ("127.0.0.249,127.0.0.250", 1)])
def test_a_driver_uses_all_nine_and_passes_over_peers_that_do_not_answer(connect, setting, answering):
    _, cluster, session = connect("--peers", setting)
    eventually(lambda: sum(bool(h.is_up) for h in cluster.metadata.all_hosts()) == answering)
    used = {session.execute("SELECT rpc_address FROM system.local").one().rpc_address for _ in range(4 * answering)}
    assert len(used) == answering
    create_keyspace(session, "k")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    session.execute("INSERT INTO k.t (p) VALUES (1)")
    assert session.execute("SELECT p FROM k.t").one().p == 1


def test_peers_may_be_listed_or_none(connect, new_server):
    server, _, session = connect()
    assert session.execute("SELECT * FROM system.peers").all() == []
    server.kill9()
    server, _, session = connect("--peers", "10.0.0.6, 10.0.0.5, ::1,127.0.0.1")
    # By key, as Cassandra's; the address that was reached is no peer, nor is one of the other family (test_ipv6.py).
    assert [r.peer for r in session.execute("SELECT peer FROM system.peers")] == ["10.0.0.5", "10.0.0.6"]
    server.kill9()
    for wrong in ("some", "10.0.0", ","):
        with pytest.raises(AssertionError, match="is no numeric address|there is no address"):
            new_server("--peers", wrong)



def test_the_partitioner_is_switched_by_an_update(connect):
    server, _, session = connect()
    session.execute("UPDATE system.local SET partitioner = 'org.apache.cassandra.dht.RandomPartitioner' WHERE key = 'local'")
    for partitioner in PARTITIONERS:
        session.execute("UPDATE system.local SET partitioner = %s WHERE key = 'local'", (partitioner,))
        with server.cluster(schema_metadata_enabled=False) as other:
            assert other.connect().execute("SELECT partitioner FROM system.local WHERE key = 'local'").one().partitioner == partitioner
    session.execute("UPDATE system.local SET partitioner = %s WHERE key = 'local'", (PARTITIONERS[1],))
    with pytest.raises(InvalidRequest, match="'Byte' is no partitioner: org.apache.cassandra.dht.Murmur3Partitioner"):
        session.execute("UPDATE system.local SET partitioner = 'Byte' WHERE key = 'local'")
    server.kill9()
    server.start()
    with server.cluster(schema_metadata_enabled=False) as again:
        assert again.connect().execute("SELECT partitioner FROM system.local").one().partitioner == PARTITIONERS[1]


READ_ONLY = [
    "INSERT INTO system.local (key, cluster_name) VALUES ('local', 'mine')", "UPDATE system.local SET cluster_name = 'mine' WHERE key = 'local'",
    "UPDATE system.local SET partitioner = 'org.apache.cassandra.dht.RandomPartitioner', rack = 'r' WHERE key = 'local'", "DELETE FROM system.local WHERE key = 'local'",
    "DELETE partitioner FROM system.local WHERE key = 'local'",
    "INSERT INTO system.peers (peer) VALUES ('10.0.0.1')", "UPDATE system_schema.tables SET comment = 'x' WHERE keyspace_name = 'system' AND table_name = 'local'",
    "INSERT INTO system_schema_mcs.tags (resource_id) VALUES ('x')", "DELETE FROM system_multiregion_info.keyspaces WHERE keyspace_name = 'k'",
    "DROP TABLE system.local", "ALTER TABLE system_schema_mcs.tables ADD x int", "CREATE TABLE system_schema_mcs.t (p int PRIMARY KEY)", "DROP KEYSPACE system_multiregion_info",
]


@pytest.mark.parametrize("mode", ["keyspaces", "cassandra"])
def test_system_keyspaces_are_read_only(connect, mode):
    _, _, session = connect("--mode", mode)
    for statement in READ_ONLY:
        if mode == "cassandra" and ("multiregion" in statement or "partitioner FROM" in statement):
            continue
        with pytest.raises((Unauthorized, InvalidRequest), match=r"keyspace is not user-modifiable|'partitioner'|null|'' is no partitioner"):
            session.execute(statement)
    if mode == "cassandra":
        with pytest.raises(Unauthorized, match="system keyspace is not user-modifiable"):
            session.execute("UPDATE system.local SET partitioner = 'org.apache.cassandra.dht.RandomPartitioner' WHERE key = 'local'")


ADMINISTERED = [
    "ALTER KEYSPACE system_auth WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
    "ALTER KEYSPACE system_traces WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}",
    "ALTER KEYSPACE system_distributed WITH durable_writes = false",
    "TRUNCATE system.peers", "TRUNCATE system.peers_v2", "TRUNCATE system.prepared_statements",
    "DELETE FROM system.peers WHERE peer = '10.0.0.9'",
    "DELETE FROM system.prepared_statements WHERE prepared_id = 0x01",
    "DELETE FROM system.peers_v2 WHERE peer = '10.0.0.9' AND peer_port = 7000",
    "TRUNCATE system_traces.sessions",
    "DELETE FROM system_traces.events WHERE session_id = 5a1c69ef-37a0-11ee-be56-0242ac120002",
]


def test_administrators_steps_on_system_keyspaces_are_taken(connect):
    """What Cassandra takes of its own tables, and nothing more; replication is shown, and kept over a restart."""
    server, cluster, session = connect("--mode", "cassandra", "--datacenter", "datacenter1")
    for statement in ADMINISTERED:
        session.execute(statement)
    for statement in ("INSERT INTO system.peers (peer) VALUES ('10.0.0.9')", "TRUNCATE system.local",
                      "ALTER KEYSPACE system WITH durable_writes = false",
                      "UPDATE system.prepared_statements SET query_string = 'x' WHERE prepared_id = 0x01"):
        with pytest.raises((Unauthorized, InvalidRequest), match="not user-modifiable|Truncation is not supported"):
            session.execute(statement)
    query = "SELECT keyspace_name, durable_writes, replication FROM system_schema.keyspaces"
    shown = {r[0]: (r[1], dict(r[2])) for r in session.execute(query)}
    locator = "org.apache.cassandra.locator."
    assert shown["system_auth"] == (True, {"class": locator + "SimpleStrategy", "replication_factor": "3"})
    assert shown["system_traces"] == (True, {"class": locator + "NetworkTopologyStrategy", "datacenter1": "1"})
    assert shown["system_distributed"][0] is False
    with pytest.raises(ConfigurationException):
        session.execute("ALTER KEYSPACE system_auth WITH replication = {'class': 'NoStrategy'}")
    server.kill9()
    server.start()
    with server.cluster(schema_metadata_enabled=False) as again:
        session = again.connect()
        assert {r[0]: (r[1], dict(r[2])) for r in session.execute(query)} == shown
        session.execute("CREATE KEYSPACE after WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        assert {r[0]: (r[1], dict(r[2])) for r in session.execute(query)}.items() > shown.items()


def test_keyspaces_of_several_regions(connect):
    _, _, session = connect("--region", "us-east-1")
    session.execute("CREATE KEYSPACE one WITH replication = {'class': 'SingleRegionStrategy'}")
    session.execute("CREATE KEYSPACE two WITH replication = {'class': 'NetworkTopologyStrategy', 'us-east-1': '3', 'eu-west-1': '3'}")
    session.execute("CREATE TABLE one.t (p int PRIMARY KEY)")
    session.execute("CREATE TYPE two.address (street text)")
    scaling = ("{'autoscaling_disabled': false, 'minimum_units': 5, 'maximum_units': %d, 'scaling_policy': {'target_tracking_scaling_policy_configuration': {'target_value': 70}}, "
               "'replica_updates': {'eu-west-1': {'maximum_units': 99}}}")
    session.execute("CREATE TABLE two.t (p int PRIMARY KEY, a frozen<address>) WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', "
                    "'read_capacity_units': 5, 'write_capacity_units': 5}, 'replica_updates': {'eu-west-1': {'read_capacity_units': 7}}} "
                    "AND AUTOSCALING_SETTINGS = {'provisioned_read_capacity_autoscaling_update': %s}" % (scaling % 50))
    info = "SELECT * FROM system_multiregion_info."
    assert [(r.keyspace_name, r.region, r.status, r.tables_replication_progress) for r in session.execute(info + "keyspaces")] == [
        ("two", "eu-west-1", "Active", "100%"), ("two", "us-east-1", "Active", "100%")]
    assert [(r.table_name, r.region, r.status) for r in session.execute(info + "tables WHERE keyspace_name = 'two'")] == [
        ("t", "eu-west-1", "ACTIVE"), ("t", "us-east-1", "ACTIVE")]
    assert [(r.type_name, r.region, r.status) for r in session.execute(info + "types")] == [("address", "eu-west-1", "ACTIVE"), ("address", "us-east-1", "ACTIVE")]
    shown = {r.region: r.provisioned_read_capacity_autoscaling_update for r in session.execute(info + "autoscaling")}
    text = ("{'autoscaling_disabled': false, 'maximum_units': %d, 'minimum_units': 5, "
            "'scaling_policy': {'target_tracking_scaling_policy_configuration': {'target_value': 70}}}")
    assert shown == {"eu-west-1": text % 99, "us-east-1": text % 50}
    session.execute("INSERT INTO two.t (p) VALUES (1) USING TIMESTAMP 5000")  # client-side timestamps are implied
    assert session.execute(info + "keyspaces WHERE keyspace_name = 'one'").all() == []


def test_size_estimates_tell_what_there_is(connect):
    _, _, session = connect()
    create_keyspace(session, "k")
    session.execute("CREATE TABLE k.small (p int, c int, v text, PRIMARY KEY (p, c))")
    session.execute("CREATE TABLE k.empty (p int PRIMARY KEY)")
    session.execute("CREATE TABLE k.many (p int PRIMARY KEY, v text)")
    put = session.prepare("INSERT INTO k.small (p, c, v) VALUES (?, ?, ?)")
    for i in range(300):
        session.execute(put, (i % 100, i, "x" * 50))
    put = session.prepare("INSERT INTO k.many (p, v) VALUES (?, ?)")
    futures = [session.execute_async(put, (i, "y")) for i in range(9000)]
    for f in futures:
        f.result()
    rows = session.execute("SELECT * FROM system.size_estimates WHERE keyspace_name = 'k'").all()
    assert [(r.range_start, r.range_end) for r in rows] == [("-9223372036854775808", "0"), ("0", "-9223372036854775808")] * 3
    count = {name: sum(r.partitions_count for r in rows if r.table_name == name) for name in ("small", "empty", "many")}
    assert count["small"] == 100 and count["empty"] == 0  # counted
    assert 8000 < count["many"] < 10000  # of 9000, from a part of them
    assert all(150 < r.mean_partition_size < 400 for r in rows if r.table_name == "small")


# ---- clients ----

@pytest.mark.parametrize("name, version, shown", [
    ("n" * 64, "4.19.0-SNAPSHOT+" + "v" * 60, ("n" * 64, "4.19.0-SNAPSHOT+" + "v" * 60)),
    ("n" * 1024, "v" * 1024, ("n" * 1024, "v" * 1024)),
    ("n" * 1023 + "\u00e9", "v" * 30000, ("n" * 1023, "v" * 1024)),  # a character is kept whole or not at all
])
def test_clients_are_shown_with_the_whole_name_of_their_driver(cassandra_server, monkeypatch, name, version, shown):
    monkeypatch.setattr("cassandra.connection.DRIVER_NAME", name)
    monkeypatch.setattr("cassandra.connection.DRIVER_VERSION", version)
    with cassandra_server.cluster() as cluster:
        session = cluster.connect()
        monkeypatch.undo()
        with cassandra_server.cluster() as innocent:
            rows = innocent.connect().execute("SELECT * FROM system_views.clients").all()
        named = [r for r in rows if r.driver_name == shown[0]]
        assert named and all(r.driver_version == shown[1] for r in named)
        assert all((r.client_options["DRIVER_NAME"], r.client_options["DRIVER_VERSION"]) == shown for r in named)
        assert [r for r in rows if r.driver_name == "Apache Cassandra Python Driver"]
        assert session.execute("SELECT key FROM system.local").one()
