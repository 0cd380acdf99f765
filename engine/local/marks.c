#include "engine/local/marks.h"

#include <assert.h>

#include "engine/local/rocksdb/kv.h"

/* [u32 marks][u32 0: no table][u64 ceiling][u8 kind]: the largest record counts, so that batches
 * may write theirs in any order. */
enum { RECORD_BYTES = 17 };

void engi_horizon_init(struct engi_horizon *h, enum engi_horizon_kind kind, int64_t step) {
    h->kind = kind;
    h->step = step;
    h->opened = INT64_MIN;
    atomic_init(&h->ceiling, INT64_MIN);
}

static struct slice record(const struct engi_horizon *h, uint8_t key[RECORD_BYTES], int64_t ceiling) {
    store_u32(key, ENGI_TABLE_MARKS);
    store_u32(key + 4, 0);
    store_u64(key + 8, (uint64_t)ceiling);
    key[16] = (uint8_t)h->kind;
    return slice_of(key, RECORD_BYTES);
}

void engi_horizon_record(const struct engi_horizon *h, struct kv_batch *b, int64_t ts, int64_t *ceiling) {
    uint8_t key[RECORD_BYTES];
    int64_t now = atomic_load(&h->ceiling);
    *ceiling = now;
    if (LIKELY(ts < now) || now == INT64_MAX) return;
    *ceiling = ts > INT64_MAX - h->step ? INT64_MAX : ts + h->step;
    assert(*ceiling > ts || *ceiling == INT64_MAX); /* invariant 1 */
    if (now != INT64_MIN) kv_batch_delete(b, record(h, key, now));
    kv_batch_put(b, record(h, key, *ceiling), slice_of("", 0));
}

void engi_horizon_recorded(struct engi_horizon *h, int64_t ceiling) {
    int64_t seen = atomic_load_explicit(&h->ceiling, memory_order_relaxed);
    while (seen < ceiling && !atomic_compare_exchange_weak(&h->ceiling, &seen, ceiling)) {}
}

bool engi_horizon_load(struct engi_horizon *h, struct slice key) {
    if (key.n != RECORD_BYTES || load_u32(key.p + 4) != 0 || key.p[16] != h->kind) return false;
    int64_t ceiling = (int64_t)load_u64(key.p + 8);
    engi_horizon_recorded(h, ceiling);
    if (ceiling > h->opened) h->opened = ceiling;
    return true;
}
