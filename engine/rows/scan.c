/* Scans: partitions in token order, each as its head (deletions, static row) and then its rows
 * slice by slice.
 *
 * One cursor serves the whole scan. A partition's item is returned when its first visible row is
 * found, or at its end when only the static row is visible. So the cursor is on that row when
 * the item is returned, and the row follows on the next call.
 */
#include <stdlib.h>

#include "base/hot.h"
#include "base/murmur3.h"
#include "engine/rows/purge.h"
#include "engine/rows/key.h"
#include "engine/rows/row_codec.h"
#include "engine/rows/partition.h"
#include "engine/store.h"

enum {
    TOMBSTONE_BYTES_MAX = 64 << 20,
    PARTITION_CHUNK = 4096,
    ROW_CHUNK = 8192,
    CACHE_ROWS_MAX = 1024,
    COVERED_MANY = 500,
    KEPT_CHUNK = 8 << 10,
    KEPT_MAX = 4096 /* bytes of a row that is copied so that it stays */
};

enum state {
    AT_SEEK /* next: seek a partition */,
    AT_SLICE /* next: enter the current slice */,
    AT_ROW /* on a row not looked at */,
    AT_NEXT /* on a row that is done */,
    AT_PENDING /* on a decoded visible row */,
    AT_PARTITION_END,
    AT_END
};

struct eng_scan {
    struct store *store;
    struct store_view view; /* as long as the scan */
    struct eng_scan_spec spec;
    enum eng_tier tier;
    size_t rows_left; /* that may still be passed: a bound on the time a loop spends, in the cache tier; */
    struct op_cost *cost;
    size_t bytes_left; /* as rows_left, but apart: GCC would lower neighbours as one vector, at twice the cost */
    struct op_cost unused_cost;
    struct kv_iter *it;
    struct arena spec_arena, partition_arena, row_arena;
    struct arena kept; /* values of rows that stay, where the iterator's do not */
    struct engi_interval *slices, whole;
    uint32_t n_slices, slice; /* in scan order: in reverse from the last slice */
    struct buf prefix;        /* of the current partition */
    struct eng_part part;     /* that is in it */
    struct buf seek;          /* scratch; also the target of AT_SEEK */
    struct buf lower, upper;
    struct engi_cover cover; /* the deletions of the partition */
    struct store_range range; /* of the cursor */
    struct eng_row statics, row;
    struct rowi_shape shape; /* of the row, where it is laid out */
    enum state state;
    uint32_t n_markers;  /* of the current partition, if deletions are delivered */
    bool static_expired; /* the static row is not visible, but its expired cells are delivered */
    bool has_static, delivered, resuming; /* of the current partition; resuming: only rows beyond resume_ck */
    bool expired;                         /* the row at AT_PENDING is */
    bool stays;                           /* the row's bytes do */
    bool on_key;                          /* the iterator is on a key */
    uint32_t covered;                     /* rows of the partition passed over because a deletion covers them */
    bool relieved;                        /* its loose tombstones were fragmented for this scan */
    /* every row up to the partition's end is wanted, and no deletion covers one */
    bool plain;
};

/* ---- opening ---- */

static int set_slices(struct eng_scan *s, struct err *e) {
    s->whole = (struct engi_interval){.from = slice_of("", 0), .no_end = true};
    s->slices = &s->whole;
    s->n_slices = 1;
    if (!s->spec.n_slices) return 0;
    s->n_slices = s->spec.n_slices;
    s->slices = ARENA_ARRAY(&s->spec_arena, s->n_slices, struct engi_interval);
    if (!s->slices) return err_nomem(e);
    s->n_slices = 0;
    for (uint32_t i = 0; i < s->spec.n_slices; i++) {
        struct engi_interval *slice = &s->slices[s->n_slices];
        if (engi_interval_of(&s->spec.slices[i], &s->spec_arena, slice)) return err_nomem(e);
        /* a slice after the greatest key is empty, and has no position among the others */
        bool nothing = !slice->no_end && !slice->to.n;
        s->n_slices += !nothing;
    }
    return 0;
}

/* Sets the keys that the scan reads, and the key at which the first partition is sought. */
static void set_bounds(struct eng_scan *s) {
    const struct eng_scan_spec *spec = &s->spec;
    if (spec->part) {
        engi_key_prefix(&s->lower, spec->part);
        engi_key_kind(&s->upper, spec->part, ENGI_PAST);
    } else {
        engi_key_token(&s->lower, spec->table, spec->token_from);
        if (spec->token_to == INT64_MAX) engi_key_table(&s->upper, spec->table + 1);
        else engi_key_token(&s->upper, spec->table, spec->token_to + 1);
    }
    if (!spec->resume_key.p) {
        buf_put_slice(&s->seek, buf_slice(&s->lower));
        return;
    }
    struct eng_part part = {.table = spec->table, .token = murmur3_token(spec->resume_key), .key = spec->resume_key};
    engi_key_prefix(&s->seek, spec->part ? spec->part : &part);
    if (spec->resume_skip) buf_u8(&s->seek, ENGI_PAST);
}

static bool may_be_deleted(const struct eng_scan *s, int64_t token) {
    const struct store_ops *ops = s->store->ops;
    return !ops->may_be_deleted || ops->may_be_deleted(s->store, &s->view, token);
}

static void hint(struct eng_scan *s, enum store_hint what) {
    if (s->store->ops->hint) s->store->ops->hint(s->store, &s->view, buf_slice(&s->prefix), what);
}

/* The key of a row's position in the partition, or of the next position. p NULL: no memory. */
static struct slice place_key(struct eng_scan *s, struct slice ck, bool behind) {
    size_t n = s->lower.n;
    uint8_t *p = arena_alloc(&s->spec_arena, n + ck.n + 2);
    if (!p) return (struct slice){0};
    memcpy(p, s->lower.p, n);
    p[n++] = ENGI_ROW;
    if (ck.n) memcpy(p + n, ck.p, ck.n);
    p[n + ck.n] = 0;
    return slice_of(p, n + ck.n + behind);
}

/* Sets the range of keys that a scan of one partition reads where nothing was deleted. */
static int set_part_range(struct eng_scan *s, struct err *e) {
    const struct eng_scan_spec *spec = &s->spec;
    struct slice resume = spec->resume_key.p ? spec->resume_ck : (struct slice){0};
    if (!spec->part || !spec->rows || !s->n_slices || spec->resume_skip ||
        (resume.p && !slice_eq(spec->resume_key, spec->part->key)))
        return 0;
    const struct engi_interval *first = &s->slices[0], *last = &s->slices[s->n_slices - 1];
    bool beyond = resume.p && !spec->reverse && slice_cmp(resume, first->from) >= 0;
    bool before = resume.p && spec->reverse && (last->no_end || slice_cmp(resume, last->to) < 0);
    struct slice from = spec->statics ? buf_slice(&s->lower) : place_key(s, beyond ? resume : first->from, beyond),
                 to = buf_slice(&s->upper);
    if (before || !last->no_end) to = place_key(s, before ? resume : last->to, false);
    if (!from.p || !to.p) return err_nomem(e);
    if (slice_cmp(from, to) >= 0) return 0;
    s->range.from = from;
    s->range.to = to;
    s->range.both_ends = spec->statics && spec->reverse;
    return 0;
}

/* A cursor reads no ballots: that of a locked partition is read before its rows are. */
static int open_cursor(struct eng_scan *s, struct err *e) {
    uint64_t ballot;
    const struct eng_part *part = s->tier == ENG_TIER_CACHE ? NULL : s->spec.part;
    if (part && !(s->store->ops->offers & STORE_ONE_WRITER))
        (void)s->store->front->ballot(s->store, slice_of(s->lower.p, ENGI_KEY_PREFIX_MIN + part->key.n), &ballot);
    s->it = s->store->ops->cursor_open(s->store, &s->view, &s->range, e);
    return s->it ? 0 : -1;
}

struct eng_scan *eng_scan_open(struct eng *eng, enum eng_tier tier, const struct eng_scan_spec *spec,
                               struct op_cost *cost, struct err *e) {
    struct eng_scan *s = calloc(1, sizeof(*s));
    if (!s) return err_nomem(e), NULL;
    s->store = store_of(eng);
    s->store->front->begin(s->store, spec->table, &s->view);
    s->spec = *spec;
    s->tier = tier;
    s->rows_left = tier == ENG_TIER_CACHE ? CACHE_ROWS_MAX : SIZE_MAX;
    s->bytes_left = tier == ENG_TIER_CACHE ? ENG_CACHE_BYTES_MAX : SIZE_MAX;
    s->cost = cost ? cost : &s->unused_cost;
    arena_init(&s->spec_arena, 1024, 0);
    arena_init(&s->partition_arena, PARTITION_CHUNK, TOMBSTONE_BYTES_MAX);
    arena_init(&s->row_arena, ROW_CHUNK, 0);
    arena_init(&s->kept, KEPT_CHUNK, 0);
    engi_cover_init(&s->cover);
    buf_init(&s->prefix, 0);
    buf_init(&s->seek, 0);
    buf_init(&s->lower, 0);
    buf_init(&s->upper, 0);
    set_bounds(s);
    if (!spec->part && spec->token_from > spec->token_to) s->state = AT_END;
    if (UNLIKELY(s->view.gone)) s->state = AT_END;
    if (spec->part && (spec->part->key.n > UINT16_MAX || spec->part->table != spec->table))
        err_set(e, ERR_SERVER, "a scan of a partition of another table");
    else if (buf_failed(&s->lower) || buf_failed(&s->upper) || buf_failed(&s->seek))
        err_nomem(e);
    else if (!set_slices(s, e)) {
        s->range = (struct store_range){.tier = tier, .part = spec->part, .reverse = spec->reverse,
                                        .wanted = spec->wanted,
                                        .lower = buf_slice(&s->lower), .upper = buf_slice(&s->upper)};
        if (!set_part_range(s, e) && !open_cursor(s, e)) return s;
    }
    eng_scan_close(s);
    return NULL;
}

void eng_scan_close(struct eng_scan *s) {
    if (!s) return;
    if (s->it) s->it->ops->iter_free(s->it);
    s->store->front->end(s->store, &s->view);
    arena_fini(&s->spec_arena);
    arena_fini(&s->partition_arena);
    arena_fini(&s->row_arena);
    arena_fini(&s->kept);
    engi_cover_fini(&s->cover);
    buf_fini(&s->prefix);
    buf_fini(&s->seek);
    buf_fini(&s->lower);
    buf_fini(&s->upper);
    free(s);
}

/* ---- the head of a partition ---- */

static int move(struct eng_scan *s, enum kv_move move_kind, struct err *e) {
    if (buf_failed(&s->seek) || buf_failed(&s->prefix)) return err_nomem(e);
    int got = s->it->ops->iter_move(s->it, move_kind, buf_slice(&s->seek), e);
    s->on_key = got > 0;
    return got;
}

/* Whether the iterator is in the current partition. In a scan of one partition the iterator's
 * bounds ensure it. */
static inline bool in_partition(const struct eng_scan *s) {
    if (s->spec.part) return s->it->key.n > s->prefix.n;
    return s->it->key.n > s->prefix.n && memcmp(s->it->key.p, s->prefix.p, s->prefix.n) == 0;
}

static struct slice key_rest(const struct eng_scan *s) { return engi_rest(s->it->key, s->prefix.n); }

static void seek_kind(struct eng_scan *s, enum engi_kind kind) {
    s->seek.n = 0;
    buf_put_slice(&s->seek, buf_slice(&s->prefix));
    buf_u8(&s->seek, (uint8_t)kind);
}

static void count_row(struct eng_scan *s) {
    s->cost->rows_read++;
    s->cost->bytes_read += s->it->key.n + s->it->value.n;
}

/* Decodes a value. Returns 1 if it is visible at now. */
static int decode(struct eng_scan *s, struct slice bytes, struct arena *a, int64_t del_ts, struct eng_row *row,
                  struct err *e) {
    if (eng_row_decode(bytes, a, row, e)) return -1;
    engi_dropped_hide(s->view.dropped, row, false);
    count_row(s);
    return eng_row_resolve(row, del_ts, s->spec.now, &s->cost->tombstones);
}

/* Counts the deletions of the partition and of ranges in the slices. Loose tombstones and fragments
 * are split together, so that their count does not depend on how many are loose. Leaves the
 * iterator at any position. */
static int count_markers(struct eng_scan *s, struct err *e) {
    const struct engi_tombs *tombs = &s->cover.tombs;
    struct engi_tombs all = *tombs;
    if (s->cover.fragmented) {
        engi_tombs_init(&all, &s->partition_arena);
        all.partition_ts = tombs->partition_ts;
        for (uint32_t i = 0; i < tombs->n; i++)
            if (engi_tombs_add(&all, &tombs->tombs[i], e)) return -1;
        uint32_t room = ENG_MARKERS_MAX;
        for (uint32_t i = 0; i < s->n_slices; i++) {
            const struct engi_interval *slice = &s->slices[i];
            struct engi_tomb piece;
            s->seek.n = 0;
            engi_key_fragment_after(&s->seek, buf_slice(&s->prefix), slice->from);
            int got = move(s, KV_SEEK, e);
            for (; got > 0 && room && engi_on_fragment(s->it, buf_slice(&s->prefix)); got = move(s, KV_NEXT, e)) {
                if (engi_tomb_read(key_rest(s), s->it->value, &piece, e)) return -1;
                if (!slice->no_end && slice_cmp(piece.range.from, slice->to) >= 0) break;
                if (piece.ts > all.partition_ts && engi_tombs_add(&all, &piece, e)) return -1;
                room--;
            }
            if (got < 0) return got;
        }
        s->rows_left -= ENG_MARKERS_MAX - room < s->rows_left ? ENG_MARKERS_MAX - room : s->rows_left;
        if (engi_tombs_fragment(&all, e)) return -1;
    }
    uint32_t ranges = engi_tombs_count(&all, s->slices, s->n_slices);
    s->n_markers = (tombs->partition_ts != ENG_NO_TS) + (ranges < ENG_MARKERS_MAX ? ranges : ENG_MARKERS_MAX);
    return 0;
}

/* Reads the static row. */
static int read_static(struct eng_scan *s, struct slice value, struct err *e) {
    if (s->tier == ENG_TIER_CACHE && value.n > ENG_CACHE_BYTES_MAX) return ENG_INCOMPLETE;
    struct slice bytes = arena_dup(&s->partition_arena, value);
    if (!bytes.p) return err_nomem(e);
    eng_row_init(&s->statics, ENG_STATIC, slice_of("", 0));
    int visible = decode(s, bytes, &s->partition_arena, s->cover.tombs.partition_ts, &s->statics, e);
    if (visible < 0) return -1;
    s->has_static = visible > 0;
    s->static_expired = !visible && s->spec.expired && s->statics.n_expired;
    return 0;
}

/* Reads the head of the partition, if it may have one: its deletion, its static row, and the loose range
 * deletions that are newer than its deletion and may cover rows of the slices. Leaves the iterator at
 * any position. Returns 1, or 0 if there are more loose ones than a scan handles. */
static int read_head(struct eng_scan *s, struct err *e) {
    struct engi_tombs *tombs = &s->cover.tombs;
    const struct engi_interval *first = s->slices, *last = s->slices + (s->n_slices ? s->n_slices - 1 : 0);
    struct engi_head h = engi_head_of(s->it, buf_slice(&s->prefix), &s->seek);
    bool deleted = may_be_deleted(s, s->part.token);
    size_t bytes = 0;
    int got = 0, rc = 0;
    if (!deleted && !s->spec.statics) return 1;
    h.on_key = s->on_key;
    for (uint32_t n_loose = 0; !rc && (got = engi_head_next(&h, e)) > 0;) {
        tombs->partition_ts = h.partition_ts;
        if (h.kind == ENGI_STATIC && s->spec.statics) rc = read_static(s, s->it->value, e);
        s->cost->tombstones += h.kind == ENGI_PARTITION_DELETION;
        if (h.kind != ENGI_RANGE_TOMBSTONE) continue;
        const struct engi_interval *range = &h.tomb.range;
        bytes += s->it->key.n;
        if (!s->relieved && (n_loose++ >= ENGI_LOOSE_MAX || bytes > ENGI_LOOSE_BYTES_MAX)) return 0;
        s->cost->tombstones++;
        bool wanted = s->n_slices && h.tomb.ts > tombs->partition_ts &&
                      (range->no_end || slice_cmp(range->to, first->from) > 0) &&
                      (last->no_end || slice_cmp(range->from, last->to) < 0);
        if (wanted && engi_tombs_add(tombs, &h.tomb, e)) return -1;
    }
    s->on_key = h.on_key;
    s->cover.fragmented = h.fragmented;
    if (rc || got < 0) return rc ? rc : got;
    if (engi_tombs_fragment(tombs, e)) return -1;
    rc = s->spec.deletions && deleted && !s->resuming ? count_markers(s, e) : 0;
    return rc ? rc : 1;
}

/* Skips a partition that is not wanted. It counts as a row towards what the scan may read. */
static int skip_partition(struct eng_scan *s, struct err *e) {
    seek_kind(s, ENGI_PAST);
    if (s->rows_left == 0) return s->tier == ENG_TIER_CACHE ? ENG_INCOMPLETE : ENG_PAUSED;
    s->rows_left--;
    /* If the partition has a single record, the next one is another partition's. */
    int got = move(s, KV_NEXT, e);
    if (got == 0) s->state = AT_END;
    return got < 0 ? got : 0;
}

/* AT_SEEK: moves to the next partition that has any key. The key gives its prefix, where its head
 * must be read. */
static int enter_partition(struct eng_scan *s, struct err *e) {
    const struct eng_part *part = s->spec.part;
    int got = 1;
    s->on_key = s->on_key && !s->spec.reverse && slice_cmp(s->it->key, buf_slice(&s->seek)) >= 0;
    if (part && !s->spec.resume_skip && !s->spec.statics && !may_be_deleted(s, part->token)) {
        buf_put_slice(&s->prefix, buf_slice(&s->lower));
    } else if ((got = s->on_key ? 1 : move(s, KV_SEEK, e)) > 0) {
        size_t n = engi_prefix_len(s->it->key);
        s->prefix.n = 0;
        buf_put(&s->prefix, s->it->key.p, n);
        if (!n) got = err_set(e, ERR_SERVER, "a stored key is damaged");
    }
    if (got <= 0) {
        s->state = AT_END;
        return got;
    }
    size_t n = s->prefix.n;
    if (buf_failed(&s->prefix)) return err_nomem(e);
    s->part = engi_prefix_part(buf_slice(&s->prefix));
    arena_reset(&s->partition_arena);
    engi_cover_begin(&s->cover, &s->partition_arena);
    s->has_static = s->static_expired = s->delivered = false;
    s->n_markers = 0;
    s->slice = 0;
    int wanted = s->spec.wants ? s->spec.wants(s->spec.wants_arg, &s->part, e) : 1;
    if (UNLIKELY(wanted <= 0)) return wanted ? -1 : skip_partition(s, e);
    struct slice resume = s->spec.resume_key,
                 key = slice_of(s->prefix.p + ENGI_KEY_PREFIX_MIN, n - ENGI_KEY_PREFIX_MIN);
    s->resuming = resume.p && s->spec.resume_ck.p && slice_eq(resume, key);
    s->plain = false;
    s->covered = 0;
    if ((got = read_head(s, e)) < 0) return got;
    if (got == 0) { /* has the loose range tombstones fragmented, and starts again with a new view */
        if (s->tier == ENG_TIER_CACHE) return ENG_INCOMPLETE;
        s->relieved = true; /* if that fails, the scan reads them as they are, up to the arena's bound */
        hint(s, STORE_MANY_LOOSE);
        s->it->ops->iter_free(s->it);
        s->on_key = false;
        s->seek.n = 0;
        buf_put_slice(&s->seek, buf_slice(&s->prefix));
        return open_cursor(s, e);
    }
    s->relieved = false;
    s->cost->partitions++;
    s->state = !s->spec.rows && s->has_static ? AT_PARTITION_END : AT_SLICE;
    return 0;
}

/* ---- rows ---- */

static const struct engi_interval *current_slice(const struct eng_scan *s) {
    return &s->slices[s->spec.reverse ? s->n_slices - 1 - s->slice : s->slice];
}

/* The position before the first row of the slice in scan order, as a key to seek. */
static enum kv_move slice_start(struct eng_scan *s, const struct engi_interval *slice) {
    struct slice resume = s->spec.resume_ck;
    seek_kind(s, ENGI_ROW);
    if (!s->spec.reverse) {
        bool beyond = s->resuming && slice_cmp(resume, slice->from) >= 0;
        buf_put_slice(&s->seek, beyond ? resume : slice->from);
        if (beyond) buf_u8(&s->seek, 0); /* the next possible key */
        return KV_SEEK;
    }
    bool beyond = s->resuming && (slice->no_end || slice_cmp(resume, slice->to) < 0);
    if (!beyond && slice->no_end) seek_kind(s, ENGI_PAST);
    else buf_put_slice(&s->seek, beyond ? resume : slice->to);
    return KV_SEEK_BACK;
}

static inline bool on_row(const struct eng_scan *s) { return in_partition(s) && s->it->key.p[s->prefix.n] == ENGI_ROW; }

/* Whether the iterator is on a row of the slice; in reverse it may be on the slice's
 * excluded end. */
static bool in_slice(const struct eng_scan *s, const struct engi_interval *slice) {
    if (!on_row(s)) return false;
    struct slice ck = key_rest(s);
    if (s->spec.reverse && slice_cmp(ck, slice->from) < 0) return false; /* forward, the scan has started at from */
    return slice->no_end || slice_cmp(ck, slice->to) < 0;
}

/* AT_SLICE: moves to the first row of the current slice, or past the slice. */
static int enter_slice(struct eng_scan *s, struct err *e) {
    if (s->slice == s->n_slices) {
        s->state = AT_PARTITION_END;
        return 0;
    }
    const struct engi_interval *slice = current_slice(s);
    enum kv_move how = slice_start(s, slice);
    /* Forward, the previous slice or the head may have ended on this very row. */
    bool there = how == KV_SEEK && s->on_key && in_partition(s) && slice_cmp(s->it->key, buf_slice(&s->seek)) >= 0;
    int got = there ? 1 : move(s, how, e);
    /* In reverse the seek may hit the excluded end itself: the slice's, or the last row of the
     * previous page. */
    if (got > 0 && how == KV_SEEK_BACK && slice_eq(s->it->key, buf_slice(&s->seek))) got = move(s, KV_PREV, e);
    if (got < 0) return got;
    s->state = AT_ROW;
    s->plain = s->spec.part && !s->spec.reverse && slice->no_end && s->spec.layout && !s->view.dropped &&
               !s->cover.fragmented && !s->cover.tombs.n && s->cover.tombs.partition_ts == ENG_NO_TS;
    if (got == 0 || !in_slice(s, slice)) {
        s->slice++;
        s->state = AT_SLICE;
    }
    return 0;
}

/* AT_NEXT, after a move with the result got. */
SELDOM static int pass_row(struct eng_scan *s, int got) {
    s->on_key = got > 0;
    if (got < 0) return got;
    s->state = AT_ROW;
    if (got == 0 || !in_slice(s, current_slice(s))) {
        s->slice++;
        s->state = AT_SLICE;
    }
    return 0;
}

/* Copies the row's key and bytes to where they stay, unless the row is large. */
static struct slice keep_row(struct eng_scan *s) {
    struct slice bytes = s->it->value;
    size_t n = s->row.ck.n;
    uint8_t *copy = s->spec.batches && bytes.n <= KEPT_MAX ? arena_alloc(&s->kept, n + bytes.n) : NULL;
    s->stays = copy != NULL;
    if (UNLIKELY(!copy)) return bytes;
    copy_short(copy, s->row.ck.p, n);
    memcpy(copy + n, bytes.p, bytes.n);
    s->row.ck.p = copy;
    bytes.p = copy + n;
    return bytes;
}

/* Sets the row's key, and returns its bytes. Both stay where that is asked for, but for a large
 * row. */
static inline struct slice row_bytes(struct eng_scan *s) {
    s->row.ck = key_rest(s);
    if (UNLIKELY(!s->it->stays)) return keep_row(s);
    s->stays = true;
    return s->it->value;
}

/* AT_ROW */
static int look_at_row(struct eng_scan *s, struct err *e) {
    int64_t del_ts;
    int loads = engi_cover_row(&s->cover, s->it, buf_slice(&s->prefix), &s->seek, s->spec.reverse, &del_ts, e);
    if (UNLIKELY(loads)) {
        uint32_t read = s->cover.window.n;
        if (loads < 0) return loads;
        s->cost->tombstones += read;
        if (s->tier == ENG_TIER_CACHE && s->rows_left < read) return ENG_INCOMPLETE;
        s->rows_left -= read < s->rows_left ? read : s->rows_left;
    }
    size_t n = s->it->value.n;
    if (s->tier == ENG_TIER_CACHE && (s->rows_left == 0 || s->bytes_left < n)) return ENG_INCOMPLETE;
    if (s->rows_left == 0 || s->bytes_left == 0) return ENG_PAUSED;
    s->rows_left--;
    s->bytes_left -= n < s->bytes_left ? n : s->bytes_left;
    s->row.kind = ENG_ROW;
    s->expired = false;
    bool lays_out = s->spec.layout && !s->view.dropped && del_ts == ENG_NO_TS;
    struct arena_mark mark = arena_mark(&s->kept);
    struct slice bytes = row_bytes(s);
    if (LIKELY(lays_out && rowi_lay_out(bytes, s->spec.layout, &s->shape, &s->row))) {
        count_row(s);
        s->state = AT_PENDING;
        return 0;
    }
    arena_reset(&s->row_arena);
    int visible = decode(s, bytes, &s->row_arena, del_ts, &s->row, e);
    /* The next scan would pass the same many rows. */
    if (!visible && del_ts != ENG_NO_TS && ++s->covered == COVERED_MANY) hint(s, STORE_MANY_COVERED);
    if (!visible && (s->spec.expired || s->spec.deletions)) {
        if (eng_row_decode(bytes, &s->row_arena, &s->row, e)) return -1;
        engi_dropped_hide(s->view.dropped, &s->row, false);
        visible = eng_row_resolve(&s->row, del_ts, ENG_NEVER_EXPIRES, NULL);
        if (!visible && s->spec.deletions) visible = s->row.n_deletions > 0;
        s->expired = visible > 0;
    }
    if (visible < 0) return -1;
    s->state = visible ? AT_PENDING : AT_NEXT;
    if (!visible) arena_rewind(&s->kept, mark);
    return 0;
}

static int give_partition(struct eng_scan *s, struct eng_item *item) {
    *item = (struct eng_item){.kind = ENG_ITEM_PARTITION,
                              .part = s->part,
                              .has_static = s->has_static,
                              .static_expired = s->static_expired,
                              .n_markers = s->n_markers,
                              .statics = s->statics};
    s->delivered = true;
    if (!s->spec.rows) s->state = AT_PARTITION_END;
    return 1;
}

static int give_row(struct eng_scan *s, struct eng_item *item) {
    item->kind = s->expired ? ENG_ITEM_EXPIRED : ENG_ITEM_ROW;
    item->part = s->part;
    item->has_static = s->has_static;
    if (s->has_static) item->statics = s->statics;
    item->row = &s->row;
    item->stays = s->stays;
    s->state = AT_NEXT;
    return 1;
}

/* AT_NEXT on a plain row: a combination of pass_row, look_at_row and give_row. Returns 0 if these
 * three must continue from the state that it leaves. */
static int next_plain(struct eng_scan *s, struct eng_item *item, struct err *e) {
    struct kv_iter *it = s->it;
    int got = it->ops->iter_move(it, KV_NEXT, (struct slice){0}, e);
    size_t n = it->value.n;
    if (UNLIKELY(got <= 0 || !on_row(s))) return pass_row(s, got);
    s->row.kind = ENG_ROW;
    if (UNLIKELY(s->rows_left == 0 || s->bytes_left < n ||
                 !rowi_lay_out(row_bytes(s), s->spec.layout, &s->shape, &s->row))) {
        s->state = AT_ROW;
        return 0;
    }
    s->rows_left--;
    s->bytes_left -= n;
    s->expired = false;
    count_row(s);
    item->kind = ENG_ITEM_ROW; /* the other fields are still set from the row before */
    item->stays = s->stays;
    return 1;
}

/* AT_PARTITION_END: returns 1 to deliver the partition only for its static row or its markers.
 * After a resume inside the partition the page before has delivered it already, unless
 * resume_statics is set. */
static int leave_partition(struct eng_scan *s, struct eng_item *item) {
    bool missing = !s->resuming || (s->spec.resume_statics && s->has_static);
    if ((s->has_static || s->static_expired || s->n_markers) && !s->delivered && missing) {
        int rc = give_partition(s, item);
        item->static_only = true;
        return rc;
    }
    seek_kind(s, ENGI_PAST);
    s->state = s->spec.part ? AT_END : AT_SEEK;
    return 0;
}

void eng_scan_allow(struct eng_scan *s, size_t rows, size_t bytes) {
    s->rows_left = rows;
    s->bytes_left = bytes;
}

/* A row that is pending was given up to the caller as its partition's item, and is still to be
 * given. */
void eng_scan_begin_batch(struct eng_scan *s) {
    if (s->state != AT_PENDING) arena_reset(&s->kept);
}

SELDOM static int walk(struct eng_scan *s, struct eng_item *item, struct err *e) {
    int rc = 0;
    while (rc == 0) {
        switch (s->state) {
        case AT_SEEK: rc = enter_partition(s, e); break;
        case AT_SLICE: rc = enter_slice(s, e); break;
        case AT_ROW: rc = look_at_row(s, e); break;
        case AT_NEXT: rc = pass_row(s, move(s, s->spec.reverse ? KV_PREV : KV_NEXT, e)); break;
        case AT_PENDING: rc = s->delivered ? give_row(s, item) : give_partition(s, item); break;
        case AT_PARTITION_END: rc = leave_partition(s, item); break;
        case AT_END: return 0;
        }
    }
    return rc;
}

int eng_scan_next(struct eng_scan *s, struct eng_item *item, struct err *e) {
    int rc = LIKELY(s->state == AT_NEXT && s->plain) ? next_plain(s, item, e) : 0;
    return LIKELY(rc) ? rc : walk(s, item, e);
}
