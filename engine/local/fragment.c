#include "engine/local/fragment.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/local/local.h"
#include "engine/rows/key.h"
#include "engine/rows/partition.h"

struct loose {
    struct slice key;
    struct engi_tomb tomb;
};

struct step {
    struct local *own;
    struct slice prefix;
    struct kv_iter *it;
    struct kv_batch *batch;
    struct arena arena;
    struct buf key, value;
    struct engi_tombs tombs; /* the loose tombstones taken and the fragments below them */
    struct loose loose[ENGI_FRAGMENT_LOOSE];
    uint32_t n_loose, n_pieces;
    struct slice clip; /* in a full step, the key from which on nothing is fragmented; p NULL: the step is not full */
    bool more;
};

static int seek(struct step *s, struct err *e) {
    return buf_failed(&s->key) ? err_nomem(e) : s->it->ops->iter_move(s->it, KV_SEEK, buf_slice(&s->key), e);
}

/* Reads the partition's deletion, if there is one, and the loose range tombstones. */
static int read_loose(struct step *s, struct err *e) {
    struct engi_head h = engi_head_of(s->it, s->prefix, &s->key);
    size_t bytes = 0;
    int got;
    h.all = true;
    while ((got = engi_head_next(&h, e)) > 0 && !h.fragmented) {
        s->tombs.partition_ts = h.partition_ts;
        if (h.kind != ENGI_RANGE_TOMBSTONE) continue;
        s->more = s->n_loose == ENGI_FRAGMENT_LOOSE || bytes >= ENGI_LOOSE_BYTES_MAX;
        if (s->more) break;
        struct loose *l = &s->loose[s->n_loose];
        bytes += s->it->key.n;
        l->key = arena_dup(&s->arena, s->it->key);
        l->tomb = h.tomb;
        if (!l->key.p || engi_interval_keep(&l->tomb.range, &s->arena)) return err_nomem(e);
        s->n_loose++;
    }
    return got < 0 ? got : 0;
}

static int by_start(const void *a, const void *b) {
    return slice_cmp(((const struct loose *)a)->tomb.range.from, ((const struct loose *)b)->tomb.range.from);
}

/* Takes the fragments that a range overlaps and that are not taken yet: deletes them, and adds them
 * to those to make new ones of. */
static int read_pieces(struct step *s, const struct engi_interval *range, struct slice *beyond, struct err *e) {
    struct slice from = beyond->p && slice_cmp(*beyond, range->from) > 0 ? *beyond : range->from;
    struct engi_tomb piece;
    s->key.n = 0;
    engi_key_fragment_after(&s->key, s->prefix, from);
    int got = seek(s, e);
    while (got > 0 && engi_on_fragment(s->it, s->prefix)) {
        if (engi_tomb_read(engi_rest(s->it->key, s->prefix.n), s->it->value, &piece, e)) return -1;
        if (!range->no_end && slice_cmp(piece.range.from, range->to) >= 0) break;
        kv_batch_delete(s->batch, s->it->key);
        if (piece.ts > s->tombs.partition_ts && engi_tombs_add(&s->tombs, &piece, e)) return -1;
        *beyond = piece.range.no_end ? slice_of("", 0) : arena_dup(&s->arena, piece.range.to);
        if (!beyond->p) return err_nomem(e);
        if (piece.range.no_end) break;
        if (++s->n_pieces >= ENGI_FRAGMENT_PIECES) {
            s->clip = *beyond; /* the step is full */
            break;
        }
        got = s->it->ops->iter_move(s->it, KV_NEXT, s->prefix, e);
    }
    return got < 0 ? got : 0;
}

static int put(struct step *s, const struct engi_tomb *tomb, bool fragmented) {
    assert(!fragmented || engi_partition_is_fragmenting(&s->own->guards, s->prefix)); /* invariant 2 */
    s->key.n = s->value.n = 0;
    if (fragmented) engi_key_fragment(&s->key, s->prefix, &tomb->range);
    else engi_key_loose(&s->key, s->prefix, &tomb->range, tomb->ts);
    engi_tomb_value(&s->value, tomb, fragmented);
    if (buf_failed(&s->key) || buf_failed(&s->value)) return -1;
    kv_batch_put(s->batch, buf_slice(&s->key), buf_slice(&s->value));
    return 0;
}

static int run(struct step *s, struct err *e) {
    struct slice beyond = {0};
    struct engi_tomb piece;
    int rc = read_loose(s, e);
    if (rc || !s->n_loose) return rc;
    qsort(s->loose, s->n_loose, sizeof(s->loose[0]), by_start);
    for (uint32_t i = 0; i < s->n_loose && !s->clip.p && !rc; i++)
        rc = read_pieces(s, &s->loose[i].tomb.range, &beyond, e);
    /* Deletes the loose records; the part of one beyond clip is written back as loose. */
    for (uint32_t i = 0; i < s->n_loose && !rc; i++) {
        struct engi_tomb tomb = s->loose[i].tomb, rest = tomb;
        if (s->clip.p && slice_cmp(tomb.range.from, s->clip) >= 0) continue;
        kv_batch_delete(s->batch, s->loose[i].key);
        if (tomb.ts <= s->tombs.partition_ts) continue;
        if (s->clip.p && (tomb.range.no_end || slice_cmp(tomb.range.to, s->clip) > 0)) {
            tomb.range.to = rest.range.from = s->clip;
            tomb.range.no_end = false;
            if (put(s, &rest, false)) return err_nomem(e);
        }
        rc = engi_tombs_add(&s->tombs, &tomb, e);
    }
    s->more = s->more || s->clip.p;
    if (rc || (rc = engi_tombs_fragment(&s->tombs, e))) return rc;
    for (uint32_t i = 0; s->tombs.n && engi_tombs_next(&s->tombs, &i, &piece);)
        if (put(s, &piece, true)) return err_nomem(e);
    assert(engi_partition_is_shared(&s->own->guards, s->prefix)); /* invariant 7 (a) */
    rc = kv_write(s->own->kv, s->batch, false, e);
    if (rc) return rc == KV_BUSY ? ENG_INCOMPLETE : -1; /* a busy store fragments later */
    engi_count(s->own->eng, ENG_STAT_FRAGMENTED);
    return s->more;
}

int engi_fragment_step(struct local *own, enum eng_tier tier, struct slice prefix, struct err *e) {
    struct engi_table *t = engi_table_pin(own->eng, load_u32(prefix.p), e); /* invariant 8 */
    if (!t) return -1;
    if (!engi_partition_fragment(&own->guards, prefix, tier == ENG_TIER_ANY)) {
        engi_table_unpin(own->eng, t);
        return ENG_INCOMPLETE;
    }
    struct step *s = calloc(1, sizeof(*s));
    struct buf upper;
    buf_init(&upper, 0);
    buf_put_slice(&upper, prefix);
    buf_u8(&upper, ENGI_PAST);
    /* In the cache tier the store's range deletes are ignored. Only a table made again as the base
     * of a history can have some, and it is fragmented in the blocking tier. */
    struct kv_iter_spec spec = {
        .tier = tier, .one_prefix = true, .undeleted = tier == ENG_TIER_CACHE, .upper = buf_slice(&upper)};
    int rc = s && !buf_failed(&upper) ? 0 : err_nomem(e);
    if (!rc) {
        s->own = own;
        s->prefix = prefix;
        s->batch = kv_batch_new(own->kv);
        arena_init(&s->arena, 4096, 0);
        engi_tombs_init(&s->tombs, &s->arena);
        buf_init(&s->key, 0);
        buf_init(&s->value, 0);
        s->it = s->batch ? kv_iter_new(own->kv, &spec, e) : NULL;
        rc = s->it ? run(s, e) : s->batch ? -1 : err_nomem(e);
        if (s->it) s->it->ops->iter_free(s->it);
        if (s->batch) kv_batch_free(s->batch);
        buf_fini(&s->value);
        buf_fini(&s->key);
        arena_fini(&s->arena);
    }
    free(s);
    buf_fini(&upper);
    engi_partition_end_fragment(&own->guards, prefix);
    engi_table_unpin(own->eng, t);
    return rc;
}

int engi_fragment_all(struct local *own, struct slice prefix, struct err *e) {
    int rc = engi_commit_check(own->eng, e);
    if (rc) return rc;
    while ((rc = engi_fragment_step(own, ENG_TIER_ANY, prefix, e)) > 0) {}
    return rc;
}
