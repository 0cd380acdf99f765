/* The cost of a statement grows with its length, not with its square: each shape is run at n and at
 * 4n, and the steps of the two are compared (base/steps.h: basic blocks, and bytes copied). Linear
 * is 4, quadratic 16; what sorts lies a little above 4. Statements may succeed or fail. Builds
 * without counters (all presets but asan) do not have these two tests. */
#include "engine/named.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/steps.h"

/* prefix, n times item (%u: its number) with separators, suffix; and once more for shapes with a second list. */
struct shape {
    const char *name, *prefix, *item, *separator, *suffix;
    uint32_t n;
    const char *item2, *suffix2;
};

#ifdef TALLY_STEPS
enum { RATIO = 10 };
/* Below this the fixed cost of a statement is most of it. */
static const uint64_t least_steps = 20000;

static const struct shape shapes[] = {
    {"assignments of many columns", "UPDATE t SET ", "a%u = 1", ", ", " WHERE p = 1", 4000},
    {"assignments of elements", "UPDATE t SET ", "m[%u] = 1", ", ", " WHERE p = 1 AND c = 1", 4000},
    {"assignments of list elements", "UPDATE t SET ", "l[%u] = 1", ", ", " WHERE p = 1 AND c = 1", 4000},
    {"additions to one column", "UPDATE t SET ", "m = m + {%u: 1}", ", ", " WHERE p = 1 AND c = 1", 3000},
    {"assignments of known columns", "UPDATE w SET ", "a%u = 1", ", ", " WHERE p = 1", 400},
    {"inserted columns", "INSERT INTO t (p, ", "a%u", ", ", ") VALUES (1, ", 8000, "%u", ")"},
    {"inserted columns and markers", "INSERT INTO t (p, ", "a%u", ", ", ") VALUES (1, ", 8000, "?", ")"},
    {"inserted values", "INSERT INTO t (p) VALUES (", "%u", ", ", ")", 8000},
    {"inserted known columns", "INSERT INTO w (p, ", "a%u", ", ", ") VALUES (1, ", 400, "1", ")"},
    {"inserted columns that repeat", "INSERT INTO t (p, ", "v", ", ", ") VALUES (1, ", 8000, "1", ")"},
    {"conditions", "UPDATE t SET v = 1 WHERE p = 1 AND c = 1 IF ", "v = %u", " AND ", "", 4000},
    {"conditions on elements", "UPDATE t SET v = 1 WHERE p = 1 AND c = 1 IF ", "m[%u] = 1", " AND ", "", 4000},
    {"conditions with IN", "UPDATE t SET v = 1 WHERE p = 1 AND c = 1 IF v IN (", "%u", ", ", ")", 8000},
    {"deleted elements", "DELETE ", "m[%u]", ", ", " FROM t WHERE p = 1 AND c = 1", 4000},
    {"declared columns", "CREATE TABLE n (p int PRIMARY KEY, ", "a%u int", ", ", ", p int)", 8000},
    {"declared and ordered key columns", "CREATE TABLE n (p int, ", "a%u int", ", ",
     ", PRIMARY KEY (p, b)) WITH CLUSTERING ORDER BY (", 4000, "a%u ASC", ")"},
    {"key columns", "CREATE TABLE n (p int, PRIMARY KEY (", "a%u", ", ", "))", 8000},
    {"declared key columns", "CREATE TABLE n (p int PRIMARY KEY, q int) WITH CLUSTERING ORDER BY (", "a%u ASC", ", ",
     ")", 8000},
    {"options", "CREATE TABLE n (p int PRIMARY KEY) WITH ", "a%u = 1", " AND ", "", 4000},
    {"an option map", "CREATE TABLE n (p int PRIMARY KEY) WITH compaction = {", "'a%u': '1'", ", ", "}", 4000},
    {"a caching map", "CREATE TABLE n (p int PRIMARY KEY) WITH caching = {", "'a%u': '1'", ", ", "}", 4000},
    {"tags", "CREATE TABLE n (p int PRIMARY KEY) WITH TAGS = {", "'a%u': '1'", ", ", "}", 4000},
    {"replication", "CREATE KEYSPACE n WITH replication = {'class': 'SimpleStrategy', ", "'a%u': '1'", ", ", "}", 4000},
    {"added columns", "ALTER TABLE t ADD (", "a%u int", ", ", ", v int)", 8000},
    {"dropped columns", "ALTER TABLE t DROP (", "a%u", ", ", ")", 8000},
    {"renamed columns", "ALTER TABLE t RENAME ", "a%u TO b", " AND ", "", 8000},
    {"fields", "CREATE TYPE n (", "a%u int", ", ", ")", 8000},
    {"selected columns", "SELECT ", "v", ", ", " FROM t WHERE p = 1", 4000},
    {"selected columns with names", "SELECT ", "v AS a%u", ", ", " FROM t WHERE p = 1", 4000},
    {"selected known columns", "SELECT ", "a%u", ", ", " FROM w WHERE p = 1", 400},
    {"selected literals", "SELECT ", "(int) %u", ", ", " FROM t WHERE p = 1", 4000},
    {"selected calls", "SELECT ", "abs(v)", ", ", " FROM t WHERE p = 1", 2000},
    {"selected aggregates", "SELECT ", "count(v)", ", ", " FROM t WHERE p = 1", 2000},
    {"selected write times", "SELECT ", "writetime(v)", ", ", " FROM t WHERE p = 1", 2000},
    {"selected calls of a wrong statement", "SELECT ", "abs(v)", ", ", " FORM t", 150},
    {"values of a wrong statement", "INSERT INTO t (p) VALUES (", "[1, f(2)]", ", ", " 3)", 80},
    {"brackets of a wrong statement", "SELECT ", "(", "", "1 2 FROM t", 5},
    {"relations of a wrong statement", "SELECT v FROM t WHERE ", "c IN (1, 2)", " AND ", " v", 80},
    {"selected as JSON", "SELECT JSON ", "v", ", ", " FROM t WHERE p = 1", 4000},
    {"grouped columns", "SELECT p FROM t GROUP BY ", "p", ", ", "", 4000},
    {"ordered columns", "SELECT p FROM t WHERE p = 1 ORDER BY ", "c ASC", ", ", "", 4000},
    {"relations", "SELECT v FROM t WHERE ", "c = %u", " AND ", "", 4000},
    {"relations on many columns", "SELECT v FROM t WHERE ", "a%u = 1", " AND ", "", 4000},
    {"relations with CONTAINS", "SELECT v FROM t WHERE ", "m CONTAINS %u", " AND ", " ALLOW FILTERING", 4000},
    {"relations on elements", "SELECT v FROM t WHERE ", "m[%u] = 1", " AND ", " ALLOW FILTERING", 4000},
    {"relations on known columns", "SELECT p FROM w WHERE ", "a%u = 1", " AND ", " ALLOW FILTERING", 400},
    {"filtered IN", "SELECT p FROM t WHERE v IN (", "%u", ", ", ") ALLOW FILTERING", 8000},
    {"keys of partitions", "SELECT p FROM t WHERE p IN (", "%u", ", ", ")", 4000},
    {"keys of rows", "SELECT p FROM t WHERE p = 1 AND c IN (", "%u", ", ", ")", 4000},
    {"keys of rows as tuples", "SELECT p FROM t WHERE p = 1 AND (c) IN (", "(%u)", ", ", ")", 4000},
    {"deleted keys", "DELETE FROM t WHERE p = 1 AND c IN (", "%u", ", ", ")", 4000},
    {"a tuple relation", "SELECT p FROM t WHERE p = 1 AND (", "c", ", ", ") = (1)", 4000},
    {"a tuple relation on many columns", "SELECT p FROM t WHERE p = 1 AND (", "a%u", ", ", ") = (1)", 4000},
    {"token columns", "SELECT p FROM t WHERE token(", "p", ", ", ") = 1", 4000},
    {"a list", "UPDATE t SET l = [", "%u", ", ", "] WHERE p = 1 AND c = 1", 8000},
    {"a set", "UPDATE t SET s = {", "%u.50", ", ", "} WHERE p = 1 AND c = 1", 4000},
    {"a map", "UPDATE t SET m = {", "%u: 1", ", ", "} WHERE p = 1 AND c = 1", 4000},
    {"a map's equal keys", "UPDATE t SET m = {", "1: 1", ", ", "} WHERE p = 1 AND c = 1", 4000},
    {"a tuple", "UPDATE t SET v = (", "%u", ", ", ") WHERE p = 1 AND c = 1", 8000},
    {"a user type's fields", "UPDATE t SET v = {", "a%u: 1", ", ", "} WHERE p = 1 AND c = 1", 8000},
    {"arguments", "UPDATE t SET v = abs(", "%u", ", ", ") WHERE p = 1 AND c = 1", 8000},
    {"JSON columns", "INSERT INTO w JSON '{\"p\": 1, ", "\"a%u\": 1", ", ", "}'", 400},
    {"JSON names that are unknown", "INSERT INTO t JSON '{\"p\": 1, \"c\": 1, ", "\"b%u\": 1", ", ", "}'", 4000},
    {"a JSON list", "INSERT INTO t JSON '{\"p\": 1, \"c\": 1, \"l\": [", "%u", ", ", "]}'", 8000},
    {"a JSON map", "INSERT INTO t JSON '{\"p\": 1, \"c\": 1, \"m\": {", "\"%u\": 1", ", ", "}}'", 4000},
    {"a JSON map's equal keys", "INSERT INTO t JSON '{\"p\": 1, \"c\": 1, \"m\": {", "\"1\": 1", ", ", "}}'", 4000},
    {"a JSON set", "INSERT INTO t JSON '{\"p\": 1, \"c\": 1, \"s\": [", "%u.5", ", ", "]}'", 4000},
    {"a batch", "BEGIN UNLOGGED BATCH ", "INSERT INTO t (p, c, v) VALUES (1, %u, 1);", " ", " APPLY BATCH", 1000},
    {"a batch on one row", "BEGIN UNLOGGED BATCH ", "UPDATE t SET v = %u WHERE p = 1 AND c = 1;", " ", " APPLY BATCH",
     1000},
    {"a batch of many partitions", "BEGIN UNLOGGED BATCH ", "INSERT INTO t (p, c, v) VALUES (%u, 1, 1);", " ",
     " APPLY BATCH", 1000},
    {"a conditional batch", "BEGIN BATCH ", "UPDATE t SET v = 1 WHERE p = 1 AND c = 1 IF v = %u;", " ", " APPLY BATCH",
     1000},
    {"a conditional batch of many rows", "BEGIN BATCH ", "UPDATE t SET v = 1 WHERE p = 1 AND c = %u IF v = null;", " ",
     " APPLY BATCH", 1000},
    {"a set's equal elements", "UPDATE t SET s = {", "1.%u", ", ", "} WHERE p = 1 AND c = 1", 4000},
    {"nested lists", "UPDATE t SET v = ", "[", "", "", 4000},
    {"nested parentheses", "UPDATE t SET v = ", "(", "", "", 4000},
    {"nested types", "CREATE TABLE n (p int PRIMARY KEY, q ", "frozen<list<", "", "", 4000},
    {"types in a tuple", "CREATE TABLE n (p int PRIMARY KEY, q tuple<", "int", ", ", ">)", 8000},
    {"a sum", "UPDATE t SET v = ", "%u", " + ", " WHERE p = 1 AND c = 1", 2000},
    {"signs", "UPDATE t SET v = ", "- ", "", "1 WHERE p = 1 AND c = 1", 4000},
    {"a chain of fields", "SELECT ", "v", ".", " FROM t", 4000},
    {"comments", "", "/* %u */ ", "", "SELECT v FROM t", 8000},
    {"line comments", "", "-- %u\n", "", "SELECT v FROM t", 8000},
    {"an unfinished comment", "SELECT ", "/*", " ", "", 8000},
    {"an unfinished string", "SELECT '", "''", "", "", 8000},
    {"words", "", "word%u", " ", "", 8000},
    {"semicolons", "SELECT v FROM t", ";", " ", "", 8000},
    {"a long name", "SELECT ", "a%u", "", " FROM t", 8000},
    {"a quoted name", "SELECT \"", "\"\"", "", "\" FROM t", 8000},
    {"a long string", "UPDATE t SET x = '", "''%u", "", "' WHERE p = 1 AND c = 1", 8000},
    {"a string in dollars", "UPDATE t SET x = $$", "'%u$ ", "", "$$ WHERE p = 1 AND c = 1", 8000},
    {"digits of an integer", "UPDATE t SET i = 1", "7", "", " WHERE p = 1 AND c = 1", 16000},
    {"a quotient's zeros", "UPDATE t SET n = 1", "0", "", " / 10 WHERE p = 1 AND c = 1", 4500},
    {"a remainder's zeros", "UPDATE t SET n = 1", "0", "", " % 7e4000 WHERE p = 1 AND c = 1", 4500},
    {"a product's digits", "UPDATE t SET i = 1", "7", "", " * 7 WHERE p = 1 AND c = 1", 4500},
    {"hexadecimal digits", "UPDATE t SET v = 0x", "%u00", "", " WHERE p = 1 AND c = 1", 8000},
    {"users of a role", "LIST ALL PERMISSIONS ON ALL KEYSPACES OF ", "a%u", ".", "", 4000},
    {"options of a role", "CREATE ROLE r WITH ", "LOGIN = true", " AND ", "", 4000},
};
#endif

static void write_list(const struct shape *s, const char *item, uint32_t n, struct buf *out) {
    char text[64];
    for (uint32_t i = 0; i < n; i++) {
        if (i) buf_put_str(out, s->separator);
        const char *number = strstr(item, "%u");
        if (number) snprintf(text, sizeof text, "%.*s%u%s", (int)(number - item), item, i, number + 2);
        buf_put_str(out, number ? text : item);
    }
}

static void write_shape(const struct shape *s, uint32_t n, struct buf *out) {
    buf_init(out, 0);
    buf_put_str(out, s->prefix);
    write_list(s, s->item, n, out);
    buf_put_str(out, s->suffix);
    if (s->item2) write_list(s, s->item2, n, out);
    if (s->suffix2) buf_put_str(out, s->suffix2);
    buf_u8(out, 0);
}

#ifdef TALLY_STEPS
static uint64_t cost_of(struct harness *h, const struct shape *s, uint32_t n) {
    struct buf text;
    write_shape(s, n, &text);
    uint64_t from = steps_of_thread();
    harness_run(h, (const char *)text.p, 0, NULL);
    uint64_t steps = steps_of_thread() - from;
    buf_fini(&text);
    return steps;
}
#endif

static void open_rows(struct harness *h) {
    run_ok(h, "DROP TABLE IF EXISTS t");
    run_ok(h, "CREATE TABLE t (p int, c int, v int, x text, n decimal, i varint, l list<int>, m map<int, int>, s "
              "set<decimal>, PRIMARY KEY (p, c))");
}

static void open_tables(struct harness *h) {
    struct buf wide;
    harness_open(h, MODE_CASSANDRA);
    run_ok(h, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run_ok(h, "USE k");
    write_shape(&(struct shape){.prefix = "CREATE TABLE w (p int PRIMARY KEY, ",
                                .item = "a%u int",
                                .separator = ", ",
                                .suffix = ")"},
                1600, &wide);
    run_ok(h, (const char *)wide.p);
    buf_fini(&wide);
}

#ifdef TALLY_STEPS
static void test_cost_of_a_statement_grows_with_its_length(void **state) {
    (void)state;
    struct harness h;
    bool failed = false;
    open_tables(&h);
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const struct shape *s = &shapes[i];
        open_rows(&h);
        uint64_t once = cost_of(&h, s, s->n), fourfold = cost_of(&h, s, 4 * s->n);
        if (once < least_steps) once = least_steps;
        bool bad = fourfold > RATIO * once;
        if (bad || getenv("TALLYTEST_GROWTH"))
            print_error("%-34s %10llu -> %10llu steps, %4.1f %s [%.60s]\n", s->name, (unsigned long long)once,
                        (unsigned long long)fourfold, (double)fourfold / (double)once, bad ? "GROWS" : "",
                        h.err.set ? h.err.text : "");
        failed = failed || bad;
    }
    harness_close(&h);
    assert_false(failed);
}

/* Markers by name, each of which is looked for among the values of the request. */
static uint64_t cost_of_names(struct harness *h, uint32_t n) {
    struct buf text, names;
    write_shape(
        &(struct shape){.prefix = "SELECT v FROM t WHERE p IN (", .item = ":a%u", .separator = ", ", .suffix = ")"}, n,
        &text);
    buf_init(&names, 0);
    struct slice *all = calloc(n, sizeof *all);
    struct value *values = calloc(n, sizeof *values);
    for (uint32_t i = 0; i < n; i++) buf_printf(&names, "a%05u", n - 1 - i);
    for (uint32_t i = 0, number; i < n; i++) {
        number = n - 1 - i;
        char name[16];
        snprintf(name, sizeof name, "a%u", number);
        memcpy(names.p + 6 * (size_t)i, name, strlen(name));
        all[i] = slice_of(names.p + 6 * (size_t)i, strlen(name));
        values[i] = value_of("\0\0\0\1", 4);
    }
    struct cql_request r = {.kind = REQUEST_QUERY,
                            .query = slice_str((const char *)text.p),
                            .params = {.n_values = n, .values = values, .names = all}};
    uint64_t from = steps_of_thread();
    assert_int_not_equal(CQL_FAILED, harness_request(h, &r));
    uint64_t steps = steps_of_thread() - from;
    free(all);
    free(values);
    buf_fini(&names);
    buf_fini(&text);
    return steps;
}

static void test_cost_of_values_by_name_grows_with_their_number(void **state) {
    (void)state;
    struct harness h;
    open_tables(&h);
    open_rows(&h);
    assert_in_range(cost_of_names(&h, 16000), 0, RATIO * cost_of_names(&h, 4000));
    harness_close(&h);
}

/* What a server does when another one on the store has made a table beside n others. */
static uint64_t cost_of_foreign_table(uint32_t n) {
    const int64_t now_us = 1700000000000000;
    struct harness a, b;
    harness_open_on(&a, MODE_CASSANDRA, &(struct eng_options){.shared = true}, now_us);
    harness_open_on(&b, MODE_CASSANDRA, &(struct eng_options){.beside = a.eng}, now_us);
    eng_meta_unwatch(b.eng, NULL);
    run_ok(&a, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    for (uint32_t i = 0; i < n; i++) {
        char text[64];
        snprintf(text, sizeof text, "CREATE TABLE k.t%u (p int PRIMARY KEY)", i);
        run_ok(&a, text);
    }
    assert_int_equal(catalog_catch_up(b.catalog, &b.err), 0);
    run_ok(&a, "CREATE TABLE k.last (p int PRIMARY KEY)");
    uint64_t from = steps_of_thread();
    assert_int_equal(catalog_catch_up(b.catalog, &b.err), 0);
    uint64_t steps = steps_of_thread() - from;
    assert_rows(&b, "SELECT * FROM k.last", "");
    harness_close(&b);
    harness_close(&a);
    return steps;
}

static void test_cost_of_a_foreign_table_grows_with_the_tables(void **state) {
    (void)state;
    uint64_t once = cost_of_foreign_table(500), fourfold = cost_of_foreign_table(2000);
    assert_in_range(fourfold, 0, once * 11 / 2); /* 4.4 times; 7.6 when each object is looked up among all */
}
#endif

/* ---- what is not for a loop ---- */

static enum cql_outcome run_text(struct harness *h, enum cql_request_kind kind, const char *head, const char *tail,
                                 enum cql_work_class *class) {
    struct buf text;
    buf_init(&text, 0);
    buf_put_str(&text, head);
    for (int i = 0; i < 20000; i++) buf_u8(&text, ' ');
    buf_put_str(&text, tail);
    struct cql_batch_item item = {.query = buf_slice(&text)};
    struct cql_request r = {.kind = kind};
    if (kind == REQUEST_BATCH) r.n_items = 1, r.items = &item;
    else r.query = buf_slice(&text);
    enum cql_outcome outcome = harness_request(h, &r);
    *class = h->work_class;
    if (outcome == CQL_DONE && kind == REQUEST_PREPARE) cql_prepared_unref(h->result.prepared);
    buf_fini(&text);
    return outcome;
}

static void test_long_statements_leave_the_loop(void **state) {
    (void)state;
    static const struct {
        enum cql_request_kind kind;
        const char *head, *tail;
        enum cql_work_class class;
    } long_ones[] = {
        {REQUEST_QUERY, "SELECT v FROM", " t WHERE p = 1 AND c = 1", WORK_SCAN},
        {REQUEST_QUERY, "", "select v FROM t WHERE p = 1 AND c = 1", WORK_SCAN},
        {REQUEST_QUERY, "INSERT INTO t (p, c)", " VALUES (1, 1)", WORK_UPDATE},
        {REQUEST_QUERY, "/* a */ UPDATE t SET v = 1", " WHERE p = 1 AND c = 1", WORK_UPDATE},
        {REQUEST_QUERY, "DELETE FROM t", " WHERE p = 1 AND c = 1", WORK_UPDATE},
        {REQUEST_QUERY, "BEGIN BATCH", " APPLY BATCH", WORK_UPDATE},
        {REQUEST_QUERY, "USE", " k", WORK_DDL},
        {REQUEST_PREPARE, "SELECT v FROM", " t WHERE p = ?", WORK_SCAN},
        {REQUEST_BATCH, "INSERT INTO t (p, c)", " VALUES (1, 1)", WORK_UPDATE},
    };
    struct harness h;
    open_tables(&h);
    open_rows(&h);
    for (size_t i = 0; i < ARRAY_LEN(long_ones); i++) {
        enum cql_work_class class;
        h.on_loop = true;
        assert_int_equal(CQL_OFFLOAD, run_text(&h, long_ones[i].kind, long_ones[i].head, long_ones[i].tail, &class));
        assert_int_equal(long_ones[i].class, class);
        h.on_loop = false;
        assert_int_not_equal(CQL_OFFLOAD,
                             run_text(&h, long_ones[i].kind, long_ones[i].head, long_ones[i].tail, &class));
        assert_false(h.err.set);
    }
    harness_close(&h);
}

/* As many bytes of a collection as take long to put in order; of text they do not. */
static void test_long_bound_collections_leave_the_loop(void **state) {
    (void)state;
    enum { ELEMENTS = 10000 };
    struct harness h;
    uint8_t id[16];
    struct buf set;
    open_tables(&h);
    open_rows(&h);
    buf_init(&set, 0);
    cql_collection_begin(ELEMENTS, &set);
    for (uint32_t i = 0; i < ELEMENTS; i++) cql_elem_put(value_of("\0\0\0\0\1", 5), &set);
    const struct value bound[] = {value_of_slice(buf_slice(&set))};
    harness_prepare(&h, "UPDATE t SET s = ? WHERE p = 1 AND c = 1", id);
    h.on_loop = true;
    assert_int_equal(CQL_OFFLOAD, harness_execute(&h, id, 1, bound));
    h.on_loop = false;
    assert_int_not_equal(CQL_OFFLOAD, harness_execute(&h, id, 1, bound));
    assert_false(h.err.set);
    assert_rows(&h, "SELECT s FROM t", "{1}");
    h.on_loop = true;
    harness_prepare(&h, "INSERT INTO t (p, c, x) VALUES (1, 2, ?)", id);
    for (size_t i = 0; i < set.n; i++) set.p[i] = 'a';
    assert_int_not_equal(CQL_OFFLOAD, harness_execute(&h, id, 1, bound));
    buf_fini(&set);
    harness_close(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#ifdef TALLY_STEPS
                                       cmocka_unit_test(test_cost_of_a_statement_grows_with_its_length),
                                       cmocka_unit_test(test_cost_of_values_by_name_grows_with_their_number),
        cmocka_unit_test(test_cost_of_a_foreign_table_grows_with_the_tables),
#endif
                                       cmocka_unit_test(test_long_statements_leave_the_loop),
                                       cmocka_unit_test(test_long_bound_collections_leave_the_loop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
