#include "engine/rados/reclaim.h"

#include <assert.h>
#include <errno.h>

#include "base/array.h"
#include "engine/rados/batchlog.h"
#include "engine/rados/cursor.h"
#include "engine/rados/move.h"
#include "engine/rados/read.h"
#include "engine/rados/write.h"
#include "engine/rows/purge.h"
#include "engine/rows/tombstone.h"

enum {
    IN_FLIGHT_S = 70,
    CHANGES_MAX = 500,        /* records that a round changes, */
    CHANGES_BYTES = 1 << 20, /* and their bytes, about */
    ROUNDS_MAX = 1000,       /* of one partition */
    CONFLICTS_MAX = 16,      /* rounds that conflict with another writer's removals */
    CHUNK = 16 << 10,
};

/* Results of a round, in addition to -1 and the nonzero results of o->visited, which end the pass. ROUND_DONE: nothing
 * is left to do. ROUND_MORE: another round continues from p->from. ROUND_CONFLICT: another writer has changed the
 * partition. ROUND_LEFT: the partition is left to the next pass. */
enum { ROUND_DONE = 0, ROUND_MORE = -2, ROUND_CONFLICT = -3, ROUND_LEFT = -4 };

static const struct slice visit_key = {(const uint8_t *)"\x01p", 2};

/* Data that a round drops. The round reports it once it is written. */
struct dropped {
    struct slice key, before; /* of the record; its value before */
    int64_t covered_ts;
    bool expired;
};

struct pass {
    struct rados *s;
    const struct store_reclaim *o;
    int64_t before_seconds; /* Q14 */
    struct buf prefix;    /* of the partition that is visited */
    struct arena page;    /* of the scan */
    struct buf from;      /* the round begins with this row; empty for the first */
    /* Of a round: */
    struct arena arena;
    struct read_result head;
    struct engi_tombs tombs;
    bool whole; /* it has read the partition from its first row to its last */
    const struct omap_pairs *old; /* operands of deletions that may be removed; NULL for any */
    struct write_change changes[CHANGES_MAX];
    size_t n, bytes;
    struct dropped *dropped;
    size_t n_dropped, cap_dropped;
    size_t n_judged; /* rows of pieces */
};

/* ---- the changes of a record ---- */

static bool is_full(const struct pass *p) { return p->n == CHANGES_MAX || p->bytes >= CHANGES_BYTES; }

/* Adds a change that replaces or removes all operands of a record. Copies them, but only the length of their values. */
static int add_change(struct pass *p, const struct record *r, struct slice value) {
    assert(p->n < CHANGES_MAX);
    struct omap_pair *seen = ARENA_ARRAY(&p->arena, r->n_operands, struct omap_pair);
    struct write_change *c = &p->changes[p->n];
    *c = (struct write_change){.kind = value.n ? WRITE_REPLACE : WRITE_REMOVE,
                               .key = arena_dup(&p->arena, r->key),
                               .value = value.n ? arena_dup(&p->arena, value) : value,
                               .seen = seen,
                               .n_seen = r->n_operands};
    if (!seen || !c->key.p || (value.n && !c->value.p)) return -1;
    for (size_t i = 0; i < r->n_operands; i++) {
        seen[i] = (struct omap_pair){.key = arena_dup(&p->arena, r->operands[i].key),
                                     .value = slice_of(NULL, r->operands[i].value.n)};
        if (!seen[i].key.p) return -1;
        p->bytes += seen[i].key.n;
    }
    p->bytes += value.n;
    p->n++;
    return 0;
}

static int add_dropped(struct pass *p, const struct record *r, int64_t covered_ts, bool expired) {
    if (array_room(&p->dropped, p->n_dropped, &p->cap_dropped, sizeof(p->dropped[0])) < 0) return -1;
    struct dropped *d = &p->dropped[p->n_dropped];
    *d = (struct dropped){.key = arena_dup(&p->arena, r->key),
                          .before = arena_dup(&p->arena, r->value),
                          .covered_ts = covered_ts,
                          .expired = expired};
    if (!d->key.p || !d->before.p) return -1;
    p->bytes += d->before.n;
    p->n_dropped++;
    return 0;
}

/* Puts a row or static row without its dead parts in left. */
static int purge(const struct pass *p, const struct record *r, int64_t covered_ts, struct buf *left,
                 struct engi_purged *purged, struct err *e) {
    const struct engi_purge_limits limits = {
        .before_ts = INT64_MAX, .before_seconds = p->before_seconds, .covered_ts = covered_ts};
    return engi_purge_row(&limits, r->value, left, purged) ? err_set(e, ERR_SERVER, "a stored row is damaged") : 0;
}

static int add_row(struct pass *p, const struct record *r, int64_t covered_ts, struct err *e) {
    struct engi_purged purged;
    struct buf left;
    buf_init(&left, 0);
    int rc = purge(p, r, covered_ts, &left, &purged, e);
    if (!rc && (purged.dropped || r->n_operands > 1)) {
        int failed = add_change(p, r, purged.empty ? slice_of("", 0) : buf_slice(&left));
        if (!failed && purged.dropped) failed = add_dropped(p, r, covered_ts, purged.expired);
        if (failed) rc = err_nomem(e);
    }
    buf_fini(&left);
    return rc;
}

/* ---- deletions of the partition and of ranges ---- */

static enum engi_kind kind_of(const struct pass *p, const struct record *r) { return r->key.p[p->prefix.n]; }

/* Returns the part of a record's key after its kind. */
static struct slice clustering_of(const struct pass *p, const struct record *r) {
    return slice_of(r->key.p + p->prefix.n + 1, r->key.n - p->prefix.n - 1);
}

/* Whether all operands of a deletion are among those that may be removed. */
static bool is_removable(const struct pass *p, const struct record *r) {
    for (size_t i = 0; p->old && i < r->n_operands; i++) {
        struct slice key = r->operands[i].key;
        size_t from = 0, to = p->old->n;
        while (from < to) {
            size_t middle = from + (to - from) / 2;
            if (slice_cmp(p->old->items[middle].key, key) < 0) from = middle + 1;
            else to = middle;
        }
        if (from == p->old->n || !slice_eq(p->old->items[from].key, key)) return false;
    }
    return true;
}

/* Removes the deletions that are old, or that are covered by a deletion of the partition that stays. */
static int add_deletions(struct pass *p, struct err *e) {
    const struct records *lists[] = {&p->head.head, &p->head.ranges};
    bool stays = false; /* the deletion of the partition */
    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        for (size_t i = 0; i < lists[k]->n; i++) {
            const struct record *r = &lists[k]->items[i];
            int64_t ts, at;
            if (kind_of(p, r) == ENGI_STATIC) continue;
            if (is_full(p)) return ROUND_MORE;
            if (engi_tomb_deletion(r->value, &ts, &at, e)) return -1;
            bool of_partition = kind_of(p, r) == ENGI_PARTITION_DELETION;
            bool goes = (at < p->before_seconds && is_removable(p, r)) ||
                        (!of_partition && stays && ts <= p->tombs.partition_ts);
            if (of_partition) stays = !goes;
            if (!goes && r->n_operands == 1) continue;
            assert(!goes || p->whole); /* Q13, Q19 */
            if (add_change(p, r, goes ? slice_of("", 0) : r->value)) return err_nomem(e);
        }
    return 0;
}

/* ---- a round ---- */

/* Adds the changes of the rows from the cursor on. */
static int each_row(struct pass *p, struct cursor *c, struct err *e) {
    const struct record *r;
    int got, rc;
    while ((got = cursor_next(c, &r, e)) == 1) {
        if (is_full(p)) {
            buf_clear(&p->from, SIZE_MAX);
            buf_put_slice(&p->from, r->key);
            return buf_failed(&p->from) ? err_nomem(e) : ROUND_MORE;
        }
        rc = add_row(p, r, engi_tombs_at(&p->tombs, clustering_of(p, r)), e);
        if (rc || (rc = p->o->visited(p->o->arg))) return rc;
    }
    return got;
}

/* Calls fn with a cursor over the partition's rows from p->from on. */
static int with_rows(struct pass *p, int (*fn)(struct pass *p, struct cursor *c, struct err *e), struct err *e) {
    struct cursor c;
    struct buf lower, upper;
    buf_init(&lower, 0);
    buf_init(&upper, 0);
    buf_put_slice(&lower, p->from.n ? buf_slice(&p->from) : buf_slice(&p->prefix));
    if (!p->from.n) buf_u8(&lower, ENGI_ROW);
    buf_put_slice(&upper, buf_slice(&p->prefix));
    buf_u8(&upper, ENGI_PAST);
    int rc = buf_failed(&lower) || buf_failed(&upper) ? err_nomem(e) : 0;
    if (!rc) {
        cursor_init(&c, p->s, p->o->table, buf_slice(&p->prefix), buf_slice(&lower), buf_slice(&upper));
        rc = fn(p, &c, e);
        cursor_fini(&c);
    }
    buf_fini(&lower);
    buf_fini(&upper);
    return rc;
}

static int add_head(struct pass *p, struct err *e) {
    int rc = 0;
    for (size_t i = 0; i < p->head.head.n && !rc; i++)
        if (kind_of(p, &p->head.head.items[i]) == ENGI_STATIC)
            rc = add_row(p, &p->head.head.items[i], p->tombs.partition_ts, e);
    return rc;
}

static void report_dropped(const struct pass *p) {
    for (size_t i = 0; i < p->n_dropped; i++) {
        const struct dropped *d = &p->dropped[i];
        p->o->dropped(p->o->arg, d->key, d->before, d->covered_ts, d->expired);
    }
}

static int write_round(struct pass *p, struct err *e) {
    if (!p->n) return ROUND_DONE;
    struct write_group g = {
        .prefix = buf_slice(&p->prefix), .changes = p->changes, .n = p->n, .removals = &p->head.removals};
    assert(g.removals); /* Q12 */
    for (size_t i = 0; i < p->n; i++)
        assert(!p->head.is_wide || p->changes[i].key.p[p->prefix.n] != ENGI_ROW); /* Q16 */
    if (write_groups(p->s, &g, 1, e) < 0) return -1;
    if (g.result == WRITE_CHANGED) return ROUND_CONFLICT;
    report_dropped(p);
    atomic_fetch_add(&p->s->n_folds, p->n);
    return ROUND_DONE;
}

/* Reads the partition's head and deletions as a consistent snapshot. */
static int begin_round(struct pass *p, struct err *e) {
    struct engi_tomb tomb;
    int64_t at;
    arena_reset(&p->arena);
    p->n = p->n_dropped = p->bytes = 0;
    int rc = read_partition(p->s, buf_slice(&p->prefix), NULL, 0, &p->arena, &p->head, e); /* Q12 */
    if (rc) return rc;
    engi_tombs_init(&p->tombs, &p->arena);
    for (size_t i = 0; i < p->head.head.n; i++) {
        const struct record *r = &p->head.head.items[i];
        if (kind_of(p, r) != ENGI_PARTITION_DELETION) continue;
        if (engi_tomb_deletion(r->value, &p->tombs.partition_ts, &at, e)) return -1;
    }
    for (size_t i = 0; i < p->head.ranges.n; i++) {
        const struct record *r = &p->head.ranges.items[i];
        if (engi_tomb_read(clustering_of(p, r), r->value, &tomb, e) || engi_tombs_add(&p->tombs, &tomb, e)) return -1;
    }
    return engi_tombs_fragment(&p->tombs, e);
}

static int run_round(struct pass *p, struct err *e) {
    bool from_first = !p->from.n;
    int rc = begin_round(p, e);
    /* It became wide after the scan: operands may be in pieces. If it becomes wide later, its mark
     * changes. */
    if (!rc && p->head.is_wide) return ROUND_DONE;
    if (rc || (rc = add_head(p, e))) return rc;
    if ((rc = with_rows(p, each_row, e)) && rc != ROUND_MORE) return rc;
    bool to_last = !rc;
    p->whole = from_first && to_last;
    if (p->whole && (rc = add_deletions(p, e)) && rc != ROUND_MORE) return rc;
    int written = write_round(p, e);
    if (written) return written;
    /* After rounds that each read a part, one that reads the whole may remove deletions. */
    if (to_last) buf_clear(&p->from, SIZE_MAX);
    return p->whole ? rc : ROUND_MORE;
}

/* ---- wide partitions ---- */

/* Finds the first row with dead parts. Returns ROUND_MORE with its key in p->from. */
static int find_dead(struct pass *p, struct cursor *c, struct err *e) {
    const struct record *r;
    int got, rc = 0;
    while (!rc && (got = cursor_next(c, &r, e)) == 1) {
        struct engi_purged purged;
        struct buf left;
        buf_init(&left, 0);
        rc = purge(p, r, engi_tombs_at(&p->tombs, clustering_of(p, r)), &left, &purged, e);
        buf_fini(&left);
        if (!rc) rc = p->o->visited(p->o->arg);
        if (rc || !purged.dropped) continue;
        buf_clear(&p->from, SIZE_MAX);
        buf_put_slice(&p->from, r->key);
        return buf_failed(&p->from) ? err_nomem(e) : ROUND_MORE;
    }
    return rc ? rc : got;
}

/* As move_purge.judge. */
static int judge(void *arg, const struct record *r, struct buf *left) {
    struct pass *p = arg;
    struct err e = {0};
    struct engi_purged purged;
    int64_t covered_ts = engi_tombs_at(&p->tombs, clustering_of(p, r));
    p->n_judged++;
    if (purge(p, r, covered_ts, left, &purged, &e)) {
        err_clear(&e);
        return -EBADMSG;
    }
    if (!purged.dropped) return 0;
    if (purged.empty) buf_clear(left, SIZE_MAX);
    return add_dropped(p, r, covered_ts, purged.expired) ? -ENOMEM : 1;
}

/* Purges the pieces from the one with the first dead row on. Returns ROUND_DONE if no row from p->from on is dead. */
static int run_wide_round(struct pass *p, struct err *e) {
    struct buf end;
    int rc = begin_round(p, e);
    if (rc || (rc = with_rows(p, find_dead, e)) != ROUND_MORE) return rc;
    if ((rc = begin_round(p, e))) return rc; /* the deletions may have changed since the search began */
    const struct move_purge purge = {.from = buf_slice(&p->from), .judge = judge, .arg = p};
    p->n_judged = 0;
    buf_init(&end, 0);
    rc = move_purge(p->s, buf_slice(&p->prefix), p->head.removals, &purge, &end);
    if (rc == 0) {
        report_dropped(p);
        buf_clear(&p->from, SIZE_MAX);
        buf_put_slice(&p->from, buf_slice(&end));
    }
    buf_fini(&end);
    if (rc == -EAGAIN) return ROUND_CONFLICT;
    if (rc == -EBUSY || rc == -ESTALE) return ROUND_LEFT;
    if (rc < 0 || buf_failed(&p->from)) return pool_error(e, rc ? rc : -ENOMEM, POOL_WRITES, "of a wide partition");
    for (size_t i = 0; i < p->n_judged && !rc; i++) rc = p->o->visited(p->o->arg);
    return rc ? rc : ROUND_MORE;
}

/* Once no row is dead: removes the dead parts of the head. */
static int run_head_round(struct pass *p, struct err *e) {
    int rc = begin_round(p, e);
    if (rc || (rc = add_head(p, e)) || ((rc = add_deletions(p, e)) && rc != ROUND_MORE)) return rc;
    int written = write_round(p, e);
    return written ? written : rc;
}

/* ---- a partition ---- */

/* Runs rounds until one is done. A partition that other writers change all the time is left to the next pass; then
 * *left is true. */
static int run_rounds(struct pass *p, int (*round)(struct pass *p, struct err *e), bool *left, struct err *e) {
    int conflicts = 0;
    buf_clear(&p->from, SIZE_MAX);
    for (int i = 0; i < ROUNDS_MAX && conflicts < CONFLICTS_MAX; i++) {
        int rc = round(p, e);
        *left = rc != ROUND_DONE;
        if (rc == ROUND_LEFT) return 0;
        if (rc == -1 && e->code == ERR_READ_TIMEOUT) err_clear(e);
        else if (rc != ROUND_CONFLICT && rc != ROUND_MORE) return rc;
        conflicts += rc != ROUND_MORE;
    }
    return 0;
}

static int visit_wide(struct pass *p, struct err *e) {
    const struct records *lists[] = {&p->head.head, &p->head.ranges};
    struct omap_pairs old = {0}; /* the operands of deletions that are old */
    struct arena a;
    bool left = true;
    arena_init(&a, CHUNK, 0);
    int rc = begin_round(p, e); /* Q19 */
    for (size_t k = 0; k < ARRAY_LEN(lists) && !rc; k++)
        for (size_t i = 0; i < lists[k]->n && !rc; i++) {
            const struct record *r = &lists[k]->items[i];
            int64_t ts, at;
            if (kind_of(p, r) == ENGI_STATIC) continue;
            rc = engi_tomb_deletion(r->value, &ts, &at, e);
            for (size_t o = 0; !rc && at < p->before_seconds && o < r->n_operands; o++) {
                struct slice key = arena_dup(&a, r->operands[o].key);
                if (!key.p || array_room(&old.items, old.n, &old.cap, sizeof(old.items[0])) < 0) rc = err_nomem(e);
                else old.items[old.n++].key = key;
            }
        }
    if (!rc) rc = run_rounds(p, run_wide_round, &left, e);
    p->old = &old;
    p->whole = !left;
    if (!rc && p->whole) rc = run_rounds(p, run_head_round, &left, e);
    p->old = NULL;
    omap_pairs_fini(&old);
    arena_fini(&a);
    return rc;
}

/* ---- shards ---- */

/* A partition of a shard, as a scan has read it so far. */
struct seen {
    bool has_work;          /* a round changes something in it */
    bool has_rows;          /* it has operands */
    struct buf mark, ballot, pieces; /* values of its own keys */
    struct buf record;      /* the key of its last record */
};

/* Notes an operand of the partition. Sets has_work if a round changes its record, as far as this is visible without
 * the deletions that cover it. */
static int note_operand(struct pass *p, struct seen *seen, struct slice record, struct slice value, struct err *e) {
    const struct record r = {.key = record, .value = value};
    enum engi_kind kind = kind_of(p, &r);
    bool several = slice_eq(record, buf_slice(&seen->record));
    seen->has_rows = true;
    seen->has_work = seen->has_work || several || kind == ENGI_PARTITION_DELETION || kind == ENGI_RANGE_TOMBSTONE;
    buf_clear(&seen->record, SIZE_MAX);
    buf_put_slice(&seen->record, record);
    if (seen->has_work) return 0;
    struct engi_purged purged;
    struct buf left;
    buf_init(&left, 0);
    int rc = purge(p, &r, ENG_NO_TS, &left, &purged, e);
    seen->has_work = purged.dropped;
    buf_fini(&left);
    return rc;
}

static void seen_clear(struct seen *seen) {
    seen->has_work = seen->has_rows = false;
    buf_clear(&seen->mark, SIZE_MAX);
    buf_clear(&seen->ballot, SIZE_MAX);
    buf_clear(&seen->pieces, SIZE_MAX);
    buf_clear(&seen->record, SIZE_MAX);
}

/* Removes the garbage and the own keys of a partition without operands. */
static int forget(struct pass *p, const struct seen *seen, const struct pieces *pieces, const struct shard *sh,
                  struct err *e) {
    const struct { enum omap_partition_key what; struct slice value; } own[OMAP_PARTITION_KEYS_MAX] = {
        {OMAP_REMOVALS, buf_slice(&seen->mark)},
        {OMAP_BALLOT, buf_slice(&seen->ballot)},
        {OMAP_PIECES, buf_slice(&seen->pieces)},
    };
    struct slice mark = buf_slice(&seen->mark);
    struct omap_write w = {0};
    assert(!seen->has_rows && !pieces->n); /* Q15 */
    if (mark.n < OMAP_SEQUENCE_DIGITS) return 0;
    if ((int64_t)omap_number_read(slice_of(mark.p, OMAP_SEQUENCE_DIGITS)) / 1000000 >= p->before_seconds) return 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < pieces->n_garbage; i++) {
        char name[PIECE_NAME];
        piece_name(p->o->table, pieces->id, pieces->garbage[i], name);
        rc = pool_remove(&p->s->pool, name);
        if (rc == -ENOENT) rc = 0;
    }
    omap_write_compare(&w, shard_state_key, shard_state_value(SHARD_OPEN)); /* Q3 */
    arena_reset(&p->arena);
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        struct buf b;
        buf_init(&b, 0);
        omap_key_partition(&b, buf_slice(&p->prefix), own[i].what);
        struct slice key = arena_take(&p->arena, &b);
        if (!key.p) w.failed = true;
        omap_write_compare(&w, key, own[i].value);
        if (own[i].value.n) omap_write_remove(&w, key);
    }
    if (rc == 0) rc = w.failed ? -ENOMEM : omap_write_run(&w, &p->s->pool, sh->name);
    omap_write_fini(&w);
    return rc == 0 || rc == -ECANCELED || rc == -ENOENT ? 0 : pool_error(e, rc, POOL_WRITES, sh->name);
}

/* The scan has read all of the partition. */
static int end_partition(struct pass *p, const struct seen *seen, const struct shard *sh, struct err *e) {
    struct pieces pieces;
    bool left;
    if (!p->prefix.n) return 0;
    arena_reset(&p->arena);
    if (pieces_read(buf_slice(&seen->pieces), &p->arena, &pieces) < 0)
        return err_set(e, ERR_SERVER, "the list of pieces of a partition is damaged: %s", sh->name);
    if (pieces.n) return visit_wide(p, e);
    if (seen->has_work) return run_rounds(p, run_round, &left, e);
    return seen->has_rows ? 0 : forget(p, seen, &pieces, sh, e);
}

static int scan_page(struct pass *p, struct seen *seen, const struct fetched *f, struct err *e) {
    struct buf record;
    int rc = 0;
    buf_init(&record, 0);
    for (size_t i = 0; i < f->pairs[0].n && !rc; i++) {
        const struct omap_pair *pair = &f->pairs[0].items[i];
        buf_clear(&record, SIZE_MAX);
        buf_u32(&record, p->o->table);
        bool damaged = omap_key_record(pair->key, &record) < 0;
        size_t n = damaged ? 0 : engi_prefix_len(buf_slice(&record));
        if (!n) rc = err_set(e, ERR_SERVER, "a key in the Ceph pool is damaged: %s", f->shard->name);
        struct slice prefix = slice_of(record.p, n);
        if (!rc && !slice_eq(prefix, buf_slice(&p->prefix))) {
            rc = end_partition(p, seen, f->shard, e);
            seen_clear(seen);
            buf_clear(&p->prefix, SIZE_MAX);
            buf_put_slice(&p->prefix, prefix);
            if (buf_failed(&p->prefix)) rc = err_nomem(e);
        }
        if (rc) break;
        enum omap_partition_key what = omap_key_of_partition(pair->key);
        struct buf *value = what == OMAP_REMOVALS ? &seen->mark : what == OMAP_BALLOT ? &seen->ballot : &seen->pieces;
        if (what == OMAP_FENCE) continue;
        if (what) {
            buf_clear(value, SIZE_MAX);
            buf_put_slice(value, pair->value);
        } else if (!(rc = note_operand(p, seen, buf_slice(&record), pair->value, e))) {
            rc = p->o->visited(p->o->arg);
        }
    }
    buf_fini(&record);
    return rc;
}

/* Visits the partitions from a position to another one: those of a shard, or of the shards that it has been split into
 * meanwhile. */
static int visit_shard(struct pass *p, uint64_t position, uint64_t last, struct err *e) {
    struct seen seen = {0};
    struct buf *bufs[] = {&seen.mark, &seen.ballot, &seen.pieces, &seen.record}, start;
    struct fetched f = {0};
    int rc = 0;
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) buf_init(bufs[i], 0);
    buf_clear(&p->prefix, SIZE_MAX);
    buf_init(&start, 0);
    buf_put(&start, SHARD_HEAD_LAST, sizeof(SHARD_HEAD_LAST));
    while (!rc) {
        const struct fetch_part part = {.start_after = (const char *)start.p, .prefix = "", .max = OMAP_READ_MAX};
        arena_reset(&p->page);
        int got = buf_failed(&start) ? -ENOMEM : fetch(p->s, p->o->table, position, &part, 1, &p->page, &f);
        if (got < 0) rc = pool_error(e, got, POOL_READS, "of a table");
        if (rc || !f.shard || (rc = scan_page(p, &seen, &f, e))) break;
        buf_clear(&start, SIZE_MAX);
        if (f.more[0] && f.pairs[0].n) {
            buf_put_slice(&start, f.pairs[0].items[f.pairs[0].n - 1].key);
            buf_u8(&start, 0);
            continue;
        }
        rc = end_partition(p, &seen, f.shard, e);
        seen_clear(&seen);
        buf_clear(&p->prefix, SIZE_MAX);
        if (shard_last(&f.shard->id) >= last) break;
        position = shard_last(&f.shard->id) + 1;
        buf_put(&start, SHARD_HEAD_LAST, sizeof(SHARD_HEAD_LAST));
    }
    fetched_fini(&f);
    buf_fini(&start);
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) buf_fini(bufs[i]);
    return rc;
}

/* Reads the shard at a position, and claims it. Returns 1 if the pass must visit it, 0 if not,
 * or a negative error number. *last: its last position. */
static int claim(struct pass *p, uint64_t position, uint64_t *last) {
    const char *key = (const char *)visit_key.p;
    const struct fetch_part part = {.start_after = SHARD_HEAD_PREFIX, .prefix = key, .max = 1};
    struct fetched f = {0};
    uint8_t now[8];
    arena_reset(&p->arena);
    int rc = fetch(p->s, p->o->table, position, &part, 1, &p->arena, &f);
    *last = rc == 0 && f.shard ? shard_last(&f.shard->id) : UINT64_MAX;
    bool there = rc == 0 && f.shard && f.head.state == SHARD_OPEN;
    struct slice then = there && f.pairs[0].n ? f.pairs[0].items[0].value : slice_of("", 0);
    int64_t ago = then.n == sizeof(now) ? p->o->now_seconds - (int64_t)load_u64(then.p) : INT64_MAX;
    if (there && (ago >= p->o->period_seconds || ago <= -p->o->period_seconds)) {
        struct omap_write w = {0};
        store_u64(now, (uint64_t)p->o->now_seconds);
        omap_write_compare(&w, shard_state_key, shard_state_value(SHARD_OPEN));
        omap_write_compare(&w, visit_key, then);
        omap_write_set(&w, visit_key, slice_of(now, sizeof(now)));
        rc = omap_write_run(&w, &p->s->pool, f.shard->name);
        omap_write_fini(&w);
        /* Another store claims it, or splits it: it is visited then. */
        rc = rc == 0 ? 1 : rc == -ECANCELED || rc == -ENOENT ? 0 : rc;
    }
    fetched_fini(&f);
    return rc;
}

enum { WRITE_S = WRITE_SEND_S + POOL_TIMEOUT_S /* of write_groups, at most (Q26) */ };
_Static_assert(IN_FLIGHT_S >= BATCHLOG_AGE_S + 2 * BATCHLOG_EVERY_S + BATCHLOG_REPLAY_S + WRITE_S, ""); /* Q23 */
/* First the record of the batch is written, then its groups. */
_Static_assert(IN_FLIGHT_S > WRITE_SEND_S + POOL_TIMEOUT_S + WRITE_S, ""); /* Q14 */

int reclaim_table(struct rados *s, const struct store_reclaim *o, struct err *e) {
    struct pass *p = calloc(1, sizeof(*p));
    if (!p) return err_nomem(e);
    p->s = s;
    p->o = o;
    buf_init(&p->prefix, 0);
    buf_init(&p->from, 0);
    arena_init(&p->arena, CHUNK, 0);
    arena_init(&p->page, CHUNK, 0);
    int64_t oldest_us;
    int rc = batchlog_oldest(s, &oldest_us, e);
    if (!rc) {
        int64_t writes_since = oldest_us / 1000000 < o->now_seconds ? oldest_us / 1000000 : o->now_seconds;
        p->before_seconds = o->before_seconds;
        if (p->before_seconds > writes_since - IN_FLIGHT_S) p->before_seconds = writes_since - IN_FLIGHT_S;
        assert(p->before_seconds < oldest_us / 1000000 && p->before_seconds < o->now_seconds); /* Q14 */
    }
    for (uint64_t position = *o->position, last = 0; !rc && last < UINT64_MAX; position = last + 1) {
        if ((rc = claim(p, position, &last)) < 0) rc = pool_error(e, rc, POOL_WRITES, "of a table");
        else rc = rc ? visit_shard(p, position, last, e) : o->visited(o->arg);
        if (!rc && last < UINT64_MAX && o->turn_over && o->turn_over(o->arg)) {
            *o->position = last + 1;
            rc = STORE_MORE;
        }
    }
    arena_fini(&p->arena);
    arena_fini(&p->page);
    buf_fini(&p->prefix);
    buf_fini(&p->from);
    free(p->dropped);
    free(p);
    return rc;
}
