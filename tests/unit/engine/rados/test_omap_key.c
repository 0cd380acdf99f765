/* Keys inside an object hold no NUL byte, keep the order of the records, and say what they were made
 * of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/rados/omap_key.h"

enum { KEYS = 3000, KEY_LENGTH = 8, KEY_MIN = KEY_LENGTH + 2 + 1, KEY_MAX = KEY_MIN + 8 };

struct key {
    uint8_t bytes[KEY_MAX];
    size_t n;
    struct buf encoded;
};

static struct slice slice_of_key(const struct key *k) { return slice_of(k->bytes, k->n); }

static int by_bytes(const void *a, const void *b) { return slice_cmp(slice_of_key(a), slice_of_key(b)); }

/* A record's key: a token, a partition key, a kind and a clustering key. Bytes near those that are escaped, and
 * others. */
static void random_key(struct key *k) {
    size_t n_key = (size_t)(rand() % 3);
    k->n = KEY_MIN + n_key + (size_t)(rand() % 6);
    for (size_t i = 0; i < k->n; i++) k->bytes[i] = (uint8_t)(rand() % 4 ? rand() % 5 : rand());
    store_u16(k->bytes + KEY_LENGTH, (uint16_t)n_key);
    k->bytes[KEY_LENGTH + 2 + n_key] = (uint8_t)(rand() % 5);
}

static void encode(struct key *k, const struct omap_operand_id *id) {
    buf_init(&k->encoded, 0);
    omap_key_escape(&k->encoded, slice_of_key(k));
    buf_u8(&k->encoded, OMAP_KEY_END);
    omap_key_operand(&k->encoded, id);
    assert_false(buf_failed(&k->encoded));
}

static struct omap_operand_id random_id(void) {
    struct omap_operand_id id = {.kind = rand() % 2 ? OMAP_APPENDED : OMAP_COMBINED,
                                 .sequence = (uint64_t)rand() << 20 | (uint64_t)rand(),
                                 .writer = ((uint64_t)rand() << 16 ^ (uint64_t)rand()) % OMAP_WRITERS};
    id.oldest = id.kind == OMAP_COMBINED ? id.sequence - (uint64_t)(rand() % 1000) : id.sequence;
    return id;
}

static void test_keys_keep_the_order_of_their_records(void **state) {
    (void)state;
    static struct key keys[KEYS];
    srand(1);
    for (int i = 0; i < KEYS; i++) random_key(&keys[i]);
    qsort(keys, KEYS, sizeof(keys[0]), by_bytes);
    for (int i = 0; i < KEYS; i++) {
        struct omap_operand_id id = random_id();
        encode(&keys[i], &id);
        assert_null(memchr(keys[i].encoded.p, 0, keys[i].encoded.n));
        if (i && by_bytes(&keys[i - 1], &keys[i]) < 0)
            assert_true(slice_cmp(buf_slice(&keys[i - 1].encoded), buf_slice(&keys[i].encoded)) < 0);
    }
    for (int i = 0; i < KEYS; i++) buf_fini(&keys[i].encoded);
}

static void test_a_key_is_read_as_it_was_written(void **state) {
    (void)state;
    struct buf record;
    buf_init(&record, 0);
    srand(2);
    for (int i = 0; i < KEYS; i++) {
        struct key k;
        struct omap_operand_id id = random_id(), again;
        random_key(&k);
        encode(&k, &id);
        buf_clear(&record, 0);
        assert_int_equal(omap_key_read(buf_slice(&k.encoded), &record, &again), 0);
        assert_true(slice_eq(buf_slice(&record), slice_of_key(&k)));
        assert_int_equal(again.kind, id.kind);
        assert_true(again.sequence == id.sequence && again.oldest == id.oldest && again.writer == id.writer);
        assert_int_equal(omap_key_of_partition(buf_slice(&k.encoded)), 0);
        buf_fini(&k.encoded);
    }
    buf_fini(&record);
}

static void test_operands_of_a_record_sort_by_age(void **state) {
    (void)state;
    struct key younger = {.bytes = {7}, .n = 1}, older = younger;
    encode(&younger, &(struct omap_operand_id){.kind = OMAP_APPENDED, .sequence = 1000, .writer = 1});
    encode(&older, &(struct omap_operand_id){.kind = OMAP_COMBINED, .sequence = 2000, .oldest = 999, .writer = 9});
    assert_true(slice_cmp(buf_slice(&older.encoded), buf_slice(&younger.encoded)) < 0);
    buf_fini(&younger.encoded);
    buf_fini(&older.encoded);
}

static void test_damaged_keys_are_refused(void **state) {
    (void)state;
    struct omap_operand_id id = {.kind = OMAP_APPENDED, .sequence = 5, .oldest = 5, .writer = 6};
    struct key k = {.bytes = {[KEY_MIN - 1] = 4, 1, 2}, .n = KEY_MIN + 2};
    struct buf record;
    buf_init(&record, 0);
    encode(&k, &id);
    for (size_t n = 0; n < k.encoded.n; n++)
        assert_int_equal(omap_key_read(slice_of(k.encoded.p, n), &record, &id), -1);
    buf_fini(&k.encoded);
    for (k.n = 0; k.n < KEY_MIN; k.n++) { /* no whole prefix, or no kind behind it */
        encode(&k, &id);
        assert_int_equal(omap_key_read(buf_slice(&k.encoded), &record, &id), -1);
        buf_fini(&k.encoded);
    }
    buf_fini(&record);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_keep_the_order_of_their_records),
        cmocka_unit_test(test_a_key_is_read_as_it_was_written),
        cmocka_unit_test(test_operands_of_a_record_sort_by_age),
        cmocka_unit_test(test_damaged_keys_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
