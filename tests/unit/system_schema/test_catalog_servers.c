/* Servers on one store that change the schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/murmur3.h"
#include "engine/named.h"
#include "harness.h"

static bool has_column(struct world *w, const char *keyspace, const char *table, const char *column) {
    const struct schema *s = catalog_schema(w->catalog);
    const struct schema_table *t = schema_table_any(s, keyspace, table);
    bool has = t && schema_column_find(t, column);
    schema_unref(s);
    return has;
}

/* Two servers on one store: what one changes the other is told of, shows, tells its clients, and goes on from. */
static void test_what_another_server_on_the_store_changes_is_seen(void **state) {
    (void)state;
    struct world *a = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    struct world *b = world_on((struct eng_options){.shared = true, .beside = a->eng}, MODE_CASSANDRA, "none");
    assert_true(make_keyspace(a, "ks") == 1 && make_table(a, "ks", "t") == 1);
    advance(b, 0);
    assert_string_equal(status_of(b, "ks", "t"), "ACTIVE");
    assert_int_equal(storage_of(b, "ks", "t"), storage_of(a, "ks", "t"));
    assert_int_equal(b->changes[b->n_changes - 1].kind, CHANGE_CREATED);
    assert_true(add_column(b, "ks", "t", "added") == 1 && make_table(b, "ks", "u") == 1);
    advance(a, 0);
    assert_true(has_column(a, "ks", "t", "added"));
    assert_string_equal(status_of(a, "ks", "u"), "ACTIVE");
    assert_int_not_equal(storage_of(a, "ks", "u"), storage_of(a, "ks", "t"));
    struct slice key = slice_str("p");
    struct eng_part part = {.table = storage_of(b, "ks", "t"), .token = murmur3_token(key), .key = key};
    struct eng_batch *late = eng_batch_new(b->eng);
    assert_int_equal(drop_table(a, "ks", "t"), 1);
    advance(b, 0);
    assert_string_equal(status_of(b, "ks", "t"), "");
    wait_until_freed(a);
    advance(b, 0);
    /* b's engine has forgotten the table */
    assert_int_equal(eng_batch_delete_partition(late, &part, 0, 1, NULL, &b->err), -1);
    err_clear(&b->err);
    eng_batch_free(late);
    assert_int_equal(b->changes[b->n_changes - 2].kind, CHANGE_DROPPED);
    assert_int_equal(b->changes[b->n_changes - 1].kind, CHANGE_GONE);
    catalog_close(a->catalog);
    assert_int_equal(drop_table(b, "ks", "u"), 1); /* nobody is told any more */
    eng_close(a->eng);
    free(a);
    world_free(b);
}

/* Statements that were compiled stay as they are when another server writes a record that is no object's. */
static void test_records_of_other_things_leave_the_schema_alone(void **state) {
    (void)state;
    struct world *a = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    struct world *b = world_on((struct eng_options){.shared = true, .beside = a->eng}, MODE_CASSANDRA, "none");
    assert_int_equal(make_keyspace(a, "ks"), 1);
    advance(b, 0);
    uint64_t generation = catalog_generation(b->catalog);
    assert_int_equal(eng_meta_put(a->eng, slice_str("other"), slice_str("x"), &a->err), 0);
    advance(b, 0);
    assert_int_equal(catalog_generation(b->catalog), generation);
    assert_int_equal(make_table(a, "ks", "t"), 1);
    advance(b, 0);
    assert_true(catalog_generation(b->catalog) > generation);
    world_free(a);
    world_free(b);
}

static bool writes_are_durable(struct world *w, const char *keyspace) {
    const struct schema *s = catalog_schema(w->catalog);
    bool durable = schema_keyspace_find(s, keyspace)->durable_writes;
    schema_unref(s);
    return durable;
}

static void test_alterations_of_system_keyspaces_are_seen_at_another_server(void **state) {
    (void)state;
    struct world *a = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    struct world *b = world_on((struct eng_options){.shared = true, .beside = a->eng}, MODE_CASSANDRA, "none");
    struct schema_change out;
    uint32_t unfinished;
    const struct catalog_change change = {
        .op = CATALOG_ALTER_KEYSPACE, .keyspace = "system_traces", .durable_writes = 0};
    assert_true(writes_are_durable(b, "system_traces"));
    assert_int_equal(catalog_apply(a->catalog, &change, &out, &unfinished, &a->err), 1);
    advance(b, 0);
    assert_false(writes_are_durable(b, "system_traces"));
    world_free(a);
    world_free(b);
}

/* One of them is not told of what the other makes: their ids differ all the same, and no record replaces
 * another's. */
static void test_two_servers_give_no_id_twice(void **state) {
    (void)state;
    enum { TABLES = 6 };
    struct world *w[2];
    w[0] = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    w[1] = world_on((struct eng_options){.shared = true, .beside = w[0]->eng}, MODE_CASSANDRA, "none");
    char names[TABLES][16];
    uint32_t ids[TABLES];
    assert_int_equal(make_keyspace(w[0], "ks"), 1);
    advance(w[1], 0);
    eng_meta_unwatch(w[1]->eng, NULL);
    for (int i = 0; i < TABLES; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        assert_int_equal(make_table(w[i % 2], "ks", names[i]), 1); /* it has not seen the table before this one */
        ids[i] = storage_of(w[i % 2], "ks", names[i]);
        for (int k = 0; k < i; k++) assert_int_not_equal(ids[i], ids[k]);
    }
    advance(w[0], 0);
    for (int i = 0; i < TABLES; i++) assert_int_equal(storage_of(w[0], "ks", names[i]), ids[i]);
    uint32_t last = ids[TABLES - 1];
    for (int i = 0; i < TABLES; i++) {
        struct objects *o = w[i % 2]->catalog->objects;
        uint32_t id;
        pthread_mutex_lock(&o->lock);
        assert_int_equal(objects_next_id(o, &id, &w[i % 2]->err), 0);
        pthread_mutex_unlock(&o->lock);
        assert_true(id > last);
        last = id;
    }
    world_free(w[0]);
    world_free(w[1]);
}

/* Both decide on the same schema. The second to write has changed nothing, reads what the first has written, and
 * decides anew. */
static void test_of_two_servers_that_change_the_schema_at_once_one_decides_anew(void **state) {
    (void)state;
    struct world *w[2];
    w[0] = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    w[1] = world_on((struct eng_options){.shared = true, .beside = w[0]->eng}, MODE_CASSANDRA, "none");
    struct err *e = &w[1]->err;
    assert_int_equal(make_keyspace(w[0], "ks"), 1);
    advance(w[1], 0);
    eng_meta_unwatch(w[1]->eng, NULL);
    assert_int_equal(make_table(w[0], "ks", "t"), 1);
    assert_int_equal(make_table(w[1], "ks", "t"), -1); /* it did not know that the name is taken */
    assert_int_equal(e->code, ERR_ALREADY_EXISTS);
    err_clear(e);
    assert_int_equal(storage_of(w[1], "ks", "t"), storage_of(w[0], "ks", "t"));
    assert_int_equal(add_column(w[0], "ks", "t", "x"), 1);
    assert_int_equal(add_column(w[1], "ks", "t", "x"), -1); /* a change of the same record */
    assert_int_equal(e->code, ERR_INVALID);
    err_clear(e);
    assert_int_equal(add_column(w[1], "ks", "t", "y"), 1);
    assert_int_equal(drop_table(w[1], "ks", "t"), 1);
    advance(w[0], 0);
    assert_string_equal(status_of(w[0], "ks", "t"), "");
    world_free(w[0]);
    world_free(w[1]);
}

/* Another server may not know the drop yet, and may write to the old rows until they are freed: here this server is
 * writing to them. Neither the drop nor the creation of a table with the same name ends before. */
static void test_a_name_is_used_again_when_the_old_rows_are_freed(void **state) {
    (void)state;
    struct world *w = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    struct schema_change out;
    uint32_t unfinished;
    const struct catalog_change drop = {.op = CATALOG_DROP_TABLE, .keyspace = "ks", .name = "t"};
    assert_true(make_keyspace(w, "ks") == 1 && make_table(w, "ks", "t") == 1);
    struct slice key = slice_str("p");
    struct eng_part part = {.table = storage_of(w, "ks", "t"), .token = murmur3_token(key), .key = key};
    struct eng_batch *writing = eng_batch_new(w->eng);
    assert_int_equal(eng_batch_delete_partition(writing, &part, 0, 1, NULL, &w->err), 0);
    assert_int_equal(catalog_apply(w->catalog, &drop, &out, &unfinished, &w->err), 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(catalog_outcome(w->catalog, unfinished, &w->err), 1);
        if (i == 0) assert_int_equal(make_table(w, "ks", "t"), 1);
        assert_string_equal(status_of(w, "ks", "t"), "CREATING");
        advance(w, 10000);
    }
    eng_batch_free(writing);
    advance(w, 10000);
    wait_until_freed(w);
    advance(w, 0);
    assert_int_equal(catalog_outcome(w->catalog, unfinished, &w->err), 0);
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    world_free(w);
}

/* The server whose client waits for a TRUNCATE frees the old rows itself, whether it leads or not. */
static void test_a_truncation_is_carried_by_the_server_that_was_asked(void **state) {
    (void)state;
    struct world *w = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    struct objects *o = w->catalog->objects;
    struct schema_change out;
    uint32_t unfinished;
    const struct catalog_change truncate = {.op = CATALOG_TRUNCATE_TABLE, .keyspace = "ks", .name = "t"};
    assert_true(make_keyspace(w, "ks") == 1 && make_table(w, "ks", "t") == 1);
    struct slice key = slice_str("p");
    struct eng_part part = {.table = storage_of(w, "ks", "t"), .token = murmur3_token(key), .key = key};
    struct eng_batch *writing = eng_batch_new(w->eng); /* the rows are not freed before it ends */
    assert_int_equal(eng_batch_delete_partition(writing, &part, 0, 1, NULL, &w->err), 0);
    assert_int_equal(catalog_apply(w->catalog, &truncate, &out, &unfinished, &w->err), 0);
    pthread_mutex_lock(&o->lock);
    const struct catalog_object *old_rows = object_by_id(o, unfinished);
    assert_true(old_rows && object_is_gone(old_rows) && old_rows->awaited);
    pthread_mutex_unlock(&o->lock);
    assert_int_equal(catalog_outcome(w->catalog, unfinished, &w->err), 1);
    eng_batch_free(writing);
    advance(w, 10000);
    wait_until_freed(w);
    assert_int_equal(catalog_outcome(w->catalog, unfinished, &w->err), 0);
    world_free(w);
}

static int64_t machine_now(struct clock *c) {
    (void)c;
    return clock_machine_us(&clock_real);
}

/* While the service's time stands still, too. */
static void test_old_rows_that_were_written_to_are_freed_by_the_machines_time(void **state) {
    (void)state;
    struct world *w = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    w->clock.clock.machine_us = machine_now;
    struct schema_change out;
    uint32_t unfinished;
    const struct catalog_change drop = {.op = CATALOG_DROP_TABLE, .keyspace = "ks", .name = "t"};
    assert_true(make_keyspace(w, "ks") == 1 && make_table(w, "ks", "t") == 1);
    struct slice key = slice_str("p");
    struct eng_part part = {.table = storage_of(w, "ks", "t"), .token = murmur3_token(key), .key = key};
    struct eng_batch *writing = eng_batch_new(w->eng);
    assert_int_equal(eng_batch_delete_partition(writing, &part, 0, 1, NULL, &w->err), 0);
    assert_int_equal(catalog_apply(w->catalog, &drop, &out, &unfinished, &w->err), 1);
    advance(w, 0);
    assert_int_equal(catalog_outcome(w->catalog, unfinished, &w->err), 1);
    eng_batch_free(writing);
    wait_until_freed(w);
    assert_int_equal(catalog_outcome(w->catalog, unfinished, &w->err), 0);
    world_free(w);
}

/* The client waits at the second server, and the first one ends the change. */
static void test_a_change_that_another_server_makes_fail_has_failed_here(void **state) {
    (void)state;
    static const struct {
        const char *statement, *name;
        enum catalog_op op;
    } cases[] = {{"CREATE TABLE", "made", CATALOG_CREATE_TABLE},
                 {"ALTER TABLE", "altered", CATALOG_ALTER_TABLE},
                 {"DROP TABLE", "dropped", CATALOG_DROP_TABLE}};
    const struct catalog_column column = {"p", cql_type_scalar(CQL_INT), COLUMN_PARTITION_KEY, false},
                                added = {"more", cql_type_scalar(CQL_INT), COLUMN_REGULAR, false};
    struct world *w[2];
    w[0] = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    w[1] = world_on((struct eng_options){.shared = true, .beside = w[0]->eng}, MODE_CASSANDRA, "none");
    assert_true(make_keyspace(w[0], "ks") == 1 && make_table(w[0], "ks", "altered") == 1 &&
                make_table(w[0], "ks", "dropped") == 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct ddl_subject of = {cases[i].statement, "ks", cases[i].name};
        const bool alters = cases[i].op == CATALOG_ALTER_TABLE;
        const struct catalog_change change = {.op = cases[i].op, .keyspace = "ks", .name = cases[i].name,
                                              .durable_writes = -1, .n_columns = cases[i].op != CATALOG_DROP_TABLE,
                                              .columns = alters ? &added : &column};
        struct schema_change out;
        uint32_t unfinished;
        advance(w[1], 0);
        for (int k = 0; k < 2; k++) {
            pthread_mutex_lock(&w[k]->catalog->objects->lock);
            assert_int_equal(rules_set(w[k]->catalog->ddl, &of, "100", "no luck", &w[k]->err), 0);
            pthread_mutex_unlock(&w[k]->catalog->objects->lock);
        }
        assert_int_equal(catalog_apply(w[1]->catalog, &change, &out, &unfinished, &w[1]->err), 1);
        assert_int_equal(catalog_outcome(w[1]->catalog, unfinished, &w[1]->err), 1);
        int rc;
        while ((rc = catalog_outcome(w[1]->catalog, unfinished, &w[1]->err)) == 1) { /* workers may be at it, too */
            advance(w[0], 100);
            advance(w[1], 0);
        }
        assert_int_equal(rc, -1);
        assert_string_equal(w[1]->err.text, "no luck");
        err_clear(&w[1]->err);
    }
    assert_string_equal(status_of(w[1], "ks", "made"), "");
    assert_false(has_column(w[1], "ks", "altered", "more"));
    assert_string_equal(status_of(w[1], "ks", "dropped"), "ACTIVE");
    world_free(w[0]);
    world_free(w[1]);
}

static int64_t draw_delay(struct world *w) {
    pthread_mutex_lock(&w->catalog->objects->lock);
    int64_t us = ddl_rules_draw(&w->catalog->ddl->rules, &(struct ddl_subject){"CREATE TABLE", "ks", "t"});
    pthread_mutex_unlock(&w->catalog->objects->lock);
    return us;
}

static void record_rule(struct world *w, const char *statement, const char *delay) {
    const struct ddl_subject of = {statement, "ks", "*"};
    pthread_mutex_lock(&w->catalog->objects->lock);
    assert_int_equal(rules_set(w->catalog->ddl, &of, delay, NULL, &w->err), 0);
    pthread_mutex_unlock(&w->catalog->objects->lock);
}

static void test_a_record_of_a_rule_does_not_begin_the_delays_of_others_again(void **state) {
    (void)state;
    struct world *w[2] = {world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none")};
    w[1] = world_on((struct eng_options){.shared = true, .beside = w[0]->eng}, MODE_CASSANDRA, "none");
    int64_t drawn[4];
    for (int k = 0; k < 2; k++) {
        record_rule(w[0], "CREATE TABLE", "uniform(0, 1000000, 7)");
        drawn[2 * k] = draw_delay(w[0]);
        if (k == 0) record_rule(w[1], "DROP TABLE", "1"); /* the first server reads the rules again */
        advance(w[0], 0);
        drawn[2 * k + 1] = draw_delay(w[0]);
    }
    assert_int_equal(drawn[0], drawn[2]);
    assert_int_equal(drawn[1], drawn[3]);
    assert_int_not_equal(drawn[0], drawn[1]);
    world_free(w[0]);
    world_free(w[1]);
}

static void switch_to(struct world *w, enum partitioner_id p) {
    assert_int_equal(partitioner_switch(&w->catalog->tables->partitioner, slice_str(partitioner_name(p)), &w->err), 0);
}

static bool is_switching(struct world *w) { return partitioner_is_switching(&w->catalog->tables->partitioner); }

/* Whether it takes place at once, ends later, or ends after the server that began it has stopped. */
static void test_a_partitioner_that_another_server_has_switched_to_is_used(void **state) {
    (void)state;
    const struct ddl_subject of = {"UPDATE PARTITIONER", "system", "local"};
    struct world *a = world_on((struct eng_options){.shared = true}, MODE_KEYSPACES, "none");
    struct world *b = world_on((struct eng_options){.shared = true, .beside = a->eng}, MODE_KEYSPACES, "none");
    switch_to(a, PARTITIONER_RANDOM);
    advance(b, 0);
    assert_int_equal(catalog_partitioner(b->catalog), PARTITIONER_RANDOM);
    switch_to(b, PARTITIONER_MURMUR3); /* which knows the record by now */
    advance(a, 0);
    assert_int_equal(catalog_partitioner(a->catalog), PARTITIONER_MURMUR3);
    pthread_mutex_lock(&a->catalog->objects->lock);
    assert_int_equal(rules_set(a->catalog->ddl, &of, "100", NULL, &a->err), 0);
    pthread_mutex_unlock(&a->catalog->objects->lock);
    switch_to(a, PARTITIONER_DEFAULT);
    advance(b, 0);
    assert_true(is_switching(b) && catalog_partitioner(b->catalog) == PARTITIONER_MURMUR3);
    advance(a, 100);
    advance(b, 0);
    assert_true(!is_switching(b) && catalog_partitioner(b->catalog) == PARTITIONER_DEFAULT);
    switch_to(a, PARTITIONER_RANDOM);
    advance(b, 0);
    assert_true(is_switching(b));
    catalog_close(a->catalog);
    advance(b, 100);
    assert_true(!is_switching(b) && catalog_partitioner(b->catalog) == PARTITIONER_RANDOM);
    eng_close(a->eng);
    free(a);
    world_free(b);
}

static void test_a_switch_replaces_a_damaged_record_of_the_partitioner(void **state) {
    (void)state;
    struct world *w = world_on((struct eng_options){.shared = true}, MODE_KEYSPACES, "none");
    assert_int_equal(eng_meta_put(w->eng, slice_str("catalog/partitioner"), slice_str("damaged"), &w->err), 0);
    struct world *other = world_on((struct eng_options){.shared = true, .beside = w->eng}, MODE_KEYSPACES, "none");
    assert_int_equal(catalog_partitioner(other->catalog), PARTITIONER_MURMUR3);
    switch_to(other, PARTITIONER_RANDOM);
    assert_int_equal(catalog_partitioner(other->catalog), PARTITIONER_RANDOM);
    world_free(other);
    world_free(w);
}

/* A server that is not told, like one that was paused, reads them with the schema. */
static void test_the_partitioner_and_the_rules_are_as_new_as_the_schema(void **state) {
    (void)state;
    struct world *w[2] = {world_on((struct eng_options){.shared = true}, MODE_KEYSPACES, "none")};
    w[1] = world_on((struct eng_options){.shared = true, .beside = w[0]->eng}, MODE_KEYSPACES, "none");
    eng_meta_unwatch(w[1]->eng, NULL);
    switch_to(w[0], PARTITIONER_RANDOM);
    record_rule(w[0], "CREATE TABLE", "7");
    assert_int_equal(make_keyspace(w[0], "ks"), 1);
    assert_int_equal(catalog_catch_up(w[1]->catalog, &w[1]->err), 0);
    assert_int_equal(catalog_partitioner(w[1]->catalog), PARTITIONER_RANDOM);
    assert_int_equal(draw_delay(w[1]), 7000);
    world_free(w[0]);
    world_free(w[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_another_server_on_the_store_changes_is_seen),
        cmocka_unit_test(test_records_of_other_things_leave_the_schema_alone),
        cmocka_unit_test(test_alterations_of_system_keyspaces_are_seen_at_another_server),
        cmocka_unit_test(test_two_servers_give_no_id_twice),
        cmocka_unit_test(test_of_two_servers_that_change_the_schema_at_once_one_decides_anew),
        cmocka_unit_test(test_a_name_is_used_again_when_the_old_rows_are_freed),
        cmocka_unit_test(test_a_truncation_is_carried_by_the_server_that_was_asked),
        cmocka_unit_test(test_old_rows_that_were_written_to_are_freed_by_the_machines_time),
        cmocka_unit_test(test_a_change_that_another_server_makes_fail_has_failed_here),
        cmocka_unit_test(test_a_record_of_a_rule_does_not_begin_the_delays_of_others_again),
        cmocka_unit_test(test_a_partitioner_that_another_server_has_switched_to_is_used),
        cmocka_unit_test(test_the_partitioner_and_the_rules_are_as_new_as_the_schema),
        cmocka_unit_test(test_a_switch_replaces_a_damaged_record_of_the_partitioner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
