#include "engine/local/marks.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "engine/local/rocksdb/kv.h"

/* [u32 marks][u32 0: no table][u64 ceiling][u8 kind]: the largest record counts, so that batches
 * may write theirs in any order. */
enum { RECORD_BYTES = 17, DELETED_MAX = 1000 /* records, by one batch */ };

void engi_horizon_init(struct engi_horizon *h, enum engi_horizon_kind kind, int64_t step) {
    *h = (struct engi_horizon){.kind = kind, .step = step, .opened = INT64_MIN};
    atomic_init(&h->ceiling, INT64_MIN);
    pthread_mutex_init(&h->lock, NULL);
}

void engi_horizon_fini(struct engi_horizon *h) {
    free(h->records);
    pthread_mutex_destroy(&h->lock);
}

static struct slice record(const struct engi_horizon *h, uint8_t key[RECORD_BYTES], int64_t ceiling) {
    store_u32(key, ENGI_TABLE_MARKS);
    store_u32(key + 4, 0);
    store_u64(key + 8, (uint64_t)ceiling);
    key[16] = (uint8_t)h->kind;
    return slice_of(key, RECORD_BYTES);
}

void engi_horizon_record(struct engi_horizon *h, struct kv_batch *b, int64_t ts, struct engi_horizon_step *step) {
    uint8_t key[RECORD_BYTES];
    int64_t now = atomic_load(&h->ceiling);
    if (LIKELY(ts < now) || now == INT64_MAX) return;
    int64_t ceiling = ts > INT64_MAX - h->step ? INT64_MAX : ts + h->step;
    assert(ceiling > ts || ceiling == INT64_MAX); /* invariant 1 */
    pthread_mutex_lock(&h->lock);
    size_t n = h->n_records < DELETED_MAX ? h->n_records : DELETED_MAX;
    *step = (struct engi_horizon_step){
        .any = true, .ceiling = ceiling, .number = n < h->n_records ? h->records[n].number : h->numbered};
    for (size_t i = 0; i < n; i++)
        if (h->records[i].at < ceiling) kv_batch_delete(b, record(h, key, h->records[i].at));
    pthread_mutex_unlock(&h->lock);
    kv_batch_put(b, record(h, key, ceiling), slice_of("", 0));
}

/* Notes a record that is in the store. The caller holds the lock. */
static void note(struct engi_horizon *h, int64_t ceiling) {
    int64_t seen = atomic_load_explicit(&h->ceiling, memory_order_relaxed);
    while (seen < ceiling && !atomic_compare_exchange_weak(&h->ceiling, &seen, ceiling)) {}
    if (!array_room(&h->records, h->n_records, &h->cap_records, sizeof(*h->records)))
        h->records[h->n_records++] = (struct engi_ceiling){ceiling, h->numbered++};
}

void engi_horizon_recorded(struct engi_horizon *h, const struct engi_horizon_step *step) {
    size_t left = 0;
    if (LIKELY(!step->any)) return;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->n_records; i++)
        if (h->records[i].number >= step->number || h->records[i].at >= step->ceiling)
            h->records[left++] = h->records[i];
    h->n_records = left;
    note(h, step->ceiling);
    pthread_mutex_unlock(&h->lock);
}

bool engi_horizon_load(struct engi_horizon *h, struct slice key) {
    if (key.n != RECORD_BYTES || load_u32(key.p + 4) != 0 || key.p[16] != h->kind) return false;
    int64_t ceiling = (int64_t)load_u64(key.p + 8);
    pthread_mutex_lock(&h->lock);
    note(h, ceiling);
    pthread_mutex_unlock(&h->lock);
    if (ceiling > h->opened) h->opened = ceiling;
    return true;
}
