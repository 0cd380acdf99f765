#include "engine/rows/partition.h"

#include "engine/rows/key.h"

/* ---- values ---- */

struct own {
    void (*release)(void *handle);
    void *handle;
    struct arena arena;
};

static void release_own(void *p) {
    struct own *own = p;
    if (own->release) own->release(own->handle);
    arena_fini(&own->arena);
}

struct arena *engi_value_own(struct arena *a, void (*release)(void *handle), void *handle) {
    enum { CELLS_CHUNK = 4096 };
    struct own *own = ARENA_NEW(a, struct own);
    if (!own) return NULL;
    *own = (struct own){.handle = handle};
    arena_init(&own->arena, CELLS_CHUNK, 0);
    if (arena_own(a, release_own, own)) return NULL;
    own->release = release;
    return &own->arena;
}

int engi_value_copy(struct slice bytes, struct arena *a, struct store_value *out, struct err *e) {
    out->cells = bytes.n > ENGI_COPIED_MAX ? engi_value_own(a, NULL, NULL) : a;
    if (out->cells) out->bytes = arena_dup(out->cells, bytes);
    return out->cells && out->bytes.p ? 0 : err_nomem(e);
}

/* ---- the head ---- */

int engi_head_next(struct engi_head *h, struct err *e) {
    size_t n = h->prefix.n;
    int got = 1;
    if (h->skips) {
        h->seek->n = 0;
        engi_key_loose_after(h->seek, h->prefix, h->partition_ts);
        got = buf_failed(h->seek) ? err_nomem(e) : h->it->ops->iter_move(h->it, KV_SEEK, buf_slice(h->seek), e);
    } else if (h->began || !h->on_key) {
        got = h->it->ops->iter_move(h->it, h->began ? KV_NEXT : KV_SEEK, h->prefix, e);
    }
    h->began = true;
    h->on_key = got > 0;
    h->fragmented = h->skips = false;
    if (got <= 0) return got;
    struct slice key = h->it->key, value = h->it->value;
    if (key.n <= n || memcmp(key.p, h->prefix.p, n) != 0 || key.p[n] > ENGI_RANGE_TOMBSTONE) return 0;
    h->kind = key.p[n];
    if (h->kind == ENGI_PARTITION_DELETION) {
        if (engi_tomb_deletion(value, &h->tomb.ts, &h->tomb.at, e)) return -1;
        h->partition_ts = h->tomb.ts;
    } else if (h->kind == ENGI_RANGE_TOMBSTONE) {
        h->fragmented = engi_on_fragment(h->it, h->prefix);
        if (h->fragmented && !h->all) return 0;
        if (engi_tomb_read(engi_rest(key, n), value, &h->tomb, e)) return -1;
        h->skips = !h->all && h->tomb.ts <= h->partition_ts && key.p[n + 1] == ENGI_LOOSE;
    }
    return 1;
}

/* ---- a window of fragments ---- */

/* Adds the fragment at which the iterator is. Returns 1 if there is room for more. */
static int add_fragment(struct engi_window *w, const struct kv_iter *it, size_t prefix, size_t *bytes, struct err *e) {
    struct engi_tomb *t = &w->tombs[w->n];
    if (engi_tomb_read(engi_rest(it->key, prefix), it->value, t, e)) return -1;
    *bytes += t->range.from.n + t->range.to.n;
    if (engi_interval_keep(&t->range, &w->arena)) return err_nomem(e);
    w->n++;
    return w->n < w->size && *bytes < ENGI_WINDOW_BYTES_MAX;
}

/* Adds the first fragment that ends after ck, at which the iterator is if it exists, and the following
 * or, in reverse, the preceding ones. The known range ends at the last one, or has no end; in reverse
 * it begins at the last one, or at the partition's start, and ends with the first one. */
static int add_fragments(struct engi_window *w, struct kv_iter *it, struct slice prefix, int got, bool reverse,
                    struct err *e) {
    size_t bytes = 0;
    int more = 1;
    bool first = got > 0 && engi_on_fragment(it, prefix);
    if (first) more = add_fragment(w, it, prefix.n, &bytes, e);
    while (got > 0 && more > 0 && (first || reverse)) {
        got = it->ops->iter_move(it, reverse ? KV_PREV : KV_NEXT, prefix, e);
        if (got <= 0 || !engi_on_fragment(it, prefix)) break;
        more = add_fragment(w, it, prefix.n, &bytes, e);
    }
    if (more < 0 || got < 0) return more < 0 ? more : got;
    const struct engi_interval *begin = &w->tombs[0].range, *last = w->n ? &w->tombs[w->n - 1].range : begin;
    w->known.no_end = reverse ? !first || begin->no_end : more > 0 || last->no_end;
    if (!w->known.no_end) w->known.to = reverse ? begin->to : last->to;
    if (reverse) w->known.from = more > 0 ? slice_of("", 0) : last->from;
    for (uint32_t i = 0; reverse && i < w->n / 2; i++) {
        struct engi_tomb t = w->tombs[i];
        w->tombs[i] = w->tombs[w->n - 1 - i];
        w->tombs[w->n - 1 - i] = t;
    }
    return 0;
}

/* Reads the fragment at ck, and further ones in the direction of the scan. The iterator ends up
 * anywhere. */
static int load_window(struct engi_window *w, struct kv_iter *it, struct slice prefix, struct slice ck, bool reverse,
                       struct err *e) {
    struct buf seek;
    if (w->loaded && w->size < ENGI_WINDOW_MAX) w->size *= 2;
    w->n = 0;
    w->loaded = false;
    arena_reset(&w->arena);
    w->known = (struct engi_interval){.from = arena_dup(&w->arena, ck), .to = slice_of("", 0)};
    w->tombs = ARENA_ARRAY(&w->arena, w->size, struct engi_tomb);
    buf_init(&seek, 0);
    engi_key_fragment_after(&seek, prefix, ck);
    bool ready = w->known.from.p && w->tombs && !buf_failed(&seek);
    int got = ready ? it->ops->iter_move(it, KV_SEEK, buf_slice(&seek), e) : err_nomem(e);
    buf_fini(&seek);
    int rc = got < 0 ? got : add_fragments(w, it, prefix, got, reverse, e);
    w->loaded = rc == 0;
    return rc;
}

/* ---- the deletions that cover a row ---- */

void engi_cover_init(struct engi_cover *c) {
    arena_init(&c->window.arena, 1024, 0);
    engi_cover_begin(c, NULL);
}

void engi_cover_fini(struct engi_cover *c) { arena_fini(&c->window.arena); }

void engi_cover_begin(struct engi_cover *c, struct arena *a) {
    engi_tombs_init(&c->tombs, a);
    c->window.n = 0;
    c->window.size = ENGI_WINDOW_MIN;
    c->window.loaded = c->fragmented = false;
}

int engi_cover_load(struct engi_cover *c, struct kv_iter *it, struct slice prefix, struct buf *seek, bool reverse,
                    int64_t *ts, struct err *e) {
    struct engi_window *w = &c->window;
    struct slice ck = engi_rest(it->key, prefix.n);
    bool loads = !w->loaded || !engi_interval_covers(&w->known, ck);
    if (loads) {
        seek->n = 0;
        buf_put_slice(seek, it->key);
        if (buf_failed(seek)) return err_nomem(e);
        int rc = load_window(w, it, prefix, engi_rest(buf_slice(seek), prefix.n), reverse, e);
        if (!rc) rc = it->ops->iter_move(it, KV_SEEK, buf_slice(seek), e);
        if (rc <= 0) return rc == 0 ? err_set(e, ERR_SERVER, "a row of a scan is gone") : rc;
        ck = engi_rest(it->key, prefix.n);
    }
    uint32_t lo = 0, hi = w->n;
    while (lo < hi) { /* the first fragment that ends after ck */
        uint32_t mid = lo + (hi - lo) / 2;
        const struct engi_interval *r = &w->tombs[mid].range;
        if (!r->no_end && slice_cmp(r->to, ck) <= 0) lo = mid + 1;
        else hi = mid;
    }
    *ts = engi_tombs_at(&c->tombs, ck);
    if (lo < w->n && engi_interval_covers(&w->tombs[lo].range, ck) && w->tombs[lo].ts > *ts) *ts = w->tombs[lo].ts;
    return loads;
}

/* ---- one row ---- */

void engi_read_begin(struct store_read *r) {
    r->row = r->statics = (struct store_value){.cells = NULL};
    r->partition_ts = r->covered_ts = ENG_NO_TS;
    r->n_covering = r->n_loose = 0;
    r->ballot = 0;
}

static void count_covering(struct store_read *r, int64_t ts) {
    r->n_covering++;
    if (ts > r->covered_ts) r->covered_ts = ts;
}

/* Reads one record of the head. */
static int read_head_record(struct engi_head *h, enum eng_tier tier, struct store_read *r, struct err *e) {
    struct slice key = h->it->key, value = h->it->value;
    switch (h->kind) {
    case ENGI_BALLOT:
        if (value.n != 8) return err_set(e, ERR_SERVER, "the ballot of a partition is damaged");
        r->ballot = load_u64(value.p);
        return 0;
    case ENGI_PARTITION_DELETION:
        r->partition_ts = h->partition_ts;
        count_covering(r, h->partition_ts);
        return 0;
    case ENGI_STATIC:
        r->n_statics_key = key.n;
        return r->with_statics ? engi_value_copy(value, r->arena, &r->statics, e) : 0;
    default:
        if (++r->n_loose > ENGI_LOOSE_MAX && tier == ENG_TIER_CACHE) return KV_INCOMPLETE;
        if (!h->skips && engi_interval_covers(&h->tomb.range, engi_rest(r->key, r->n_prefix)))
            count_covering(r, h->tomb.ts);
        return 0;
    }
}

/* Reads the fragment at the row, if there is one. The iterator is on some fragment. */
static int read_fragment(struct engi_head *h, struct store_read *r, struct err *e) {
    struct slice ck = engi_rest(r->key, r->n_prefix);
    struct engi_tomb tomb;
    h->seek->n = 0;
    engi_key_fragment_after(h->seek, h->prefix, ck);
    int got = buf_failed(h->seek) ? err_nomem(e) : h->it->ops->iter_move(h->it, KV_SEEK, buf_slice(h->seek), e);
    h->on_key = got > 0;
    if (got <= 0 || !engi_on_fragment(h->it, h->prefix)) return got < 0 ? got : 0;
    if (engi_tomb_read(engi_rest(h->it->key, h->prefix.n), h->it->value, &tomb, e)) return -1;
    if (engi_interval_covers(&tomb.range, ck)) count_covering(r, tomb.ts);
    return 0;
}

int engi_walk(struct kv_iter *it, enum eng_tier tier, struct store_read *r, struct err *e) {
    bool of_statics = r->key.p[r->n_prefix] == ENGI_STATIC;
    struct buf seek;
    buf_init(&seek, 0);
    struct engi_head h = engi_head_of(it, slice_of(r->key.p, r->n_prefix), &seek);
    int rc = 0, got = 0;
    while (!rc && (got = engi_head_next(&h, e)) > 0 && !(of_statics && h.kind >= ENGI_STATIC))
        rc = read_head_record(&h, tier, r, e);
    if (got < 0) rc = got;
    if (!rc && h.fragmented && !of_statics) rc = read_fragment(&h, r, e);
    buf_fini(&seek);
    if (!rc && h.on_key && slice_cmp(it->key, r->key) < 0) {
        rc = it->ops->iter_move(it, KV_SEEK, r->key, e);
        h.on_key = rc > 0;
    }
    if (rc < 0 || !h.on_key || !slice_eq(it->key, r->key)) return rc < 0 ? rc : 0;
    return engi_value_copy(it->value, r->arena, &r->row, e);
}
