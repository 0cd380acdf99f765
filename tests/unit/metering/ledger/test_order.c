/* Keys that only grow or shrink: found, and how rarely keys in random order are taken for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/murmur3.h"
#include "metering/ledger/order.h"

static uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void add_typed(struct order *o, enum cql_type_id id, struct slice key) {
    const struct cql_type *types[] = {cql_type_scalar(id)};
    order_add(o, types, 1, key, murmur3_token(key));
}

static void add(struct order *o, uint64_t key) {
    uint8_t bytes[8];
    store_u64(bytes, key);
    add_typed(o, CQL_BLOB, slice_of(bytes, sizeof(bytes)));
}

static void test_growing_keys_are_append_only(void **state) {
    (void)state;
    struct order o = {0};
    for (uint64_t key = 1; key < ORDER_WINDOW * ORDER_IN_A_ROW; key++) {
        for (int again = 0; again < 3; again++) add(&o, key * 1000); /* writes to the same partition say nothing */
        assert_int_equal(order_pattern(&o), ORDER_NONE);
    }
    add(&o, 1000000);
    assert_int_equal(order_pattern(&o), ORDER_APPEND_ONLY);
    assert_string_equal(order_pattern_name(order_pattern(&o)), "append-only");
    order_fini(&o);
}

static void test_shrinking_keys_are_prepend_only(void **state) {
    (void)state;
    struct order o = {0};
    for (uint64_t key = 100; key > 100 - ORDER_WINDOW * ORDER_IN_A_ROW; key--) add(&o, key);
    assert_int_equal(order_pattern(&o), ORDER_PREPEND_ONLY);
    order_fini(&o);
}

static void test_one_write_in_ten_out_of_order_is_still_a_pattern(void **state) {
    (void)state;
    struct order o = {0};
    for (uint64_t i = 1; i <= 200; i++) add(&o, i % ORDER_WINDOW == 5 ? 1000 + i - 3 : 1000 + i * 2);
    assert_int_equal(order_pattern(&o), ORDER_APPEND_ONLY);
    order_fini(&o);
}

static void test_a_pattern_ends_when_keys_do_not_grow_any_more(void **state) {
    (void)state;
    struct order o = {0};
    uint64_t seed = 3;
    for (uint64_t key = 1; key <= 100; key++) add(&o, key);
    assert_int_equal(order_pattern(&o), ORDER_APPEND_ONLY);
    for (int i = 0; i < 2 * ORDER_WINDOW; i++) add(&o, random_next(&seed));
    assert_int_equal(order_pattern(&o), ORDER_NONE);
    order_fini(&o);
}

/* The stated rate: in one direction 46 / 10!, so in both 92 / 10! of all windows. */
static void test_the_rate_of_false_positives_is_the_stated_one(void **state) {
    (void)state;
    enum { WINDOWS = 2000000 };
    struct order o = {0};
    uint64_t seed = 20240607;
    int told = 0;
    for (int i = 0; i < WINDOWS * ORDER_WINDOW; i++) {
        add(&o, random_next(&seed));
        told += order_pattern(&o) != ORDER_NONE;
    }
    double expected = WINDOWS * 92.0 / 3628800.0; /* 50.7, with a standard deviation of 7.1 */
    assert_in_range(o.leads[0].windows, WINDOWS - 1, WINDOWS);
    double one_way = (double)o.leads[0].one_way;
    assert_true(one_way > expected - 36 && one_way < expected + 36); /* five of them */
    assert_int_equal(told, 0); /* two in a row: 1.6e-10 a window */
    order_fini(&o);
}

/* ---- keys of every type ---- */

enum { KEYS = 120 };

/* The i-th of KEYS growing values of a type, which passes 0 in the middle; of a wide spread, so that lengths change. */
static void put_growing(enum cql_type_id id, int i, struct buf *out) {
    int64_t n = (i - KEYS / 2) * (INT64_C(1) << 40);
    double real = i - KEYS / 2 + 0.5;
    float narrow = (float)real;
    uint64_t bits = 0;
    uint32_t half = 0;
    memcpy(&bits, &real, sizeof(bits));
    memcpy(&half, &narrow, sizeof(half));
    switch (id) {
    case CQL_TINYINT: buf_u8(out, (uint8_t)(i - KEYS / 2)); break;
    case CQL_SMALLINT: buf_u16(out, (uint16_t)(300 * (i - KEYS / 2))); break;
    case CQL_INT: buf_u32(out, (uint32_t)(i - KEYS / 2)); break;
    case CQL_DATE: buf_u32(out, (uint32_t)(i - KEYS / 2) ^ 0x80000000); break;
    case CQL_BIGINT:
    case CQL_TIMESTAMP: buf_u64(out, (uint64_t)n); break;
    case CQL_TIME: buf_u64(out, (uint64_t)i * 1000000007); break;
    case CQL_FLOAT: buf_u32(out, half); break;
    case CQL_DOUBLE: buf_u64(out, bits); break;
    case CQL_DECIMAL: /* scale 0 and 1 in turn */
        buf_u32(out, (uint32_t)i % 2);
        buf_u16(out, (uint16_t)((i - KEYS / 2) * (i % 2 ? 10 : 1)));
        break;
    case CQL_VARINT: /* as short as it can be */
        if (i - KEYS / 2 < -30 || i - KEYS / 2 > 30) buf_u64(out, (uint64_t)n);
        else buf_u8(out, (uint8_t)(i - KEYS / 2));
        break;
    case CQL_UUID:
    case CQL_TIMEUUID: { /* the low 32 bits of the clock come first in the bytes */
        uint64_t clock = (UINT64_C(0x1EF) << 48) + (uint64_t)i * 740000001;
        buf_u32(out, (uint32_t)clock);
        buf_u16(out, (uint16_t)(clock >> 32));
        buf_u16(out, (uint16_t)(0x1000 | (clock >> 48 & 0xFFF)));
        buf_u64(out, (uint64_t)i * UINT64_C(0x9E3779B97F4A7C15)); /* another node each */
        break;
    }
    case CQL_INET: buf_u32(out, 0x0A000000 + 77 * (uint32_t)i); break;
    default: buf_printf(out, "the same beginning of all keys %05d%s", i, i % 3 ? "" : " longer"); /* texts, blobs */
    }
}

static const enum cql_type_id key_types[] = {
    CQL_ASCII, CQL_BIGINT, CQL_BLOB, CQL_DATE, CQL_DECIMAL, CQL_DOUBLE, CQL_FLOAT, CQL_INET, CQL_INT, CQL_SMALLINT,
    CQL_TEXT, CQL_TIME, CQL_TIMESTAMP, CQL_TIMEUUID, CQL_TINYINT, CQL_UUID, CQL_VARINT};

/* Adds the key of these values; with more than one, as a composite key is stored. */
static void add_key(struct order *o, const enum cql_type_id *ids, const int *numbers, uint32_t n) {
    const struct cql_type *types[8];
    struct buf key;
    buf_init(&key, 0);
    for (uint32_t i = 0; i < n; i++) {
        size_t at = key.n;
        types[i] = cql_type_scalar(ids[i]);
        if (n > 1) buf_u16(&key, 0);
        put_growing(ids[i], numbers[i], &key);
        if (n > 1) store_u16(key.p + at, (uint16_t)(key.n - at - 2));
        if (n > 1) buf_u8(&key, 0);
    }
    order_add(o, types, n, buf_slice(&key), murmur3_token(buf_slice(&key)));
    buf_fini(&key);
}

/* After each write from the 20th on. */
static void check_told(const struct order *o, int added, enum order_pattern expected, enum cql_type_id id) {
    if (added < ORDER_WINDOW * ORDER_IN_A_ROW) return;
    if (order_pattern(o) != expected)
        fail_msg("type %d after %d keys: %s", (int)id, added, order_pattern_name(order_pattern(o)));
}

static void test_growing_and_falling_keys_of_every_type_are_told_and_random_ones_are_not(void **state) {
    (void)state;
    uint64_t seed = 7;
    for (size_t k = 0; k < ARRAY_LEN(key_types); k++) {
        struct order up = {0}, down = {0}, random = {0};
        for (int i = 0; i < KEYS; i++) {
            add_key(&up, &key_types[k], &(int){i}, 1);
            add_key(&down, &key_types[k], &(int){KEYS - 1 - i}, 1);
            check_told(&up, i + 1, ORDER_APPEND_ONLY, key_types[k]);
            check_told(&down, i + 1, ORDER_PREPEND_ONLY, key_types[k]);
        }
        for (int i = 0; i < 100 * KEYS; i++) {
            add_key(&random, &key_types[k], &(int){(int)(random_next(&seed) % KEYS)}, 1);
            check_told(&random, i + 1, ORDER_NONE, key_types[k]);
        }
        order_fini(&up);
        order_fini(&down);
        order_fini(&random);
    }
}

/* Each type as the day of ((day, number)), ((tenant, day)) and ((tenant, day, number, ... )) with one tenant. */
static void test_a_growing_column_is_told_when_those_before_it_stay(void **state) {
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(key_types); k++) {
        const enum cql_type_id t = key_types[k], first[] = {t, CQL_INT}, second[] = {CQL_TEXT, t},
                               among[] = {CQL_TEXT, t, CQL_INT, CQL_INT, CQL_TEXT, CQL_INT};
        struct order orders[3] = {{0}};
        for (int i = 0; i < KEYS; i++)
            for (int other = 0; other < 3; other++) { /* three writes a day, of numbers in no order */
                int any = (i * 7 + other * 50) % KEYS;
                add_key(&orders[0], first, (int[]){i, any}, 2);
                if (other == 0) add_key(&orders[1], second, (int[]){1, i}, 2);
                add_key(&orders[2], among, (int[]){1, i, any, any, 3, any}, 6);
                for (int o = 0; o < 3; o++) check_told(&orders[o], i + 1, ORDER_APPEND_ONLY, t);
            }
        for (int o = 0; o < 3; o++) order_fini(&orders[o]);
    }
}

/* ((tenant, day)) of tenants in no order, and ((bucket, day)) of ten buckets in turn: each write is elsewhere. */
static void test_a_growing_column_behind_one_that_spreads_is_no_pattern(void **state) {
    (void)state;
    const enum cql_type_id ids[] = {CQL_INT, CQL_DATE};
    struct order tenants = {0}, buckets = {0};
    uint64_t seed = 11;
    for (int i = 0; i < KEYS; i++)
        for (int other = 0; other < 10; other++) {
            add_key(&tenants, ids, (int[]){(int)(random_next(&seed) % KEYS), i}, 2);
            add_key(&buckets, ids, (int[]){other, i}, 2);
            assert_int_equal(order_pattern(&tenants), ORDER_NONE);
            assert_int_equal(order_pattern(&buckets), ORDER_NONE);
        }
    order_fini(&tenants);
    order_fini(&buckets);
}

static void test_a_key_that_is_too_long_to_be_kept_is_passed_over(void **state) {
    (void)state;
    static uint8_t bytes[ORDER_KEY + 1];
    struct order o = {0};
    for (uint8_t i = 1; i < 100; i++) {
        bytes[0] = (uint8_t)-i;
        add_typed(&o, CQL_BLOB, slice_of(bytes, sizeof(bytes)));
        bytes[0] = i;
        add_typed(&o, CQL_BLOB, slice_of(bytes, ORDER_KEY));
    }
    assert_int_equal(order_pattern(&o), ORDER_APPEND_ONLY);
    assert_int_equal(o.leads[0].windows, 9);
    order_fini(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growing_keys_are_append_only),
        cmocka_unit_test(test_shrinking_keys_are_prepend_only),
        cmocka_unit_test(test_one_write_in_ten_out_of_order_is_still_a_pattern),
        cmocka_unit_test(test_a_pattern_ends_when_keys_do_not_grow_any_more),
        cmocka_unit_test(test_the_rate_of_false_positives_is_the_stated_one),
        cmocka_unit_test(test_growing_and_falling_keys_of_every_type_are_told_and_random_ones_are_not),
        cmocka_unit_test(test_a_growing_column_is_told_when_those_before_it_stay),
        cmocka_unit_test(test_a_growing_column_behind_one_that_spreads_is_no_pattern),
        cmocka_unit_test(test_a_key_that_is_too_long_to_be_kept_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
