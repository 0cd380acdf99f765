#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/rados/batchlog.h"
#include "engine/rados/omap_key.h"
#include "engine/rados/write.h"

#define OBJECT "batches"
enum { NUMBER_DIGITS = 6, COUNTS = 1 << 15, CHUNK = 16 << 10 };
_Static_assert(((uint64_t)UINT32_MAX + 1) * COUNTS <= OMAP_WRITERS, "a number has its digits");

/* ---- changes by partition ---- */

/* A partition's ballot in stored form: as it was read, and the next one. */
struct ballots {
    uint8_t now[8], next[8];
    struct slice expected;
};

struct partitions {
    struct write_change *changes; /* sorted by partition */
    struct write_group *groups;  /* by prefix */
    size_t n;
};

static struct slice prefix_of(struct slice key) { return slice_of(key.p, engi_prefix_len(key)); }

/* By partition, and in the order in which they were added: the keys lie in one buffer. */
static int by_partition(const void *a, const void *b) {
    const struct write_change *x = a, *y = b;
    int c = slice_cmp(prefix_of(x->key), prefix_of(y->key));
    return c ? c : (x->key.p > y->key.p) - (x->key.p < y->key.p);
}

static int group_changes(struct partitions *p, size_t n, struct arena *a) {
    p->groups = ARENA_ARRAY(a, n, struct write_group);
    if (!p->groups) return -1;
    qsort(p->changes, n, sizeof(p->changes[0]), by_partition);
    for (size_t i = 0; i < n; i++) {
        struct slice prefix = prefix_of(p->changes[i].key);
        if (p->n && slice_eq(p->groups[p->n - 1].prefix, prefix)) p->groups[p->n - 1].n++;
        else p->groups[p->n++] = (struct write_group){.prefix = prefix, .changes = &p->changes[i], .n = 1};
    }
    return 0;
}

static int by_prefix(const void *a, const void *b) {
    const struct write_group *x = a, *y = b;
    return slice_cmp(x->prefix, y->prefix);
}

/* The group of a change's partition. */
static struct write_group *group_of(const struct partitions *p, struct slice key) {
    const struct write_group sought = {.prefix = prefix_of(key)};
    struct write_group *g = bsearch(&sought, p->groups, p->n, sizeof(*g), by_prefix);
    assert(g);
    return g;
}

/* Whether a group of the batch touches several partitions. */
static bool spans_partitions(const struct eng_batch *b) {
    for (size_t i = 1; i < b->n; i++)
        if (b->changes[i].group == b->changes[i - 1].group &&
            !slice_eq(prefix_of(engi_change_key(b, &b->changes[i])), prefix_of(engi_change_key(b, &b->changes[i - 1]))))
            return true;
    return false;
}

/* ---- the log ---- */

static uint64_t time_of(struct slice key) { return omap_number_read(slice_of(key.p, OMAP_SEQUENCE_DIGITS)); }

/* In records of older versions it may be larger than any incarnation. */
static uint64_t incarnation_of(struct slice key) {
    return omap_number_read(slice_of(key.p + OMAP_SEQUENCE_DIGITS, NUMBER_DIGITS)) / COUNTS;
}

static int log_key(struct rados *s, struct buf *key, struct err *e) {
    uint64_t count = atomic_fetch_add(&s->n_logged, 1) % COUNTS;
    omap_key_number(key, (uint64_t)clock_wall_us(&clock_real), OMAP_SEQUENCE_DIGITS);
    omap_key_number(key, s->o.incarnation * (uint64_t)COUNTS + count, NUMBER_DIGITS);
    if (buf_failed(key)) return err_nomem(e);
    assert(incarnation_of(buf_slice(key)) == s->o.incarnation); /* Q24 */
    return 0;
}

static int log_batch(struct rados *s, const struct eng_batch *b, struct slice key, struct err *e) {
    struct omap_write w = {.creates = true};
    struct buf value;
    buf_init(&value, 0);
    for (size_t i = 0; i < b->n; i++) {
        struct slice k = engi_change_key(b, &b->changes[i]), v = engi_change_value(b, &b->changes[i]);
        buf_u32(&value, (uint32_t)k.n);
        buf_put_slice(&value, k);
        buf_u32(&value, (uint32_t)v.n);
        buf_put_slice(&value, v);
    }
    omap_write_set(&w, key, buf_slice(&value));
    int rc = buf_failed(&value) ? -ENOMEM : omap_write_run(&w, &s->pool, OBJECT);
    omap_write_fini(&w);
    buf_fini(&value);
    return rc < 0 ? pool_error(e, rc, POOL_WRITES, OBJECT) : 0;
}

static int unlog(struct rados *s, struct slice key) {
    struct omap_write w = {0};
    omap_write_remove(&w, key);
    int rc = omap_write_run(&w, &s->pool, OBJECT);
    omap_write_fini(&w);
    return rc;
}

/* ---- writing ---- */

static void add_condition(struct write_group *g, struct ballots *ballots, const struct store_change *c) {
    store_u64(ballots->now, c->ballot);
    store_u64(ballots->next, c->next_ballot);
    ballots->expected = slice_of(ballots->now, c->ballot ? sizeof(ballots->now) : 0);
    g->expected = &ballots->expected;
    g->ballot = slice_of(ballots->next, sizeof(ballots->next));
}

/* All conditional changes to a partition have its ballot. */
static int add_conditions(struct partitions *p, const struct eng_batch *b, struct arena *a) {
    struct ballots *ballots = ARENA_ARRAY(a, p->n, struct ballots);
    if (!ballots) return -1;
    for (size_t i = 0; i < b->n; i++) {
        if (!b->changes[i].conditional) continue;
        struct write_group *g = group_of(p, engi_change_key(b, &b->changes[i]));
        add_condition(g, &ballots[g - p->groups], &b->changes[i]);
    }
    return 0;
}

/* Returns the batch's result from those of its groups. A batch of counters over several partitions
 * is not atomic, as in Cassandra: the caller writes the others again. */
static int take_results(const struct partitions *p, const struct eng_batch *b) {
    size_t n_changed = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct write_group *g = &p->groups[i];
        n_changed += g->result == WRITE_CHANGED;
        if (g->expected && g->result == 0) b->store->front->ballot_moved(b->store, g->prefix, load_u64(g->ballot.p));
    }
    for (size_t i = 0; n_changed && i < b->n; i++)
        b->changes[i].written = group_of(p, engi_change_key(b, &b->changes[i]))->result == 0;
    return n_changed ? KV_CHANGED : 0;
}

static int write_batch(struct rados *s, const struct eng_batch *b, struct arena *a, struct err *e) {
    struct partitions p = {.changes = ARENA_ARRAY(a, b->n, struct write_change)};
    if (!p.changes) return err_nomem(e);
    for (size_t i = 0; i < b->n; i++)
        p.changes[i] = (struct write_change){.kind = WRITE_APPEND,
                                             .key = engi_change_key(b, &b->changes[i]),
                                             .value = engi_change_value(b, &b->changes[i])};
    if (group_changes(&p, b->n, a) < 0 || add_conditions(&p, b, a) < 0) return err_nomem(e);
    int rc = write_groups(s, p.groups, p.n, e), taken = take_results(&p, b);
    return rc ? rc : taken;
}

int batchlog_write(struct rados *s, const struct eng_batch *b, struct err *e) {
    struct arena a;
    struct buf key;
    bool logged = spans_partitions(b);
    for (size_t i = 0; i < b->n; i++) logged = logged && !b->changes[i].conditional;
    buf_init(&key, 0);
    arena_init(&a, CHUNK, 0);
    int rc = logged ? log_key(s, &key, e) : 0;
    if (rc == 0 && logged) rc = log_batch(s, b, buf_slice(&key), e);
    if (rc == 0) rc = write_batch(s, b, &a, e);
    /* A batch that stays in the log is applied once more later. */
    if (rc == 0 && logged && unlog(s, buf_slice(&key)) < 0) rc = 0;
    arena_fini(&a);
    buf_fini(&key);
    return rc;
}

/* ---- replay ---- */

int batchlog_check(struct slice logged, size_t *n, struct err *e) {
    struct rd r = rd_of(logged);
    *n = 0;
    while (rd_left(&r)) {
        struct slice key = rd_bytes(&r, rd_u32(&r)), value = rd_bytes(&r, rd_u32(&r));
        if (r.bad || !engi_prefix_len(key) || !value.n)
            return err_set(e, ERR_SERVER, "a batch in the Ceph pool's log is damaged");
        ++*n;
    }
    return 0;
}

static int replay(struct rados *s, struct slice logged, struct arena *a, struct err *e) {
    struct partitions p = {0};
    struct rd r;
    size_t n;
    if (batchlog_check(logged, &n, e) < 0) return -1;
    p.changes = ARENA_ARRAY(a, n + 1, struct write_change);
    if (!p.changes) return err_nomem(e);
    r = rd_of(logged);
    for (size_t i = 0; i < n; i++) {
        p.changes[i].key = rd_bytes(&r, rd_u32(&r));
        p.changes[i].value = rd_bytes(&r, rd_u32(&r));
    }
    return group_changes(&p, n, a) < 0 ? err_nomem(e) : write_groups(s, p.groups, p.n, e);
}

/* Whether the server that logged the record has told its client of the outcome, or has died. */
static bool is_settled(struct slice key) {
    uint64_t settled = (uint64_t)(clock_wall_us(&clock_real) - BATCHLOG_AGE_S * (int64_t)1000000);
    return time_of(key) <= settled;
}

/* The records that a replay applies. */
struct due {
    uint32_t died;  /* the incarnation of a server; 0: none */
    uint64_t until; /* records are old that have this time or an earlier one */
};

static bool is_due(const struct due *due, struct slice key) {
    if (key.n != OMAP_SEQUENCE_DIGITS + NUMBER_DIGITS) return false;
    return time_of(key) <= due->until || (due->died && incarnation_of(key) == due->died);
}

/* Applies the batches that are due, until the time at which what was read is too old (Q23). One that
 * cannot be applied stays, and holds up no other; one that can never be is removed when it is
 * settled. */
static int replay_due(struct rados *s, const struct omap_pairs *pairs, const struct due *due, int64_t end_us,
                      struct arena *a, size_t *n, struct err *e) {
    int rc = 0;
    for (size_t i = 0; i < pairs->n && clock_machine_us(&clock_real) < end_us; i++) {
        const struct omap_pair *p = &pairs->items[i];
        struct err why = {0};
        if (!is_due(due, p->key)) continue;
        if (replay(s, p->value, a, &why) == 0) {
            *n += unlog(s, p->key) == 0;
            continue;
        }
        if (why.code == ERR_INVALID && is_settled(p->key) && unlog(s, p->key) == 0)
            log_warn("a batch that another server had left is dropped: %s", why.text);
        *e = why;
        rc = -1;
    }
    return rc;
}

int batchlog_replay(struct rados *s, uint32_t died, int64_t age_us, size_t *n, struct err *e) {
    struct omap_read r = {.pool = &s->pool};
    struct omap_pairs pairs = {0};
    struct arena a;
    const struct due due = {.died = died, .until = (uint64_t)(clock_wall_us(&clock_real) - age_us)};
    int64_t end_us = clock_machine_us(&clock_real) + BATCHLOG_REPLAY_S * 1000000ll;
    *n = 0;
    arena_init(&a, CHUNK, 0);
    omap_read_add(&r, "", "", OMAP_READ_MAX); /* the rest is for the next call */
    int rc = omap_read_run(&r, OBJECT);
    if (rc == 0) rc = omap_read_take(&r, 0, &a, &pairs);
    omap_read_fini(&r);
    if (rc < 0 && rc != -ENOENT) rc = pool_error(e, rc, POOL_READS, OBJECT);
    else rc = replay_due(s, &pairs, &due, end_us, &a, n, e);
    omap_pairs_fini(&pairs);
    arena_fini(&a);
    return rc;
}

int batchlog_oldest(struct rados *s, int64_t *us, struct err *e) {
    struct omap_read r = {.pool = &s->pool};
    struct omap_pairs pairs = {0};
    struct arena a;
    *us = INT64_MAX;
    arena_init(&a, CHUNK, 0);
    omap_read_add(&r, "", "", 1);
    int rc = omap_read_run(&r, OBJECT);
    if (rc == 0) rc = omap_read_take(&r, 0, &a, &pairs);
    omap_read_fini(&r);
    if (rc == 0 && pairs.n && pairs.items[0].key.n >= OMAP_SEQUENCE_DIGITS)
        *us = (int64_t)time_of(pairs.items[0].key);
    omap_pairs_fini(&pairs);
    arena_fini(&a);
    return rc < 0 && rc != -ENOENT ? pool_error(e, rc, POOL_READS, OBJECT) : 0;
}
