#include "engine/memory/several.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "engine/local/rocksdb/kv_named.h"
#include "engine/rows/batch.h"
#include "engine/rows/key.h"
#include "engine/rows/partition.h"

/* The state that all handles of a store share. */
struct content {
    struct kv *kv;
    pthread_mutex_t lock; /* of writes, and of the list */
    struct several *handles;
};

struct several {
    struct content *of;
    struct eng_test_faults faults;
    _Atomic uint64_t draws; /* so far */
    struct several *next;
    eng_notice_fn notice; /* NULL if it watches no records */
    void *notice_arg;
};

static struct several *several_of(const struct store *s) { return s->own; }

/* ---- faults ---- */

/* Returns true once in so many times, never if n is 0. */
static bool draw(struct several *own, uint32_t one_in) {
    if (!one_in) return false;
    uint64_t x = own->faults.seed + atomic_fetch_add(&own->draws, 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % one_in == 0;
}

static void answer_late(struct several *own) {
    if (draw(own, own->faults.late_in)) nanosleep(&(struct timespec){.tv_nsec = own->faults.late_us * 1000L}, NULL);
}

static int lost(struct err *e) {
    return err_set(e, ERR_WRITE_TIMEOUT, "the store has not answered: the write may have been applied");
}

/* ---- reads ---- */

static struct kv_iter *cursor(struct several *own, enum eng_tier tier, struct slice lower, struct slice upper,
                              struct err *e) {
    struct kv_iter_spec spec = {.tier = tier, .lower = lower, .upper = upper};
    answer_late(own);
    return kv_iter_new(own->of->kv, &spec, e);
}

static struct kv_iter *cursor_open(struct store *s, struct store_view *view, const struct store_range *range,
                                   struct err *e) {
    (void)view;
    return cursor(several_of(s), range->tier, range->lower, range->upper, e);
}

static int read_row(struct store *s, const struct store_view *view, enum eng_tier tier, struct store_read *r,
                    struct err *e) {
    struct buf upper;
    (void)view;
    buf_init(&upper, 0);
    engi_key_kind(&upper, r->part, ENGI_PAST);
    struct slice lower = slice_of(r->key.p, r->n_prefix);
    struct kv_iter *it = buf_failed(&upper) ? NULL : cursor(several_of(s), tier, lower, buf_slice(&upper), e);
    engi_read_begin(r);
    int rc = it ? engi_walk(it, tier, r, e) : buf_failed(&upper) ? err_nomem(e) : -1;
    if (it) it->ops->iter_free(it);
    buf_fini(&upper);
    return rc;
}

/* ---- writes ---- */

static struct eng_batch *batch_new(struct store *s) {
    (void)s;
    return calloc(1, sizeof(struct eng_batch));
}

static void batch_free(struct eng_batch *b) { free(b); }

static struct slice prefix_of(const struct eng_batch *b, size_t i) {
    struct slice key = engi_change_key(b, &b->changes[i]);
    return slice_of(key.p, engi_prefix_len(key));
}

/* Whether an earlier change is to the same partition, and so has the same condition. */
static bool has_condition(const struct eng_batch *b, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (b->changes[k].conditional && slice_eq(prefix_of(b, k), prefix_of(b, i))) return true;
    return false;
}

/* Adds the changes to partitions other than the one that is left out. */
static int fill(struct eng_batch *b, struct slice left_out, struct kv_batch *kv, bool *conditional) {
    int rc = 0;
    for (size_t i = 0; i < b->n && !rc; i++) {
        struct store_change *c = &b->changes[i];
        if (left_out.n && slice_eq(prefix_of(b, i), left_out)) continue;
        c->written = left_out.n > 0;
        struct slice key = engi_change_key(b, c), value = engi_change_value(b, c);
        if (c->is_range) kv_batch_put(kv, key, value);
        else kv_batch_merge(kv, key, value);
        if (!c->conditional || has_condition(b, i)) continue;
        /* The condition that the partition's ballot is as read, and the next one. */
        uint8_t now[8], next[8];
        struct slice seen = slice_of(now, sizeof(now));
        *conditional = true;
        store_u64(now, c->ballot);
        store_u64(next, c->next_ballot);
        b->value.n = 0;
        buf_put_slice(&b->value, prefix_of(b, i));
        buf_u8(&b->value, ENGI_BALLOT);
        rc = buf_failed(&b->value) ? -1 : kv_batch_expect(kv, buf_slice(&b->value), c->ballot ? &seen : NULL);
        if (!rc) kv_batch_put(kv, buf_slice(&b->value), slice_of(next, sizeof(next)));
    }
    return rc;
}

static int commit(struct eng_batch *b, bool patience, struct err *e) {
    struct several *own = several_of(b->store);
    struct kv_batch *kv = kv_batch_new(own->of->kv);
    bool conditional = false;
    (void)patience;
    if (!kv) return err_nomem(e);
    bool in_part = b->n && b->changes[0].conditional && draw(own, own->faults.part_in);
    struct slice left_out = in_part ? prefix_of(b, 0) : slice_of("", 0);
    int rc = fill(b, left_out, kv, &conditional) ? err_nomem(e) : 0;
    answer_late(own);
    if (!rc && conditional && draw(own, own->faults.conflict_in)) rc = KV_CHANGED;
    if (!rc && draw(own, own->faults.not_applied_in)) rc = lost(e);
    if (!rc) { /* conditions are checked and the batch is written while no other handle writes */
        pthread_mutex_lock(&own->of->lock);
        rc = kv_write_patiently(own->of->kv, kv, e);
        pthread_mutex_unlock(&own->of->lock);
    }
    for (size_t i = 0; i < b->n && !rc; i++)
        if (b->changes[i].conditional && !has_condition(b, i) && !slice_eq(prefix_of(b, i), left_out))
            b->store->front->ballot_moved(b->store, prefix_of(b, i), b->changes[i].next_ballot);
    if (!rc && in_part) rc = KV_CHANGED;
    if (!rc && draw(own, own->faults.applied_in)) rc = lost(e);
    kv_batch_free(kv);
    return rc;
}

/* ---- named records, tables ---- */

static int meta_write(struct store *s, uint32_t n, const struct eng_meta_change *changes, struct err *e) {
    struct several *own = several_of(s);
    pthread_mutex_lock(&own->of->lock);
    int rc = engi_named_write(own->of->kv, n, changes, e);
    for (struct several *h = own->of->handles; h && !rc; h = h->next)
        if (h != own && h->notice) h->notice(h->notice_arg);
    pthread_mutex_unlock(&own->of->lock);
    return rc;
}

static int meta_scan(struct store *s, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) {
    return engi_named_scan(several_of(s)->of->kv, prefix, fn, arg, e);
}

static int meta_watch(struct store *s, eng_notice_fn fn, void *arg, struct err *e) {
    struct several *own = several_of(s);
    (void)e;
    pthread_mutex_lock(&own->of->lock);
    own->notice = fn;
    own->notice_arg = arg;
    pthread_mutex_unlock(&own->of->lock);
    return 0;
}

static int each_stored(struct store *s, eng_stored_fn fn, void *arg, struct err *e) {
    return engi_each_stored(several_of(s)->of->kv, fn, arg, e);
}

static int drop(struct store *s, uint32_t table, struct err *e) {
    return engi_drop_rows(several_of(s)->of->kv, table, e);
}

static void content_free(struct content *of) {
    if (of->kv) kv_close(of->kv);
    pthread_mutex_destroy(&of->lock);
    free(of);
}

static void close_store(struct store *s) {
    struct several *own = several_of(s), **at = &own->of->handles;
    struct content *of = own->of;
    pthread_mutex_lock(&of->lock);
    while (*at != own) at = &(*at)->next;
    *at = own->next;
    bool last = !of->handles;
    pthread_mutex_unlock(&of->lock);
    free(own);
    if (last) content_free(of);
}

static const struct store_ops several_ops = {
    .read = read_row,
    .cursor_open = cursor_open,
    .batch_new = batch_new,
    .batch_free = batch_free,
    .commit = commit,
    .meta_write = meta_write,
    .meta_scan = meta_scan,
    .each_stored = each_stored,
    .drop = drop,
    .close = close_store,
    .meta_watch = meta_watch,
};

static int open_handle(struct store *s, struct content *of, const struct eng_test_faults *faults, struct err *e) {
    struct several *own = calloc(1, sizeof(*own));
    if (!own) return err_nomem(e);
    own->of = of;
    if (faults) own->faults = *faults;
    pthread_mutex_lock(&of->lock);
    own->next = of->handles;
    of->handles = own;
    pthread_mutex_unlock(&of->lock);
    s->ops = &several_ops;
    s->own = own;
    return 0;
}

int several_open(struct store *s, const struct eng_test_faults *faults, struct err *e) {
    const struct kv_options o = {.merge = eng_row_merge, .prefix_len = engi_prefix_len};
    struct content *of = calloc(1, sizeof(*of));
    if (!of) return err_nomem(e);
    pthread_mutex_init(&of->lock, NULL);
    of->kv = kv_open(&o, e);
    if (of->kv && !open_handle(s, of, faults, e)) return 0;
    content_free(of);
    return -1;
}

int several_share(struct store *s, const struct store *first, const struct eng_test_faults *faults, struct err *e) {
    return open_handle(s, several_of(first)->of, faults, e);
}
