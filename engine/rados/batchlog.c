#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/rados/batchlog.h"
#include "engine/rados/omap_key.h"
#include "engine/rados/write.h"

#define REGISTRY "batches"
enum { COUNT_DIGITS = 5, RECORD_KEY = OMAP_SEQUENCE_DIGITS + COUNT_DIGITS, TRIES = 3, CHUNK = 16 << 10 };

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

/* Orders changes by partition, then by the order in which they were added: their keys are in one buffer. */
static int by_partition(const void *a, const void *b) {
    const struct write_change *x = a, *y = b;
    int c = slice_cmp(prefix_of(x->key), prefix_of(y->key));
    return c ? c : (x->key.p > y->key.p) - (x->key.p < y->key.p);
}

/* Sorts the changes and makes a group of each partition. */
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

static struct write_group *group_of(const struct partitions *p, struct slice key) {
    const struct write_group sought = {.prefix = prefix_of(key)};
    struct write_group *g = bsearch(&sought, p->groups, p->n, sizeof(*g), by_prefix);
    assert(g);
    return g;
}

/* ---- logs ---- */

static int write_and_end(struct rados *s, struct omap_write *w, const char *object) {
    int rc = omap_write_run(w, &s->pool, object);
    omap_write_fini(w);
    return rc;
}

static int unlog(struct rados *s, const struct batchlog *log, struct slice key) {
    struct omap_write w = {0};
    omap_write_remove(&w, key);
    return write_and_end(s, &w, log->object);
}

static void name_log(struct batchlog *log) {
    snprintf(log->object, sizeof(log->object), REGISTRY ".%08" PRIx32 ".%08" PRIx32, log->incarnation, log->number);
}

static struct slice registered_key(const struct batchlog *log) {
    return slice_str(log->object + sizeof(REGISTRY)); /* the part after the dot */
}

static int register_log(struct rados *s, const struct batchlog *log) {
    struct omap_write w = {.creates = true};
    uint8_t now[8];
    store_u64(now, (uint64_t)clock_wall_us(&clock_real));
    omap_write_set(&w, registered_key(log), slice_of(now, sizeof(now)));
    return write_and_end(s, &w, REGISTRY);
}

int batchlog_begin(struct rados *s, uint32_t lost, struct err *e) {
    struct batchlog log = {.incarnation = s->o.incarnation};
    int rc = 0;
    if (pthread_mutex_trylock(&s->log_lock))
        return err_set(e, ERR_OVERLOADED, "this server begins another log of batches, because another server took it "
                                          "for dead and removed its log; nothing was written, try again");
    if (atomic_load(&s->log) != lost) goto unlock; /* another thread has begun it */
    if (!s->made_log) {
        struct omap_write w = {.creates = true, .exclusive = true};
        log.number = ++s->n_logs;
        name_log(&log);
        omap_write_set(&w, slice_str(BATCHLOG_MARK), slice_str("1"));
        if ((rc = write_and_end(s, &w, log.object)) < 0) {
            pool_error(e, rc, POOL_WRITES, log.object);
            goto unlock;
        }
        s->made_log = true;
    }
    log.number = s->n_logs;
    name_log(&log);
    if ((rc = register_log(s, &log)) < 0) {
        pool_error(e, rc, POOL_WRITES, REGISTRY);
        goto unlock;
    }
    s->made_log = false;
    atomic_store(&s->log, log.number);
unlock:
    pthread_mutex_unlock(&s->log_lock);
    return rc < 0 ? -1 : 0;
}

int batchlog_each(struct rados *s, uint32_t incarnation, batchlog_fn fn, void *arg) {
    struct omap_pairs names = {0};
    struct arena a;
    char prefix[16] = "";
    const char *start = "";
    bool more = true;
    int rc = 0;
    arena_init(&a, CHUNK, 0);
    if (incarnation) snprintf(prefix, sizeof(prefix), "%08" PRIx32 ".", incarnation);
    while (rc == 0 && more) {
        struct omap_read r = {.pool = &s->pool};
        size_t before = names.n;
        omap_read_add(&r, start, prefix, OMAP_READ_MAX);
        rc = omap_read_run(&r, REGISTRY);
        if (rc == 0) rc = omap_read_take(&r, 0, &a, &names);
        more = rc == 0 && r.parts[0].more && names.n > before;
        if (more) start = (const char *)names.items[names.n - 1].key.p; /* the arena appends a NUL */
        omap_read_fini(&r);
    }
    if (rc == -ENOENT) rc = 0;
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        const struct omap_pair *p = &names.items[i];
        struct batchlog log = {0};
        if (sscanf((const char *)p->key.p, "%8" SCNx32 ".%8" SCNx32, &log.incarnation, &log.number) != 2) continue;
        name_log(&log);
        if (!slice_eq(registered_key(&log), p->key)) continue; /* a record of an earlier version */
        if (p->value.n == 8) log.registered_us = load_u64(p->value.p);
        rc = fn(arg, &log);
    }
    omap_pairs_fini(&names);
    arena_fini(&a);
    return rc;
}

/* A consistent snapshot of a log. */
struct contents {
    struct omap_pairs records;
    bool marked;
};

static int read_log(struct rados *s, const struct batchlog *log, uint64_t max, struct arena *a, struct contents *c) {
    struct omap_read r = {.pool = &s->pool};
    struct omap_pairs mark = {0};
    *c = (struct contents){0};
    omap_read_add(&r, "", BATCHLOG_MARK, 1);
    omap_read_add(&r, BATCHLOG_MARK, "", max);
    int rc = omap_read_run(&r, log->object);
    if (rc == 0) rc = omap_read_take(&r, 0, a, &mark);
    if (rc == 0) rc = omap_read_take(&r, 1, a, &c->records);
    c->marked = mark.n && slice_eq(mark.items[0].key, slice_str(BATCHLOG_MARK));
    omap_read_fini(&r);
    omap_pairs_fini(&mark);
    return rc;
}

/* ---- records ---- */

/* Writes a record to the server's log. Sets *log to the log and key to the record's key. */
static int write_record(struct rados *s, struct slice value, struct batchlog *log, struct buf *key) {
    struct omap_write w = {0};
    *log = (struct batchlog){.incarnation = s->o.incarnation, .number = atomic_load(&s->log)};
    name_log(log);
    buf_clear(key, SIZE_MAX);
    omap_key_number(key, (uint64_t)clock_wall_us(&clock_real), OMAP_SEQUENCE_DIGITS);
    omap_key_number(key, atomic_fetch_add(&s->n_logged, 1), COUNT_DIGITS);
    if (buf_failed(key)) return -ENOMEM;
    omap_write_compare(&w, slice_str(BATCHLOG_MARK), slice_str("1")); /* Q28 */
    omap_write_set(&w, buf_slice(key), value);
    int rc = write_and_end(s, &w, log->object);
    return rc == -ENOENT ? -ECANCELED : rc;
}

/* Records the batch in the log. Sets *log and key as write_record does. Returns 0, or -1 with *e set. */
static int log_batch(struct rados *s, const struct eng_batch *b, struct batchlog *log, struct buf *key, struct err *e) {
    int64_t until_us = clock_machine_us(&clock_real) + WRITE_SEND_S * 1000000ll; /* Q14 */
    struct buf value;
    buf_init(&value, 0);
    for (size_t i = 0; i < b->n; i++) {
        struct slice k = engi_change_key(b, &b->changes[i]), v = engi_change_value(b, &b->changes[i]);
        buf_u32(&value, (uint32_t)k.n);
        buf_put_slice(&value, k);
        buf_u32(&value, (uint32_t)v.n);
        buf_put_slice(&value, v);
    }
    int rc = buf_failed(&value) ? -ENOMEM : write_record(s, buf_slice(&value), log, key);
    for (int i = 0; rc == -ECANCELED && i < TRIES; i++) {
        if (batchlog_begin(s, log->number, e) < 0) {
            buf_fini(&value);
            return -1;
        }
        bool late = clock_machine_us(&clock_real) > until_us;
        rc = late ? -ETIMEDOUT : write_record(s, buf_slice(&value), log, key);
    }
    buf_fini(&value);
    return rc < 0 ? pool_error(e, rc == -ECANCELED ? -EBUSY : rc, POOL_WRITES, log->object) : 0;
}

/* ---- writing ---- */

static int write_batch(struct rados *s, const struct eng_batch *b, struct arena *a, struct err *e) {
    struct partitions p = {.changes = ARENA_ARRAY(a, b->n, struct write_change)};
    size_t n_changed = 0;
    if (!p.changes) return err_nomem(e);
    for (size_t i = 0; i < b->n; i++)
        p.changes[i] = (struct write_change){.kind = WRITE_APPEND,
                                             .key = engi_change_key(b, &b->changes[i]),
                                             .value = engi_change_value(b, &b->changes[i])};
    if (group_changes(&p, b->n, a) < 0) return err_nomem(e);
    struct ballots *ballots = ARENA_ARRAY(a, p.n, struct ballots);
    if (!ballots) return err_nomem(e);
    /* All conditional changes to a partition have its ballot. */
    for (size_t i = 0; i < b->n; i++) {
        const struct store_change *c = &b->changes[i];
        if (!c->conditional) continue;
        struct write_group *g = group_of(&p, engi_change_key(b, c));
        struct ballots *x = &ballots[g - p.groups];
        store_u64(x->now, c->ballot);
        store_u64(x->next, c->next_ballot);
        x->expected = slice_of(x->now, c->ballot ? sizeof(x->now) : 0);
        g->expected = &x->expected;
        g->ballot = slice_of(x->next, sizeof(x->next));
    }
    int rc = write_groups(s, p.groups, p.n, e);
    for (size_t i = 0; i < p.n; i++) {
        const struct write_group *g = &p.groups[i];
        n_changed += g->result == WRITE_CHANGED;
        if (g->expected && g->result == 0) b->store->front->ballot_moved(b->store, g->prefix, load_u64(g->ballot.p));
    }
    /* A batch of counters over several partitions is not atomic, as in Cassandra: the caller repeats the others. */
    for (size_t i = 0; n_changed && i < b->n; i++)
        b->changes[i].written = group_of(&p, engi_change_key(b, &b->changes[i]))->result == 0;
    return rc ? rc : n_changed ? KV_CHANGED : 0;
}

int batchlog_write(struct rados *s, const struct eng_batch *b, struct err *e) {
    struct arena a;
    struct buf key;
    struct batchlog log;
    bool logged = false, conditional = false;
    for (size_t i = 0; i < b->n; i++) {
        const struct store_change *c = &b->changes[i];
        conditional = conditional || c->conditional;
        if (i == 0 || c->group != c[-1].group) continue;
        logged = logged || !slice_eq(prefix_of(engi_change_key(b, c)), prefix_of(engi_change_key(b, c - 1)));
    }
    logged = logged && !conditional; /* a group of changes spans several partitions */
    buf_init(&key, 0);
    arena_init(&a, CHUNK, 0);
    int rc = logged ? log_batch(s, b, &log, &key, e) : 0;
    if (rc == 0) rc = write_batch(s, b, &a, e);
    /* A batch that stays in the log is applied once more later. */
    if (rc == 0 && logged && unlog(s, &log, buf_slice(&key)) < 0) rc = 0;
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

struct batchlog_seen {
    struct seen_name {
        char object[BATCHLOG_NAME];
        uint8_t key[RECORD_KEY];
    } name;
    int64_t since_us; /* machine time at which this store first read the record */
};

static int by_name(const void *a, const void *b) { return memcmp(a, b, sizeof(struct seen_name)); }

struct replaying {
    struct rados *s;
    uint32_t died;    /* the incarnation of the server whose logs are replayed, with all their records; 0 for the due
                       * records of all servers */
    int64_t until_us; /* a record that was first read at this machine time or earlier is due */
    struct batchlog_seen *seen; /* by this replay; replaces the store's array at its end */
    size_t n_seen, cap_seen;
    size_t n;       /* records that were applied */
    struct err *e;  /* the last error */
};

/* Without memory for it, the record counts as first read by the next replay. */
static void note_seen(struct replaying *x, const struct batchlog_seen *record) {
    if (array_room(&x->seen, x->n_seen, &x->cap_seen, sizeof(*record)) == 0) x->seen[x->n_seen++] = *record;
}

/* Applies the batches that are due, until end_us, when the records read are too old (Q23). A batch that cannot be
 * applied stays and does not delay the others. A batch that can never be applied is removed because of its age alone:
 * the server that has logged it may still be writing it, although others consider it dead. */
static void replay_due(struct replaying *x, const struct batchlog *log, const struct omap_pairs *records,
                       int64_t end_us) {
    struct arena a;
    arena_init(&a, CHUNK, 0);
    for (size_t i = 0; i < records->n; i++) {
        const struct omap_pair *p = &records->items[i];
        struct err why = {0};
        if (p->key.n != RECORD_KEY) continue;
        if (!x->died) {
            struct batchlog_seen record = {.since_us = clock_machine_us(&clock_real)}, *before = NULL;
            memcpy(record.name.object, log->object, sizeof(record.name.object));
            memcpy(record.name.key, p->key.p, p->key.n);
            if (x->s->n_seen) before = bsearch(&record, x->s->seen, x->s->n_seen, sizeof(record), by_name);
            if (before) record.since_us = before->since_us;
            note_seen(x, &record);
            if (record.since_us > x->until_us) continue;
        }
        if (clock_machine_us(&clock_real) >= end_us) continue;
        arena_reset(&a);
        if (replay(x->s, p->value, &a, &why) == 0) {
            x->n += unlog(x->s, log, p->key) == 0;
            continue;
        }
        if (why.code == ERR_INVALID && !x->died && unlog(x->s, log, p->key) == 0)
            log_warn("a batch that another server had left is dropped: %s", why.text);
        *x->e = why;
    }
    arena_fini(&a);
}

/* Renews the registration of this server's own log, and removes the mark of a log whose server has ended. */
static int renew_or_end(struct rados *s, const struct batchlog *log, uint32_t died) {
    enum { KEPT_S = 24 * 3600, RENEWED_S = 3600 };
    int64_t age_s = (int64_t)((uint64_t)clock_wall_us(&clock_real) - log->registered_us) / 1000000;
    bool own = log->incarnation == s->o.incarnation && log->number == atomic_load(&s->log);
    if (died || (!own && age_s > KEPT_S)) {
        int rc = unlog(s, log, slice_str(BATCHLOG_MARK));
        return rc == -ENOENT ? 0 : rc;
    }
    return own && age_s > RENEWED_S ? register_log(s, log) : 0;
}

/* A log that cannot be read does not delay the others; its records keep their ages. */
static int replay_log(void *arg, const struct batchlog *log) {
    struct replaying *x = arg;
    struct contents c = {0};
    struct arena a;
    assert(!x->died || log->incarnation == x->died); /* Q24 */
    arena_init(&a, CHUNK, 0);
    int rc = renew_or_end(x->s, log, x->died);
    int64_t end_us = clock_machine_us(&clock_real) + BATCHLOG_REPLAY_S * 1000000ll;
    if (rc == 0) rc = read_log(x->s, log, OMAP_READ_MAX, &a, &c); /* the rest is left to the next call */
    if (rc == -ENOENT || (rc == 0 && !c.marked && !c.records.n)) {
        struct omap_write w = {0};
        assert(!c.marked && !c.records.n); /* Q28 */
        rc = pool_remove(&x->s->pool, log->object);
        omap_write_remove(&w, registered_key(log));
        if (rc == 0 || rc == -ENOENT) rc = omap_write_run(&w, &x->s->pool, REGISTRY);
        omap_write_fini(&w);
    } else if (rc == 0) {
        replay_due(x, log, &c.records, end_us);
    } else if (!x->died) {
        for (size_t i = 0; i < x->s->n_seen; i++)
            if (strcmp(x->s->seen[i].name.object, log->object) == 0) note_seen(x, &x->s->seen[i]);
    }
    if (rc < 0) pool_error(x->e, rc, POOL_READS, log->object);
    omap_pairs_fini(&c.records);
    arena_fini(&a);
    return 0;
}

int batchlog_replay(struct rados *s, uint32_t died, int64_t age_us, size_t *n, struct err *e) {
    struct err why = {0};
    struct replaying x = {.s = s, .died = died, .until_us = clock_machine_us(&clock_real) - age_us, .e = &why};
    int rc = batchlog_each(s, died, replay_log, &x);
    *n = x.n;
    if (rc < 0) return pool_error(e, rc, POOL_READS, REGISTRY);
    if (!died) {
        free(s->seen);
        s->seen = x.seen;
        s->n_seen = x.n_seen;
    }
    if (why.set) return *e = why, -1;
    return 0;
}

void batchlog_close(struct rados *s) {
    struct err e = {0};
    size_t n;
    if (batchlog_replay(s, s->o.incarnation, 0, &n, &e) < 0)
        log_warn("the log of batches is left to other servers: %s", e.text);
    free(s->seen);
}

struct oldest {
    struct rados *s;
    int64_t *us;
};

static int note_oldest(void *arg, const struct batchlog *log) {
    const struct oldest *o = arg;
    struct contents c;
    struct arena a;
    arena_init(&a, 1 << 10, 0);
    int rc = read_log(o->s, log, 1, &a, &c);
    if (rc == 0 && c.records.n && c.records.items[0].key.n >= OMAP_SEQUENCE_DIGITS) {
        int64_t us = (int64_t)omap_number_read(slice_of(c.records.items[0].key.p, OMAP_SEQUENCE_DIGITS));
        if (us < *o->us) *o->us = us;
    }
    omap_pairs_fini(&c.records);
    arena_fini(&a);
    return rc == -ENOENT ? 0 : rc; /* it was removed: its records have been applied */
}

int batchlog_oldest(struct rados *s, int64_t *us, struct err *e) {
    struct oldest o = {.s = s, .us = us};
    *us = INT64_MAX;
    int rc = batchlog_each(s, 0, note_oldest, &o);
    return rc < 0 ? pool_error(e, rc, POOL_READS, REGISTRY) : 0;
}
