/* The published examples of encoded sizes; figures and their sources: the reference on Amazon
 * Keyspaces, sections 0, 1.1, 1.2, 8.1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "metering/size/size.h"

/* (pk_col1, pk_col2), ck_col1, ck_col2, reg_col1: ints of one digit. */
static const struct size_parts row_2022 = {
    .rows = 1, .n_pk = 2, .n_ck = 2, .n_columns = 1, .pk_bytes = 8, .ck_bytes = 8, .column_bytes = 4, .ck_fifths = 2};
static const struct size_parts row_current = {
    .rows = 1, .n_pk = 2, .n_ck = 2, .n_columns = 1, .pk_bytes = 4, .ck_bytes = 4, .column_bytes = 2, .ck_fifths = 2};

static void test_size_founding_row(void **state) {
    (void)state;
    assert_int_equal(size_row_bytes(SIZE_DOCUMENTED_2022, 6, &row_2022), 134);
    assert_int_equal(size_row_storage_bytes(SIZE_DOCUMENTED_2022, 6, &row_2022), 134);
}

static void test_size_founding_static(void **state) {
    (void)state;
    struct size_parts p = {.rows = 1, .n_pk = 2, .n_columns = 1, .pk_bytes = 8, .column_bytes = 4};
    assert_int_equal(size_static_bytes(&p), 122);
    assert_int_equal(size_static_bytes(&p) + size_row_bytes(SIZE_DOCUMENTED_2022, 6, &row_2022), 256);
}

static void test_size_current_row(void **state) {
    (void)state;
    assert_int_equal(size_row_bytes(SIZE_CURRENT, 5, &row_current), 31);
    assert_int_equal(size_row_storage_bytes(SIZE_CURRENT, 5, &row_current), 131);
}

static void test_size_current_text_row(void **state) {
    (void)state;
    struct size_parts p = {.rows = 1,
                           .n_pk = 1,
                           .n_ck = 1,
                           .n_columns = 1,
                           .pk_bytes = 9,
                           .ck_bytes = 4,
                           .ck_fifths = 1,
                           .column_bytes = 500};
    assert_int_equal(size_row_bytes(SIZE_CURRENT, 3, &p), 533);
    assert_int_equal(size_row_storage_bytes(SIZE_CURRENT, 3, &p), 633);
}

/* A calculator's sample row: 59-byte text key, 1-byte clustering text, 200-byte text; with TTL 8 a
 * row and 8 a column. */
static void test_size_current_sample_with_ttl(void **state) {
    (void)state;
    struct size_parts p = {.rows = 1,
                           .n_pk = 1,
                           .n_ck = 1,
                           .n_columns = 1,
                           .pk_bytes = 59,
                           .ck_bytes = 1,
                           .ck_fifths = 1,
                           .column_bytes = 200};
    assert_int_equal(size_row_bytes(SIZE_CURRENT, 3, &p), 327);
    assert_int_equal(size_row_storage_bytes(SIZE_CURRENT, 3, &p), 427);
    p.ttl_rows = 1;
    p.ttl_cells = 3;
    assert_int_equal(size_row_storage_bytes(SIZE_CURRENT, 3, &p), 459);
}

/* list<text> of 3 x 10: 3 + 3 x (10 + 1) is the value, 1 the column id; 8 an element with TTL. */
static void test_size_current_list(void **state) {
    (void)state;
    struct size_parts p = {.n_columns = 1, .column_bytes = 36};
    assert_int_equal(size_row_bytes(SIZE_CURRENT, 3, &p), 37);
    p.ttl_cells = 3;
    assert_int_equal(size_row_bytes(SIZE_CURRENT, 3, &p), 61);
}

static void test_size_static_text_key(void **state) {
    (void)state;
    struct size_parts p = {.rows = 1, .n_pk = 1, .n_columns = 1, .pk_bytes = 20, .column_bytes = 4};
    assert_int_equal(size_static_bytes(&p), 131);
}

static void test_size_column_id_grows_every_62_columns(void **state) {
    (void)state;
    static const struct {
        uint16_t columns;
        uint64_t bytes;
    } cases[] = {{1, 1}, {62, 1}, {63, 2}, {124, 2}, {125, 3}, {186, 3}, {187, 4}};
    struct size_parts p = {.n_columns = 1};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(size_row_bytes(SIZE_CURRENT, cases[i].columns, &p), cases[i].bytes);
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
        cmocka_unit_test(test_size_current_udt),
        cmocka_unit_test(test_size_current_frozen_in_udt),
        cmocka_unit_test(test_size_current_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
