/* Reads of one row: a single pinned get, or a walk over the deletions that may cover it, in buckets
 * with range or partition deletions. */
#include "engine/local/eng.h"
#include "engine/local/fragment.h"
#include "engine/local/row_cache.h"
#include "engine/local/table.h"
#include "engine/rows/dropped.h"
#include "engine/rows/key.h"
#include "engine/rows/tombstone.h"

enum { KEY_ON_STACK = 512, KEPT_BYTES_MAX = 4096, CELLS_CHUNK = 4096 };

static void *memory(uint8_t *stack, size_t n, struct arena *a) { return n <= KEY_ON_STACK ? stack : arena_alloc(a, n); }

/* The row's key, on the stack when it fits; p NULL on an error. */
static struct slice row_key(uint8_t *stack, const struct eng_part *part, enum eng_row_kind kind, struct slice ck,
                            struct arena *a, struct err *e) {
    size_t n = engi_key_row_size(part, kind, ck);
    if (part->key.n > UINT16_MAX) {
        err_invalid(e, "Key length of %zu is longer than maximum of 65535", part->key.n);
        return (struct slice){0};
    }
    uint8_t *p = memory(stack, n, a);
    if (!p) return err_nomem(e), (struct slice){0};
    engi_key_row_write(p, part, kind, ck);
    return slice_of(p, n);
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t newest_of(const struct eng_row *row, int64_t del_ts) {
    int64_t newest = later(later(row->live_ts, row->del_ts), del_ts);
    uint32_t n = row->plain && row->n_cells ? 1 : row->n_cells; /* plain cells all have the same timestamp */
    for (uint32_t i = 0; i < n; i++) newest = later(newest, row->cells[i].ts);
    return newest;
}

/* ---- rows read, and their memory ----
 *
 * A small value is copied into the caller's arena, and its cells go there. A large value stays
 * pinned in the store, or is copied to memory of its own, as are its cells. The arena owns both,
 * but they do not count towards its limit. So a row may be larger than the memory limit of a
 * request, as long as no caller copies it into one piece. */

struct held {
    struct kv *kv;
    struct kv_value value; /* handle NULL: a copy, in the arena */
    struct arena arena;
};

struct stored {
    struct slice bytes;
    struct arena *cells; /* the cells are decoded into it */
    const struct engi_dropped *dropped; /* of the table */
};

static void let_go(void *p) {
    struct held *h = p;
    if (h->value.handle) h->kv->ops->release(h->kv, &h->value);
    arena_fini(&h->arena);
}

static struct held *hold(struct eng *eng, struct arena *a) {
    struct held *h = ARENA_NEW(a, struct held);
    if (!h) return NULL;
    h->kv = eng->kv;
    arena_init(&h->arena, CELLS_CHUNK, 0);
    return arena_own(a, let_go, h) ? NULL : h;
}

/* Copies a value before the iterator moves on. */
static int keep_copy(struct eng *eng, struct slice bytes, struct arena *a, struct stored *out, struct err *e) {
    struct held *h = bytes.n > KEPT_BYTES_MAX ? hold(eng, a) : NULL;
    if (bytes.n > KEPT_BYTES_MAX && !h) return err_nomem(e);
    out->cells = h ? &h->arena : a;
    out->bytes = arena_dup(out->cells, bytes);
    return out->bytes.p ? 0 : err_nomem(e);
}

/* Keeps a value that a get has found: copies and releases it, or pins it for the arena's life. */
static int keep_value(struct eng *eng, struct kv_value *value, struct arena *a, struct stored *out, struct err *e) {
    if (LIKELY(value->bytes.n <= KEPT_BYTES_MAX)) {
        int rc = keep_copy(eng, value->bytes, a, out, e);
        eng->kv->ops->release(eng->kv, value);
        return rc;
    }
    struct held *h = hold(eng, a);
    if (!h) {
        eng->kv->ops->release(eng->kv, value);
        return err_nomem(e);
    }
    h->value = *value;
    *out = (struct stored){.bytes = value->bytes, .cells = &h->arena};
    return 0;
}

static int resolve(const struct stored *s, size_t key_n, int64_t del_ts, int64_t now, struct eng_row *row,
                   struct op_cost *cost, struct err *e) {
    if (eng_row_decode(s->bytes, s->cells, row, e)) return -1;
    row->newest_ts = newest_of(row, del_ts);
    if (cost) {
        cost->bytes_read += key_n + s->bytes.n;
    }
    engi_dropped_hide(s->dropped, row, now == ENG_AS_STORED);
    if (now == ENG_AS_STORED) {
        if (del_ts > row->del_ts) row->del_at = ENG_COVERED;
        row->del_ts = later(row->del_ts, del_ts);
        return 1;
    }
    int visible = eng_row_resolve(row, del_ts, now, cost ? &cost->tombstones : NULL);
    if (cost) cost->rows_read += (uint64_t)visible;
    return visible;
}

/* The state of one get: it walks over the records in front of a row (deletions, the static row) to
 * the row. */
struct walk {
    struct eng *eng;
    struct kv_iter *it;
    enum eng_tier tier;
    struct slice key, prefix, ck; /* of the row */
    struct buf seek;
    int64_t del_ts;  /* the newest deletion that covers it */
    uint64_t passed; /* tombstones that cover it */
    uint32_t loose;  /* range tombstones looked at one by one */
    struct arena *statics_arena; /* receives a copy of the static row; NULL: the static row is not wanted */
    struct stored statics;       /* bytes.p NULL: there is none */
    size_t statics_key_n;
    int64_t partition_ts;
};

static enum engi_kind kind_at(const struct walk *w) { return w->it->key.p[w->prefix.n]; }

static struct slice rest_at(const struct walk *w) {
    return slice_of(w->it->key.p + w->prefix.n + 1, w->it->key.n - w->prefix.n - 1);
}

static void covered(struct walk *w, int64_t ts) {
    w->passed++;
    if (ts > w->del_ts) w->del_ts = ts;
}

static int walk_next(struct walk *w, struct err *e) { return w->it->ops->iter_move(w->it, KV_NEXT, w->prefix, e); }

static int walk_seek(struct walk *w, struct err *e) {
    return buf_failed(&w->seek) ? err_nomem(e) : w->it->ops->iter_move(w->it, KV_SEEK, buf_slice(&w->seek), e);
}

static int keep_statics(struct walk *w, struct err *e) {
    if (!w->statics_arena) return 0;
    w->statics_key_n = w->it->key.n;
    return keep_copy(w->eng, w->it->value, w->statics_arena, &w->statics, e);
}

/* Walks past the partition's deletion and its static row, unless the static row is the one to
 * read. */
static int walk_head(struct walk *w, struct err *e) {
    int got = w->it->ops->iter_move(w->it, KV_SEEK, w->prefix, e);
    if (got > 0 && kind_at(w) == ENGI_PARTITION_DELETION) {
        int64_t at;
        if (engi_tomb_deletion(w->it->value, &w->partition_ts, &at, e)) return -1;
        covered(w, w->partition_ts);
        got = walk_next(w, e);
    }
    if (got <= 0 || w->key.p[w->prefix.n] == ENGI_STATIC || kind_at(w) != ENGI_STATIC) return got;
    return keep_statics(w, e) ? -1 : walk_next(w, e);
}

static bool on_loose(const struct walk *w) {
    return kind_at(w) == ENGI_RANGE_TOMBSTONE && !engi_on_fragment(w->it, w->prefix);
}

/* Reads the loose range tombstones that are newer than the partition's deletion. They stand behind
 * the older ones, which one seek skips. */
static int walk_loose(struct walk *w, int got, struct err *e) {
    struct engi_tomb tomb;
    bool passed_over = w->partition_ts == ENG_NO_TS;
    while (got > 0 && on_loose(w)) {
        if (++w->loose > ENGI_LOOSE_MAX && w->tier == ENG_TIER_CACHE) return ENG_INCOMPLETE;
        if (engi_tomb_read(rest_at(w), w->it->value, &tomb, e)) return -1;
        if (!passed_over && tomb.ts <= w->partition_ts && rest_at(w).p[0] == ENGI_LOOSE) {
            passed_over = true;
            engi_key_loose_after(&w->seek, w->prefix, w->partition_ts);
            got = walk_seek(w, e);
            continue;
        }
        if (engi_interval_covers(&tomb.range, w->ck)) covered(w, tomb.ts);
        got = walk_next(w, e);
    }
    return got;
}

static int walk_fragments(struct walk *w, int got, struct err *e) {
    struct engi_tomb tomb;
    if (got <= 0 || !engi_on_fragment(w->it, w->prefix)) return got;
    w->seek.n = 0;
    engi_key_fragment_after(&w->seek, w->prefix, w->ck);
    got = walk_seek(w, e);
    if (got <= 0 || !engi_on_fragment(w->it, w->prefix)) return got;
    if (engi_tomb_read(rest_at(w), w->it->value, &tomb, e)) return -1;
    if (engi_interval_covers(&tomb.range, w->ck)) covered(w, tomb.ts);
    return got;
}

/* Reads everything that may cover the row, and then moves the iterator to the row. */
static int walk_to_row(struct walk *w, struct err *e) {
    int got = walk_head(w, e);
    if (w->key.p[w->prefix.n] == ENGI_ROW) got = walk_fragments(w, walk_loose(w, got, e), e);
    if (got <= 0) return got;
    if (slice_cmp(w->it->key, w->key) < 0) got = w->it->ops->iter_move(w->it, KV_SEEK, w->key, e);
    return got > 0 ? slice_eq(w->it->key, w->key) : got;
}

/* An iterator over the partition of the key. end: memory for the prefix and one more byte, which
 * lives as long as the iterator. */
static struct kv_iter *partition_iter(struct eng *eng, enum eng_tier tier, struct slice key, uint8_t *end,
                                      struct err *e) {
    size_t prefix = engi_prefix_len(key);
    memcpy(end, key.p, prefix);
    end[prefix] = ENGI_PAST;
    struct kv_iter_spec spec = {.tier = tier,
                                .one_prefix = true,
                                .undeleted = true,
                                .upper = slice_of(end, prefix + 1)};
    return eng->kv->ops->iter_new(eng->kv, &spec, e);
}

/* After the walk: copies the row's bytes to the arena before the iterator moves on. 1, 0, -1 */
static int take_row(struct walk *w, int got, struct arena *a, struct stored *out, struct err *e) {
    if (got <= 0) return got;
    return keep_copy(w->eng, w->it->value, a, out, e) ? -1 : 1;
}

static void end_walk(struct eng *eng, struct walk *w, int got, struct op_cost *cost, struct err *e) {
    if (cost && got != ENG_INCOMPLETE) cost->tombstones += w->passed;
    buf_fini(&w->seek);
    w->it->ops->iter_free(w->it);
    /* so that the next read has fewer */
    if (got >= 0 && w->loose > ENGI_LOOSE_MAX && engi_fragment_all(eng, w->prefix, e)) err_clear(e);
}

/* The number of deletion records that cover the row. A range deletion that the partition's deletion
 * covers does not count. */
static uint8_t markers_met(const struct walk *w) {
    return (uint8_t)((w->partition_ts != ENG_NO_TS) + (w->del_ts > w->partition_ts));
}

/* Reads tombstones and row at one moment of the store, so that no read sees a row without the
 * deletion of its earlier state. */
static int get_deleted(struct eng *eng, enum eng_tier tier, struct slice key, struct slice ck, int64_t now,
                       struct arena *a, struct eng_row *row, struct op_cost *cost, struct err *e) {
    size_t prefix = engi_prefix_len(key);
    uint8_t stack[KEY_ON_STACK], *end = memory(stack, prefix + 1, a);
    if (!end) return err_nomem(e);
    struct walk w = {.eng = eng,
                     .tier = tier,
                     .key = key,
                     .prefix = slice_of(key.p, prefix),
                     .ck = ck,
                     .del_ts = ENG_NO_TS,
                     .partition_ts = ENG_NO_TS};
    if (!(w.it = partition_iter(eng, tier, key, end, e))) return -1;
    struct stored stored;
    buf_init(&w.seek, 0);
    int got = take_row(&w, walk_to_row(&w, e), a, &stored, e);
    row->newest_ts = w.del_ts;
    row->n_markers = markers_met(&w);
    stored.dropped = engi_dropped_of(engi_table(eng, load_u32(key.p)));
    if (got > 0) got = resolve(&stored, key.n, w.del_ts, now, row, cost, e);
    end_walk(eng, &w, got, cost, e);
    return got;
}

/* Gets the row from the row cache, or from the store and inserts it into the cache. 1, 0, -1,
 * INCOMPLETE */
static int get_stored(struct eng *eng, struct engi_table *t, enum eng_tier tier, struct slice key, struct arena *a,
                      struct stored *out, struct err *e) {
    struct kv_value value;
    struct engi_row_look look;
    int got = eng->row_cache ? engi_row_cache_find(eng, t, key, a, &look, &out->bytes) : ENGI_ROW_CACHE_MISS;
    if (got != ENGI_ROW_CACHE_MISS) {
        out->cells = a;
        return got;
    }
    got = eng->kv->ops->get(eng->kv, tier, key, &value, e);
    if (got < 0 || (got && keep_value(eng, &value, a, out, e))) return got < 0 ? got : -1;
    if (eng->row_cache) engi_row_cache_fill(eng, &look, key, got ? &out->bytes : NULL);
    return got;
}

static int get_plain(struct eng *eng, struct engi_table *t, enum eng_tier tier, struct slice key, int64_t now,
                     struct arena *a, struct eng_row *row, struct op_cost *cost, struct err *e) {
    struct stored stored;
    int got = get_stored(eng, t, tier, key, a, &stored, e);
    if (got <= 0) return got;
    stored.dropped = engi_dropped_of(t);
    return resolve(&stored, key.n, ENG_NO_TS, now, row, cost, e);
}

static int get_any(struct eng *eng, enum eng_tier tier, const struct eng_part *part, struct slice key, int64_t now,
                   struct arena *a, struct eng_row *row, struct op_cost *cost, struct err *e) {
    struct eng_row empty = *row;
    struct op_cost before = {0};
    if (cost) before = *cost;
    struct engi_table *t = engi_table(eng, part->table);
    if (UNLIKELY(!t) && engi_table_was_freed(eng, part->table)) return 0;
    if (!engi_deleted(t, part->token)) {
        int got = get_plain(eng, t, tier, key, now, a, row, cost, e);
        /* A tombstone may have been written at the same moment as the row just read. */
        if (LIKELY(got < 0 || !engi_deleted(t, part->token))) return got;
        if (cost) *cost = before;
        *row = empty;
    }
    return get_deleted(eng, tier, key, row->ck, now, a, row, cost, e);
}

int eng_row_get(struct eng *eng, enum eng_tier tier, const struct eng_part *part, enum eng_row_kind kind,
                struct slice ck, int64_t now, struct arena *a, struct eng_row *row, struct op_cost *cost,
                struct err *e) {
    uint8_t stack[KEY_ON_STACK];
    eng_row_init(row, kind, ck);
    struct slice key = row_key(stack, part, kind, ck, a, e);
    if (!key.p) return -1;
    struct engi_section section = engi_enter(&eng->epoch);
    int got = get_any(eng, tier, part, key, now, a, row, cost, e);
    engi_leave(&eng->epoch, section);
    if (cost && got != ENG_INCOMPLETE) cost->partitions++; /* the retry in the blocking tier counts it */
    return got;
}

/* ---- a row with its static row ---- */

/* Checks whether a row is invisible only because it has expired. */
static int resolve_expired(const struct stored *s, int64_t del_ts, struct eng_pair *out, struct err *e) {
    if (eng_row_decode(s->bytes, s->cells, &out->row, e)) return -1;
    engi_dropped_hide(s->dropped, &out->row, false);
    out->expired = eng_row_resolve(&out->row, del_ts, ENG_NEVER_EXPIRES, NULL);
    return 0;
}

static int resolve_pair(struct walk *w, struct stored *row, int64_t now, struct eng_pair *out, struct op_cost *cost,
                        struct err *e) {
    w->statics.dropped = engi_dropped_of(engi_table(w->eng, load_u32(w->key.p)));
    if (row) row->dropped = w->statics.dropped;
    if (w->statics.bytes.p) {
        int got = resolve(&w->statics, w->statics_key_n, w->partition_ts, now, &out->statics, cost, e);
        if (got < 0) return got;
        out->has_statics = got;
    }
    if (!row) return 0;
    int got = resolve(row, w->key.n, w->del_ts, now, &out->row, cost, e);
    out->has_row = got > 0;
    return got == 0 ? resolve_expired(row, w->del_ts, out, e) : got < 0 ? got : 0;
}

/* The look-ups of a row and its static row in the row cache. */
struct pair_look {
    struct engi_row_look row, statics;
    uint8_t key[ENGI_ROW_CACHE_KEY_MAX];
    struct slice statics_key;
};

/* Finds both in the cache as they were at one moment, or returns false. *got: whether there is a
 * row. */
static bool find_pair(struct walk *w, struct engi_table *t, struct arena *a, struct pair_look *l, struct stored *row,
                      int *got) {
    struct eng *eng = w->eng;
    struct slice statics;
    l->row.table = l->statics.table = NULL;
    if (!eng->row_cache || w->prefix.n >= sizeof(l->key)) return false;
    memcpy(l->key, w->prefix.p, w->prefix.n);
    l->key[w->prefix.n] = ENGI_STATIC;
    l->statics_key = slice_of(l->key, w->prefix.n + 1);
    *got = engi_row_cache_find(eng, t, w->key, a, &l->row, &row->bytes);
    int has_statics = engi_row_cache_find(eng, t, l->statics_key, a, &l->statics, &statics);
    if (*got == ENGI_ROW_CACHE_MISS || has_statics == ENGI_ROW_CACHE_MISS || !engi_row_cache_still(eng, &l->row))
        return false;
    row->cells = a;
    if (has_statics) w->statics = (struct stored){.bytes = statics, .cells = a};
    w->statics_key_n = l->statics_key.n;
    return true;
}

static void fill_pair(const struct walk *w, const struct pair_look *l, const struct stored *row) {
    engi_row_cache_fill(w->eng, &l->row, w->key, row ? &row->bytes : NULL);
    engi_row_cache_fill(w->eng, &l->statics, l->statics_key, w->statics.bytes.p ? &w->statics.bytes : NULL);
}

static int pair_from_store(struct walk *w, struct arena *a, int64_t now, struct eng_pair *out, struct op_cost *cost,
                           struct pair_look *l, struct err *e) {
    uint8_t stack[KEY_ON_STACK], *end = memory(stack, w->prefix.n + 1, a);
    struct stored stored;
    if (!end) return err_nomem(e);
    if (!(w->it = partition_iter(w->eng, w->tier, w->key, end, e))) return -1;
    buf_init(&w->seek, 0);
    int got = take_row(w, walk_to_row(w, e), a, &stored, e);
    out->row.newest_ts = w->del_ts;
    out->row.n_markers = markers_met(w);
    out->statics.newest_ts = w->partition_ts;
    if (got >= 0) fill_pair(w, l, got ? &stored : NULL);
    if (got >= 0) got = resolve_pair(w, got > 0 ? &stored : NULL, now, out, cost, e);
    end_walk(w->eng, w, got, cost, e);
    return got;
}

int eng_pair_get(struct eng *eng, enum eng_tier tier, const struct eng_part *part, struct slice ck, int64_t now,
                 struct arena *a, struct eng_pair *out, struct op_cost *cost, struct err *e) {
    uint8_t stack[KEY_ON_STACK];
    *out = (struct eng_pair){.has_row = false};
    eng_row_init(&out->row, ENG_ROW, ck);
    eng_row_init(&out->statics, ENG_STATIC, slice_of("", 0));
    struct slice key = row_key(stack, part, ENG_ROW, ck, a, e);
    if (!key.p) return -1;
    struct walk w = {.eng = eng,
                     .tier = tier,
                     .key = key,
                     .prefix = slice_of(key.p, engi_prefix_len(key)),
                     .ck = ck,
                     .del_ts = ENG_NO_TS,
                     .partition_ts = ENG_NO_TS,
                     .statics_arena = a};
    struct engi_section section = engi_enter(&eng->epoch);
    struct engi_table *t = engi_table(eng, part->table);
    struct pair_look look;
    struct stored row;
    int got = 0;
    /* As in get_any: a tombstone may have been written at the same moment as the rows found. */
    bool deleted = engi_deleted(t, part->token), found = find_pair(&w, t, a, &look, &row, &got);
    if (UNLIKELY(!t) && engi_table_was_freed(eng, part->table)) {
        got = 0; /* the table is gone, and so are its rows */
    } else if (found && !deleted && !engi_deleted(t, part->token)) {
        got = resolve_pair(&w, got ? &row : NULL, now, out, cost, e);
    } else {
        w.statics = (struct stored){.dropped = NULL};
        got = pair_from_store(&w, a, now, out, cost, &look, e);
    }
    engi_leave(&eng->epoch, section);
    if (cost && got != ENG_INCOMPLETE) cost->partitions++;
    return got;
}
