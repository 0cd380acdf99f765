#include "engine/rados/reclaim.h"

#include <assert.h>
#include <errno.h>

#include "engine/rados/batchlog.h"
#include "engine/rados/cursor.h"
#include "engine/rados/read.h"
#include "engine/rados/write.h"
#include "engine/rows/purge.h"
#include "engine/rows/tombstone.h"

enum {
    IN_FLIGHT_S = 60,
    CHANGES_MAX = 500,        /* records that a round changes, */
    CHANGES_BYTES = 1 << 20, /* and their bytes, about */
    ROUNDS_MAX = 1000,       /* of one partition */
    CONFLICTS_MAX = 16,      /* rounds that meet another writer's removals */
    CHUNK = 16 << 10,
};

/* A round's verdict beside -1, and beside what o->visited returns to end the pass. */
enum { ROUND_DONE = 0, ROUND_MORE = -2, ROUND_MET = -3 };

static const struct slice visit_key = {(const uint8_t *)"\x01p", 2};

/* A change of a round, with what it reports once it is written. */
struct dropped {
    struct slice before; /* the value that data were dropped from; p NULL: none were */
    int64_t covered_ts;
    bool expired;
};

struct pass {
    struct rados *s;
    const struct store_reclaim *o;
    int64_t before_seconds; /* Q14 */
    struct buf prefix;    /* of the partition that is visited */
    struct arena page;    /* of the scan */
    struct buf from;      /* the round begins with this row; empty: with the first */
    /* Of a round: */
    struct arena arena;
    struct read_result head;
    struct engi_tombs tombs;
    bool whole; /* it has read the partition from its first row to its last */
    struct write_change changes[CHANGES_MAX];
    struct dropped dropped[CHANGES_MAX];
    size_t n, bytes;
};

/* ---- what becomes of a record ---- */

static bool is_full(const struct pass *p) { return p->n == CHANGES_MAX || p->bytes >= CHANGES_BYTES; }

/* Adds a change of all operands of a record, which are copied: of a value only its length counts. */
static int add_change(struct pass *p, const struct record *r, struct slice value, const struct dropped *dropped) {
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
    p->dropped[p->n] = *dropped;
    if (dropped->before.p && !(p->dropped[p->n].before = arena_dup(&p->arena, dropped->before)).p) return -1;
    p->bytes += value.n + dropped->before.n;
    p->n++;
    return 0;
}

/* Drops the dead parts of a row or static row. */
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
        struct dropped d = {.covered_ts = covered_ts, .expired = purged.expired};
        if (purged.dropped) d.before = r->value;
        rc = add_change(p, r, purged.empty ? slice_of("", 0) : buf_slice(&left), &d) ? err_nomem(e) : 0;
    }
    buf_fini(&left);
    return rc;
}

/* ---- deletions of the partition and of ranges ---- */

static enum engi_kind kind_of(const struct pass *p, const struct record *r) { return r->key.p[p->prefix.n]; }

static int read_deletions(struct pass *p, struct err *e) {
    struct engi_tomb tomb;
    int64_t at;
    engi_tombs_init(&p->tombs, &p->arena);
    for (size_t i = 0; i < p->head.head.n; i++) {
        const struct record *r = &p->head.head.items[i];
        if (kind_of(p, r) != ENGI_PARTITION_DELETION) continue;
        if (engi_tomb_deletion(r->value, &p->tombs.partition_ts, &at, e)) return -1;
    }
    for (size_t i = 0; i < p->head.ranges.n; i++) {
        const struct record *r = &p->head.ranges.items[i];
        struct slice rest = slice_of(r->key.p + p->prefix.n + 1, r->key.n - p->prefix.n - 1);
        if (engi_tomb_read(rest, r->value, &tomb, e) || engi_tombs_add(&p->tombs, &tomb, e)) return -1;
    }
    return engi_tombs_fragment(&p->tombs, e);
}

/* Removes a deletion that is old, or that is covered by one of the partition that stays. */
static int add_deletion(struct pass *p, const struct record *r, bool *stays, struct err *e) {
    static const struct dropped none = {0};
    int64_t ts, at;
    if (engi_tomb_deletion(r->value, &ts, &at, e)) return -1;
    bool of_partition = kind_of(p, r) == ENGI_PARTITION_DELETION;
    bool goes = at < p->before_seconds || (!of_partition && *stays && ts <= p->tombs.partition_ts);
    if (of_partition) *stays = !goes;
    if (!goes && r->n_operands == 1) return 0;
    assert(!goes || p->whole); /* Q13 */
    return add_change(p, r, goes ? slice_of("", 0) : r->value, &none) ? err_nomem(e) : 0;
}

static int add_deletions(struct pass *p, struct err *e) {
    const struct records *of[] = {&p->head.head, &p->head.ranges};
    bool stays = false;
    for (size_t k = 0; k < ARRAY_LEN(of); k++)
        for (size_t i = 0; i < of[k]->n; i++) {
            if (kind_of(p, &of[k]->items[i]) == ENGI_STATIC) continue;
            if (is_full(p)) return ROUND_MORE;
            if (add_deletion(p, &of[k]->items[i], &stays, e)) return -1;
        }
    return 0;
}

/* ---- a round ---- */

static int each_row(struct pass *p, struct cursor *c, struct err *e) {
    const struct record *r;
    int got, rc;
    while ((got = cursor_next(c, &r, e)) == 1) {
        if (is_full(p)) {
            buf_clear(&p->from, SIZE_MAX);
            buf_put_slice(&p->from, r->key);
            return buf_failed(&p->from) ? err_nomem(e) : ROUND_MORE;
        }
        struct slice ck = slice_of(r->key.p + p->prefix.n + 1, r->key.n - p->prefix.n - 1);
        if ((rc = add_row(p, r, engi_tombs_at(&p->tombs, ck), e)) || (rc = p->o->visited(p->o->arg))) return rc;
    }
    return got;
}

static int add_rows(struct pass *p, struct err *e) {
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
        rc = each_row(p, &c, e);
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

static int write_round(struct pass *p, struct err *e) {
    if (!p->n) return ROUND_DONE;
    struct write_group g = {
        .prefix = buf_slice(&p->prefix), .changes = p->changes, .n = p->n, .removals = &p->head.removals};
    assert(g.removals);      /* Q12 */
    assert(!p->head.is_wide); /* Q16 */
    if (write_groups(p->s, &g, 1, e) < 0) return -1;
    if (g.result == WRITE_CHANGED) return ROUND_MET;
    for (size_t i = 0; i < p->n; i++) {
        const struct dropped *d = &p->dropped[i];
        if (d->before.p) p->o->dropped(p->o->arg, p->changes[i].key, d->before, d->covered_ts, d->expired);
    }
    atomic_fetch_add(&p->s->n_folds, p->n);
    return ROUND_DONE;
}

/* ROUND_DONE: nothing is left to do; ROUND_MORE: another round goes on from p->from. */
static int run_round(struct pass *p, struct err *e) {
    arena_reset(&p->arena);
    p->n = p->bytes = 0;
    bool from_first = !p->from.n;
    int rc = read_partition(p->s, buf_slice(&p->prefix), NULL, 0, &p->arena, &p->head, e); /* Q12 */
    /* It became wide after the scan: operands may be in pieces. When it does so later, its mark
     * changes. */
    if (!rc && p->head.is_wide) return ROUND_DONE;
    if (rc || (rc = read_deletions(p, e)) || (rc = add_head(p, e))) return rc;
    if ((rc = add_rows(p, e)) && rc != ROUND_MORE) return rc;
    bool to_last = !rc;
    p->whole = from_first && to_last;
    if (p->whole && (rc = add_deletions(p, e)) && rc != ROUND_MORE) return rc;
    int written = write_round(p, e);
    if (written) return written;
    /* After rounds that each read a part, one that reads the whole may remove deletions. */
    if (to_last) buf_clear(&p->from, SIZE_MAX);
    return p->whole ? rc : ROUND_MORE;
}

/* A partition that other writers change all the time, or that is read while they do, is left for the
 * next pass. */
static int visit_partition(struct pass *p, struct err *e) {
    int met = 0;
    buf_clear(&p->from, SIZE_MAX);
    for (int i = 0; i < ROUNDS_MAX && met < CONFLICTS_MAX; i++) {
        int rc = run_round(p, e);
        if (rc == -1 && e->code == ERR_READ_TIMEOUT) err_clear(e);
        else if (rc != ROUND_MET && rc != ROUND_MORE) return rc;
        met += rc != ROUND_MORE;
    }
    return 0;
}

/* ---- shards ---- */

/* A partition of a shard, as a scan has read it so far. */
struct seen {
    bool has_work;          /* a round changes something in it */
    bool has_rows;          /* it has operands */
    bool is_wide;           /* it has own keys that this pass does not know: of rows that lie elsewhere */
    struct buf mark, ballot, record; /* record: its last one's key */
};

/* Whether a round changes the record of an operand, as far as it shows without what covers it. */
static int look_at(struct pass *p, struct seen *seen, struct slice record, struct slice value, struct err *e) {
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

static void look_at_own(struct seen *seen, enum omap_partition_key what, struct slice value) {
    struct buf *to = what == OMAP_REMOVALS ? &seen->mark : &seen->ballot;
    seen->is_wide = seen->is_wide || (what != OMAP_REMOVALS && what != OMAP_BALLOT);
    buf_clear(to, SIZE_MAX);
    buf_put_slice(to, value);
}

static void seen_clear(struct seen *seen) {
    seen->has_work = seen->has_rows = seen->is_wide = false;
    buf_clear(&seen->mark, SIZE_MAX);
    buf_clear(&seen->ballot, SIZE_MAX);
    buf_clear(&seen->record, SIZE_MAX);
}

/* Removes the own keys of a partition without operands. */
static int forget(struct pass *p, const struct seen *seen, const struct shard *sh, struct err *e) {
    struct slice prefix = buf_slice(&p->prefix), mark = buf_slice(&seen->mark), ballot = buf_slice(&seen->ballot);
    struct omap_write w = {0};
    struct buf mark_key, ballot_key;
    assert(!seen->has_rows && !seen->is_wide); /* Q15 */
    if (mark.n < OMAP_SEQUENCE_DIGITS) return 0;
    if ((int64_t)omap_number_read(slice_of(mark.p, OMAP_SEQUENCE_DIGITS)) / 1000000 >= p->before_seconds) return 0;
    buf_init(&mark_key, 0);
    buf_init(&ballot_key, 0);
    omap_key_partition(&mark_key, prefix, OMAP_REMOVALS);
    omap_key_partition(&ballot_key, prefix, OMAP_BALLOT);
    omap_write_compare(&w, shard_state_key, shard_state_value(SHARD_OPEN)); /* Q3 */
    omap_write_compare(&w, buf_slice(&mark_key), mark);
    omap_write_compare(&w, buf_slice(&ballot_key), ballot);
    omap_write_remove(&w, buf_slice(&mark_key));
    if (ballot.n) omap_write_remove(&w, buf_slice(&ballot_key));
    bool failed = buf_failed(&mark_key) || buf_failed(&ballot_key);
    int rc = failed ? -ENOMEM : omap_write_run(&w, &p->s->pool, sh->name);
    omap_write_fini(&w);
    buf_fini(&mark_key);
    buf_fini(&ballot_key);
    return rc == 0 || rc == -ECANCELED || rc == -ENOENT ? 0 : pool_error(e, rc, POOL_WRITES, sh->name);
}

/* The scan has read all of the partition. */
static int end_partition(struct pass *p, const struct seen *seen, const struct shard *sh, struct err *e) {
    if (seen->is_wide || !p->prefix.n) return 0;
    if (seen->has_work) return visit_partition(p, e);
    return seen->has_rows ? 0 : forget(p, seen, sh, e);
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
        if (what) look_at_own(seen, what, pair->value);
        else if (!(rc = look_at(p, seen, buf_slice(&record), pair->value, e))) rc = p->o->visited(p->o->arg);
    }
    buf_fini(&record);
    return rc;
}

/* Reads the keys of a shard, or of those that it has been split into, up to a position. */
static int scan(struct pass *p, uint64_t position, uint64_t last, struct seen *seen, struct err *e) {
    struct buf start;
    struct fetched f = {0};
    int rc = 0;
    buf_init(&start, 0);
    buf_put(&start, SHARD_HEAD_LAST, sizeof(SHARD_HEAD_LAST));
    while (!rc) {
        const struct fetch_part part = {.start_after = (const char *)start.p, .prefix = "", .max = OMAP_READ_MAX};
        arena_reset(&p->page);
        int got = buf_failed(&start) ? -ENOMEM : fetch(p->s, p->o->table, position, &part, 1, &p->page, &f);
        if (got < 0) rc = pool_error(e, got, POOL_READS, "of a table");
        if (rc || !f.shard || (rc = scan_page(p, seen, &f, e))) break;
        buf_clear(&start, SIZE_MAX);
        if (f.more[0] && f.pairs[0].n) {
            buf_put_slice(&start, f.pairs[0].items[f.pairs[0].n - 1].key);
            buf_u8(&start, 0);
            continue;
        }
        rc = end_partition(p, seen, f.shard, e);
        seen_clear(seen);
        buf_clear(&p->prefix, SIZE_MAX);
        if (shard_last(&f.shard->id) >= last) break;
        position = shard_last(&f.shard->id) + 1;
        buf_put(&start, SHARD_HEAD_LAST, sizeof(SHARD_HEAD_LAST));
    }
    fetched_fini(&f);
    buf_fini(&start);
    return rc;
}

static int visit_shard(struct pass *p, uint64_t first, uint64_t last, struct err *e) {
    struct seen seen = {0};
    struct buf *bufs[] = {&seen.mark, &seen.ballot, &seen.record};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) buf_init(bufs[i], 0);
    buf_clear(&p->prefix, SIZE_MAX);
    int rc = scan(p, first, last, &seen, e);
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) buf_fini(bufs[i]);
    return rc;
}

/* Reads the shard at a position, and claims it. 1: it is to be visited, 0: it is not, or a negative
 * error number. *last: its last position. */
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

static int visit_shards(struct pass *p, struct err *e) {
    for (uint64_t position = 0, last;; position = last + 1) {
        int rc = claim(p, position, &last);
        if (rc < 0) return pool_error(e, rc, POOL_WRITES, "of a table");
        rc = rc ? visit_shard(p, position, last, e) : p->o->visited(p->o->arg);
        if (rc || last == UINT64_MAX) return rc;
    }
}

static int set_limit(struct pass *p, struct err *e) {
    int64_t oldest_us;
    if (batchlog_oldest(p->s, &oldest_us, e) < 0) return -1;
    int64_t writes_since = oldest_us / 1000000 < p->o->now_seconds ? oldest_us / 1000000 : p->o->now_seconds;
    p->before_seconds = p->o->before_seconds;
    if (p->before_seconds > writes_since - IN_FLIGHT_S) p->before_seconds = writes_since - IN_FLIGHT_S;
    assert(p->before_seconds < oldest_us / 1000000 && p->before_seconds < p->o->now_seconds); /* Q14 */
    return 0;
}

int reclaim_table(struct rados *s, const struct store_reclaim *o, struct err *e) {
    struct pass *p = calloc(1, sizeof(*p));
    if (!p) return err_nomem(e);
    p->s = s;
    p->o = o;
    buf_init(&p->prefix, 0);
    buf_init(&p->from, 0);
    arena_init(&p->arena, CHUNK, 0);
    arena_init(&p->page, CHUNK, 0);
    int rc = set_limit(p, e);
    if (!rc) rc = visit_shards(p, e);
    arena_fini(&p->arena);
    arena_fini(&p->page);
    buf_fini(&p->prefix);
    buf_fini(&p->from);
    free(p);
    return rc;
}
