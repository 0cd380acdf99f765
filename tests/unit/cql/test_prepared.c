/* Prepared statements under changes of the schema: forgotten when their columns change or their
 * table goes, kept otherwise. */
#include "tests/unit/cql/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static bool is_known(struct harness *h, const uint8_t *id, uint32_t n_values, const struct value *values) {
    enum cql_outcome outcome = harness_execute(h, id, n_values, values);
    if (outcome == CQL_FAILED) assert_int_equal(h->err.code, ERR_UNPREPARED);
    else assert_int_equal(outcome, CQL_DONE);
    return outcome != CQL_FAILED;
}

static void open_with_table(struct harness *h, enum tally_mode mode) {
    harness_open(h, mode);
    run_ok(h, "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run_ok(h, "CREATE TABLE ks.t (p int PRIMARY KEY, v int)");
    run_ok(h, "CREATE TABLE ks.u (p int PRIMARY KEY, v int)");
    run_ok(h, "INSERT INTO ks.t (p, v) VALUES (1, 2)");
}

static void listed(struct harness *h, const char *count) {
    assert_rows(h, "SELECT count(*) FROM system.prepared_statements", count);
}

static void test_statements_are_forgotten_when_columns_are_added(void **state) {
    (void)state;
    struct harness h;
    uint8_t all[16], one[16], update[16], other[16], again[16];
    open_with_table(&h, MODE_CASSANDRA);
    struct cql_client client;
    cql_client_open(h.db, &client);
    harness_prepare(&h, "SELECT * FROM ks.t", all);
    harness_prepare(&h, "SELECT v FROM ks.t", one);
    harness_prepare(&h, "UPDATE ks.t SET v = 5 WHERE p = 1", update);
    harness_prepare(&h, "SELECT * FROM ks.u", other);
    listed(&h, "4");
    run_ok(&h, "ALTER TABLE ks.t ADD n int");
    listed(&h, "1"); /* at once, not when somebody asks for them */
    assert_false(is_known(&h, all, 0, NULL));
    assert_false(is_known(&h, one, 0, NULL));
    assert_false(is_known(&h, update, 0, NULL));
    assert_true(is_known(&h, other, 0, NULL));
    harness_prepare(&h, "SELECT * FROM ks.t", again);
    assert_memory_equal(again, all, 16);
    assert_true(is_known(&h, all, 0, NULL));
    assert_int_equal(h.meta->n, 3);
    assert_false(cql_client_has_columns(&client, slice_of(all, 16), h.meta)); /* it may have the two columns */
    cql_client_close(h.db, &client);
    assert_true(is_known(&h, all, 0, NULL));
    assert_true(cql_client_has_columns(&client, slice_of(all, 16), h.meta));
    harness_close(&h);
}

/* Recorded from Cassandra 5.0.8. */
static void test_rows_of_prepared_statements_can_be_deleted(void **state) {
    (void)state;
    struct harness h;
    uint8_t all[16], one[16];
    char cql[128];
    open_with_table(&h, MODE_CASSANDRA);
    harness_prepare(&h, "SELECT * FROM ks.t", all);
    harness_prepare(&h, "SELECT v FROM ks.t", one);
    int n = snprintf(cql, sizeof(cql), "DELETE FROM system.prepared_statements WHERE prepared_id = 0x");
    for (int i = 0; i < 16; i++) n += snprintf(cql + n, sizeof(cql) - (size_t)n, "%02x", all[i]);
    run_ok(&h, cql);
    assert_rows(&h, "SELECT query_string FROM system.prepared_statements", "SELECT v FROM ks.t");
    assert_true(is_known(&h, all, 0, NULL));
    harness_prepare(&h, "SELECT * FROM ks.t", all); /* still cached, so it stays unlisted */
    listed(&h, "1");
    run_ok(&h, "TRUNCATE system.prepared_statements");
    listed(&h, "0");
    assert_true(is_known(&h, one, 0, NULL));
    harness_prepare(&h, "SELECT * FROM ks.u", one);
    listed(&h, "1");
    run_ok(&h, "ALTER TABLE ks.t ADD n int"); /* evicts the two on ks.t */
    harness_prepare(&h, "SELECT * FROM ks.t", all);
    listed(&h, "2");
    harness_close(&h);
}

/* Whether rows of the prepared statement may be sent to the client without their columns. */
static bool has_columns(struct harness *h, struct cql_client *client, const uint8_t *id) {
    assert_true(is_known(h, id, 0, NULL));
    return cql_client_has_columns(client, slice_of(id, 16), h->meta);
}

/* Prepares the statement for the client, as a connection before v5 does. */
static void prepare_for(struct harness *h, struct cql_client *client, const char *cql, uint8_t *id) {
    struct cql_prepared *p = prepared_make(h->db, slice_str(cql), NULL, PARTITIONER_MURMUR3, &h->err);
    assert_non_null(p);
    memcpy(id, cql_prepared_info(p)->id, 16);
    cql_client_sent_columns(client, cql_prepared_info(p));
    cql_prepared_unref(p);
}

static void test_rows_carry_columns_while_a_connection_from_before_the_change_is_open(void **state) {
    (void)state;
    struct harness h;
    struct cql_client first, second, third;
    uint8_t t[16], u[16];
    open_with_table(&h, MODE_CASSANDRA);
    harness_prepare(&h, "SELECT * FROM ks.t", t);
    harness_prepare(&h, "SELECT * FROM ks.u", u);
    run_ok(&h, "ALTER TABLE ks.t ADD a int"); /* no client was connected */
    harness_prepare(&h, "SELECT * FROM ks.t", t);
    cql_client_open(h.db, &first);
    assert_true(has_columns(&h, &first, t));
    run_ok(&h, "ALTER TABLE ks.t ADD b int");
    harness_prepare(&h, "SELECT * FROM ks.t", t);
    cql_client_open(h.db, &second);
    run_ok(&h, "ALTER TABLE ks.u ADD a int");
    harness_prepare(&h, "SELECT * FROM ks.u", u);
    cql_client_open(h.db, &third);
    assert_false(has_columns(&h, &third, t) || has_columns(&h, &third, u));
    cql_client_close(h.db, &third);
    assert_false(has_columns(&h, &second, t) || has_columns(&h, &second, u));
    cql_client_close(h.db, &first); /* the second connection opened after the change of t */
    assert_true(has_columns(&h, &second, t));
    assert_false(has_columns(&h, &second, u));
    cql_client_close(h.db, &second);
    assert_true(has_columns(&h, &second, u));
    harness_close(&h);
}

static void test_a_client_that_prepares_again_gets_rows_without_columns(void **state) {
    (void)state;
    struct harness h;
    struct cql_client old, other, never = {0};
    uint8_t id[16], ids[CQL_SENT_MAX][16];
    char cql[64];
    open_with_table(&h, MODE_CASSANDRA);
    cql_client_open(h.db, &old);
    cql_client_open(h.db, &other);
    prepare_for(&h, &old, "SELECT * FROM ks.t", id);
    assert_null(old.sent); /* its columns have never changed */
    run_ok(&h, "ALTER TABLE ks.t ADD a int");
    prepare_for(&h, &old, "SELECT * FROM ks.t", id);
    assert_true(has_columns(&h, &old, id));
    assert_false(has_columns(&h, &other, id) || has_columns(&h, &never, id));
    run_ok(&h, "ALTER TABLE ks.t ADD b int");
    harness_prepare(&h, "SELECT * FROM ks.t", id);
    assert_false(has_columns(&h, &old, id)); /* it has the columns from before b */
    prepare_for(&h, &old, "SELECT * FROM ks.t", id);
    assert_true(has_columns(&h, &old, id));
    for (int i = 0; i < CQL_SENT_MAX; i++) {
        snprintf(cql, sizeof(cql), "SELECT v FROM ks.t WHERE p = %d", i);
        harness_prepare(&h, cql, ids[i]);
    }
    run_ok(&h, "ALTER TABLE ks.t ADD c int");
    harness_prepare(&h, "SELECT * FROM ks.t", id);
    assert_false(has_columns(&h, &old, id));
    prepare_for(&h, &old, "SELECT * FROM ks.t", id);
    for (int i = 0; i < CQL_SENT_MAX; i++) {
        snprintf(cql, sizeof(cql), "SELECT v FROM ks.t WHERE p = %d", i);
        prepare_for(&h, &old, cql, ids[i]);
    }
    assert_false(has_columns(&h, &old, id)); /* evicted from the ring, and only it */
    for (int i = 0; i < CQL_SENT_MAX; i++) assert_true(has_columns(&h, &old, ids[i]));
    prepare_for(&h, &other, "SELECT * FROM ks.t", id);
    assert_true(has_columns(&h, &other, id));
    cql_client_close(h.db, &old);
    prepare_for(&h, &old, "SELECT * FROM ks.t", id); /* a response after the end of the connection */
    assert_null(old.sent);
    cql_client_close(h.db, &other);
    harness_close(&h);
}

/* A cache that holds a few statements. */
static void make_cache_small(struct harness *h) {
    struct cql_db_options o = {.eng = h->eng, .catalog = h->catalog, .clock = &h->clock.clock, .mode = h->mode,
                               .prepared_bytes = 20000};
    cql_db_free(h->db);
    h->db = cql_db_new(&o, &h->err);
    assert_non_null(h->db);
}

/* Prepares so many statements on another table that every one from before is evicted. */
static void evict_all(struct harness *h) {
    uint8_t id[16];
    char cql[96];
    for (int i = 0; i < 60; i++) {
        snprintf(cql, sizeof(cql), "SELECT v FROM ks.u WHERE p = %d", i);
        harness_prepare(h, cql, id);
    }
}

/* Its entry is evicted before the columns change, and another client is the first to prepare it again. */
static void test_rows_carry_columns_though_the_statement_was_evicted_before_they_changed(void **state) {
    (void)state;
    struct harness h;
    struct cql_client old, late;
    uint8_t id[16];
    open_with_table(&h, MODE_CASSANDRA);
    make_cache_small(&h);
    cql_client_open(h.db, &old);
    prepare_for(&h, &old, "SELECT * FROM ks.t", id);
    evict_all(&h);
    assert_false(is_known(&h, id, 0, NULL));
    prepare_for(&h, &old, "SELECT * FROM ks.t", id); /* with the same columns */
    assert_true(has_columns(&h, &old, id));
    evict_all(&h);
    run_ok(&h, "ALTER TABLE ks.t ADD a int");
    harness_prepare(&h, "SELECT * FROM ks.t", id);
    assert_false(has_columns(&h, &old, id));
    cql_client_open(h.db, &late);
    assert_false(has_columns(&h, &late, id)); /* while the old connection is open */
    prepare_for(&h, &old, "SELECT * FROM ks.t", id);
    assert_true(has_columns(&h, &old, id));
    cql_client_close(h.db, &old);
    assert_true(has_columns(&h, &late, id));
    cql_client_close(h.db, &late);
    harness_close(&h);
}

static void test_unused_statements_are_dropped_with_their_table(void **state) {
    (void)state;
    struct harness h;
    uint8_t read[16], batch[16];
    for (int whole_keyspace = 0; whole_keyspace < 2; whole_keyspace++) {
        open_with_table(&h, MODE_CASSANDRA);
        harness_prepare(&h, "SELECT * FROM ks.t", read);
        harness_prepare(
            &h, "BEGIN BATCH INSERT INTO ks.u (p, v) VALUES (1, 1); INSERT INTO ks.t (p, v) VALUES (1, 1); APPLY BATCH",
            batch);
        run_ok(&h, whole_keyspace ? "DROP KEYSPACE ks" : "DROP TABLE ks.t");
        listed(&h, "0");
        if (whole_keyspace) {
            run_ok(&h, "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            run_ok(&h, "CREATE TABLE ks.u (p int PRIMARY KEY, v int)");
        }
        run_ok(&h, "CREATE TABLE ks.t (p int PRIMARY KEY, v int)"); /* the same columns, but another table */
        assert_false(is_known(&h, read, 0, NULL));
        assert_false(is_known(&h, batch, 0, NULL));
        harness_close(&h);
    }
}

static void test_statements_survive_changes_that_keep_their_columns(void **state) {
    (void)state;
    static const char *const changes[] = {"ALTER TABLE ks.t WITH comment = 'x'",
                                          "ALTER TABLE ks.u ADD n int",
                                          "CREATE TABLE ks.w (p int PRIMARY KEY)",
                                          "DROP TABLE ks.w",
                                          "ALTER KEYSPACE ks WITH durable_writes = false",
                                          "ALTER TABLE ks.t ADD IF NOT EXISTS v int",
                                          "CREATE TABLE IF NOT EXISTS ks.t (p text PRIMARY KEY)"};
    struct harness h;
    uint8_t read[16], write[16], system[16], describe[16];
    open_with_table(&h, MODE_CASSANDRA);
    harness_prepare(&h, "SELECT * FROM ks.t", read);
    harness_prepare(&h, "INSERT INTO ks.t (p, v) VALUES (7, 7)", write);
    harness_prepare(&h, "SELECT count(*) FROM system_schema.tables WHERE keyspace_name = 'ks'", system);
    harness_prepare(&h, "DESCRIBE TABLES", describe);
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        run_ok(&h, changes[i]);
        listed(&h, "4");
        assert_true(is_known(&h, read, 0, NULL));
        assert_int_equal(h.meta->n, 2);
        assert_int_equal(h.meta->change, 0);
    }
    run_ok(&h, "CREATE TABLE ks.late (p int PRIMARY KEY)");
    assert_true(is_known(&h, system, 0, NULL));
    assert_string_equal((const char *)h.rows.p, "3"); /* the schema of now, not of when it was prepared */
    run_ok(&h, "ALTER TABLE ks.t WITH default_time_to_live = 100");
    assert_int_equal(harness_execute(&h, write, 0, NULL), CQL_COMMIT); /* with the new default */
    assert_rows(&h, "SELECT ttl(v) FROM ks.t WHERE p = 7", "100");
    harness_close(&h);
}

/* By which a client of v5 knows that its columns are no more: the same for the same names and
 * types, another one for others. */
static void test_the_metadata_id_of_a_prepared_statement_depends_on_its_columns(void **state) {
    (void)state;
    static const uint8_t none[16];
    static const char *const statements[] = {"SELECT p, v FROM ks.t", "SELECT v FROM ks.t WHERE p = 1",
                                             "SELECT p, v AS w FROM ks.t", "DESCRIBE TABLES"};
    struct harness h;
    uint8_t id[16], ids[ARRAY_LEN(statements)][16];
    open_with_table(&h, MODE_CASSANDRA);
    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        harness_prepare(&h, statements[i], id);
        assert_true(is_known(&h, id, 0, NULL));
        memcpy(ids[i], h.meta->id, 16);
        assert_memory_not_equal(ids[i], none, 16);
        for (size_t k = 0; k < i; k++) assert_memory_not_equal(ids[i], ids[k], 16);
    }
    harness_prepare(&h, "SELECT * FROM ks.t", id);
    assert_true(is_known(&h, id, 0, NULL));
    assert_memory_equal(h.meta->id, ids[0], 16);
    harness_close(&h);
}

/* ---- a change while the statements of a batch are looked for ---- */

/* A clock whose next reader finds the table altered: who compiles a statement looks at the time. */
static struct {
    struct harness *client;
    const char *next; /* NULL: nothing is left to be altered */
    int64_t (*wall_us)(struct clock *);
} meanwhile;

static int64_t alter_and_read_clock(struct clock *c) {
    const char *change = meanwhile.next;
    meanwhile.next = NULL;
    if (change) run_ok(meanwhile.client, change);
    return meanwhile.wall_us(c);
}

static void alter_meanwhile(struct harness *h, struct harness *client, const char *change) {
    *client = *h; /* another client of the same database */
    client->batch = eng_batch_new(h->eng);
    arena_init(&client->arena, 4096, 0);
    buf_init(&client->rows, 0);
    buf_init(&client->paging, 0);
    meanwhile.client = client;
    meanwhile.next = change;
    meanwhile.wall_us = h->clock.clock.wall_us;
    h->clock.clock.wall_us = alter_and_read_clock;
}

static void client_close(struct harness *client) {
    eng_batch_free(client->batch);
    arena_fini(&client->arena);
    buf_fini(&client->rows);
    buf_fini(&client->paging);
}

static void test_statements_of_a_batch_are_of_one_version_of_their_table(void **state) {
    (void)state;
    struct harness h, client;
    uint8_t first[16], second[16];
    open_with_table(&h, MODE_CASSANDRA);
    harness_prepare(&h, "UPDATE ks.t SET v = 3 WHERE p = 1 IF v = 5", first);
    harness_prepare(&h, "UPDATE ks.t SET v = 4 WHERE p = 1", second);
    run_ok(&h, "ALTER TABLE ks.t WITH comment = 'so that both are compiled again'");
    alter_meanwhile(&h, &client, "ALTER TABLE ks.t WITH comment = 'when one of them has been'");
    struct cql_batch_item items[] = {{.prepared_id = slice_of(first, 16)}, {.prepared_id = slice_of(second, 16)}};
    struct cql_request r = {.kind = REQUEST_BATCH, .n_items = 2, .items = items};
    enum cql_outcome outcome = harness_request(&h, &r);
    if (outcome == CQL_FAILED) fail_msg("%s", h.err.text);
    assert_null(meanwhile.next);
    assert_string_equal((const char *)h.rows.p, "false,1,2");
    client_close(&client);
    harness_close(&h);
}

static void test_a_statement_that_was_compiled_before_a_change_and_evicted_after_it_has_changed_columns(void **state) {
    (void)state;
    struct harness h, altering;
    struct cql_client old;
    uint8_t id[16];
    open_with_table(&h, MODE_CASSANDRA);
    make_cache_small(&h);
    cql_client_open(h.db, &old);
    alter_meanwhile(&h, &altering, "ALTER TABLE ks.t ADD a int");
    prepare_for(&h, &old, "SELECT * FROM ks.t", id); /* has two columns */
    assert_null(meanwhile.next);
    evict_all(&h);
    harness_prepare(&h, "SELECT * FROM ks.t", id);
    assert_false(has_columns(&h, &old, id));
    cql_client_close(h.db, &old);
    client_close(&altering);
    harness_close(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_prepared_statements_can_be_deleted),
        cmocka_unit_test(test_statements_are_forgotten_when_columns_are_added),
        cmocka_unit_test(test_unused_statements_are_dropped_with_their_table),
        cmocka_unit_test(test_statements_survive_changes_that_keep_their_columns),
        cmocka_unit_test(test_the_metadata_id_of_a_prepared_statement_depends_on_its_columns),
        cmocka_unit_test(test_statements_of_a_batch_are_of_one_version_of_their_table),
        cmocka_unit_test(test_rows_carry_columns_while_a_connection_from_before_the_change_is_open),
        cmocka_unit_test(test_a_client_that_prepares_again_gets_rows_without_columns),
        cmocka_unit_test(test_a_statement_that_was_compiled_before_a_change_and_evicted_after_it_has_changed_columns),
        cmocka_unit_test(test_rows_carry_columns_though_the_statement_was_evicted_before_they_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
