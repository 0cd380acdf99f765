/* Terms and functions against receivers: values and words as Cassandra 5.0.8 gave them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>
#include <cmocka.h>

#include "cql/expr/term.h"
#include "cql/cql.h"
#include "cql/request/db.h"

struct fixture {
    struct arena arena;
    struct err err;
    struct bind_specs binds;
    struct receiver specs[4];
    struct compile c;
    struct cql_db db;
    struct evaluation ev;
};

static int64_t frozen(struct clock *c) {
    (void)c;
    return INT64_C(1700000000123456);
}
static struct clock clock_frozen = {.wall_us = frozen, .mono_us = frozen};

static void setup(struct fixture *f) {
    memset(f, 0, sizeof *f);
    arena_init(&f->arena, 16384, 64 << 20);
    f->binds = (struct bind_specs){.n = 4, .specs = f->specs};
    f->c = (struct compile){.arena = &f->arena, .binds = &f->binds, .err = &f->err};
    f->db.options.clock = &clock_frozen;
    f->ev = (struct evaluation){.db = &f->db, .arena = &f->arena, .err = &f->err,
                                .reading.now_us = frozen(NULL), .now_s = 1700000000};
}

static struct term *compile(struct fixture *f, const char *type, const char *text) {
    const struct cql_type *t = cql_type_parse(&f->arena, slice_str(type), NULL, NULL, NULL, &f->err);
    assert_non_null(t);
    const char *query = arena_printf(&f->arena, "INSERT INTO t (v) VALUES (%s)", text);
    struct ast_stmt *s = cql_parse(&f->arena, slice_str(query), true, &f->err);
    if (!s) fail_msg("%s: %s", text, f->err.text);
    struct receiver to = {.keyspace = "ks", .table = "t", .name = "v", .type = t};
    return term_compile(&f->c, s->insert.values[0], &to);
}

static const char *evaluate(struct fixture *f, const char *type, const char *text) {
    struct term *t = compile(f, type, text);
    struct value v;
    struct buf json;
    if (!t || term_eval(t, &f->ev, &v) < 0) return f->err.text;
    buf_init(&json, 0);
    cql_value_json(cql_type_parse(&f->arena, slice_str(type), NULL, NULL, NULL, &f->err), v, &json);
    struct slice copy = arena_dup(&f->arena, buf_slice(&json));
    buf_fini(&json);
    return (const char *)copy.p;
}

struct term_case {
    const char *type, *text, *outcome; /* JSON of the value, or the error */
};

static void check_all(const struct term_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct fixture f;
        setup(&f);
        const char *got = evaluate(&f, cases[i].type, cases[i].text);
        if (strcmp(got, cases[i].outcome) != 0)
            fail_msg("%s %s: %s, not %s", cases[i].type, cases[i].text, got, cases[i].outcome);
        arena_fini(&f.arena);
    }
}

static void test_term_literals_of_collections(void **state) {
    (void)state;
    static const struct term_case cases[] = {
        {"list<int>", "[3, 1, 2]", "[3, 1, 2]"},
        {"set<int>", "{3, 1, 1, 2}", "[1, 2, 3]"},
        {"map<int, text>", "{2: 'b', 1: 'a', 1: 'c'}", "{\"1\": \"c\", \"2\": \"b\"}"},
        {"map<int, text>", "{}", "{}"},
        {"tuple<int, text>", "(1, null)", "[1, null]"},
        {"vector<float, 3>", "[1, 2, 3]", "[1.0, 2.0, 3.0]"},
        {"list<int>", "[null]", "null is not supported inside collections"},
        {"list<int>", "[1, 'a']", "Invalid list literal for v: value 'a' is not of type int"},
        {"map<int, text>", "{'a': 'b'}", "Invalid map literal for v: key 'a' is not of type int"},
        {"set<int>", "[1]", "Unexpected receiver type 'set<int>'; only list and vector are expected"},
        {"list<int>", "{1}", "Invalid set literal for v of type list<int>"},
        {"tuple<int, text>", "(1, 'a', 2)",
         "Invalid tuple literal for v: too many elements. Type frozen<tuple<int, text>> expects 2 but got 3"},
        {"tuple<int, text>", "('a', 'b')", "Invalid tuple literal for v: component 0 is not of type int"},
        {"vector<float, 3>", "[1, 2]",
         "Invalid vector literal for v of type vector<float, 3>; expected 3 elements, but given 2"},
        {"int", "(bigint)1", "Cannot assign value (bigint)1 to v of type int"},
    };
    check_all(cases, ARRAY_LEN(cases));
}

static void test_term_calls_functions(void **state) {
    (void)state;
    static const struct term_case cases[] = {
        {"decimal", "exp((decimal) 1.5)", "4.4816890703380648226020554601193"},
        {"decimal", "log10((decimal) 1000)", "3.0000000000000000000000000000000"},
        {"decimal", "log((decimal) 0)", "java.lang.ArithmeticException: Natural log of number zero or less"},
        {"decimal", "collection_avg((list<decimal>) [1.5, 2.25, 10])", "4.59"},
        {"frozen<set<int>>", "map_keys((map<int, text>) {2: 'b', 1: 'a'})", "[1, 2]"},
        {"int", "blobAsInt(0x00000001)", "1"},
        {"int", "blob_as_int(0x01)",
         "In call to function system.blob_as_int, value 0x01 is not a valid binary representation for type int"},
        {"int", "blobAsInt('a')",
         "Type error: 'a' cannot be passed as argument 0 of function system.blobasint of type blob"},
        {"int", "uuid()", "Type error: cannot assign result of function system.uuid (type uuid) to v (type int)"},
        {"uuid", "uuid(1)", "Invalid number of arguments in call to function system.uuid: 0 required but 1 provided"},
        {"int", "nosuch(1)", "Unknown function nosuch called"},
        {"int", "dateOf(now())", "Unknown function dateof called"},
        {"blob", "intAsBlob(1)", "\"0x00000001\""},
        {"timeuuid", "minTimeuuid('1970-01-01 00:00:00.001+0000')", "\"13816710-1dd2-11b2-8080-808080808080\""},
        {"timeuuid", "maxTimeuuid((timestamp)0)", "\"1381670f-1dd2-11b2-7f7f-7f7f7f7f7f7f\""},
        {"date", "toDate((timestamp)'2011-02-03 05:00')", "\"2011-02-03\""},
        {"bigint", "to_unix_timestamp(now())", "1700000000123"},
        {"time", "current_time()", "\"22:13:20.123456000\""},
        {"bigint", "tounixtimestamp('2011-02-03')",
         "Ambiguous call to function tounixtimestamp (can be matched by following signatures: system.tounixtimestamp : "
         "(timestamp) -> bigint, "
         "system.tounixtimestamp : (date) -> bigint): use type casts to disambiguate"},
        {"bigint", "token((int)1)", "-4069959284402364209"},
        {"text", "toJson((map<int, text>){1: 'a'})", "\"{\\\"1\\\": \\\"a\\\"}\""},
        {"list<int>", "fromJson('[1, \"2\"]')", "[1, 2]"},
        {"set<int>", "fromJson('[2, 1, 1]')", "[1, 2]"},
        {"int", "fromJson('1.5')",
         "org.apache.cassandra.serializers.MarshalException: Expected an int value, but got a number: 1.5"},
        {"tuple<int, text>", "fromJson('[1]')",
         "org.apache.cassandra.serializers.MarshalException: Tuple is missing items (expected 2): [1]"},
        {"text", "CAST((decimal)1e10 AS text)", "\"1E+10\""},
        {"int", "CAST(-1.5 AS int)", "-1"},
        {"int", "CAST((bigint)5000000000 AS int)", "705032704"},
        {"tinyint", "CAST(300 AS tinyint)", "44"},
        {"varint", "CAST(1.9 AS varint)", "1"},
        {"double", "abs(-5)", "5.0"},
        {"int", "exp(1)", "2"},
    };
    check_all(cases, ARRAY_LEN(cases));
}

static void test_term_arithmetic(void **state) {
    (void)state;
    static const struct term_case cases[] = {
        {"int", "2147483647 + 1", "-2147483648"},
        {"int", "-5 % 3", "-2"},
        {"int", "1 + null", "null"},
        {"int", "1 / 0", "the operation 'int / int' failed: / by zero"},
        {"int", "1 + 1.5", "the '+' operation is not supported between 1 and 1.5"},
        {"int", "1 + ?", "Ambiguous '+' operation with args 1 and ?: use type hint to disambiguate, example '(int) ?'"},
        {"double", "1 / 2", "0.5"},
        {"double", "(int)1 + (double)1.5", "2.5"},
        {"double", "(int)1 / (int)2", "the '/' operation is not supported between (int)1 and (int)2"},
        {"decimal", "1.0 / 3", "0.33333333333333333333333333333333"},
        {"decimal", "1 / 0", "the operation 'decimal / decimal' failed: BigInteger divide by zero"},
        {"decimal", "1.5 * 1.5", "2.25"},
        {"decimal", "(float)0.1 + (decimal)1", "1.10000000149011612"},
        {"varint", "100000000000000000000 * 2", "200000000000000000000"},
        {"tinyint", "127 + 1", "-128"},
        {"bigint", "(int)1 + (bigint)2", "3"},
        {"timestamp", "'2011-01-31' + 1mo", "\"2011-02-28 00:00:00.000Z\""},
        {"date", "'2011-02-03' + 1h",
         "the operation 'date + duration' failed: The duration must have a day precision. Was: 1h"},
        {"text", "'a' + 1", "the '+' operation is not supported between 'a' and 1"},
    };
    check_all(cases, ARRAY_LEN(cases));
}

static void test_bound_value_is_checked_and_not_copied(void **state) {
    (void)state;
    struct fixture f;
    struct value v, bound[1] = {value_of("\0\0\0\7", 4)};
    setup(&f);
    struct term *t = compile(&f, "int", "?");
    assert_non_null(t);
    assert_int_equal(0, term_bind_index(t));
    assert_string_equal("v", f.specs[0].name);
    f.ev.values = bound;
    f.ev.n_values = 1;
    assert_int_equal(0, term_eval(t, &f.ev, &v));
    assert_ptr_equal(bound[0].p, v.p);
    bound[0].n = VALUE_UNSET;
    assert_int_equal(0, term_eval(t, &f.ev, &v));
    assert_true(value_is_unset(v));
    bound[0].n = 3;
    assert_int_equal(-1, term_eval(t, &f.ev, &v));
    assert_string_equal("Expected 4 or 0 byte int (3)", f.err.text);
    arena_fini(&f.arena);
}

static void test_bound_set_is_put_in_order(void **state) {
    (void)state;
    static const char wire[] = "\0\0\0\3\0\0\0\1b\0\0\0\1a\0\0\0\1b", sorted[] = "\0\0\0\2\0\0\0\1a\0\0\0\1b";
    struct fixture f;
    struct value v, bound[1] = {value_of(wire, sizeof wire - 1)};
    setup(&f);
    struct term *t = compile(&f, "set<text>", "?");
    f.ev.values = bound;
    f.ev.n_values = 1;
    assert_int_equal(0, term_eval(t, &f.ev, &v));
    assert_int_equal(sizeof sorted - 1, v.n);
    assert_memory_equal(sorted, v.p, sizeof sorted - 1);
    arena_fini(&f.arena);
}

/* One item each of a list, set and so on; %u is its number. */
static const struct {
    const char *type, *open, *item, *close;
} large_literals[] = {
    {"list<int>", "[", "%u", "]"},           {"frozen<list<int>>", "[", "%u", "]"},
    {"set<int>", "{", "%u", "}"},            {"map<int, int>", "{", "%u:1", "}"},
    {"vector<smallint, 65536>", "[", "1", "]"}, {"list<bigint>", "[", "-%u", "]"},
    {"list<frozen<tuple<int>>>", "[", "(%u)", "]"},
};

static void test_collection_literals_have_no_limit_of_16_bits(void **state) {
    (void)state;
    static const uint32_t sizes[] = {65535, 65536, 65537, 100000};
    for (size_t i = 0; i < ARRAY_LEN(large_literals) * ARRAY_LEN(sizes); i++) {
        uint32_t n = sizes[i % ARRAY_LEN(sizes)];
        struct fixture f;
        struct buf text;
        struct value v;
        setup(&f);
        buf_init(&text, 0);
        buf_put_str(&text, large_literals[i / ARRAY_LEN(sizes)].open);
        for (uint32_t k = 0; k < n; k++) {
            char item[32];
            snprintf(item, sizeof item, large_literals[i / ARRAY_LEN(sizes)].item, k);
            if (k) buf_u8(&text, ',');
            buf_put_str(&text, item);
        }
        buf_put_str(&text, large_literals[i / ARRAY_LEN(sizes)].close);
        buf_u8(&text, 0);
        const char *type = large_literals[i / ARRAY_LEN(sizes)].type;
        struct term *t = compile(&f, type, (const char *)text.p);
        if (type[0] == 'v' && n != 65536) {
            assert_null(t);
            assert_non_null(strstr(f.err.text, "expected 65536 elements, but given"));
        } else {
            if (!t) fail_msg("%s of %u: %s", type, n, f.err.text);
            assert_int_equal(0, term_eval(t, &f.ev, &v));
            if (type[0] != 'v') assert_int_equal(n, load_u32(v.p));
        }
        buf_fini(&text);
        arena_fini(&f.arena);
    }
}

/* What cannot be typed in a bounded number of steps is refused as that, not as a wrong type. */
static void test_calls_that_take_too_long_to_type_are_refused_as_such(void **state) {
    (void)state;
    struct fixture f;
    struct buf text;
    setup(&f);
    buf_init(&text, 0);
    for (int i = 0; i < 90; i++) buf_put_str(&text, "abs(round(");
    buf_put_str(&text, "'a'");
    for (int i = 0; i < 180; i++) buf_put_str(&text, ")");
    buf_u8(&text, 0);
    assert_null(compile(&f, "varint", (const char *)text.p));
    assert_string_equal("A value nests too many calls for their types to be found", f.err.text);
    buf_fini(&text);
    arena_fini(&f.arena);
}

/* Numbers of any length can be stored; those that are calculated with have at most 20,000 digits. */
static void test_arithmetic_is_for_numbers_of_bounded_length(void **state) {
    (void)state;
    static const struct {
        const char *type, *operation;
    } operations[] = {{"varint", "*"},  {"varint", "+"},  {"varint", "%"},
                      {"decimal", "/"}, {"decimal", "-"}, {"decimal", "%"}};
    for (size_t i = 0; i < 2 * ARRAY_LEN(operations); i++) {
        struct fixture f;
        struct buf text;
        struct value v;
        uint32_t digits = i % 2 ? 20100 : 19900;
        setup(&f);
        buf_init(&text, 0);
        for (uint32_t k = 0; k < digits; k++) buf_u8(&text, k ? '0' : '1');
        struct buf sum;
        buf_init(&sum, 0);
        buf_printf(&sum, "%.*s %s 3", SLICE_FMT(buf_slice(&text)), operations[i / 2].operation);
        buf_u8(&sum, 0);
        buf_u8(&text, 0);
        assert_non_null(compile(&f, operations[i / 2].type, (const char *)text.p));
        struct term *t = compile(&f, operations[i / 2].type, (const char *)sum.p);
        assert_non_null(t); /* prepared it fails when it is run */
        assert_int_equal(i % 2 ? -1 : 0, term_eval(t, &f.ev, &v));
        if (i % 2) assert_non_null(strstr(f.err.text, "failed: Overflow"));
        buf_fini(&text);
        buf_fini(&sum);
        arena_fini(&f.arena);
    }
}

static void test_hostile_nesting_ends(void **state) {
    (void)state;
    struct fixture f;
    setup(&f);
    struct buf text;
    buf_init(&text, 0);
    for (int i = 0; i < 30; i++) buf_put_str(&text, "abs(round(");
    buf_put_str(&text, "'a'");
    for (int i = 0; i < 60; i++) buf_put_str(&text, ")");
    for (int i = 0; i < 40; i++) buf_put_str(&text, " + 1");
    buf_u8(&text, 0);
    assert_null(compile(&f, "varint", (const char *)text.p));
    buf_fini(&text);
    arena_fini(&f.arena);
}

/* Each now() is later than the one before, although the clock stands still. */
static void test_now_is_later_at_each_call(void **state) {
    (void)state;
    struct fixture f;
    setup(&f);
    struct term *t = compile(&f, "timeuuid", "now()");
    struct value last, v;
    assert_int_equal(term_eval(t, &f.ev, &last), 0);
    for (int i = 0; i < 20; i++, last = v) {
        assert_int_equal(term_eval(t, &f.ev, &v), 0);
        assert_true(cql_value_compare(t->type, value_slice(last), value_slice(v)) < 0);
        assert_int_equal(load_u32(v.p) - load_u32(last.p), 10);
    }
    arena_fini(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_term_literals_of_collections),
        cmocka_unit_test(test_term_calls_functions),
        cmocka_unit_test(test_term_arithmetic),
        cmocka_unit_test(test_bound_value_is_checked_and_not_copied),
        cmocka_unit_test(test_bound_set_is_put_in_order),
        cmocka_unit_test(test_hostile_nesting_ends),
        cmocka_unit_test(test_arithmetic_is_for_numbers_of_bounded_length),
        cmocka_unit_test(test_collection_literals_have_no_limit_of_16_bits),
        cmocka_unit_test(test_calls_that_take_too_long_to_type_are_refused_as_such),
        cmocka_unit_test(test_now_is_later_at_each_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
