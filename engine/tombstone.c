#include "engine/tombstone.h"

#include <stdlib.h>

#include "engine/row_codec.h"

void engi_tombs_init(struct engi_tombs *t, struct arena *a) {
    *t = (struct engi_tombs){.arena = a, .partition_ts = ENG_NO_TS};
}

static int grow(struct engi_tombs *t, struct err *e) {
    uint32_t cap = t->cap ? t->cap * 2 : 8;
    struct engi_tomb *grown = ARENA_ARRAY(t->arena, cap, struct engi_tomb);
    if (!grown) return err_set(e, ERR_READ_FAILURE, "a partition has too many range tombstones: %u", t->n);
    if (t->n) memcpy(grown, t->tombs, t->n * sizeof(*grown));
    t->tombs = grown;
    t->cap = cap;
    return 0;
}

int engi_tombs_add(struct engi_tombs *t, enum engi_kind kind, struct slice rest, struct slice value, struct err *e) {
    struct rowi_reader r;
    if (rowi_open(&r, value)) return err_set(e, ERR_SERVER, "a stored tombstone is damaged");
    int64_t ts = r.head.del_ts;
    if (kind == ENGI_PARTITION_DELETION) {
        if (ts > t->partition_ts) t->partition_ts = ts;
        return 0;
    }
    struct slice copy = arena_dup(t->arena, rest);
    struct engi_tomb tomb = {.ts = ts};
    if (!copy.p || (t->n == t->cap && grow(t, e))) return err_nomem(e);
    if (engi_interval_read(copy, &tomb.range)) return err_set(e, ERR_SERVER, "a stored tombstone is damaged");
    t->tombs[t->n++] = tomb;
    return 0;
}

static int by_bytes(const void *a, const void *b) { return slice_cmp(*(const struct slice *)a, *(const struct slice *)b); }

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

static void collect_bounds(struct engi_tombs *t) {
    uint32_t n = 0, unique = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        t->bounds[n++] = t->tombs[i].range.from;
        if (!t->tombs[i].range.no_end) t->bounds[n++] = t->tombs[i].range.to;
    }
    qsort(t->bounds, n, sizeof(*t->bounds), by_bytes);
    for (uint32_t i = 0; i < n; i++)
        if (!unique || !slice_eq(t->bounds[unique - 1], t->bounds[i])) t->bounds[unique++] = t->bounds[i];
    t->n_bounds = unique;
}

/* The first piece from i on that is not painted yet; next[] is shortened on the way. */
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

int engi_tombs_paint(struct engi_tombs *t, struct err *e) {
    if (!t->n) return 0;
    t->bounds = ARENA_ARRAY(t->arena, (size_t)t->n * 2, struct slice);
    if (!t->bounds) return err_nomem(e);
    collect_bounds(t);
    t->piece_ts = ARENA_ARRAY(t->arena, t->n_bounds, int64_t);
    uint32_t *next = ARENA_ARRAY(t->arena, (size_t)t->n_bounds + 1, uint32_t);
    if (!t->piece_ts || !next) return err_nomem(e);
    for (uint32_t i = 0; i < t->n_bounds; i++) t->piece_ts[i] = ENG_NO_TS;
    for (uint32_t i = 0; i <= t->n_bounds; i++) next[i] = i;
    /* The newest first: a piece once painted has its timestamp. */
    qsort(t->tombs, t->n, sizeof(*t->tombs), newest_first);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct engi_interval *r = &t->tombs[i].range;
        uint32_t end = r->no_end ? t->n_bounds : bounds_after(t, r->to) - 1;
        for (uint32_t p = unpainted(next, bounds_after(t, r->from) - 1); p < end; p = unpainted(next, p)) {
            t->piece_ts[p] = t->tombs[i].ts;
            next[p] = p + 1;
        }
    }
    return 0;
}

int64_t engi_tombs_at(const struct engi_tombs *t, struct slice ck) {
    uint32_t i = t->n ? bounds_after(t, ck) : 0;
    int64_t ts = i ? t->piece_ts[i - 1] : ENG_NO_TS;
    return ts > t->partition_ts ? ts : t->partition_ts;
}
