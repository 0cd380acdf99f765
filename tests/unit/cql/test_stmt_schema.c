/* CREATE, ALTER, DROP and DESCRIBE through the statements; texts were taken from Cassandra 5.0.8. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

static const char keyspace[] =
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

static void setup(struct harness *h, enum tally_mode mode) {
    harness_open(h, mode);
    run_ok(h, keyspace);
}

static void test_describe_table_is_cassandras_text(void **state) {
    (void)state;
    struct harness h;
    setup(&h, MODE_CASSANDRA);
    run_ok(&h, "CREATE TABLE ks.base (p int, c int, s text static, v map<text,frozen<list<int>>>, b blob, \"Q q\" "
               "text, z int, "
               "primary key ((p,b), c)) WITH CLUSTERING ORDER BY (c DESC) AND comment='it''s' AND "
               "bloom_filter_fp_chance = 0.0001");
    const char *text = harness_query(&h, "DESCRIBE TABLE ks.base");
    assert_non_null(strstr(
        text,
        "CREATE TABLE ks.base (\n    p int,\n    b blob,\n    c int,\n    s text static,\n    \"Q q\" text,\n    z "
        "int,\n"
        "    v map<text, frozen<list<int>>>,\n    PRIMARY KEY ((p, b), c)\n) WITH CLUSTERING ORDER BY (c DESC)\n"
        "    AND additional_write_policy = '99p'\n    AND allow_auto_snapshot = true\n"
        "    AND bloom_filter_fp_chance = 1.0E-4\n    AND caching = {'keys': 'ALL', 'rows_per_partition': 'NONE'}\n"
        "    AND cdc = false\n    AND comment = 'it''s'\n"));
    harness_close(&h);
}

static void test_describe_names_the_missing_object(void **state) {
    (void)state;
    struct harness h;
    setup(&h, MODE_CASSANDRA);
    assert_error(&h, "DESCRIBE TABLE ks.zz", "Table 'zz' not found in keyspace 'ks'");
    assert_error(&h, "DESCRIBE TABLE yy.zz", "'yy' not found in keyspaces");
    assert_error(&h, "DESCRIBE zz", "'zz' not found in keyspaces");
    assert_error(&h, "DESCRIBE ks.zz", "'zz' not found in keyspace 'ks'");
    assert_error(&h, "DESCRIBE TYPE ks.zz", "User defined type 'zz' not found in 'ks'");
    assert_error(&h, "DESCRIBE TABLE zz", "No keyspace specified and no current keyspace");
    harness_close(&h);
}

static void test_create_table_is_refused_in_cassandras_words(void **state) {
    (void)state;
    struct harness h;
    setup(&h, MODE_CASSANDRA);
    static const char *const cases[][2] = {
        {"(p int)", "No PRIMARY KEY specifed for table 'ks.t' (exactly one required)"},
        {"(p int primary key, q int primary key)",
         "Multiple PRIMARY KEY specified for table 'ks.t' (exactly one required)"},
        {"(p int, p int, primary key (p))", "Duplicate column 'p' declaration for table 'ks.t'"},
        {"(p int, primary key (z))", "Unknown column 'z' referenced in PRIMARY KEY for table 't'"},
        {"(p int, q int, primary key (q, q))", "Duplicate column 'q' in PRIMARY KEY clause for table 't'"},
        {"(p int primary key, s int static)",
         "Static columns are only useful (and thus allowed) if the table has at least one clustering column"},
        {"(p counter primary key)", "counter type is not supported for PRIMARY KEY column 'p'"},
        {"(p int primary key, c counter, d int)", "Cannot mix counter and non counter columns in the same table"},
        {"(p list<int> primary key)", "Invalid non-frozen collection type list<int> for PRIMARY KEY column 'p'"},
        {"(p int primary key, c set<counter>)", "Counters are not allowed inside collections: set<counter>"},
        {"(p int, c tuple<duration, int>, primary key (p, c))",
         "duration type is not supported for PRIMARY KEY column 'c'"},
        {"(p int, c int, d int, primary key (p, c, d)) WITH CLUSTERING ORDER BY (d desc)",
         "Missing CLUSTERING ORDER for column c"},
        {"(p int primary key) WITH foo = 1", "Unknown property 'foo'"},
        {"(p int primary key) WITH gc_grace_seconds = -1",
         "gc_grace_seconds must be greater than or equal to 0 (got -1)"},
        {"(p int primary key) WITH compaction = {'class': 'x'}",
         "Unable to find compaction strategy class 'org.apache.cassandra.db.compaction.x'"},
        {"(p int primary key) WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 3}",
         "chunk_length_in_kb must be a power of 2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char cql[512];
        snprintf(cql, sizeof cql, "CREATE TABLE ks.t %s", cases[i][0]);
        assert_error(&h, cql, cases[i][1]);
    }
    harness_close(&h);
}

static void test_if_not_exists_is_no_error_and_no_change(void **state) {
    (void)state;
    struct harness h;
    setup(&h, MODE_CASSANDRA);
    run_ok(&h, "CREATE TABLE ks.t (p int primary key)");
    assert_int_equal(h.result.kind, RESULT_SCHEMA_CHANGE);
    run_ok(&h, "CREATE TABLE IF NOT EXISTS ks.t (p int primary key)");
    assert_int_equal(h.result.kind, RESULT_VOID);
    assert_error(&h, "CREATE TABLE ks.t (p int primary key)",
                 "Cannot add already existing table \"t\" to keyspace \"ks\"");
    assert_int_equal(h.err.code, ERR_ALREADY_EXISTS);
    assert_string_equal(h.err.detail.name, "t");
    run_ok(&h, "DROP TABLE IF EXISTS ks.none");
    assert_int_equal(h.result.kind, RESULT_VOID);
    harness_close(&h);
}

static void test_custom_properties_are_keyspaces_own(void **state) {
    (void)state;
    struct harness h;
    setup(&h, MODE_KEYSPACES);
    run_ok(&h, "CREATE TABLE ks.t (p int primary key) WITH CUSTOM_PROPERTIES = {'ttl': {'status': 'enabled'}} AND TAGS "
               "= {'a': 'b'}");
    const char *text = harness_query(&h, "DESCRIBE TABLE ks.t");
    assert_non_null(strstr(text, "AND CUSTOM_PROPERTIES = {'ttl': {'status': 'enabled'}}\n    AND TAGS = {'a': 'b'};"));
    harness_close(&h);
    setup(&h, MODE_CASSANDRA);
    assert_error(&h, "CREATE TABLE ks.t (p int primary key) WITH tags = {'a': 'b'}", "Unknown property 'tags'");
    harness_close(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_describe_table_is_cassandras_text),
        cmocka_unit_test(test_describe_names_the_missing_object),
        cmocka_unit_test(test_create_table_is_refused_in_cassandras_words),
        cmocka_unit_test(test_if_not_exists_is_no_error_and_no_change),
        cmocka_unit_test(test_custom_properties_are_keyspaces_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
