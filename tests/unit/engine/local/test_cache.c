/* The engine's cache: its budget, which rows and ranges share, its eviction and its admission. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/murmur3.h"
#include "engine/local/cache.h"

enum { BYTES = 256 << 10, ROW = 200, RANGE = 8000 };

static uint64_t hash_of(uint64_t i) { return murmur3_hash(slice_of(&i, sizeof(i))); }

static int setup(void **state) { return (*state = engi_cache_new(BYTES)) ? 0 : -1; }

static int teardown(void **state) {
    engi_cache_free(*state);
    return 0;
}

/* Returns false if there was no room. */
static bool insert(struct engi_cache *c, enum engi_cached_kind kind, uint64_t hash, size_t size) {
    struct engi_cache_look look = {.hash = hash};
    struct engi_cached *x = engi_cached_new(c, &look, kind, size);
    struct engi_cache_bucket *b = engi_cache_bucket(c, hash);
    if (!x) return false;
    engi_bucket_lock(b);
    engi_bucket_insert(c, b, x);
    engi_bucket_unlock(b);
    assert_true(engi_cache_stats(c, ENGI_CACHED_ROW).bytes + engi_cache_stats(c, ENGI_CACHED_RANGE).bytes <= BYTES);
    return true;
}

static struct engi_cached *find(const struct engi_cache_bucket *b, uint64_t hash) {
    struct engi_cached *x = b->first;
    while (x && x->hash != hash) x = x->next;
    return x;
}

/* Uses the entry, if it is there. */
static bool use(struct engi_cache *c, uint64_t hash) {
    struct engi_cache_bucket *b = engi_cache_bucket(c, hash);
    engi_bucket_lock(b);
    struct engi_cached *x = find(b, hash);
    if (x) x->used = true;
    engi_bucket_unlock(b);
    return x;
}

static void test_rows_and_ranges_share_the_bytes_by_use(void **state) {
    struct engi_cache *c = *state;
    uint64_t at = 0;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 5 * BYTES / ROW; i++) assert_true(insert(c, ENGI_CACHED_ROW, hash_of(at++), ROW));
        assert_true(engi_cache_stats(c, ENGI_CACHED_ROW).bytes > BYTES / 2);
        assert_true(engi_cache_stats(c, ENGI_CACHED_RANGE).bytes < BYTES / 10);
        for (int i = 0; i < 5 * BYTES / RANGE; i++) assert_true(insert(c, ENGI_CACHED_RANGE, hash_of(at++), RANGE));
        assert_true(engi_cache_stats(c, ENGI_CACHED_RANGE).bytes > BYTES / 2);
        assert_true(engi_cache_stats(c, ENGI_CACHED_ROW).bytes < BYTES / 10);
    }
}

static void test_entries_in_use_stay(void **state) {
    struct engi_cache *c = *state;
    enum { HOT = 20 };
    for (uint64_t i = 0; i < HOT; i++)
        assert_true(insert(c, i % 2 ? ENGI_CACHED_ROW : ENGI_CACHED_RANGE, hash_of(i), ROW));
    for (uint64_t i = HOT; i < 10 * BYTES / ROW; i++) {
        assert_true(insert(c, ENGI_CACHED_ROW, hash_of(i), ROW));
        assert_true(use(c, hash_of(i % HOT)));
    }
}

static void test_an_entry_that_is_too_large_evicts_no_others(void **state) {
    struct engi_cache *c = *state;
    assert_false(insert(c, ENGI_CACHED_RANGE, hash_of(1), 2 * BYTES));
    for (int i = 0; i < 3; i++) assert_true(insert(c, ENGI_CACHED_RANGE, hash_of(1), BYTES / 2));
    engi_cache_clear(c);
    assert_int_equal(engi_cache_stats(c, ENGI_CACHED_RANGE).kept, 0);
    assert_int_equal(engi_cache_stats(c, ENGI_CACHED_RANGE).bytes, 0);
}

static uint8_t byte_of(uint64_t hash, size_t i) { return (uint8_t)(hash + i); }

/* Entries of any size come and go, are used, and are moved meanwhile; their bytes stay. */
static void test_entries_keep_their_bytes(void **state) {
    struct engi_cache *c = *state;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t hash = hash_of(i);
        bool range = hash % 8 == 0;
        size_t n = range ? hash % RANGE : hash % ROW;
        struct engi_cache_look look = {.hash = hash};
        struct engi_cached *x = engi_cached_new(c, &look, range ? ENGI_CACHED_RANGE : ENGI_CACHED_ROW,
                                                sizeof(*x) + n);
        struct engi_cache_bucket *b = engi_cache_bucket(c, hash);
        if (x) {
            x->generation = n;
            for (size_t k = 0; k < n; k++) ((uint8_t *)(x + 1))[k] = byte_of(hash, k);
            engi_bucket_lock(b);
            engi_bucket_insert(c, b, x);
            engi_bucket_unlock(b);
        }
        for (uint64_t old = i < 100 ? 0 : i - 100; old <= i; old += 3) {
            hash = hash_of(old);
            const struct engi_cached *y = find(engi_cache_bucket(c, hash), hash);
            for (size_t k = 0; y && k < y->generation; k++)
                if (((const uint8_t *)(y + 1))[k] != byte_of(hash, k)) fail_msg("entry %d has changed", (int)old);
            if (y && old % 2) kept += use(c, hash);
        }
    }
    assert_true(kept > 20000);
}

/* Evicted or not. */
static void test_a_range_that_is_read_stays(void **state) {
    struct engi_cache *c = *state;
    for (int evicted = 0; evicted < 2; evicted++) {
        uint64_t hash = hash_of((uint64_t)evicted);
        assert_true(insert(c, ENGI_CACHED_RANGE, hash, RANGE));
        struct engi_cached *x = find(engi_cache_bucket(c, hash), hash);
        atomic_fetch_add(&x->refs, 1);
        memset(x + 1, 7, RANGE - sizeof(*x));
        if (evicted) engi_cache_clear(c);
        for (uint64_t i = 2; i < 5 * BYTES / ROW; i++) {
            assert_true(insert(c, ENGI_CACHED_ROW, hash_of(i), ROW));
            memset(find(engi_cache_bucket(c, hash_of(i)), hash_of(i)) + 1, 8, ROW - sizeof(*x));
        }
        for (size_t i = 0; i < RANGE - sizeof(*x); i++) assert_int_equal(((uint8_t *)(x + 1))[i], 7);
        engi_cached_unref(x);
    }
}

/* Whatever else comes and goes in the bucket, the filter never says that an entry is not there. */
static void test_a_bucket_always_finds_its_entries(void **state) {
    struct engi_cache *c = *state;
    enum { ENTRIES = 200 };
    struct engi_cache_bucket *b = engi_cache_bucket(c, 0);
    uint64_t hashes[ENTRIES];
    for (uint64_t i = 0; i < ENTRIES; i++) {
        hashes[i] = hash_of(i) & ~(uint64_t)0xffffffff;
        assert_ptr_equal(engi_cache_bucket(c, hashes[i]), b);
        assert_true(insert(c, ENGI_CACHED_ROW, hashes[i], ROW));
    }
    assert_false(engi_bucket_lacks(b, 0));
    for (uint64_t i = 0; i < ENTRIES; i++) {
        for (uint64_t k = i; k < ENTRIES; k++) assert_false(engi_bucket_lacks(b, hashes[k]));
        engi_bucket_lock(b);
        struct engi_cached *x = find(b, hashes[i]);
        engi_bucket_remove(c, b, x);
        for (uint64_t k = 0; k < ENTRIES; k++) assert_false(engi_bucket_lacks(b, hashes[k])); /* it is locked */
        engi_bucket_unlock(b);
    }
    for (uint64_t i = 0; i < ENTRIES; i++) assert_true(engi_bucket_lacks(b, hashes[i]));
}

static void test_the_second_miss_is_due(void **state) {
    struct engi_cache *c = *state;
    assert_false(engi_cache_is_due(c, hash_of(1), 0, ENG_TIER_ANY));
    assert_false(engi_cache_is_due(c, hash_of(2), 0, ENG_TIER_ANY));
    assert_true(engi_cache_is_due(c, hash_of(1), 0, ENG_TIER_ANY));
    assert_true(engi_cache_is_due(c, hash_of(1), 0, ENG_TIER_ANY)); /* and again, if it was evicted meanwhile */
    /* a write in between */
    assert_false(engi_cache_is_due(c, hash_of(3), 7, ENG_TIER_ANY));
    assert_false(engi_cache_is_due(c, hash_of(3), 8, ENG_TIER_ANY));
    assert_true(engi_cache_is_due(c, hash_of(3), 8, ENG_TIER_ANY));
    /* one read, on a loop and then on a worker */
    assert_false(engi_cache_is_due(c, hash_of(4), 7, ENG_TIER_CACHE));
    assert_false(engi_cache_is_due(c, hash_of(4), 7, ENG_TIER_ANY));
    assert_true(engi_cache_is_due(c, hash_of(4), 7, ENG_TIER_CACHE));
}

static int misses_until_due(struct engi_cache *c, uint64_t hash) {
    int n = 1;
    while (!engi_cache_is_due(c, hash, 7, ENG_TIER_ANY)) n++;
    return n;
}

static void test_an_entry_evicted_unused_needs_more_misses(void **state) {
    struct engi_cache *c = *state;
    for (int need = 2; need <= 64; need *= 2) {
        engi_cache_set_need(c, hash_of(1), ENGI_NEED_SAME);
        assert_int_equal(misses_until_due(c, hash_of(1)), need);
        engi_cache_set_need(c, hash_of(1), ENGI_NEED_TWICE);
    }
    assert_int_equal(misses_until_due(c, hash_of(1)), 64);
    engi_cache_set_need(c, hash_of(1), ENGI_NEED_FEWEST);
    assert_int_equal(misses_until_due(c, hash_of(1)), 2);
}

static void test_a_cache_of_few_bytes_is_disabled(void **state) {
    (void)state;
    assert_null(engi_cache_new(0));
    assert_null(engi_cache_new(1000));
}

#define ON_CACHE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_CACHE(test_rows_and_ranges_share_the_bytes_by_use),
        ON_CACHE(test_entries_in_use_stay),
        ON_CACHE(test_an_entry_that_is_too_large_evicts_no_others),
        ON_CACHE(test_entries_keep_their_bytes),
        ON_CACHE(test_a_range_that_is_read_stays),
        ON_CACHE(test_a_bucket_always_finds_its_entries),
        ON_CACHE(test_the_second_miss_is_due),
        ON_CACHE(test_an_entry_evicted_unused_needs_more_misses),
        cmocka_unit_test(test_a_cache_of_few_bytes_is_disabled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
