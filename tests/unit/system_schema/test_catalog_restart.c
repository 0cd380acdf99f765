/* What a start of the server finds, and what it frees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/murmur3.h"
#include "engine/named.h"
#include "engine/table.h"
#include "harness.h"

static void test_restart_resumes_what_was_under_way(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "none");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "altered"), 1);
    assert_int_equal(make_table(w, "ks", "dropped"), 1);
    world_restart(w, MODE_KEYSPACES, "held");
    assert_int_equal(make_table(w, "ks", "created"), 1);
    assert_int_equal(add_column(w, "ks", "altered", "n"), 1);
    assert_int_equal(drop_table(w, "ks", "dropped"), 1);
    world_restart(w, MODE_KEYSPACES, "200");
    assert_string_equal(status_of(w, "ks", "created"), "CREATING");
    assert_string_equal(status_of(w, "ks", "altered"), "UPDATING");
    assert_int_equal(n_deleting(w, "ks"), 1);
    advance(w, 200);
    assert_string_equal(status_of(w, "ks", "created"), "ACTIVE");
    assert_string_equal(status_of(w, "ks", "altered"), "ACTIVE");
    assert_int_equal(n_deleting(w, "ks"), 0);
    const struct schema *s = catalog_schema(w->catalog);
    assert_non_null(schema_column_find(schema_table_any(s, "ks", "altered"), "n"));
    schema_unref(s);
    world_free(w);
}

static void test_change_that_a_start_finished_stays_finished(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "none");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    world_restart(w, MODE_KEYSPACES, "held");
    assert_int_equal(make_table(w, "ks", "t"), 1);
    world_restart(w, MODE_KEYSPACES, "none");
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    world_restart(w, MODE_KEYSPACES, "held");
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    world_free(w);
}

static void test_version_does_not_depend_on_the_order_of_creation(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    assert_int_equal(make_keyspace(w, "first"), 1);
    assert_int_equal(make_table(w, "first", "t"), 1);
    assert_int_equal(make_keyspace(w, "second"), 1);
    uint8_t version[16];
    const struct schema *s = catalog_schema(w->catalog);
    memcpy(version, s->version, 16);
    schema_unref(s);
    world_restart(w, MODE_CASSANDRA, "none");
    s = catalog_schema(w->catalog);
    assert_memory_equal(s->version, version, 16);
    schema_unref(s);
    world_free(w);
}

static void test_definition_survives_a_restart(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    const struct schema *before = catalog_schema(w->catalog);
    uint8_t version[16], id[16], host[16];
    memcpy(version, before->version, 16);
    memcpy(id, schema_table_any(before, "ks", "t")->id, 16);
    memcpy(host, catalog_host_id(w->catalog), 16);
    schema_unref(before);
    world_restart(w, MODE_CASSANDRA, "none");
    const struct schema *s = catalog_schema(w->catalog);
    const struct schema_table *t = schema_table_any(s, "ks", "t");
    assert_memory_equal(s->version, version, 16);
    assert_memory_equal(t->id, id, 16);
    assert_memory_equal(catalog_host_id(w->catalog), host, 16);
    assert_int_equal(t->n_columns, 4);
    assert_int_equal(t->n_static, 1);
    assert_string_equal(t->columns[1].name, "c");
    assert_true(t->columns[1].desc);
    assert_string_equal(t->columns[2].name, "s");
    assert_int_equal(t->columns[3].type->id, CQL_BLOB);
    assert_int_equal(t->settings.default_time_to_live, 60);
    assert_int_equal(t->settings.gc_grace_seconds, 864000);
    assert_string_equal(t->settings.comment, "hello");
    const struct schema_keyspace *ks = schema_keyspace_find(s, "ks");
    assert_string_equal(ks->replication[0].value, "org.apache.cassandra.locator.SimpleStrategy");
    schema_unref(s);
    world_free(w);
}

/* ---- rows that no object has ---- */

enum { STRAY = 4000 };

static void write_row(struct world *w, uint32_t storage) {
    struct slice key = slice_str("p");
    struct eng_part part = {.table = storage, .token = murmur3_token(key), .key = key};
    struct eng_batch *b = eng_batch_new(w->eng);
    struct eng_row row;
    uint64_t seq;
    eng_row_init(&row, ENG_ROW, slice_str("c"));
    row.live_ts = 1;
    assert_int_equal(eng_batch_row(b, &part, &row, NULL, &w->err), 0);
    assert_int_equal(eng_batch_delete_partition(b, &part, 0, 1, NULL, &w->err), 0); /* which makes a mark */
    assert_int_equal(eng_batch_commit(b, &seq, &w->err), 0);
    eng_batch_free(b);
}

static int count_stored(void *arg, uint32_t id, struct err *e) {
    uint32_t *n = arg;
    (void)e;
    n[id == STRAY]++;
    return 0;
}

/* Of a table, and of an id that no record names, how often the store names them after a restart. */
static void restart_with_strays(struct world *w, uint32_t n[2]) {
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    struct objects *o = w->catalog->objects;
    write_row(w, object_find(o, &table_kind, object_find(o, &keyspace_kind, 0, "ks")->id, "t")->storage);
    write_row(w, STRAY);
    world_restart(w, MODE_CASSANDRA, "none");
    for (bool done = false; !done; usleep(1000)) {
        pthread_mutex_lock(&w->catalog->objects->lock);
        done = w->catalog->recovery->strays.looked && !w->catalog->recovery->strays.n;
        pthread_mutex_unlock(&w->catalog->objects->lock);
    }
    n[0] = n[1] = 0;
    assert_int_equal(eng_each_stored(w->eng, count_stored, n, &w->err), 0);
}

static void test_rows_that_no_object_has_are_freed_after_a_start(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    uint32_t n[2];
    restart_with_strays(w, n);
    assert_int_equal(n[0], 2); /* the row and its mark */
    assert_int_equal(n[1], 0);
    world_free(w);
}

static void test_rows_that_no_object_has_stay_while_a_record_cannot_be_read(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    uint8_t key[RECORD_KEY_SIZE];
    uint32_t n[2];
    record_key('t', 999, key);
    assert_int_equal(eng_meta_put(w->eng, slice_of(key, sizeof key), slice_str("damaged"), &w->err), 0);
    restart_with_strays(w, n);
    assert_int_equal(n[0], 2);
    assert_int_equal(n[1], 2);
    world_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restart_resumes_what_was_under_way),
        cmocka_unit_test(test_change_that_a_start_finished_stays_finished),
        cmocka_unit_test(test_version_does_not_depend_on_the_order_of_creation),
        cmocka_unit_test(test_definition_survives_a_restart),
        cmocka_unit_test(test_rows_that_no_object_has_are_freed_after_a_start),
        cmocka_unit_test(test_rows_that_no_object_has_stay_while_a_record_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
