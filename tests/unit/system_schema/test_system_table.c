/* Every system table of both releases yields rows whose values are valid for their columns, and the truth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "system_schema/catalog.h"
#include "system_schema/system_tables/row_out.h"
#include "system_schema/system_tables/virtual.h"
#include "system_schema/system_tables/trace_store.h"

struct world {
    struct eng *eng;
    struct catalog *catalog;
    struct trace_store *traces;
    const struct schema *schema;
    struct arena arena;
    struct err err;
};

static const struct schema_option simple[] = {{"class", "SimpleStrategy"}, {"replication_factor", "1"}};

static void world_init(struct world *w, enum tally_mode mode) {
    memset(w, 0, sizeof *w);
    struct eng_options eo = {.clock = &clock_real, .durability = ENG_NONE};
    assert_non_null(w->eng = eng_open(&eo, &w->err));
    bool v5 = mode == MODE_CASSANDRA;
    assert_non_null(w->traces = trace_store_new());
    struct catalog_options o = {.eng = w->eng, .clock = &clock_real, .mode = mode, .traces = w->traces};
    o.node = (struct node_info){"test",      "dc1", "rack1", v5 ? "5.0.8" : "3.11.2", v5 ? "3.4.7" : "3.4.4",
                                "127.0.0.1", 9042};
    assert_non_null(w->catalog = catalog_open(&o, &w->err));
    arena_init(&w->arena, 4096, 0);
    struct schema_change out;
    uint32_t unfinished;
    struct catalog_change ks = {.op = CATALOG_CREATE_KEYSPACE,
                                .keyspace = "ks",
                                .durable_writes = -1,
                                .n_replication = 2,
                                .replication = simple};
    assert_int_equal(catalog_apply(w->catalog, &ks, &out, &unfinished, &w->err), 1);
    const struct catalog_column col = {"p", cql_type_scalar(CQL_INT), COLUMN_PARTITION_KEY, false};
    static const struct schema_option keys = {"keys", "NONE"}, tag = {"a.b", "c"};
    static const struct table_settings settings = {
        .given = SETTING_BIT(caching) | SETTING_BIT(comment) | SETTING_BIT(ttl) | SETTING_BIT(tags),
        .caching = {1, &keys}, .comment = "x", .ttl = true, .tags = {1, &tag}};
    struct catalog_change table = {.op = CATALOG_CREATE_TABLE,
                                   .keyspace = "ks",
                                   .name = "t",
                                   .durable_writes = -1,
                                   .n_columns = 1,
                                   .columns = &col,
                                   .settings = &settings};
    assert_int_equal(catalog_apply(w->catalog, &table, &out, &unfinished, &w->err), 1);
    w->schema = catalog_schema(w->catalog);
}

static void world_fini(struct world *w) {
    schema_unref(w->schema);
    catalog_close(w->catalog);
    trace_store_free(w->traces);
    eng_close(w->eng);
    arena_fini(&w->arena);
}

struct found {
    const struct schema_table *table;
    unsigned n_rows;
    const char *column; /* whose value is kept from the first row whose column `where` is `equals` */
    const char *where, *equals;
    char value[512]; /* as text */
};

static int check_row(void *arg, const struct value *values) {
    struct found *f = arg;
    f->n_rows++;
    for (uint32_t i = 0; i < f->table->n_columns; i++) {
        struct err e = {0};
        const struct schema_column *col = &f->table->columns[i];
        if (value_is_null(values[i])) assert_true(col->kind == COLUMN_REGULAR);
        else if (cql_value_validate(col->type, value_slice(values[i]), &e))
            fail_msg("%s.%s: %s", f->table->name, col->name, e.text);
    }
    if (!f->column || f->value[0]) return 0;
    const struct schema_column *where = schema_column_find(f->table, f->where),
                               *col = schema_column_find(f->table, f->column);
    if (!slice_is(value_slice(values[where->ordinal]), f->equals)) return 0;
    struct buf b;
    buf_init(&b, 0);
    if (value_is_null(values[col->ordinal])) buf_put_str(&b, "null");
    else cql_value_print(col->type, value_slice(values[col->ordinal]), &b);
    snprintf(f->value, sizeof f->value, "%.*s", SLICE_FMT(buf_slice(&b)));
    buf_fini(&b);
    return 0;
}

static void yield(struct world *w, const struct schema_table *t, const struct value *key, struct found *f) {
    f->table = t;
    struct virtual_context ctx = {.schema = w->schema,
                                  .arena = &w->arena,
                                  .key = key,
                                  .local_address = "127.0.0.1",
                                  .local_port = 9042,
                                  .protocol_version = 4,
                                  .err = &w->err};
    struct row_out ro;
    assert_int_equal(row_out_init(&ro, &ctx, t, check_row, f), 0);
    assert_int_equal(t->virt->yield(&ro), 0);
}

static const char *cell(struct world *w, const char *keyspace, const char *table, const char *where, const char *equals,
                        const char *column) {
    static struct found f;
    f = (struct found){.column = column, .where = where, .equals = equals};
    yield(w, schema_table_any(w->schema, keyspace, table), NULL, &f);
    return f.value;
}

static void check_all(enum tally_mode mode, unsigned at_least) {
    struct world w;
    world_init(&w, mode);
    unsigned n = 0;
    for (uint32_t i = 0; i < w.schema->n_spaces; i++) {
        struct schema_table_cursor at = schema_tables_begin(&w.schema->spaces[i]->tables);
        for (const struct schema_table *t; (t = schema_tables_next(&at));) {
            struct found f = {0};
            if (!t->virt) continue;
            yield(&w, t, NULL, &f);
            n++;
        }
    }
    assert_true(n >= at_least);
    world_fini(&w);
}

static void test_every_table_yields_valid_values_in_keyspaces_mode(void **state) {
    (void)state;
    check_all(MODE_KEYSPACES, 24);
}

static void test_every_table_yields_valid_values_in_cassandra_mode(void **state) {
    (void)state;
    check_all(MODE_CASSANDRA, 28);
}

static void test_local_tells_of_this_node(void **state) {
    (void)state;
    struct world w;
    world_init(&w, MODE_KEYSPACES);
    assert_string_equal(cell(&w, "system", "local", "key", "local", "release_version"), "'3.11.2'");
    assert_string_equal(cell(&w, "system", "local", "key", "local", "rpc_address"), "'127.0.0.1'");
    assert_string_equal(cell(&w, "system", "local", "key", "local", "tokens"), "{'0'}");
    assert_null(schema_table_any(w.schema, "system", "peers_v2"));
    assert_null(schema_keyspace_find(w.schema, "system_virtual_schema"));
    world_fini(&w);
}

static void test_mcs_tables_tell_status_and_properties(void **state) {
    (void)state;
    struct world w;
    world_init(&w, MODE_KEYSPACES);
    assert_string_equal(cell(&w, "system_schema_mcs", "tables", "table_name", "t", "status"), "'ACTIVE'");
    const char *properties = cell(&w, "system_schema_mcs", "tables", "table_name", "t", "custom_properties");
    assert_non_null(strstr(properties, "'throughput_mode': 'PAY_PER_REQUEST'"));
    assert_non_null(strstr(properties, "'ttl': {'status': 'enabled'}"));
    assert_string_equal(cell(&w, "system_schema_mcs", "tags", "resource_name", "t", "tags"), "{'a.b': 'c'}");
    world_fini(&w);
}

static void test_schema_tables_tell_options(void **state) {
    (void)state;
    struct world w;
    world_init(&w, MODE_CASSANDRA);
    assert_string_equal(cell(&w, "system_schema", "tables", "table_name", "t", "caching"), "{'keys': 'NONE'}");
    assert_string_equal(cell(&w, "system_schema", "tables", "table_name", "t", "comment"), "'x'");
    assert_string_equal(cell(&w, "system_schema", "tables", "table_name", "t", "flags"), "{'compound'}");
    assert_string_equal(cell(&w, "system_schema", "tables", "table_name", "t", "cdc"), "null");
    assert_string_equal(cell(&w, "system_schema", "columns", "table_name", "t", "kind"), "'partition_key'");
    world_fini(&w);
}

static void test_key_restricts_what_is_yielded(void **state) {
    (void)state;
    struct world w;
    world_init(&w, MODE_CASSANDRA);
    struct value key = value_of("ks", 2);
    struct found f = {0};
    yield(&w, schema_table_any(w.schema, "system_schema", "tables"), &key, &f);
    assert_int_equal(f.n_rows, 1);
    world_fini(&w);
}

static void test_trace_is_kept_and_found_by_id(void **state) {
    (void)state;
    struct world w;
    world_init(&w, MODE_CASSANDRA);
    const struct trace_event events[] = {{10, "parsed", "loop"}, {20, "done", "loop"}};
    const struct schema_option parameters[] = {{"query", "SELECT 1"}};
    struct trace_session t = {.started_us = clock_wall_us(&clock_real),
                              .duration_us = 25,
                              .command = "QUERY",
                              .request = "Execute CQL3 query",
                              .client = slice_of("\x7f\0\0\1", 4),
                              .n_parameters = 1,
                              .parameters = parameters,
                              .n_events = 2,
                              .events = events};
    for (uint8_t i = 0; i < 3; i++) {
        memset(t.id, 0x11, sizeof t.id);
        t.id[15] = i;
        trace_store_add(w.traces, &t);
    }
    struct value key = value_of(t.id, 16);
    struct found sessions = {0}, all = {0}, f = {0};
    yield(&w, schema_table_any(w.schema, "system_traces", "sessions"), &key, &sessions);
    yield(&w, schema_table_any(w.schema, "system_traces", "sessions"), NULL, &all);
    yield(&w, schema_table_any(w.schema, "system_traces", "events"), &key, &f);
    assert_int_equal(sessions.n_rows, 1);
    assert_int_equal(all.n_rows, 3);
    assert_int_equal(f.n_rows, 2);
    world_fini(&w);
}

/* A driver that reads traces fails on a text that is not UTF-8. The yielded values are checked. */
static void test_trace_of_a_text_that_is_not_utf8_is_valid(void **state) {
    (void)state;
    struct world w;
    world_init(&w, MODE_CASSANDRA);
    const struct trace_event events[] = {{10, "Parsing \xff\xfe SELECT \xe2\x82", "loop"}};
    const struct schema_option parameters[] = {{"query", "SELECT '\xc3\xa4\xc3' \xed\xa0\x80"}};
    struct trace_session t = {.started_us = clock_wall_us(&clock_real),
                              .command = "QUERY",
                              .request = "Execute CQL3 query",
                              .client = slice_of("\x7f\0\0\1", 4),
                              .n_parameters = 1,
                              .parameters = parameters,
                              .n_events = 1,
                              .events = events};
    memset(t.id, 0x11, sizeof t.id);
    trace_store_add(w.traces, &t);
    struct value key = value_of(t.id, 16);
    struct found sessions = {0}, f = {0};
    yield(&w, schema_table_any(w.schema, "system_traces", "sessions"), &key, &sessions);
    yield(&w, schema_table_any(w.schema, "system_traces", "events"), &key, &f);
    assert_int_equal(sessions.n_rows, 1);
    assert_int_equal(f.n_rows, 1);
    world_fini(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_table_yields_valid_values_in_keyspaces_mode),
        cmocka_unit_test(test_every_table_yields_valid_values_in_cassandra_mode),
        cmocka_unit_test(test_local_tells_of_this_node),
        cmocka_unit_test(test_mcs_tables_tell_status_and_properties),
        cmocka_unit_test(test_schema_tables_tell_options),
        cmocka_unit_test(test_key_restricts_what_is_yielded),
        cmocka_unit_test(test_trace_is_kept_and_found_by_id),
        cmocka_unit_test(test_trace_of_a_text_that_is_not_utf8_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
