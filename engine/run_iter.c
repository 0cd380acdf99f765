#include "engine/run_iter.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hot.h"
#include "engine/store.h"

struct run_iter {
    struct kv_iter it;
    struct eng *eng;
    const struct kv_iter_spec *spec;
    struct engi_run_look look;
    struct engi_run *run;   /* NULL: below answers */
    uint32_t at;            /* index of the run's key that the iterator stands on */
    bool back;              /* the scan goes down */
    bool has_low, has_high; /* the run covers the scan's range on this side */
    bool began;             /* a key was given */
    struct kv_iter *below;
    bool notes;             /* what below passes */
    bool ended;             /* the notes reach the end of the scan's range */
    struct engi_run_draft draft;
};

/* A result beside those of a move: the run ends before the scan does. */
enum { OUTSIDE = 2 };

/* bytes of a cache line; distance of the prefetch behind a row */
enum { LINE = 64, AHEAD = 512, ROW_LINES = 3 };

/* ---- in the run ---- */

/* Prefetches a row ahead, because most rows of runs are not in the processor's cache when they are
 * read. */
static inline void fetch(const uint8_t *row, size_t ahead, unsigned lines) {
    uintptr_t from = (uintptr_t)row + ahead; /* may be behind all rows, where a prefetch does nothing */
    for (unsigned i = 0; i < lines; i++) __builtin_prefetch((const void *)(from + i * LINE));
}

static inline int stand(struct run_iter *i, uint32_t at) {
    struct slice row = engi_run_row(i->run, at);
    i->at = at;
    i->it.key = engi_run_key(row);
    i->it.value = slice_of(i->it.key.p + i->it.key.n, row.n - sizeof(uint32_t) - i->it.key.n);
    i->began = true;
    return 1;
}

/* The index of the first key not below this one; n: there is none. */
static uint32_t find_key(const struct engi_run *r, struct slice key) {
    uint32_t from = 0, to = r->n;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (slice_cmp(engi_run_key(engi_run_row(r, mid)), key) < 0) from = mid + 1;
        else to = mid;
    }
    return from;
}

static int past_high(struct run_iter *i) {
    i->at = i->run->n;
    return i->has_high ? 0 : OUTSIDE;
}

static int past_low(struct run_iter *i) {
    i->at = 0;
    return i->has_low ? 0 : OUTSIDE;
}

/* Most scans begin where the run does, and then need no search through keys outside the processor's
 * cache. */
static int seek(struct run_iter *i, struct slice key) {
    int c = slice_cmp(key, i->run->lo);
    if (c < 0) return OUTSIDE;
    uint32_t at = c ? find_key(i->run, key) : 0;
    return at < i->run->n ? stand(i, at) : past_high(i);
}

/* A slice excludes its end, so a key exactly there is not returned even if the run does not have
 * it. */
static int seek_back(struct run_iter *i, struct slice key) {
    uint32_t at = find_key(i->run, key);
    if (at < i->run->n && slice_eq(engi_run_key(engi_run_row(i->run, at)), key)) return stand(i, at);
    return at ? stand(i, at - 1) : past_low(i);
}

static inline int move_in_run(struct run_iter *i, enum kv_move move, struct slice key) {
    if (move == KV_NEXT) return i->at + 1 < i->run->n ? stand(i, i->at + 1) : past_high(i);
    if (move == KV_PREV) return i->at ? stand(i, i->at - 1) : past_low(i);
    return move == KV_SEEK ? seek(i, key) : seek_back(i, key);
}

/* ---- notes of the store's iterator ---- */

static void forget_notes(struct run_iter *i) {
    if (i->notes) engi_run_draft_fini(&i->draft);
    i->notes = false;
}

static void give_up(struct run_iter *i) {
    forget_notes(i);
    engi_run_give_up(&i->look);
}

static void put_bound(struct buf *b, struct slice key, bool behind) {
    b->n = 0;
    buf_put_slice(b, key);
    if (behind) buf_u8(b, 0); /* the next possible key */
}

static bool has_notes(const struct run_iter *i) { return i->draft.back ? i->draft.hi.n : i->draft.lo.n; }

/* Whether the move continues where the notes end, or begins them, since notes cover one range
 * without gaps. */
static bool follows(const struct run_iter *i, enum kv_move move, struct slice key) {
    const struct engi_run_draft *d = &i->draft;
    if (!has_notes(i)) return move == (d->back ? KV_SEEK_BACK : KV_SEEK);
    return move == (d->back ? KV_PREV : KV_NEXT) || (move == KV_SEEK && !d->back && slice_eq(key, buf_slice(&d->hi)));
}

static void begin_notes(struct run_iter *i, struct slice key) {
    if (i->draft.back) put_bound(&i->draft.hi, key, !slice_eq(key, i->spec->upper));
    else put_bound(&i->draft.lo, key, false);
}

/* Adds the result of a move to the notes. */
static void note(struct run_iter *i, int got) {
    struct engi_run_draft *d = &i->draft;
    struct buf *end = d->back ? &d->lo : &d->hi;
    i->ended = got == 0;
    if (i->ended) put_bound(end, d->back ? i->spec->lower : i->spec->upper, false);
    else put_bound(end, i->it.key, !d->back);
    if (!i->ended && engi_run_draft_add(i->eng, d, i->it.key, i->it.value)) give_up(i);
}

static void start_notes(struct run_iter *i) {
    i->notes = engi_run_draft_init(&i->draft, i->eng->runs, i->back);
}

/* Starts notes with the rows of a run, for a scan that goes on behind it. */
static void note_run(struct run_iter *i, const struct engi_run *r) {
    start_notes(i);
    if (!i->notes) return;
    put_bound(&i->draft.lo, r->lo, false);
    put_bound(&i->draft.hi, r->hi, false);
    for (uint32_t k = 0; i->notes && k < r->n; k++) {
        struct slice row = engi_run_row(r, k);
        if (engi_run_draft_add(i->eng, &i->draft, engi_run_key(row), engi_run_value(row))) give_up(i);
    }
}

/* ---- the store's iterator ---- */

static int move_below(struct run_iter *i, enum kv_move move, struct slice key, struct err *e) {
    int got = i->below->ops->iter_move(i->below, move, key, e);
    if (got > 0) {
        i->it.key = i->below->key;
        i->it.value = i->below->value;
        i->began = true;
    }
    if (LIKELY(!i->notes) || i->ended) return got;
    if (got < 0) {
        forget_notes(i);
    } else if (!follows(i, move, key)) {
        give_up(i);
    } else {
        if (!has_notes(i)) begin_notes(i, key);
        note(i, got);
    }
    return got;
}

/* Goes on at the run's end, in the direction of the move. */
static int go_on(struct run_iter *i, const struct engi_run *run, enum kv_move move, struct slice key, bool same,
                 struct err *e) {
    bool ahead = move == KV_NEXT ||
                 (same && move == KV_SEEK && slice_cmp(key, run->lo) >= 0 && slice_cmp(key, run->hi) <= 0);
    if (ahead && same && engi_run_is_due(&i->look, i->spec->tier)) note_run(i, run);
    if (ahead) return move_below(i, KV_SEEK, run->hi, e);
    if (move != KV_PREV) return move_below(i, move, key, e);
    int got = move_below(i, KV_SEEK_BACK, engi_run_key(engi_run_row(run, 0)), e);
    return got > 0 ? move_below(i, KV_PREV, key, e) : got;
}

/* Switches from the run to the store's iterator. The records returned so far are of the run's
 * moment, so the rest must be, too. */
static int leave(struct run_iter *i, enum kv_move move, struct slice key, struct err *e) {
    struct engi_run *run = i->run;
    assert(!i->began || i->spec->tier == ENG_TIER_CACHE);
    if (!(i->below = i->eng->kv->ops->iter_new(i->eng->kv, i->spec, e))) return -1;
    bool same = engi_run_holds(i->eng, &i->look);
    if (i->began && !same) return KV_INCOMPLETE;
    i->run = NULL;
    engi_run_count(i->eng, &i->look, false);
    int got = go_on(i, run, move, key, same, e);
    engi_run_unref(run);
    return got;
}

/* ---- as an iterator ---- */

static SELDOM int move_any(struct run_iter *i, enum kv_move move, struct slice key, struct err *e) {
    if (!i->run) return move_below(i, move, key, e);
    int got = move_in_run(i, move, key);
    return LIKELY(got != OUTSIDE) ? got : leave(i, move, key, e);
}

static int iter_move(struct kv_iter *it, enum kv_move move, struct slice key, struct err *e) {
    struct run_iter *i = (struct run_iter *)it;
    bool next = move == KV_NEXT && i->run && i->at + 1 < i->run->n;
    if (UNLIKELY(!next)) return kv_iter_lend(it, move_any(i, move, key, e), e);
    int got = stand(i, i->at + 1);
    fetch(i->it.value.p, i->it.value.n + AHEAD, ROW_LINES);
    return kv_iter_lend(it, got, e);
}

static void iter_free(struct kv_iter *it) {
    struct run_iter *i = (struct run_iter *)it;
    (void)kv_iter_lend(it, 0, NULL);
    if (i->run) engi_run_count(i->eng, &i->look, true);
    if (i->notes && has_notes(i)) engi_run_keep(i->eng, &i->look, &i->draft);
    forget_notes(i);
    if (i->run) engi_run_unref(i->run);
    if (i->below) i->below->ops->iter_free(i->below);
    free(i);
}

static const struct kv_ops run_ops = {.iter_move = iter_move, .iter_free = iter_free};

static struct kv_iter *through_run(struct run_iter *i, struct engi_run *run, const struct engi_run_want *want) {
    i->run = run;
    fetch(run->bytes, 0, AHEAD / LINE);
    i->has_low = slice_cmp(run->lo, want->from) <= 0;
    i->has_high = slice_cmp(want->to, run->hi) <= 0;
    return &i->it;
}

static struct kv_iter *through_store(struct run_iter *i, struct err *e) {
    i->below = i->eng->kv->ops->iter_new(i->eng->kv, i->spec, e);
    start_notes(i);
    if (i->below) return &i->it;
    iter_free(&i->it);
    return NULL;
}

struct kv_iter *engi_run_iter_new(struct eng *eng, const struct kv_iter_spec *spec, const struct engi_run_want *want,
                                  struct err *e) {
    struct engi_run_look look;
    struct engi_run *run = engi_run_find(eng, want, &look);
    bool due = !run && engi_run_is_due(&look, spec->tier);
    /* malloc, unlike calloc, takes it from the thread's own cache */
    struct run_iter *i = run || due ? malloc(sizeof(*i)) : NULL;
    if (i) *i = (struct run_iter){.it.ops = &run_ops, .eng = eng, .spec = spec, .look = look, .back = want->back};
    if (i && run) return through_run(i, run, want);
    if (run) engi_run_unref(run);
    engi_run_count(eng, &look, false);
    return i ? through_store(i, e) : eng->kv->ops->iter_new(eng->kv, spec, e);
}
