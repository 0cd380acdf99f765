/* Which requests a fault hits, and what it answers them. */
#include "native_protocol/faults/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int set_text(struct fault_rule *r, enum fault_column c, const char *text) {
    struct err e = {0};
    return fault_rule_set(r, c, (const uint8_t *)text, (int32_t)strlen(text), &e);
}

static int set_long(struct fault_rule *r, enum fault_column c, int64_t n) {
    struct err e = {0};
    uint8_t bytes[8];
    store_u64(bytes, (uint64_t)n);
    return fault_rule_set(r, c, bytes, 8, &e);
}

static void make(struct fault_rule *r, const char *error) {
    struct err e = {0};
    *r = (struct fault_rule){.name = "f"};
    assert_int_equal(set_text(r, FAULT_COLUMN_error, error), 0);
    assert_int_equal(fault_rule_check(r, &e), 0);
}

static void test_every_error_is_the_one_it_is_called(void **state) {
    (void)state;
    static const struct { enum err_code code; const char *name; } all[] = {
#define FAULT_ERROR(id, name, carries, words) {ERR_##id, name},
#include "native_protocol/faults/error.def"
#undef FAULT_ERROR
    };
    struct op_cost cost = {.keyspace = "k", .table = "t"};
    struct cql_request in = {.params.consistency = CL_LOCAL_QUORUM};
    struct cql_run q = {.in = &in, .cost = &cost, .answer.stmt_kind = STMT_INSERT};
    assert_int_equal(ARRAY_LEN(all), 20); /* as many as the specification has (v5, section 9) */
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct fault_rule r;
        struct err e = {0};
        make(&r, all[i].name);
        fault_rule_fail(&r, &q, &e);
        assert_true(e.set && *e.text);
        assert_int_equal(e.code, all[i].code);
        assert_int_equal(e.detail.consistency, CL_LOCAL_QUORUM);
        assert_string_equal(e.detail.keyspace, "k");
    }
}

static void test_a_timeout_tells_what_kind_of_write_it_was(void **state) {
    (void)state;
    struct op_cost plain = {0};
    struct cql_request in = {.kind = REQUEST_QUERY};
    struct cql_run q = {.in = &in, .cost = &plain, .answer.stmt_kind = STMT_UPDATE};
    struct fault_rule r;
    struct err e = {0};
    make(&r, "WriteTimeout");
    fault_rule_fail(&r, &q, &e);
    assert_string_equal(e.detail.write_type, "SIMPLE");
    assert_int_equal(e.detail.received, 0);
    assert_int_equal(e.detail.required, 1);
    q.answer.write_type = "CAS";
    fault_rule_fail(&r, &q, &e);
    assert_string_equal(e.detail.write_type, "CAS");
    q.answer.write_type = "UNLOGGED_BATCH";
    fault_rule_fail(&r, &q, &e);
    assert_string_equal(e.detail.write_type, "UNLOGGED_BATCH");
    assert_int_equal(set_text(&r, FAULT_COLUMN_write_type, "counter"), 0);
    err_clear(&e);
    assert_int_equal(fault_rule_check(&r, &e), 0);
    fault_rule_fail(&r, &q, &e);
    assert_string_equal(e.detail.write_type, "COUNTER");
}

static uint64_t hits_of(const struct fault_rule *r) {
    uint64_t bits = 0;
    for (int64_t i = 1; i <= 64; i++) bits |= (uint64_t)fault_rule_hits(r, i) << (i - 1);
    return bits;
}

static void test_the_same_seed_hits_the_same_requests(void **state) {
    (void)state;
    struct fault_rule r;
    struct err e = {0};
    double half = 0.5;
    uint64_t bits;
    uint8_t bytes[8];
    memcpy(&bits, &half, 8);
    store_u64(bytes, bits);
    make(&r, "Overloaded");
    assert_true(hits_of(&r) == UINT64_MAX);
    assert_int_equal(fault_rule_set(&r, FAULT_COLUMN_probability, bytes, 8, &e), 0);
    assert_int_equal(set_long(&r, FAULT_COLUMN_seed, 3), 0);
    assert_int_equal(fault_rule_check(&r, &e), 0);
    uint64_t first = hits_of(&r);
    int n = __builtin_popcountll(first);
    assert_in_range(n, 16, 48);
    assert_true(first == hits_of(&r));
    assert_int_equal(set_long(&r, FAULT_COLUMN_seed, 4), 0);
    assert_true(first != hits_of(&r));
}

static void test_nth_every_and_times(void **state) {
    (void)state;
    struct fault_rule r;
    make(&r, "Overloaded");
    assert_int_equal(set_long(&r, FAULT_COLUMN_nth, 5), 0);
    assert_true(hits_of(&r) == 1 << 4);
    make(&r, "Overloaded");
    assert_int_equal(set_long(&r, FAULT_COLUMN_every, 32), 0);
    assert_true(hits_of(&r) == (1ULL << 31 | 1ULL << 63));
    assert_int_equal(set_long(&r, FAULT_COLUMN_times, 2), 0);
    r.hits = 2;
    assert_true(hits_of(&r) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_error_is_the_one_it_is_called),
        cmocka_unit_test(test_a_timeout_tells_what_kind_of_write_it_was),
        cmocka_unit_test(test_the_same_seed_hits_the_same_requests),
        cmocka_unit_test(test_nth_every_and_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
