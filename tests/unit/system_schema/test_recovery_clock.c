/* Point-in-time recovery over a step back of the wall clock: new definitions, TRUNCATE and DROP come
 * after what came before them, as commits do (invariant 14). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/murmur3.h"
#include "harness.h"

enum { SECOND_US = 1000000 };

static _Atomic int64_t ahead_us; /* of the wall clock, beside the monotonic one */
static int64_t stepped(struct clock *c) { return ((struct fake_clock *)c)->now_us + ahead_us; }

static int setup(void **state) {
    struct world *w = *state = world_new(MODE_CASSANDRA, "none");
    ahead_us = 0;
    w->clock.clock.wall_us = stepped;
    w->clock.now_us = (int64_t)1700000000 * SECOND_US;
    return 0;
}

static int teardown(void **state) {
    world_free(*state);
    return 0;
}

static void must(struct world *w, int rc) {
    if (rc < 0) fail_msg("%s", w->err.text);
}

static void make(struct world *w) {
    static const struct table_settings pitr = {.given = SETTING_BIT(point_in_time_recovery),
                                               .point_in_time_recovery = true};
    const struct catalog_column columns[] = {{"p", cql_type_scalar(CQL_TEXT), COLUMN_PARTITION_KEY, false},
                                             {"v", cql_type_scalar(CQL_INT), COLUMN_REGULAR, false}};
    must(w, make_keyspace(w, "ks"));
    must(w, apply(w, &(struct catalog_change){.op = CATALOG_CREATE_TABLE,
                                              .keyspace = "ks",
                                              .name = "t",
                                              .n_columns = 2,
                                              .columns = columns,
                                              .settings = &pitr}));
}

static void put(struct world *w, const char *key) {
    struct eng_batch *b = eng_batch_new(w->eng);
    struct eng_row row;
    uint64_t seq;
    eng_row_init(&row, ENG_ROW, slice_str(""));
    row.live_ts = 1;
    const struct eng_part part = {
        .table = storage_of(w, "ks", "t"), .token = murmur3_token(slice_str(key)), .key = slice_str(key)};
    must(w, eng_batch_row(b, &part, &row, NULL, &w->err));
    must(w, eng_batch_commit(b, &seq, &w->err));
    eng_batch_free(b);
}

static int rows_in(struct world *w, const char *table) {
    struct eng_scan_spec spec = {.table = storage_of(w, "ks", table),
                                 .token_from = INT64_MIN,
                                 .token_to = INT64_MAX,
                                 .rows = true,
                                 .now = w->clock.now_us / SECOND_US};
    struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_ANY, &spec, NULL, &w->err);
    struct eng_item item;
    int n = 0, got;
    assert_non_null(s);
    while ((got = eng_scan_next(s, &item, &w->err)) > 0) n += item.kind == ENG_ITEM_ROW;
    must(w, got);
    eng_scan_close(s);
    return n;
}

/* Restores t, at 0 its newest moment: so many rows, and so many columns. */
static void check_restore(struct world *w, int64_t at_us, int rows, uint32_t columns) {
    static int restores;
    struct objects *o = w->catalog->objects;
    char name[16];
    snprintf(name, sizeof(name), "r%d", restores++);
    must(w, apply(w, &(struct catalog_change){.op = CATALOG_RESTORE_TABLE,
                                              .keyspace = "ks",
                                              .name = name,
                                              .from_keyspace = "ks",
                                              .from_name = "t",
                                              .has_restore_us = at_us != 0,
                                              .restore_us = at_us}));
    pthread_mutex_lock(&o->lock);
    for (const struct catalog_object *x = o->busy; x; x = x ? x->busy_next : o->busy)
        if (x->status == SCHEMA_RESTORING) {
            pthread_cond_wait(&o->moved, &o->lock);
            x = NULL;
        }
    pthread_mutex_unlock(&o->lock);
    const struct schema *s = catalog_schema(w->catalog);
    assert_int_equal(schema_table_any(s, "ks", name)->n_columns, columns);
    schema_unref(s);
    assert_int_equal(rows_in(w, name), rows);
}

/* The times of a history's definitions follow their order, and the table went no earlier. */
static void check_order(struct world *w) {
    bool ordered = true;
    pthread_mutex_lock(&w->catalog->objects->lock);
    for (const struct history *h = w->catalog->recovery->histories; h; h = h->next) {
        for (uint32_t i = 1; i < h->n_versions; i++)
            ordered = ordered && h->versions[i - 1].from_us <= h->versions[i].from_us;
        ordered = ordered && (!h->begun || h->versions[h->n_versions - 1].from_us <= h->gone_us);
    }
    pthread_mutex_unlock(&w->catalog->objects->lock);
    assert_true(ordered);
}

static void test_changes_after_a_step_back_come_after_those_before_it(void **state) {
    struct world *w = *state;
    make(w);
    w->clock.now_us += SECOND_US;
    put(w, "a");
    w->clock.now_us += 100 * SECOND_US;
    must(w, add_column(w, "ks", "t", "early"));
    put(w, "b");
    int64_t top_us = stepped(&w->clock.clock);
    ahead_us = -50 * SECOND_US;
    must(w, add_column(w, "ks", "t", "late"));
    put(w, "c");
    check_order(w);
    check_restore(w, stepped(&w->clock.clock), 1, 2);
    check_restore(w, top_us - 1, 1, 2);
    check_restore(w, top_us, 3, 4);
    check_restore(w, 0, 3, 4);
    must(w, apply(w, &(struct catalog_change){.op = CATALOG_TRUNCATE_TABLE, .keyspace = "ks", .name = "t"}));
    put(w, "d");
    for (int round = 0; round < 2; round++) {
        check_order(w);
        check_restore(w, stepped(&w->clock.clock), 1, 2);
        check_restore(w, top_us - 1, 1, 2);
        check_restore(w, top_us, 0, 4); /* TRUNCATE has the time of what came before it, and a row a later one */
        check_restore(w, top_us + 1, 1, 4);
        check_restore(w, 0, 1, 4);
        if (!round) must(w, drop_table(w, "ks", "t"));
        world_restart(w, MODE_CASSANDRA, "none");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_changes_after_a_step_back_come_after_those_before_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
