/* The published examples of encoded sizes; figures and their sources: the reference on Amazon
 * Keyspaces, sections 0, 1.1, 1.2, 8.1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "metering/size/size.h"

/* A row of so many columns of a kind, each of a blob of so many bytes, which every model counts as they are. */
struct columns {
    uint32_t n, bytes;
};
static struct size_sum sum_of(const struct size_rule *rule, struct columns pk, struct columns ck,
                              struct columns others) {
    static const uint8_t bytes[512];
    const struct cql_type *t = cql_type_scalar(CQL_BLOB);
    struct size_sum sum = {0};
    size_add_row(&sum, rule);
    for (uint32_t i = 0; i < pk.n; i++) size_add_partition_key(&sum, rule, t, value_of(bytes, pk.bytes));
    for (uint32_t i = 0; i < ck.n; i++) size_add_clustering(&sum, rule, t, value_of(bytes, ck.bytes));
    for (uint32_t i = 0; i < others.n; i++) size_add_column(&sum, rule, t, value_of(bytes, others.bytes));
    return sum;
}

static const struct columns none = {0, 0};

/* (pk_col1, pk_col2), ck_col1, ck_col2, reg_col1: ints of one digit. */
static void test_size_founding_row(void **state) {
    (void)state;
    const struct size_rule rule = size_rule_of(SIZE_DOCUMENTED_2022, 6);
    struct size_sum row = sum_of(&rule, (struct columns){2, 4}, (struct columns){2, 4}, (struct columns){1, 4});
    assert_int_equal(row.bytes, 134);
    assert_int_equal(size_storage_bytes(SIZE_DOCUMENTED_2022, &row), 134);
}

static void test_size_founding_static(void **state) {
    (void)state;
    const struct size_rule rule = size_rule_of_statics();
    assert_int_equal(sum_of(&rule, (struct columns){2, 4}, none, (struct columns){1, 4}).bytes, 122);
}

static void test_size_current_row(void **state) {
    (void)state;
    const struct size_rule rule = size_rule_of(SIZE_CURRENT, 5);
    struct size_sum row = sum_of(&rule, (struct columns){2, 2}, (struct columns){2, 2}, (struct columns){1, 2});
    assert_int_equal(row.bytes, 31);
    assert_int_equal(size_storage_bytes(SIZE_CURRENT, &row), 131);
}

static void test_size_current_text_row(void **state) {
    (void)state;
    const struct size_rule rule = size_rule_of(SIZE_CURRENT, 3);
    struct size_sum row = sum_of(&rule, (struct columns){1, 9}, (struct columns){1, 4}, (struct columns){1, 500});
    assert_int_equal(row.bytes, 533);
    assert_int_equal(size_storage_bytes(SIZE_CURRENT, &row), 633);
}

/* A calculator's sample row: 59-byte text key, 1-byte clustering text, 200-byte text; with TTL 8 a
 * row and 8 a column. */
static void test_size_current_sample_with_ttl(void **state) {
    (void)state;
    const struct size_rule rule = size_rule_of(SIZE_CURRENT, 3);
    struct size_sum row = sum_of(&rule, (struct columns){1, 59}, (struct columns){1, 1}, (struct columns){1, 200});
    assert_int_equal(row.bytes, 327);
    assert_int_equal(size_storage_bytes(SIZE_CURRENT, &row), 427);
    assert_false(row.ttl);
    size_add_ttl(&row, &rule, 3);
    assert_int_equal(size_storage_bytes(SIZE_CURRENT, &row), 459);
    assert_true(row.ttl);
}

/* list<text> of 3 x 10: 3 + 3 x (10 + 1) is the value, 1 the column id; 8 an element with TTL. */
static void test_size_current_list(void **state) {
    (void)state;
    const struct size_rule rule = size_rule_of(SIZE_CURRENT, 3);
    struct size_sum row = sum_of(&rule, none, none, (struct columns){1, 36}), with_ttl = row;
    assert_int_equal(row.bytes, 37);
    size_add_ttl(&with_ttl, &rule, 3);
    assert_int_equal(with_ttl.bytes - row.bytes, 8 + 24);
}

static void test_size_static_text_key(void **state) {
    (void)state;
    const struct size_rule rule = size_rule_of_statics();
    assert_int_equal(sum_of(&rule, (struct columns){1, 20}, none, (struct columns){1, 4}).bytes, 131);
}

static void test_size_column_id_grows_every_62_columns(void **state) {
    (void)state;
    static const struct {
        uint16_t columns;
        uint64_t bytes;
    } cases[] = {{1, 1}, {62, 1}, {63, 2}, {124, 2}, {125, 3}, {186, 3}, {187, 4}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct size_rule rule = size_rule_of(SIZE_CURRENT, cases[i].columns);
        assert_int_equal(sum_of(&rule, none, none, (struct columns){1, 0}).bytes, cases[i].bytes);
    }
}

/* A null is 1 byte and its column's id while it is written, and nothing afterwards. */
static void test_size_nulls_remain_as_nothing(void **state) {
    (void)state;
    const struct cql_type *t = cql_type_scalar(CQL_BLOB);
    for (enum size_model model = SIZE_DOCUMENTED_2022; model <= SIZE_CURRENT; model++) {
        const struct size_rule rule = size_rule_of(model, 70);
        struct size_sum row = sum_of(&rule, (struct columns){1, 4}, none, (struct columns){1, 7}), written = row;
        size_add_column(&written, &rule, t, value_null());
        assert_int_equal(written.bytes - row.bytes, model == SIZE_CURRENT ? 2 + 1 : 0);
        assert_int_equal(size_row_without_nulls(&written).bytes, row.bytes);
    }
    const struct size_rule rule = size_rule_of_statics();
    struct size_sum statics = sum_of(&rule, (struct columns){1, 4}, none, none);
    size_add_column(&statics, &rule, t, value_null());
    assert_int_equal(size_statics_without_nulls(&statics).bytes, 0);
    size_add_column(&statics, &rule, t, value_of("v", 1));
    assert_int_equal(size_statics_without_nulls(&statics).bytes, 104 + 3 + 4 + 1);
}

static uint64_t size_of(const struct cql_type *t, struct buf *b) {
    uint64_t size = cql_value_size(t, SIZE_CURRENT, value_of_slice(buf_slice(b)));
    buf_fini(b);
    return size;
}

static void put(struct buf *b, const char *text) {
    buf_u32(b, (uint32_t)strlen(text));
    buf_put_str(b, text);
}

/* Two text fields of 10: 28 with the column id; a null field is 1, one that the value ends before is nothing. */
static void test_size_current_udt(void **state) {
    (void)state;
    const struct cql_type *text = cql_type_scalar(CQL_TEXT), *fields[] = {text, text};
    const struct cql_type udt = {.id = CQL_UDT, .n_args = 2, .args = fields};
    struct buf b;
    buf_init(&b, 0);
    put(&b, "0123456789");
    put(&b, "0123456789");
    assert_int_equal(size_of(&udt, &b), 27);
    buf_init(&b, 0);
    put(&b, "0123456789");
    buf_u32(&b, UINT32_MAX);
    assert_int_equal(size_of(&udt, &b), 3 + 12 + 3);
    buf_init(&b, 0);
    put(&b, "0123456789");
    assert_int_equal(size_of(&udt, &b), 3 + 12);
}

/* In a UDT a frozen list is 4 bytes an element and its bytes; a frozen UDT 4 bytes a field, empty ones too. */
static void test_size_current_frozen_in_udt(void **state) {
    (void)state;
    const struct cql_type *text = cql_type_scalar(CQL_TEXT), *two[] = {text, text};
    const struct cql_type list = {.id = CQL_LIST, .frozen = true, .n_args = 1, .args = &text},
                          inner = {.id = CQL_UDT, .frozen = true, .n_args = 2, .args = two};
    const struct cql_type *fields[] = {&list, &inner};
    const struct cql_type udt = {.id = CQL_UDT, .n_args = 2, .args = fields};
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, 4 + 2 * (4 + 3));
    buf_u32(&b, 2);
    put(&b, "abc");
    put(&b, "def");
    buf_u32(&b, 4 + 5 + 4);
    put(&b, "12345");
    buf_u32(&b, UINT32_MAX);
    assert_int_equal(size_of(&udt, &b), 3 + (1 + 2 * (4 + 3) + 1) + (1 + (4 + 5 + 4) + 1));
}

/* Zeros at either end of a number are not significant; 2 digits a byte, and 1. */
static void test_size_current_numbers(void **state) {
    (void)state;
    static const struct {
        int32_t n;
        uint64_t bytes;
    } cases[] = {{0, 2}, {5, 2}, {12, 2}, {123, 3}, {1200, 2}, {-5, 2}, {12345, 4}, {INT32_MIN, 6}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf b;
        buf_init(&b, 0);
        buf_u32(&b, (uint32_t)cases[i].n);
        assert_int_equal(size_of(cql_type_scalar(CQL_INT), &b), cases[i].bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size_founding_row),
        cmocka_unit_test(test_size_founding_static),
        cmocka_unit_test(test_size_current_row),
        cmocka_unit_test(test_size_current_text_row),
        cmocka_unit_test(test_size_current_sample_with_ttl),
        cmocka_unit_test(test_size_current_list),
        cmocka_unit_test(test_size_static_text_key),
        cmocka_unit_test(test_size_column_id_grows_every_62_columns),
        cmocka_unit_test(test_size_nulls_remain_as_nothing),
        cmocka_unit_test(test_size_current_udt),
        cmocka_unit_test(test_size_current_frozen_in_udt),
        cmocka_unit_test(test_size_current_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
