"""What Amazon Keyspaces' support matrix says yes to passes where refusals are strict: its statements, clauses, functions and types, row by row."""
import pytest

from tally_server import Server, await_active, create_keyspace, eventually

# (what the page names, statements in order); the keyspace is s.
ROWS = [
    ("keyspaces", ["CREATE KEYSPACE IF NOT EXISTS one WITH replication = {'class': 'SingleRegionStrategy'} AND TAGS = {'a': 'b'}",
                   "CREATE KEYSPACE two WITH replication = {'class': 'NetworkTopologyStrategy', 'us-east-1': '3', 'eu-west-1': '3'}",
                   "ALTER KEYSPACE one ADD TAGS {'c': 'd'}", "ALTER KEYSPACE one DROP TAGS {'c': 'd'}", "USE one", "DROP KEYSPACE IF EXISTS two"]),
    ("simple-strategy", ["CREATE KEYSPACE simple WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1} AND durable_writes = true"]),
    ("table-options", ["CREATE TABLE s.options (p int, c int, v int, PRIMARY KEY (p, c)) WITH CLUSTERING ORDER BY (c DESC) AND default_time_to_live = 60"
                       " AND comment = 'x' AND TAGS = {'a': 'b'} AND compaction = {'class': 'LeveledCompactionStrategy'} AND gc_grace_seconds = 5"
                       " AND compression = {'sstable_compression': 'LZ4Compressor'} AND bloom_filter_fp_chance = 0.1 AND read_repair_chance = 0.1"]),
    ("options-of-3.11", [f"CREATE TABLE s.options_{i} (p int PRIMARY KEY) WITH {options}" for i, options in enumerate((
        "compaction = {'class': 'DateTieredCompactionStrategy', 'base_time_seconds': '3600',"
        " 'max_sstable_age_days': 0.5, 'timestamp_resolution': 'MICROSECONDS'}",
        "compaction = {'class': 'org.apache.cassandra.db.compaction.DateTieredCompactionStrategy',"
        " 'max_window_size_seconds': 86400, 'max_threshold': 16}",
        "compaction = {'class': 'SizeTieredCompactionStrategy', 'bucket_low': '0.5', 'bucket_high': 1.5,"
        " 'min_sstable_size': 50, 'min_threshold': '4'}",
        "compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS',"
        " 'compaction_window_size': 1, 'tombstone_threshold': 0.2}",
        "compression = {'sstable_compression': 'org.apache.cassandra.io.compress.DeflateCompressor',"
        " 'chunk_length_kb': 64, 'crc_check_chance': 0.5}",
        "compression = {'sstable_compression': ''}", "compression = {'enabled': false}",
        "compression = {'class': 'SnappyCompressor', 'chunk_length_in_kb': 4}",
        "caching = {'keys': 'ALL', 'rows_per_partition': '10'} AND dclocal_read_repair_chance = 0.1"
        " AND crc_check_chance = 0.5",
        "bloom_filter_fp_chance = 1.0 AND speculative_retry = '99PERCENTILE' AND min_index_interval = 64",
        "speculative_retry = 'NONE'", "speculative_retry = '10ms'"))]),
    ("alter-table", ["ALTER TABLE s.rows ADD more int", "ALTER TABLE s.rows ADD TAGS {'a': 'b'}", "ALTER TABLE s.rows DROP TAGS {'a': 'b'}"]),
    ("restore-table", ["ALTER TABLE s.rows WITH CUSTOM_PROPERTIES = {'point_in_time_recovery': {'status': 'enabled'}}", "RESTORE TABLE s.restored FROM TABLE s.rows"]),
    ("types", ["CREATE TYPE IF NOT EXISTS s.inner (a int)", "CREATE TYPE s.\"any 'characters'\" (a int, b frozen<inner>)",
               "DROP TYPE IF EXISTS s.\"any 'characters'\""]),
    ("json", ["INSERT INTO s.rows JSON '{\"p\": 1, \"c\": 1, \"v\": 1}'", "SELECT JSON p, v FROM s.rows"]),
    ("in", ["SELECT * FROM s.rows WHERE p IN (1, 2) AND c = 2", "SELECT * FROM s.rows WHERE p IN (1, 2) AND c <= 2", "SELECT * FROM s.rows WHERE p = 1 AND c IN (1, 2)",
            "SELECT * FROM s.rows WHERE p <= 2 AND c IN (1, 2) ALLOW FILTERING"]),
    ("where", ["SELECT * FROM s.rows WHERE p = 1 AND c > 1 AND c <= 5", "SELECT * FROM s.rows WHERE token(p) > 1 AND token(p) < 9", "SELECT token(p), p FROM s.rows",
               "SELECT * FROM s.rows WHERE l CONTAINS 1 ALLOW FILTERING", "SELECT * FROM s.rows WHERE m CONTAINS KEY 'a' ALLOW FILTERING"]),
    ("order", ["SELECT * FROM s.rows WHERE p = 1 ORDER BY c DESC LIMIT 5", "SELECT v AS w, CAST(v AS text) AS t FROM s.rows", "SELECT u.a FROM s.rows"]),
    ("conditions", ["INSERT INTO s.rows (p, c, v) VALUES (5, 5, 5) IF NOT EXISTS", "UPDATE s.rows SET v = 6 WHERE p = 5 AND c = 5 IF v > 4",
                    "DELETE FROM s.rows WHERE p = 5 AND c = 5 IF v <= 6", "DELETE FROM s.rows WHERE p = 5 AND c = 5 IF EXISTS"]),
    ("deletes", ["DELETE FROM s.rows WHERE p = 7", "DELETE FROM s.rows WHERE p = 7 AND c > 1", "DELETE m['a'] FROM s.rows WHERE p = 7 AND c = 1"]),
    ("batches", ["BEGIN BATCH INSERT INTO s.rows (p, c, v) VALUES (8, 1, 1); UPDATE s.rows SET v = 2 WHERE p = 8 AND c = 2 IF v = 1; APPLY BATCH",
                 "BEGIN UNLOGGED BATCH INSERT INTO s.rows (p, c) VALUES (9, 1); DELETE FROM s.rows WHERE p = 9; APPLY BATCH"]),
    ("ttl-and-timestamps", ["INSERT INTO s.timed (p, v) VALUES (1, 1) USING TTL 60", "UPDATE s.timed USING TTL 60 SET v = 2 WHERE p = 1",
                            "SELECT TTL(v), WRITETIME(v) FROM s.timed"]),
    ("functions", [f"SELECT {call} FROM system.local" for call in (
        "now()", "uuid()", "currentDate()", "currentTime()", "currentTimestamp()", "currentTimeUUID()", "minTimeuuid('2026-01-01')", "maxTimeuuid('2026-01-01')",
        "toDate(now())", "toTimestamp(now())", "toUnixTimestamp(now())", "dateOf(now())", "unixTimestampOf(now())", "toJson(key)", "textAsBlob(key)",
        "blobAsText(textAsBlob(key))", "token(key)", "cast(key AS text)")] + ["INSERT INTO s.rows (p, c, v) VALUES (1, 1, fromJson('5'))"]),
    ("arithmetic", ["SELECT v + 1, v - 1, v * 2, v / 2, v % 2 FROM s.rows", "INSERT INTO s.rows (p, c, v) VALUES (1, 1, 2 * 3)"]),
    ("data-types", ["CREATE TYPE s.named (a int)", "CREATE TABLE s.all_types (a ascii PRIMARY KEY, b bigint, c blob, d boolean, dur duration, e date, f decimal, g double, h float,"
                    " i inet, j int, k list<int>, l map<text, int>, m set<int>, n smallint, o text, q time, r timestamp, s timeuuid, t tinyint,"
                    " u frozen<tuple<int, text>>, v uuid, w varchar, x varint, y frozen<named>)",
                    "CREATE TABLE s.counts (p int PRIMARY KEY, n counter)", "CREATE TABLE s.frozen_key (p frozen<list<int>> PRIMARY KEY)"]),
    ("partitioner", ["UPDATE system.local SET partitioner = 'org.apache.cassandra.dht.Murmur3Partitioner' WHERE key = 'local'"]),
    ("drops", ["DROP TABLE IF EXISTS s.no_such_table"]),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("strict"), "--compatibility", "strict", "--ddl-delay", "none").start()
    with server.cluster(schema_metadata_enabled=False) as cluster:
        s = cluster.connect()
        create_keyspace(s, "s")
        s.execute("CREATE TYPE s.field (a int)")
        s.execute("CREATE TABLE s.rows (p int, c int, v int, l list<int>, m map<text, int>, u frozen<field>, t text static, PRIMARY KEY (p, c))")
        s.execute("CREATE TABLE s.timed (p int PRIMARY KEY, v int) WITH CUSTOM_PROPERTIES = "
                  "{'ttl': {'status': 'enabled'}, 'client_side_timestamps': {'status': 'enabled'}}")
        for table in ("rows", "timed"):
            await_active(s, "s", table)
        yield s
    server.stop()


@pytest.mark.parametrize("statements", [row[1] for row in ROWS], ids=[row[0] for row in ROWS])
def test_passes(session, statements):
    for statement in statements:
        session.execute(statement)
        if statement.startswith("ALTER TABLE s.rows"):
            await_active(session, "s", "rows")
        if "point_in_time_recovery" in statement:  # the history begins a moment after the table is ACTIVE
            eventually(lambda: "earliest_restorable_timestamp" in session.execute(
                "SELECT custom_properties FROM system_schema_mcs.tables WHERE keyspace_name = 's' AND table_name = 'rows'").one().custom_properties["point_in_time_recovery"])


def test_in_answers_in_the_order_of_its_values(session):
    for p in (11, 12):
        session.execute(f"INSERT INTO s.rows (p, c, v) VALUES ({p}, 1, 1)")
    assert [r.p for r in session.execute("SELECT p FROM s.rows WHERE p IN (12, 11)")] == [12, 11]
