/* The store's side of reads. The store has one writer and records where something was deleted. Elsewhere a
 * row is one get, from the row cache or RocksDB, and a scan of one partition may read from a cached
 * range. */
#include "engine/local/fragment.h"
#include "engine/local/local.h"
#include "engine/local/range_cache.h"
#include "engine/local/row_cache.h"
#include "engine/rows/partition.h"

/* A mark that was removed since the cursor was opened may have represented records that the cursor
 * still sees. */
bool engi_read_may_be_deleted(struct store *s, const struct store_view *view, int64_t token) {
    return engi_deleted(view->table, token) || atomic_load(&local_of(s)->heals) != view->moment;
}

/* ---- one row ---- */

/* Gets the row from the row cache, or from the store and inserts it into the cache. A small value
 * is copied, and a large one is pinned for the arena's life. */
static int get(struct local *own, struct local_table *t, enum eng_tier tier, struct store_read *r, struct err *e) {
    struct kv_value value;
    struct engi_cache_look look;
    int got = own->cache ? engi_row_cache_find(own, t, r->key, r->arena, &look, &r->row.bytes)
                             : ENGI_ROW_CACHE_MISS;
    if (got != ENGI_ROW_CACHE_MISS) {
        r->row.cells = r->arena;
        if (!got) r->row.bytes.p = NULL;
        return 0;
    }
    got = kv_get(own->kv, tier, r->key, &value, e);
    if (got < 0) return got;
    if (got && UNLIKELY(value.bytes.n > ENGI_COPIED_MAX)) {
        r->row = (struct store_value){.bytes = value.bytes,
                                      .cells = engi_value_own(r->arena, kv_release, value.handle)};
        if (!r->row.cells) kv_release(value.handle);
        if (!r->row.cells) return err_nomem(e);
    } else if (got) {
        int rc = engi_value_copy(value.bytes, r->arena, &r->row, e);
        kv_release(value.handle);
        if (rc) return -1;
    }
    if (own->cache) engi_row_cache_fill(own, &look, r->key, got ? &r->row.bytes : NULL);
    return 0;
}

/* Walks over the partition in the store. */
static int walk(struct local *own, enum eng_tier tier, struct store_read *r, struct err *e) {
    enum { ON_STACK = 512 };
    size_t n = r->n_prefix;
    struct slice prefix = slice_of(r->key.p, n);
    uint8_t stack[ON_STACK], *upper = n < ON_STACK ? stack : arena_alloc(r->arena, n + 1);
    if (!upper) return err_nomem(e);
    memcpy(upper, r->key.p, n);
    upper[n] = ENGI_PAST;
    struct kv_iter_spec spec = {.tier = tier, .one_prefix = true, .undeleted = true, .upper = slice_of(upper, n + 1)};
    struct kv_iter *it = kv_iter_new(own->kv, &spec, e);
    if (!it) return -1;
    engi_read_begin(r);
    int rc = engi_walk(it, tier, r, e);
    it->ops->iter_free(it);
    /* so that the next read has fewer */
    if (!rc && r->n_loose > ENGI_LOOSE_MAX && engi_fragment_all(own, prefix, e)) err_clear(e);
    return rc;
}

/* The look-ups of a row and its static row in the row cache. */
struct pair_look {
    struct engi_cache_look row, statics;
    uint8_t key[ENGI_ROW_CACHE_KEY_MAX];
    struct slice statics_key;
};

/* Finds both in the cache, in a consistent snapshot, or returns false. */
static bool find_pair(struct local *own, struct local_table *t, struct store_read *r, struct pair_look *l) {
    struct slice statics;
    l->row.table = l->statics.table = NULL;
    if (!own->cache || r->n_prefix >= sizeof(l->key)) return false;
    memcpy(l->key, r->key.p, r->n_prefix);
    l->key[r->n_prefix] = ENGI_STATIC;
    l->statics_key = slice_of(l->key, r->n_prefix + 1);
    int has_row = engi_row_cache_find(own, t, r->key, r->arena, &l->row, &r->row.bytes);
    int has_statics = engi_row_cache_find(own, t, l->statics_key, r->arena, &l->statics, &statics);
    /* They are a consistent snapshot if no write to the row's guard came between. */
    bool missed = has_row == ENGI_ROW_CACHE_MISS || has_statics == ENGI_ROW_CACHE_MISS;
    if (missed || !l->row.fills || !engi_cache_look_holds(&l->row)) return false;
    r->row.cells = r->statics.cells = r->arena;
    if (!has_row) r->row.bytes.p = NULL;
    if (has_statics) r->statics.bytes = statics;
    r->n_statics_key = l->statics_key.n;
    return true;
}

int engi_read_row(struct store *s, const struct store_view *view, enum eng_tier tier, struct store_read *r,
                  struct err *e) {
    struct local *own = local_of(s);
    struct pair_look l;
    /* A tombstone may have been written at the same moment as the rows found: the mark is looked at
     * before and after. */
    if (r->with_statics) {
        bool deleted = engi_deleted(view->table, r->part->token), found = find_pair(own, view->table, r, &l);
        if (found && !deleted && !engi_deleted(view->table, r->part->token)) return 0;
        int rc = walk(own, tier, r, e);
        if (rc) return rc;
        engi_row_cache_fill(own, &l.row, r->key, r->row.bytes.p ? &r->row.bytes : NULL);
        engi_row_cache_fill(own, &l.statics, l.statics_key, r->statics.bytes.p ? &r->statics.bytes : NULL);
        return 0;
    }
    if (!engi_deleted(view->table, r->part->token)) {
        int rc = get(own, view->table, tier, r, e);
        if (LIKELY(rc || !engi_deleted(view->table, r->part->token))) return rc;
    }
    return walk(own, tier, r, e);
}

/* ---- cursors ---- */

struct kv_iter *engi_read_cursor(struct store *s, struct store_view *view, const struct store_range *range,
                                 struct err *e) {
    struct local *own = local_of(s);
    view->moment = atomic_load(&own->heals);
    struct kv_iter_spec spec = {.tier = range->tier, .one_prefix = range->part && !range->reverse, .undeleted = true,
                                .lower = range->lower, .upper = range->upper};
    if (own->cache && range->from.p && !engi_read_may_be_deleted(s, view, range->part->token)) {
        struct engi_range_want want = {.table = view->table, .back = range->reverse,
                                       .from = range->from, .to = range->to,
                                       .whole = range->tier != ENG_TIER_CACHE || range->both_ends};
        return engi_range_iter_new(own, &spec, &want, e);
    }
    return kv_iter_new(own->kv, &spec, e);
}

/* ---- hints ---- */

/* Has the reclaimer visit the bucket early, or fragments the partition's range deletions. If that
 * fails, readers continue as before. */
void engi_read_hint(struct store *s, const struct store_view *view, struct slice prefix, enum store_hint hint) {
    struct local_table *t = view->table;
    uint16_t bucket = engi_bucket_of_key(prefix);
    struct err e = {0};
    if (hint == STORE_MANY_LOOSE) {
        if (engi_fragment_all(local_of(s), prefix, &e)) err_clear(&e);
    } else if (t && !engi_mark_has(t->passed, bucket)) engi_mark_put(t->passed, bucket, true);
}
