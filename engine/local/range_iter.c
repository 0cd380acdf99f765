#include "engine/local/range_iter.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hot.h"
#include "engine/local/local.h"
#include "engine/local/range_cache.h"

struct range_iter {
    struct kv_iter it;
    struct local *own;
    struct kv_iter_spec spec;
    struct engi_range_look look;
    struct engi_cached_range *range;   /* NULL: below answers */
    struct engi_cached_range *left;    /* that was left for below; NULL: none. Its rows stay */
    uint32_t at;            /* index of the cached range's key that the iterator stands on */
    bool back;              /* the scan goes down */
    bool has_low, has_high; /* the cached range covers the scan's range on this side */
    bool began;             /* a key was given */
    struct kv_iter *below;
    bool notes;             /* what below passes */
    bool ended;             /* the notes reach the end of the scan's range */
    struct engi_range_draft draft;
};

/* A result beside those of a move: the cached range ends before the scan does. */
enum { OUTSIDE = 2 };

/* bytes of a cache line; distance of the prefetch behind a row */
enum { LINE = 64, AHEAD = 512, ROW_LINES = 3 };

/* ---- in the cached range ---- */

/* Prefetches a row ahead, because most rows of cached ranges are not in the processor's cache when
 * they are read. */
static inline void fetch(const uint8_t *row, size_t ahead, unsigned lines) {
    uintptr_t from = (uintptr_t)row + ahead; /* may be behind all rows, where a prefetch does nothing */
    for (unsigned i = 0; i < lines; i++) __builtin_prefetch((const void *)(from + i * LINE));
}

static inline int stand(struct range_iter *i, uint32_t at) {
    struct slice row = engi_cached_range_row(i->range, at);
    i->at = at;
    i->it.key = engi_cached_range_key(row);
    i->it.value = engi_cached_range_value(row);
    i->began = true;
    return 1;
}

static struct slice key_at(const struct engi_cached_range *r, uint32_t at) {
    return engi_cached_range_key(engi_cached_range_row(r, at));
}

/* The index of the first key not below this one; n: there is none. */
static uint32_t find_key(const struct engi_cached_range *r, struct slice key) {
    uint32_t from = 0, to = r->n;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (slice_cmp(key_at(r, mid), key) < 0) from = mid + 1;
        else to = mid;
    }
    return from;
}

static int past_high(struct range_iter *i) {
    i->at = i->range->n;
    return i->has_high ? 0 : OUTSIDE;
}

static int past_low(struct range_iter *i) {
    i->at = 0;
    return i->has_low ? 0 : OUTSIDE;
}

static inline int move_in_range(struct range_iter *i, enum kv_move move, struct slice key) {
    const struct engi_cached_range *r = i->range;
    if (move == KV_NEXT) return i->at + 1 < r->n ? stand(i, i->at + 1) : past_high(i);
    if (move == KV_PREV) return i->at ? stand(i, i->at - 1) : past_low(i);
    /* Most scans begin where the cached range does, and then need no search through keys outside the
     * processor's cache. */
    int c = move == KV_SEEK ? slice_cmp(key, r->lo) : 1;
    if (c < 0) return OUTSIDE;
    uint32_t at = c ? find_key(r, key) : 0;
    if (move == KV_SEEK) return at < r->n ? stand(i, at) : past_high(i);
    /* A slice excludes its end, so a key exactly there is not returned even if the cached range does
     * not have it. */
    if (at < r->n && slice_eq(key_at(r, at), key)) return stand(i, at);
    return at ? stand(i, at - 1) : past_low(i);
}

/* ---- notes of the store's iterator ---- */

static void forget_notes(struct range_iter *i) {
    if (i->notes) engi_range_draft_fini(&i->draft);
    i->notes = false;
}

static void give_up(struct range_iter *i) {
    forget_notes(i);
    engi_range_cache_give_up(i->own, &i->look);
}

static void put_bound(struct buf *b, struct slice key, bool behind) {
    b->n = 0;
    buf_put_slice(b, key);
    if (behind) buf_u8(b, 0); /* the next possible key */
}

static bool has_notes(const struct range_iter *i) { return i->draft.back ? i->draft.hi.n : i->draft.lo.n; }

/* Adds the result of a move to the notes, which cover one range without gaps: the move continues where the
 * notes end, or begins them. */
static void note(struct range_iter *i, enum kv_move move, struct slice key, int got) {
    struct engi_range_draft *d = &i->draft;
    struct buf *end = d->back ? &d->lo : &d->hi;
    bool begins = !has_notes(i);
    enum kv_move first = d->back ? KV_SEEK_BACK : KV_SEEK, next = d->back ? KV_PREV : KV_NEXT;
    bool at_end = move == KV_SEEK && !d->back && slice_eq(key, buf_slice(&d->hi));
    if (got < 0) return forget_notes(i);
    if (begins ? move != first : move != next && !at_end) return give_up(i);
    if (begins) put_bound(d->back ? &d->hi : &d->lo, key, d->back && !slice_eq(key, i->spec.upper));
    i->ended = got == 0;
    if (i->ended) put_bound(end, d->back ? i->spec.lower : i->spec.upper, false);
    else put_bound(end, i->it.key, !d->back);
    if (!i->ended && engi_range_draft_add(d, i->it.key, i->it.value)) give_up(i);
}

static void start_notes(struct range_iter *i) {
    i->notes = engi_range_draft_init(&i->draft, i->own->cache, i->back);
}

/* ---- the store's iterator ---- */

static int move_below(struct range_iter *i, enum kv_move move, struct slice key, struct err *e) {
    int got = i->below->ops->iter_move(i->below, move, key, e);
    if (got > 0) {
        i->it.key = i->below->key;
        i->it.value = i->below->value;
        i->began = true;
    }
    if (UNLIKELY(i->notes) && !i->ended) note(i, move, key, got);
    return got;
}

/* Switches from the cached range to the store's iterator, which goes on at the range's end in the
 * direction of the move. The records returned so far are of the cached range's moment, so the rest
 * must be, too. */
static int leave(struct range_iter *i, enum kv_move move, struct slice key, struct err *e) {
    struct engi_cached_range *range = i->range;
    assert(!i->began || i->spec.tier == ENG_TIER_CACHE);
    if (!(i->below = kv_iter_new(i->own->kv, &i->spec, e))) return -1;
    bool same = engi_range_cache_holds(i->own, &i->look);
    if (i->began && !same) return KV_INCOMPLETE;
    i->range = NULL;
    i->left = range;
    i->it.stays = false;
    engi_range_cache_count(i->own, &i->look, false);
    bool ahead = move == KV_NEXT ||
                 (same && move == KV_SEEK && slice_cmp(key, range->lo) >= 0 && slice_cmp(key, range->hi) <= 0);
    if (ahead && same && engi_range_cache_is_due(i->own, &i->look, i->spec.tier)) start_notes(i);
    if (i->notes) { /* from the rows of the cached range on */
        put_bound(&i->draft.lo, range->lo, false);
        put_bound(&i->draft.hi, range->hi, false);
    }
    for (uint32_t k = 0; i->notes && k < range->n; k++) {
        struct slice row = engi_cached_range_row(range, k);
        if (engi_range_draft_add(&i->draft, engi_cached_range_key(row), engi_cached_range_value(row))) give_up(i);
    }
    if (ahead) return move_below(i, KV_SEEK, range->hi, e);
    if (move != KV_PREV) return move_below(i, move, key, e);
    int got = move_below(i, KV_SEEK_BACK, key_at(range, 0), e);
    return got > 0 ? move_below(i, KV_PREV, key, e) : got;
}

/* ---- as an iterator ---- */

/* Apart from iter_move, whose few instructions for the next row of a range it would double. */
static SELDOM int move_any(struct range_iter *i, enum kv_move move, struct slice key, struct err *e) {
    if (!i->range) return move_below(i, move, key, e);
    int got = move_in_range(i, move, key);
    return LIKELY(got != OUTSIDE) ? got : leave(i, move, key, e);
}

static int iter_move(struct kv_iter *it, enum kv_move move, struct slice key, struct err *e) {
    struct range_iter *i = (struct range_iter *)it;
    bool next = move == KV_NEXT && i->range && i->at + 1 < i->range->n;
    if (UNLIKELY(!next)) return kv_iter_lend(it, move_any(i, move, key, e), e);
    int got = stand(i, i->at + 1);
    fetch(i->it.value.p, i->it.value.n + AHEAD, ROW_LINES);
    return kv_iter_lend(it, got, e);
}

static void iter_free(struct kv_iter *it) {
    struct range_iter *i = (struct range_iter *)it;
    (void)kv_iter_lend(it, 0, NULL);
    if (i->range) engi_range_cache_count(i->own, &i->look, true);
    if (i->notes && has_notes(i)) engi_range_cache_keep(i->own, &i->look, &i->draft);
    forget_notes(i);
    if (i->range) engi_cached_unref(&i->range->head);
    if (i->left) engi_cached_unref(&i->left->head);
    if (i->below) i->below->ops->iter_free(i->below);
    free(i);
}

static const struct kv_iter_ops range_ops = {.iter_move = iter_move, .iter_free = iter_free};

struct kv_iter *engi_range_iter_new(struct local *own, const struct kv_iter_spec *spec,
                                    const struct engi_range_want *want, struct err *e) {
    struct engi_range_look look;
    struct engi_cached_range *range = engi_range_cache_find(own, want, &look);
    bool due = !range && engi_range_cache_is_due(own, &look, spec->tier);
    /* malloc, unlike calloc, takes it from the thread's own cache */
    struct range_iter *i = range || due ? malloc(sizeof(*i)) : NULL;
    if (i) *i = (struct range_iter){.it.ops = &range_ops, .own = own, .spec = *spec, .look = look, .back = want->back};
    if (i && range) {
        i->range = range;
        i->it.stays = !POISONS; /* kv_iter_lend makes copies */
        fetch(range->bytes, 0, AHEAD / LINE);
        i->has_low = slice_cmp(range->lo, want->from) <= 0;
        i->has_high = slice_cmp(want->to, range->hi) <= 0;
        return &i->it;
    }
    if (range) engi_cached_unref(&range->head);
    engi_range_cache_count(own, &look, false);
    struct kv_iter *below = kv_iter_new(own->kv, spec, e);
    if (!i || !below) {
        free(i);
        return below;
    }
    i->below = below;
    start_notes(i);
    return &i->it;
}
