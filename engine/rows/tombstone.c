#include "engine/rows/tombstone.h"

#include <stdlib.h>

#include "engine/iter.h"
#include "engine/rows/row_codec.h"

/* ---- painting ---- */

void engi_tombs_init(struct engi_tombs *t, struct arena *a) {
    *t = (struct engi_tombs){.arena = a, .partition_ts = ENG_NO_TS};
}

/* The arena has no more: it is full, or memory is out. */
static int too_many(const struct engi_tombs *t, struct err *e) {
    if (!t->arena->limit || t->arena->used < t->arena->limit / 2) return err_nomem(e);
    return err_set(e, ERR_READ_FAILURE, "a partition has too many range tombstones: %u", t->n);
}

int engi_interval_keep(struct engi_interval *i, struct arena *a) {
    i->from = arena_dup(a, i->from);
    i->to = i->no_end ? slice_of("", 0) : arena_dup(a, i->to);
    return i->from.p && i->to.p ? 0 : -1;
}

int engi_tombs_add(struct engi_tombs *t, const struct engi_tomb *tomb, struct err *e) {
    struct engi_tomb kept = *tomb;
    if (t->n == t->cap) {
        uint32_t cap = t->cap ? t->cap * 2 : 8;
        struct engi_tomb *grown = ARENA_ARRAY(t->arena, cap, struct engi_tomb);
        if (!grown) return too_many(t, e);
        if (t->n) memcpy(grown, t->tombs, t->n * sizeof(*grown));
        t->tombs = grown;
        t->cap = cap;
    }
    if (engi_interval_keep(&kept.range, t->arena)) return too_many(t, e);
    t->tombs[t->n++] = kept;
    return 0;
}

static int by_bytes(const void *a, const void *b) {
    return slice_cmp(*(const struct slice *)a, *(const struct slice *)b);
}

static int newest_first(const void *a, const void *b) {
    int64_t x = ((const struct engi_tomb *)a)->ts, y = ((const struct engi_tomb *)b)->ts;
    return (x < y) - (x > y);
}

/* Index of the first bound > key. */
static uint32_t bounds_after(const struct engi_tombs *t, struct slice key) {
    uint32_t lo = 0, hi = t->n_bounds;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (slice_cmp(t->bounds[mid], key) <= 0) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* The first piece from i on that no tombstone covers yet; next[] is shortened on the way. */
static uint32_t unpainted(uint32_t *next, uint32_t i) {
    uint32_t end = i;
    while (next[end] != end) end = next[end];
    while (next[i] != end) {
        uint32_t step = next[i];
        next[i] = end;
        i = step;
    }
    return end;
}

int engi_tombs_fragment(struct engi_tombs *t, struct err *e) {
    if (!t->n) return 0;
    t->bounds = ARENA_ARRAY(t->arena, (size_t)t->n * 2, struct slice);
    if (!t->bounds) return err_nomem(e);
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        t->bounds[n++] = t->tombs[i].range.from;
        if (!t->tombs[i].range.no_end) t->bounds[n++] = t->tombs[i].range.to;
    }
    qsort(t->bounds, n, sizeof(*t->bounds), by_bytes);
    t->n_bounds = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!i || !slice_eq(t->bounds[t->n_bounds - 1], t->bounds[i])) t->bounds[t->n_bounds++] = t->bounds[i];
    t->piece = ARENA_ARRAY(t->arena, t->n_bounds, const struct engi_tomb *);
    uint32_t *next = ARENA_ARRAY(t->arena, (size_t)t->n_bounds + 1, uint32_t);
    if (!t->piece || !next) return err_nomem(e);
    for (uint32_t i = 0; i < t->n_bounds; i++) t->piece[i] = NULL;
    for (uint32_t i = 0; i <= t->n_bounds; i++) next[i] = i;
    /* The newest first: a piece that has a tombstone keeps it. */
    qsort(t->tombs, t->n, sizeof(*t->tombs), newest_first);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct engi_interval *r = &t->tombs[i].range;
        uint32_t end = r->no_end ? t->n_bounds : bounds_after(t, r->to) - 1;
        for (uint32_t p = unpainted(next, bounds_after(t, r->from) - 1); p < end; p = unpainted(next, p)) {
            t->piece[p] = &t->tombs[i];
            next[p] = p + 1;
        }
    }
    return 0;
}

int64_t engi_tombs_at(const struct engi_tombs *t, struct slice ck) {
    uint32_t i = t->n ? bounds_after(t, ck) : 0;
    int64_t ts = i && t->piece[i - 1] ? t->piece[i - 1]->ts : ENG_NO_TS;
    return ts > t->partition_ts ? ts : t->partition_ts;
}

bool engi_tombs_next(const struct engi_tombs *t, uint32_t *i, struct engi_tomb *out) {
    uint32_t from = *i;
    while (from < t->n_bounds && !t->piece[from]) from++;
    if (from >= t->n_bounds) return false;
    *out = (struct engi_tomb){.range.from = t->bounds[from], .ts = t->piece[from]->ts, .at = t->piece[from]->at};
    uint32_t end = from + 1;
    for (; end < t->n_bounds && t->piece[end] && t->piece[end]->ts == out->ts; end++)
        if (t->piece[end]->at > out->at) out->at = t->piece[end]->at;
    out->range.no_end = end == t->n_bounds;
    out->range.to = out->range.no_end ? slice_of("", 0) : t->bounds[end];
    *i = end;
    return true;
}

uint32_t engi_tombs_count(const struct engi_tombs *t, const struct engi_interval *slices, uint32_t n_slices) {
    uint32_t n = 0;
    struct engi_tomb found;
    for (uint32_t i = 0; t->n && engi_tombs_next(t, &i, &found);) {
        bool within = false;
        for (uint32_t k = 0; k < n_slices && !within; k++)
            within = (slices[k].no_end || slice_cmp(found.range.from, slices[k].to) < 0) &&
                     (found.range.no_end || slice_cmp(found.range.to, slices[k].from) > 0);
        n += within;
    }
    return n;
}

/* ---- records ---- */

bool engi_on_fragment(const struct kv_iter *it, struct slice prefix) {
    return it->key.n > prefix.n + 2 && memcmp(it->key.p, prefix.p, prefix.n) == 0 &&
           it->key.p[prefix.n] == ENGI_RANGE_TOMBSTONE && it->key.p[prefix.n + 1] == ENGI_FRAGMENT;
}

static int damaged(struct err *e) { return err_set(e, ERR_SERVER, "a stored tombstone is damaged"); }

int engi_tomb_deletion(struct slice value, int64_t *ts, int64_t *at, struct err *e) {
    struct rowi_reader r;
    if (rowi_open(&r, value)) return damaged(e);
    *ts = r.head.del_ts;
    *at = r.head.del_at;
    return 0;
}

int engi_tomb_read(struct slice rest, struct slice value, struct engi_tomb *out, struct err *e) {
    struct rowi_reader r;
    if (rowi_open(&r, value) || engi_range_read(rest, &out->range)) return damaged(e);
    out->ts = r.head.del_ts;
    out->at = r.head.del_at;
    /* Readers seek past the loose ones up to a time, so the key's time must be the deletion's. */
    if (rest.p[0] == ENGI_LOOSE && load_u64(rest.p + 1) != ((uint64_t)out->ts ^ (1ull << 63))) return damaged(e);
    if (rest.p[0] == ENGI_FRAGMENT) out->range.from = r.head.key_image;
    return out->range.from.p ? 0 : damaged(e);
}

void engi_tomb_value(struct buf *out, const struct engi_tomb *tomb, bool fragmented) {
    struct rowi_head head = {.live_ts = ENG_NO_TS,
                             .live_expiry = ENG_NO_EXPIRY,
                             .del_ts = tomb->ts,
                             .del_at = tomb->at};
    struct rowi_writer w;
    if (fragmented) head.key_image = tomb->range.from;
    rowi_begin(&w, out, &head);
    rowi_end(&w);
}
