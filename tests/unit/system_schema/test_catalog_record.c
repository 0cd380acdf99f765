/* Records of the catalogue: what is written comes back, what cannot be read is set aside, and the rest serves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/named.h"
#include "system_schema/catalog.h"
#include "system_schema/system_tables/system_table.h"

struct world {
    struct eng *eng;
    struct catalog *catalog;
    struct arena arena;
    struct err err;
};

static void catalog_start(struct world *w) {
    struct catalog_options o = {.eng = w->eng, .clock = &clock_real, .mode = MODE_CASSANDRA};
    o.node = (struct node_info){"test", "dc1", "rack1", "5.0.8", "3.4.7", "127.0.0.1", 9042};
    w->catalog = catalog_open(&o, &w->err);
    assert_non_null(w->catalog);
}

static struct world *world_new(void) {
    struct world *w = calloc(1, sizeof *w);
    struct eng_options o = {.clock = &clock_real, .durability = ENG_NONE};
    arena_init(&w->arena, 4096, 0);
    w->eng = eng_open(&o, &w->err);
    assert_non_null(w->eng);
    catalog_start(w);
    return w;
}

static void world_restart(struct world *w) {
    catalog_close(w->catalog);
    catalog_start(w);
}

static void world_free(struct world *w) {
    catalog_close(w->catalog);
    eng_close(w->eng);
    arena_fini(&w->arena);
    free(w);
}

static int apply(struct world *w, const struct catalog_change *change) {
    struct schema_change out;
    uint32_t unfinished;
    err_clear(&w->err);
    return catalog_apply(w->catalog, change, &out, &unfinished, &w->err);
}

static int make_keyspace(struct world *w, const char *name) {
    static const struct schema_option simple[] = {{"class", "SimpleStrategy"}, {"replication_factor", "1"}};
    return apply(w, &(struct catalog_change){.op = CATALOG_CREATE_KEYSPACE,
                                             .keyspace = name,
                                             .durable_writes = -1,
                                             .n_replication = 2,
                                             .replication = simple});
}

static int make_table(struct world *w, const char *keyspace, const char *name, const struct cql_type *type) {
    const struct catalog_column columns[] = {{"p", cql_type_scalar(CQL_INT), COLUMN_PARTITION_KEY, false},
                                             {"v", type, COLUMN_REGULAR, false}};
    return apply(w, &(struct catalog_change){.op = CATALOG_CREATE_TABLE,
                                             .keyspace = keyspace,
                                             .name = name,
                                             .n_columns = 2,
                                             .columns = columns});
}

static int add_column(struct world *w, const char *table, const char *name, const struct cql_type *type) {
    const struct catalog_column col = {name, type, COLUMN_REGULAR, false};
    return apply(w, &(struct catalog_change){
                        .op = CATALOG_ALTER_TABLE, .keyspace = "ks", .name = table, .n_columns = 1, .columns = &col});
}

/* The id of its record; 0: there is no such table. */
static uint32_t find(struct world *w, const char *keyspace, const char *name) {
    const struct schema *s = catalog_schema(w->catalog);
    const struct schema_table *t = schema_table_any(s, keyspace, name);
    uint32_t id = t ? t->storage : 0;
    schema_unref(s);
    return id;
}

static const struct cql_type *made(struct world *w, enum cql_type_id id, bool frozen, const struct cql_type *of,
                                   uint32_t n, uint32_t dimension) {
    const struct cql_type **args = ARENA_ARRAY(&w->arena, n, const struct cql_type *);
    for (uint32_t i = 0; i < n; i++) args[i] = of;
    err_clear(&w->err);
    return of ? cql_type_new(&w->arena, id, frozen, args, n, dimension, &w->err) : NULL;
}

static const struct cql_type *nested(struct world *w, enum cql_type_id id, uint32_t levels) {
    const struct cql_type *t = cql_type_scalar(CQL_TIMEUUID);
    for (uint32_t i = 1; i < levels && t; i++) t = made(w, id, true, t, 1, 3);
    return t;
}

static void check_type_survives(struct world *w, const char *table, const struct cql_type *type) {
    assert_non_null(type);
    assert_int_equal(make_table(w, "ks", table, type), 1);
    assert_int_equal(make_table(w, "ks", "after", cql_type_scalar(CQL_INT)), 1);
    world_restart(w);
    const struct schema *s = catalog_schema(w->catalog);
    const struct schema_table *t = schema_table_any(s, "ks", table);
    assert_non_null(t);
    assert_true(cql_type_eq(schema_column_find(t, "v")->type, type));
    schema_unref(s);
    assert_int_equal(w->catalog->objects->n_set_aside, 0);
    assert_int_equal(apply(w, &(struct catalog_change){.op = CATALOG_DROP_TABLE, .keyspace = "ks", .name = "after"}),
                     1);
}

static void test_types_as_large_as_they_may_be_survive_a_restart(void **state) {
    (void)state;
    struct world *w = world_new();
    assert_int_equal(make_keyspace(w, "ks"), 1);
    check_type_survives(w, "tuples", nested(w, CQL_TUPLE, CQL_TYPE_DEPTH_MAX + 1));
    check_type_survives(w, "lists", nested(w, CQL_LIST, CQL_TYPE_DEPTH_MAX + 1));
    check_type_survives(w, "vectors", nested(w, CQL_VECTOR, 18));
    check_type_survives(w, "vector", made(w, CQL_VECTOR, true, cql_type_scalar(CQL_INT), 1, 65537));
    check_type_survives(w, "longest", made(w, CQL_VECTOR, true, cql_type_scalar(CQL_TEXT), 1, INT32_MAX));
    check_type_survives(w, "wide", made(w, CQL_TUPLE, true, cql_type_scalar(CQL_TIMEUUID), CQL_TYPE_PARTS_MAX - 1, 0));
    const struct cql_type *map = cql_type_parse(&w->arena,
                                                slice_str("frozen<map<frozen<set<timestamp>>, frozen<list<uuid>>>>"),
                                                NULL, NULL, NULL, &w->err);
    check_type_survives(w, "maps", made(w, CQL_TUPLE, true, map, (CQL_TYPE_PARTS_MAX - 1) / 5, 0));
    world_free(w);
}

static void test_types_above_the_limits_are_refused(void **state) {
    (void)state;
    struct world *w = world_new();
    const struct cql_type *i = cql_type_scalar(CQL_INT);
    assert_null(nested(w, CQL_TUPLE, CQL_TYPE_DEPTH_MAX + 2));
    assert_string_equal(w->err.text, "Types may not be nested more than 128 deep");
    assert_null(made(w, CQL_TUPLE, true, i, CQL_TYPE_PARTS_MAX, 0));
    assert_string_equal(w->err.text, "A type may be made of at most 4096 types");
    assert_null(made(w, CQL_TUPLE, true, made(w, CQL_TUPLE, true, i, 100, 0), 100, 0));
    assert_null(made(w, CQL_VECTOR, true, i, 1, 0));
    assert_null(made(w, CQL_VECTOR, true, made(w, CQL_VECTOR, true, i, 1, 65536), 1, 65536));
    assert_null(made(w, CQL_VECTOR, true, made(w, CQL_TUPLE, true, i, 3000, 0), 1, 2));
    world_free(w);
}

static void test_column_names_and_numbers_above_the_limits_are_refused(void **state) {
    (void)state;
    struct world *w = world_new();
    const struct cql_type *i = cql_type_scalar(CQL_INT);
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t", i), 1);
    char *name = malloc(DEFINITION_NAME_MAX + 2);
    memset(name, 'n', DEFINITION_NAME_MAX + 1);
    name[DEFINITION_NAME_MAX + 1] = 0;
    assert_int_equal(add_column(w, "t", name, i), -1);
    assert_string_equal(w->err.text, "Column names must not be more than 65535 bytes long (got 65536 bytes)");
    assert_int_equal(add_column(w, "t", name + 1, i), 1);
    free(name);
    struct catalog_column *columns = calloc(DEFINITION_COLUMNS_MAX, sizeof *columns);
    for (int n = 0; n < DEFINITION_COLUMNS_MAX; n++) {
        char text[16];
        snprintf(text, sizeof text, "c%d", n);
        columns[n] = (struct catalog_column){arena_strdup(&w->arena, text), i,
                                             n ? COLUMN_REGULAR : COLUMN_PARTITION_KEY, false};
    }
    struct catalog_change wide = {.op = CATALOG_CREATE_TABLE,
                                  .keyspace = "ks",
                                  .name = "wide",
                                  .n_columns = DEFINITION_COLUMNS_MAX,
                                  .columns = columns};
    assert_int_equal(apply(w, &wide), 1);
    assert_int_equal(add_column(w, "wide", "more", i), -1);
    assert_string_equal(w->err.text, "A table may have at most 32768 columns");
    free(columns);
    assert_int_equal(make_table(w, "ks", "after", i), 1);
    world_restart(w);
    assert_int_equal(w->catalog->objects->n_set_aside, 0);
    assert_true(find(w, "ks", "t") && find(w, "ks", "wide") && find(w, "ks", "after"));
    world_free(w);
}

static void test_a_record_with_masks_is_read_without_them(void **state) {
    (void)state;
    struct world *w = world_new();
    struct arena a;
    struct buf form;
    struct err e = {0};
    arena_init(&a, 4096, 1 << 20);
    buf_init(&form, 0);
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t", cql_type_scalar(CQL_INT)), 1);
    const struct schema *s = catalog_schema(w->catalog);
    table_kind.encode(schema_table_any(s, "ks", "t"), &form);
    form.p[0] = 3; /* the version with masks: none dropped, one mask of two arguments */
    buf_put(&form, "\0\1\0\12mask_inner\2\3int\1" "1" "\1" "1" "\4text\0\2''", 32);
    const struct form_context at = {.keyspace = "ks", .name = "t"};
    const struct schema_table *t = table_kind.decode(buf_slice(&form), &at, &a, &e);
    assert_non_null(t);
    assert_int_equal(t->n_columns, schema_table_any(s, "ks", "t")->n_columns);
    schema_unref(s);
    buf_fini(&form);
    arena_fini(&a);
    world_free(w);
}

/* ---- records that were damaged, or written by another version ---- */

static void put(struct world *w, char tag, uint32_t id, struct slice value) {
    uint8_t key[RECORD_KEY_SIZE];
    record_key(tag, id, key);
    assert_int_equal(eng_meta_put(w->eng, slice_of(key, sizeof key), value, &w->err), 0);
}

static int copy_value(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)key, (void)e;
    buf_put_slice(arg, value);
    return 0;
}

static struct buf get(struct world *w, char tag, uint32_t id) {
    uint8_t key[RECORD_KEY_SIZE];
    struct buf b;
    buf_init(&b, 0);
    record_key(tag, id, key);
    assert_int_equal(eng_meta_scan(w->eng, slice_of(key, sizeof key), copy_value, &b, &w->err), 0);
    return b;
}

/* Versions before the one with struct table_settings kept numbers of properties as statements had them. */
static void test_a_record_with_a_number_as_it_was_given_is_read(void **state) {
    (void)state;
    struct world *w = world_new();
    const struct catalog_column column = {"p", cql_type_scalar(CQL_INT), COLUMN_PARTITION_KEY, false};
    const struct table_settings settings = {
        .given = SETTING_BIT(throughput_mode) | SETTING_BIT(read_capacity_units) | SETTING_BIT(write_capacity_units),
        .throughput_mode = PROVISIONED, .read_capacity_units = 17, .write_capacity_units = 5,
        .scaling = {{.autoscaling_disabled = true}, {.autoscaling_disabled = true}}};
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(apply(w, &(struct catalog_change){.op = CATALOG_CREATE_TABLE, .keyspace = "ks", .name = "t",
                                                       .n_columns = 1, .columns = &column, .settings = &settings}), 1);
    uint32_t id = find(w, "ks", "t");
    struct buf record = get(w, 't', id);
    uint8_t *units = memmem(record.p, record.n, "read_capacity_units\00217", 22);
    assert_non_null(units);
    units[20] = '0';
    put(w, 't', id, buf_slice(&record));
    buf_fini(&record);
    world_restart(w);
    assert_int_equal(w->catalog->objects->n_set_aside, 0);
    const struct schema *s = catalog_schema(w->catalog);
    assert_int_equal(schema_table_any(s, "ks", "t")->settings.read_capacity_units, 7);
    schema_unref(s);
    assert_int_equal(add_column(w, "t", "v", cql_type_scalar(CQL_INT)), 1);
    world_restart(w);
    assert_int_equal(find(w, "ks", "t"), id);
    world_free(w);
}

static void test_damaged_table_is_set_aside_and_the_rest_serves(void **state) {
    (void)state;
    struct world *w = world_new();
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "sound", cql_type_scalar(CQL_INT)), 1);
    assert_int_equal(make_table(w, "ks", "damaged", cql_type_scalar(CQL_INT)), 1);
    uint32_t id = find(w, "ks", "damaged");
    struct buf whole = get(w, 't', id);
    for (size_t n = 0; n < whole.n; n++) { /* cut short anywhere */
        put(w, 't', id, slice_of(whole.p, n));
        world_restart(w);
        assert_int_equal(w->catalog->objects->n_set_aside, 1);
        assert_int_equal(find(w, "ks", "damaged"), 0);
        assert_int_not_equal(find(w, "ks", "sound"), 0);
    }
    /* and with any byte another: it is set aside, or it is a sound record of something else */
    for (size_t n = 0; n < whole.n; n++) {
        whole.p[n] ^= 0xff;
        put(w, 't', id, buf_slice(&whole));
        world_restart(w);
        assert_int_not_equal(find(w, "ks", "sound"), 0);
        whole.p[n] ^= 0xff;
    }
    assert_int_equal(make_table(w, "ks", "damaged", cql_type_scalar(CQL_TEXT)), 1);
    assert_int_not_equal(find(w, "ks", "damaged"), id);
    put(w, 't', id, buf_slice(&whole)); /* both are there again: the newer one waits aside */
    world_restart(w);
    assert_int_equal(find(w, "ks", "damaged"), id);
    assert_int_equal(w->catalog->objects->n_set_aside, 1);
    buf_fini(&whole);
    world_free(w);
}

static void test_tables_of_a_damaged_keyspace_keep_their_data(void **state) {
    (void)state;
    struct world *w = world_new();
    assert_int_equal(make_keyspace(w, "ks"), 1);
    uint32_t id = w->catalog->objects->all[0]->id;
    assert_int_equal(make_keyspace(w, "other"), 1);
    assert_int_equal(make_table(w, "ks", "t", cql_type_scalar(CQL_INT)), 1);
    uint32_t table = find(w, "ks", "t");
    struct buf whole = get(w, 'k', id);
    put(w, 'k', id, slice_of(whole.p, 5));
    world_restart(w);
    assert_int_equal(w->catalog->objects->n_set_aside, 2);
    assert_int_equal(make_table(w, "other", "t", cql_type_scalar(CQL_INT)), 1);
    assert_true(find(w, "other", "t") > table);
    put(w, 'k', id, buf_slice(&whole));
    world_restart(w);
    assert_int_equal(find(w, "ks", "t"), table);
    buf_fini(&whole);
    world_free(w);
}

static void test_ids_go_on_behind_the_greatest_when_their_counter_is_lost(void **state) {
    (void)state;
    struct world *w = world_new();
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "a", cql_type_scalar(CQL_INT)), 1);
    assert_int_equal(make_table(w, "ks", "b", cql_type_scalar(CQL_INT)), 1);
    assert_int_equal(eng_meta_put(w->eng, slice_str("catalog/next_id"), slice_str("xy"), &w->err), 0);
    assert_int_equal(eng_meta_put(w->eng, slice_str("catalog/host_id"), slice_str("xy"), &w->err), 0);
    world_restart(w);
    assert_int_equal(make_table(w, "ks", "c", cql_type_scalar(CQL_INT)), 1);
    assert_true(find(w, "ks", "c") > find(w, "ks", "b"));
    assert_true(catalog_host_id(w->catalog)[6]);
    world_free(w);
}

static void test_change_that_cannot_be_read_is_given_up(void **state) {
    (void)state;
    struct world *w = world_new();
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t", cql_type_scalar(CQL_INT)), 1);
    uint32_t id = find(w, "ks", "t");
    struct buf whole = get(w, 't', id), out;
    uint8_t key[RECORD_KEY_SIZE];
    struct record r;
    record_key('t', id, key);
    assert_int_equal(record_decode(slice_of(key, sizeof key), buf_slice(&whole), &r, &w->err), 0);
    r.status = SCHEMA_UPDATING;
    r.next = slice_str("what no reader takes");
    buf_init(&out, 0);
    record_encode(&r, &out);
    put(w, 't', id, buf_slice(&out));
    world_restart(w);
    assert_int_equal(w->catalog->objects->n_set_aside, 0);
    assert_int_equal(find(w, "ks", "t"), id);
    assert_int_equal(add_column(w, "t", "n", cql_type_scalar(CQL_INT)), 1);
    buf_fini(&out);
    buf_fini(&whole);
    world_free(w);
}

static void test_records_hold_the_progress_of_a_change(void **state) {
    (void)state;
    static const char progress[] = {0, 0, 0, 77};
    struct record r = {.tag = 'k', .id = 17, .storage = 17, .status = SCHEMA_UPDATING, .name = slice_str("ks"),
                       .form = slice_str("form"), .next = slice_str("next")}, back;
    struct err e = {0};
    struct buf without, with;
    uint8_t key[RECORD_KEY_SIZE];
    record_key('k', 17, key);
    buf_init(&without, 0), buf_init(&with, 0);
    record_encode(&r, &without);
    r.progress = 77;
    record_encode(&r, &with);
    assert_int_equal(without.p[0], 2); /* older servers read a record without progress */
    assert_int_equal(with.n, without.n + sizeof progress);
    assert_memory_equal(with.p + without.n, progress, sizeof progress);
    assert_int_equal(record_decode(slice_of(key, sizeof key), buf_slice(&with), &back, &e), 0);
    assert_true(record_eq(&r, &back));
    with.p[with.n - 1] = 0; /* no record has this form */
    assert_int_equal(record_decode(slice_of(key, sizeof key), buf_slice(&with), &back, &e), -1);
    assert_string_equal(e.text, "it is damaged");
    err_clear(&e);
    buf_fini(&with), buf_fini(&without);
}

/* The record as version 1 had it: all but the storage id. */
static void put_as_version_1(struct world *w, uint32_t id) {
    struct buf whole = get(w, 't', id), old;
    buf_init(&old, 0);
    buf_u8(&old, 1);
    buf_put(&old, whole.p + 1, 5);
    buf_put(&old, whole.p + 10, whole.n - 10);
    put(w, 't', id, buf_slice(&old));
    buf_fini(&old);
    buf_fini(&whole);
}

static void test_records_of_version_1_are_read(void **state) {
    (void)state;
    struct world *w = world_new();
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t", made(w, CQL_TUPLE, true, cql_type_scalar(CQL_INT), 2, 0)), 1);
    uint32_t id = find(w, "ks", "t");
    put_as_version_1(w, id);
    world_restart(w);
    assert_int_equal(w->catalog->objects->n_set_aside, 0);
    assert_int_equal(find(w, "ks", "t"), id);
    assert_int_equal(add_column(w, "t", "n", cql_type_scalar(CQL_INT)), 1); /* written anew, as version 2 */
    world_restart(w);
    assert_int_equal(find(w, "ks", "t"), id);
    world_free(w);
}

static void test_tables_of_version_1_with_tuples_in_their_keys_are_set_aside(void **state) {
    (void)state;
    struct world *w = world_new();
    assert_int_equal(make_keyspace(w, "ks"), 1);
    const struct cql_type *tuple = made(w, CQL_TUPLE, true, cql_type_scalar(CQL_INT), 2, 0);
    const struct catalog_column columns[] = {{"p", cql_type_scalar(CQL_INT), COLUMN_PARTITION_KEY, false},
                                             {"c", made(w, CQL_LIST, true, tuple, 1, 0), COLUMN_CLUSTERING, false}};
    assert_int_equal(apply(w, &(struct catalog_change){.op = CATALOG_CREATE_TABLE,
                                                       .keyspace = "ks",
                                                       .name = "c",
                                                       .n_columns = 2,
                                                       .columns = columns}),
                     1);
    assert_int_equal(make_table(w, "ks", "s", made(w, CQL_SET, false, tuple, 1, 0)), 1);
    assert_int_equal(make_table(w, "ks", "l", made(w, CQL_LIST, false, tuple, 1, 0)), 1);
    const uint32_t ids[] = {find(w, "ks", "c"), find(w, "ks", "s"), find(w, "ks", "l")};
    world_restart(w);
    assert_int_equal(w->catalog->objects->n_set_aside, 0);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) put_as_version_1(w, ids[i]);
    world_restart(w);
    assert_int_equal(w->catalog->objects->n_set_aside, 2);
    assert_true(!find(w, "ks", "c") && !find(w, "ks", "s") && find(w, "ks", "l"));
    world_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_as_large_as_they_may_be_survive_a_restart),
        cmocka_unit_test(test_types_above_the_limits_are_refused),
        cmocka_unit_test(test_column_names_and_numbers_above_the_limits_are_refused),
        cmocka_unit_test(test_damaged_table_is_set_aside_and_the_rest_serves),
        cmocka_unit_test(test_tables_of_a_damaged_keyspace_keep_their_data),
        cmocka_unit_test(test_ids_go_on_behind_the_greatest_when_their_counter_is_lost),
        cmocka_unit_test(test_change_that_cannot_be_read_is_given_up),
        cmocka_unit_test(test_a_record_with_masks_is_read_without_them),
        cmocka_unit_test(test_a_record_with_a_number_as_it_was_given_is_read),
        cmocka_unit_test(test_records_hold_the_progress_of_a_change),
        cmocka_unit_test(test_records_of_version_1_are_read),
        cmocka_unit_test(test_tables_of_version_1_with_tuples_in_their_keys_are_set_aside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
