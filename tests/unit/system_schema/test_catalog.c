/* The catalogue of one server: states of its objects, delays, errors, snapshots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "keyspaces/quota.h"
#include "harness.h"

static void test_table_without_delay_is_active_at_once(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "none");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    assert_int_equal(w->n_changes, 2);
    assert_int_equal(w->changes[1].kind, CHANGE_CREATED);
    assert_string_equal(w->changes[1].name, "t");
    world_free(w);
}

static void test_table_is_creating_until_its_delay_is_over(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "500");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t"), -1);
    assert_string_equal(w->err.text, "unconfigured keyspace ks");
    advance(w, 500);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    assert_string_equal(status_of(w, "ks", "t"), "CREATING");
    const struct schema *s = catalog_schema(w->catalog);
    struct err e = {0};
    assert_null(schema_table_find(s, "ks", "t", &e));
    assert_string_equal(e.text, "unconfigured table ks.t");
    schema_unref(s);
    advance(w, 499);
    assert_string_equal(status_of(w, "ks", "t"), "CREATING");
    advance(w, 1);
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    world_free(w);
}

static void test_altered_table_keeps_its_old_form_while_updating(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "100");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    advance(w, 100);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    advance(w, 100);
    assert_int_equal(add_column(w, "ks", "t", "n"), 1);
    assert_string_equal(status_of(w, "ks", "t"), "UPDATING");
    const struct schema *s = catalog_schema(w->catalog);
    struct err e = {0};
    const struct schema_table *t = schema_table_find(s, "ks", "t", &e);
    assert_non_null(t);
    assert_null(schema_column_find(t, "n"));
    assert_int_equal(add_column(w, "ks", "t", "m"), -1);
    advance(w, 100);
    const struct schema *after = catalog_schema(w->catalog);
    const struct schema_column *n = schema_column_find(schema_table_any(after, "ks", "t"), "n");
    assert_non_null(n);
    assert_int_equal(n->id, 4);
    assert_ptr_equal(schema_column_by_id(schema_table_any(after, "ks", "t"), 4), n);
    assert_null(schema_column_find(t, "n")); /* the old snapshot is as it was */
    assert_memory_not_equal(s->version, after->version, 16);
    schema_unref(after);
    schema_unref(s);
    world_free(w);
}

static int create_table_if_not_exists(struct world *w, const char *keyspace, const char *name) {
    const struct catalog_column p = {"p", cql_type_scalar(CQL_INT), COLUMN_PARTITION_KEY, false};
    return apply(w, &(struct catalog_change){.op = CATALOG_CREATE_TABLE,
                                             .keyspace = keyspace,
                                             .name = name,
                                             .conditional = true,
                                             .n_columns = 1,
                                             .columns = &p});
}

static void test_dropped_table_hides_at_once_and_keeps_its_name_until_it_is_gone(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "100");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    advance(w, 100);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    advance(w, 100);
    uint32_t old = storage_of(w, "ks", "t");
    assert_int_equal(drop_table(w, "ks", "t"), 1);
    assert_string_equal(status_of(w, "ks", "t"), "");
    assert_int_equal(n_deleting(w, "ks"), 1);
    assert_int_equal(w->changes[w->n_changes - 1].kind, CHANGE_DROPPED);
    for (int restarted = 0; restarted < 2; restarted++) {
        assert_int_equal(make_table(w, "ks", "t"), -1);
        assert_string_equal(w->err.text, "Table 't' is DELETING: wait until it is gone");
        assert_int_equal(create_table_if_not_exists(w, "ks", "t"), -1);
        assert_string_equal(w->err.text, "Table 't' is DELETING: wait until it is gone");
        assert_int_equal(add_column(w, "ks", "t", "n"), -1);
        assert_string_equal(w->err.text, "Table 't' is DELETING: wait until it is gone");
        assert_int_equal(drop_table(w, "ks", "t"), 0);
        world_restart(w, MODE_KEYSPACES, "100"); /* the delay begins anew */
    }
    advance(w, 100);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    assert_int_not_equal(storage_of(w, "ks", "t"), old);
    assert_int_equal(n_deleting(w, "ks"), 0);
    assert_int_equal(create_table_if_not_exists(w, "ks", "t"), 0); /* CREATING: it is there */
    assert_int_equal(make_table(w, "ks", "t"), -1);
    assert_int_equal(w->err.code, ERR_ALREADY_EXISTS);
    assert_int_equal(add_column(w, "ks", "t", "n"), -1);
    assert_string_equal(w->err.text, "Table 't' is CREATING: wait until it is ACTIVE");
    assert_int_equal(drop_table(w, "ks", "t"), -1);
    assert_string_equal(w->err.text, "Table 't' is CREATING: wait until it is ACTIVE");
    advance(w, 100);
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    wait_until_freed(w);
    assert_int_equal(w->catalog->objects->n_all, 2);
    world_free(w);
}

static void test_dropped_keyspace_keeps_its_name_until_it_is_gone(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "100");
    struct catalog_change drop = {.op = CATALOG_DROP_KEYSPACE, .keyspace = "ks"};
    struct catalog_change alter = {.op = CATALOG_ALTER_KEYSPACE, .keyspace = "ks", .durable_writes = 0};
    struct catalog_change again = {.op = CATALOG_CREATE_KEYSPACE,
                                   .keyspace = "ks",
                                   .conditional = true,
                                   .n_replication = 2,
                                   .replication = simple_strategy};
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(apply(w, &again), 0);
    assert_int_equal(apply(w, &alter), -1);
    assert_string_equal(w->err.text, "Keyspace 'ks' is CREATING: wait until it is ACTIVE");
    assert_int_equal(apply(w, &drop), -1);
    advance(w, 100);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    assert_int_equal(apply(w, &drop), -1); /* a table is still CREATING */
    advance(w, 100);
    assert_int_equal(apply(w, &alter), 1);
    assert_int_equal(apply(w, &drop), -1);
    assert_string_equal(w->err.text, "Keyspace 'ks' is UPDATING: wait until it is ACTIVE");
    advance(w, 100);
    assert_int_equal(apply(w, &drop), 1);
    static const char words[] = "Keyspace 'ks' is DELETING: wait until it is gone";
    assert_int_equal(make_keyspace(w, "ks"), -1);
    assert_string_equal(w->err.text, words);
    assert_int_equal(apply(w, &again), -1);
    assert_string_equal(w->err.text, words);
    assert_int_equal(apply(w, &alter), -1);
    assert_string_equal(w->err.text, words);
    assert_int_equal(make_table(w, "ks", "u"), -1);
    assert_string_equal(w->err.text, words);
    assert_int_equal(apply(w, &drop), 0);
    advance(w, 100);
    assert_int_equal(make_keyspace(w, "ks"), 1);
    advance(w, 100);
    assert_int_equal(make_table(w, "ks", "t"), 1); /* not what was dropped with the old one */
    world_free(w);
}

static void test_held_change_waits_for_its_release(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "held");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    advance(w, 1000000);
    assert_int_equal(make_table(w, "ks", "t"), -1);
    catalog_release_held(w->catalog);
    advance(w, 0);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    advance(w, 1000000);
    assert_string_equal(status_of(w, "ks", "t"), "CREATING");
    catalog_release_held(w->catalog);
    advance(w, 0);
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    world_free(w);
}

static void test_dropped_keyspace_takes_its_tables_along(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "a"), 1);
    assert_int_equal(make_table(w, "ks", "b"), 1);
    assert_int_equal(apply(w, &(struct catalog_change){.op = CATALOG_DROP_KEYSPACE, .keyspace = "ks"}), 1);
    ddl_step(w->catalog->ddl);
    const struct schema *s = catalog_schema(w->catalog);
    assert_null(schema_keyspace_find(s, "ks"));
    schema_unref(s);
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_string_equal(status_of(w, "ks", "a"), "");
    world_restart(w, MODE_CASSANDRA, "none");
    assert_string_equal(status_of(w, "ks", "a"), "");
    world_free(w);
}

static void test_errors_carry_cassandras_words(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    assert_int_equal(make_table(w, "nope", "t"), -1);
    assert_string_equal(w->err.text, "Keyspace 'nope' doesn't exist");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_keyspace(w, "ks"), -1);
    assert_int_equal(w->err.code, ERR_ALREADY_EXISTS);
    assert_string_equal(w->err.detail.keyspace, "ks");
    assert_int_equal(make_table(w, "ks", "t"), 1);
    assert_int_equal(make_table(w, "ks", "t"), -1);
    assert_string_equal(w->err.text, "Cannot add already existing table \"t\" to keyspace \"ks\"");
    assert_int_equal(drop_table(w, "ks", "u"), -1);
    assert_string_equal(w->err.text, "Table 'ks.u' doesn't exist");
    assert_int_equal(add_column(w, "ks", "t", "v"), -1);
    assert_string_equal(w->err.text, "Column with name 'v' already exists");
    assert_int_equal(drop_table(w, "system", "local"), -1);
    assert_int_equal(w->err.code, ERR_UNAUTHORIZED);
    assert_string_equal(w->err.text, "system keyspace is not user-modifiable.");
    assert_int_equal(
        apply(w,
              &(struct catalog_change){.op = CATALOG_DROP_TABLE, .keyspace = "ks", .name = "u", .conditional = true}),
        0);
    world_free(w);
}

static int make_keyspace_as(struct world *w, const char *name, enum compat_mode mode) {
    const struct compat compat = {.mode = mode};
    return apply(w, &(struct catalog_change){.op = CATALOG_CREATE_KEYSPACE,
                                             .keyspace = name,
                                             .compat = &compat,
                                             .durable_writes = -1,
                                             .n_replication = 2,
                                             .replication = simple_strategy});
}

static void test_fifty_changes_at_once_and_no_more_where_keyspaces_refusals_are_strict(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "held");
    char name[16];
    for (int i = 0; i < QUOTA_CONCURRENT_DDL; i++) {
        snprintf(name, sizeof name, "k%d", i);
        assert_int_equal(make_keyspace_as(w, name, COMPAT_STRICT), 1);
    }
    assert_int_equal(make_keyspace_as(w, "one_more", COMPAT_STRICT), -1);
    assert_int_equal(make_keyspace_as(w, "one_more", COMPAT_OFF), 1);
    catalog_release_held(w->catalog);
    advance(w, 0);
    assert_int_equal(make_keyspace_as(w, "and_another", COMPAT_STRICT), 1);
    world_free(w);
}

static void test_generation_grows_with_every_snapshot(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    uint64_t before = catalog_generation(w->catalog);
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_true(catalog_generation(w->catalog) > before);
    const struct schema *s = catalog_schema(w->catalog);
    assert_int_equal(s->generation, catalog_generation(w->catalog));
    schema_unref(s);
    world_free(w);
}

static void *take_and_drop(void *arg) {
    struct world *w = arg;
    for (int i = 0; i < 20000; i++) {
        const struct schema *s = catalog_schema(w->catalog);
        if (!schema_keyspace_find(s, "system")) abort();
        schema_unref(s);
    }
    return NULL;
}

static void test_references_are_safe_against_a_swap(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    pthread_t threads[3];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_drop, w), 0);
    char name[16];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "k%d", i);
        assert_int_equal(make_keyspace(w, name), 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) pthread_join(threads[i], NULL);
    world_free(w);
}

static void test_delay_is_parsed_from_its_forms(void **state) {
    (void)state;
    struct ddl_delay d;
    struct err e = {0};
    assert_int_equal(ddl_delay_parse("none", &d, &e), 0);
    assert_int_equal(d.kind, DDL_NONE);
    assert_int_equal(ddl_delay_parse("250", &d, &e), 0);
    assert_int_equal(d.kind, DDL_FIXED);
    assert_int_equal(ddl_delay_parse("100..300", &d, &e), 0);
    assert_int_equal(d.kind, DDL_RANGE);
    assert_int_equal(d.max_ms, 300);
    assert_int_equal(ddl_delay_parse("held", &d, &e), 0);
    assert_int_equal(d.kind, DDL_HELD);
    assert_int_equal(ddl_delay_parse("realistic", &d, &e), 0);
    assert_int_equal(d.kind, DDL_REALISTIC);
    assert_int_equal(ddl_delay_parse("uniform(1, 5)", &d, &e), 0);
    assert_int_equal(d.kind, DDL_RANGE);
    assert_false(d.seeded);
    assert_int_equal(ddl_delay_parse(" lognormal( 150 , 0.5,7 ) ", &d, &e), 0);
    assert_int_equal(d.kind, DDL_LOGNORMAL);
    assert_true(d.seeded && d.seed == 7 && d.min_ms == 150 && d.sigma == 0.5);
    const char *const bad[] = {"",
                               "-1",
                               "300..100",
                               "5s",
                               "1..",
                               "99999999999999",
                               "uniform(5, 1)",
                               "uniform(1)",
                               "uniform(1, 2",
                               "uniform(1, 2, )",
                               "lognormal(1)",
                               "lognormal(1, -1)",
                               "lognormal(1, 99)",
                               "lognormal(1, nan)",
                               "held!",
                               "none none"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err_clear(&e);
        assert_int_equal(ddl_delay_parse(bad[i], &d, &e), -1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_without_delay_is_active_at_once),
        cmocka_unit_test(test_table_is_creating_until_its_delay_is_over),
        cmocka_unit_test(test_altered_table_keeps_its_old_form_while_updating),
        cmocka_unit_test(test_dropped_table_hides_at_once_and_keeps_its_name_until_it_is_gone),
        cmocka_unit_test(test_dropped_keyspace_keeps_its_name_until_it_is_gone),
        cmocka_unit_test(test_held_change_waits_for_its_release),
        cmocka_unit_test(test_dropped_keyspace_takes_its_tables_along),
        cmocka_unit_test(test_errors_carry_cassandras_words),
        cmocka_unit_test(test_fifty_changes_at_once_and_no_more_where_keyspaces_refusals_are_strict),
        cmocka_unit_test(test_generation_grows_with_every_snapshot),
        cmocka_unit_test(test_references_are_safe_against_a_swap),
        cmocka_unit_test(test_delay_is_parsed_from_its_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
