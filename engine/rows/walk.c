#include "engine/rows/walk.h"

#include "engine/rows/key.h"
#include "engine/rows/tombstone.h"

/* ---- values ---- */

struct own {
    void (*release)(void *handle);
    void *handle;
    struct arena arena;
};

static void let_go(void *p) {
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
    if (arena_own(a, let_go, own)) return NULL;
    own->release = release;
    return &own->arena;
}

int engi_value_copy(struct slice bytes, struct arena *a, struct store_value *out, struct err *e) {
    out->cells = bytes.n > ENGI_COPIED_MAX ? engi_value_own(a, NULL, NULL) : a;
    if (out->cells) out->bytes = arena_dup(out->cells, bytes);
    return out->cells && out->bytes.p ? 0 : err_nomem(e);
}

/* ---- the walk ---- */

struct walk {
    struct kv_iter *it;
    enum eng_tier tier;
    struct store_read *r;
    struct slice prefix, ck; /* of the row */
    struct buf seek;
};

static enum engi_kind kind_at(const struct walk *w) { return w->it->key.p[w->prefix.n]; }

static void covered(struct walk *w, int64_t ts) {
    w->r->n_covering++;
    if (ts > w->r->covered_ts) w->r->covered_ts = ts;
}

static int next(struct walk *w, struct err *e) { return w->it->ops->iter_move(w->it, KV_NEXT, w->prefix, e); }

static int seek(struct walk *w, struct err *e) {
    return buf_failed(&w->seek) ? err_nomem(e) : w->it->ops->iter_move(w->it, KV_SEEK, buf_slice(&w->seek), e);
}

/* Walks past the partition's deletion and its static row, unless the static row is the one to
 * read. */
static int walk_head(struct walk *w, struct err *e) {
    int got = w->it->ops->iter_move(w->it, KV_SEEK, w->prefix, e);
    if (got > 0 && kind_at(w) == ENGI_BALLOT) {
        if (w->it->value.n != 8) return err_set(e, ERR_SERVER, "the ballot of a partition is damaged");
        w->r->ballot = load_u64(w->it->value.p);
        got = next(w, e);
    }
    if (got > 0 && kind_at(w) == ENGI_PARTITION_DELETION) {
        int64_t at;
        if (engi_tomb_deletion(w->it->value, &w->r->partition_ts, &at, e)) return -1;
        covered(w, w->r->partition_ts);
        got = next(w, e);
    }
    if (got <= 0 || w->r->key.p[w->prefix.n] == ENGI_STATIC || kind_at(w) != ENGI_STATIC) return got;
    w->r->n_statics_key = w->it->key.n;
    if (w->r->with_statics && engi_value_copy(w->it->value, w->r->arena, &w->r->statics, e)) return -1;
    return next(w, e);
}

/* Reads the loose range tombstones that are newer than the partition's deletion, which stand behind
 * the older ones, so that one seek skips those; and then the fragment at the row. */
static int walk_ranges(struct walk *w, int got, struct err *e) {
    struct engi_tomb tomb;
    int64_t partition_ts = w->r->partition_ts;
    bool passed_over = partition_ts == ENG_NO_TS;
    while (got > 0 && kind_at(w) == ENGI_RANGE_TOMBSTONE && !engi_on_fragment(w->it, w->prefix)) {
        struct slice rest = engi_rest(w->it->key, w->prefix.n);
        if (++w->r->n_loose > ENGI_LOOSE_MAX && w->tier == ENG_TIER_CACHE) return KV_INCOMPLETE;
        if (engi_tomb_read(rest, w->it->value, &tomb, e)) return -1;
        if (!passed_over && tomb.ts <= partition_ts && rest.p[0] == ENGI_LOOSE) {
            passed_over = true;
            engi_key_loose_after(&w->seek, w->prefix, partition_ts);
            got = seek(w, e);
            continue;
        }
        if (engi_interval_covers(&tomb.range, w->ck)) covered(w, tomb.ts);
        got = next(w, e);
    }
    if (got <= 0 || !engi_on_fragment(w->it, w->prefix)) return got;
    w->seek.n = 0;
    engi_key_fragment_after(&w->seek, w->prefix, w->ck);
    got = seek(w, e);
    if (got <= 0 || !engi_on_fragment(w->it, w->prefix)) return got;
    if (engi_tomb_read(engi_rest(w->it->key, w->prefix.n), w->it->value, &tomb, e)) return -1;
    if (engi_interval_covers(&tomb.range, w->ck)) covered(w, tomb.ts);
    return got;
}

void engi_read_begin(struct store_read *r) {
    r->row = r->statics = (struct store_value){.cells = NULL};
    r->partition_ts = r->covered_ts = ENG_NO_TS;
    r->n_covering = r->n_loose = 0;
    r->ballot = 0;
}

int engi_walk(struct kv_iter *it, enum eng_tier tier, struct store_read *r, struct err *e) {
    size_t n = r->n_prefix;
    struct walk w = {.it = it, .tier = tier, .r = r, .prefix = slice_of(r->key.p, n), .ck = engi_rest(r->key, n)};
    buf_init(&w.seek, 0);
    int got = walk_head(&w, e);
    if (r->key.p[n] == ENGI_ROW) got = walk_ranges(&w, got, e);
    buf_fini(&w.seek);
    if (got > 0 && slice_cmp(it->key, r->key) < 0) got = it->ops->iter_move(it, KV_SEEK, r->key, e);
    if (got <= 0 || !slice_eq(it->key, r->key)) return got < 0 ? got : 0;
    return engi_value_copy(it->value, r->arena, &r->row, e);
}
