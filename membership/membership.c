#include "membership/membership.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/ticker.h"
#include "engine/named.h"

static const char prefix[] = "membership/", lease_key[] = "membership/lease", of_prefix[] = "membership/of/";
enum { KEY_SIZE = sizeof(of_prefix) + 2 * MEMBER_ID, ROUND_US = 1000000, TRIES = 3 };

/* The record of the lease: host id and incarnation of the leader. */
enum { LEASE_SIZE = 2 * MEMBER_ID };

/* Another server, as the last rounds found it. */
struct observed {
    struct observed *next;
    struct member member;
    struct buf record;
    int64_t changed_us;      /* machine time at the end of the first read that returned these bytes */
    bool live, is_there;     /* is_there: the round that is under way has found the record */
    bool moved;              /* this round has found another record */
    bool altered, restarted; /* more than its beat is another; it is that of another run */
    bool is_reported, reported_live; /* as last reported */
};

struct membership {
    struct eng *eng;
    struct clock *clock;
    struct membership_hooks hooks;
    struct member self;
    /* The thread's, or the caller's of membership_tick: */
    struct observed *others; /* in the order of their host ids, which is that of the records */
    struct observed **at;    /* where the record that is read next belongs */
    struct buf found, lease; /* this server's record and the lease as they were read last; empty: there is none */
    struct buf damaged_key, damaged; /* a record that this round could not decode; empty: there is none */
    bool joined;             /* this server has a record, or had one */
    uint8_t replaced[MEMBER_ID]; /* the run of this server whose record it replaced then; 0 if there was none */
    bool doubled;            /* another server runs with its address, and this one writes no record any more (L3) */
    bool stale;              /* the record does not say what self does */
    bool overwritten;        /* the record that was read last is that of another run */
    bool changed;            /* the list is out of date */
    bool failing;            /* the last round could not read or write, which was logged */
    atomic_bool holds;       /* the lease named this server when it was read or written last */
    _Atomic int64_t renewed_us; /* machine time when the last write of this server's record began */
    atomic_uint_fast64_t generation;
    struct ticker ticker;
    pthread_mutex_t lock; /* protects list */
    const struct member_list *list;
};

/* ---- the list ---- */

const struct member_list *membership_list(struct membership *m) {
    pthread_mutex_lock(&m->lock);
    struct member_list *l = (struct member_list *)m->list;
    atomic_fetch_add(&l->refs, 1);
    pthread_mutex_unlock(&m->lock);
    return l;
}

void membership_unref(const struct member_list *l) {
    struct member_list *own = (struct member_list *)l;
    if (own && atomic_fetch_sub(&own->refs, 1) == 1) free(own);
}

uint64_t membership_generation(const struct membership *m) { return atomic_load(&m->generation); }

int64_t membership_age_us(const struct membership *m) {
    return clock_machine_us(m->clock) - atomic_load(&m->renewed_us);
}

static int compare_ids(const struct member *a, const struct member *b) {
    return memcmp(a->host_id, b->host_id, MEMBER_ID);
}

/* Without memory the list stays as it is, and the next round tries again. */
static void make_list(struct membership *m) {
    uint32_t n = 1;
    for (const struct observed *o = m->others; o; o = o->next) n += o->live;
    struct member_list *l = calloc(1, sizeof(*l) + n * sizeof(struct member));
    if (!l) return;
    atomic_store(&l->refs, 1);
    pthread_mutex_lock(&m->lock);
    const struct member_list *before = m->list;
    const struct observed *o = m->others;
    for (bool own = false; l->n < n;) {
        while (o && !o->live) o = o->next;
        if (!own && (!o || compare_ids(&m->self, &o->member) < 0)) {
            own = true;
            l->self = l->n;
            l->items[l->n++] = m->self;
        } else {
            l->items[l->n++] = o->member;
            o = o->next;
        }
    }
    m->list = l;
    pthread_mutex_unlock(&m->lock);
    atomic_fetch_add(&m->generation, 1);
    membership_unref(before);
    m->changed = false;
}

/* ---- this server's record ---- */

static void report_died(struct membership *m, const uint8_t incarnation[MEMBER_ID]) {
    if (m->hooks.died) m->hooks.died(m->hooks.arg, incarnation);
}

static void key_of(const uint8_t host_id[MEMBER_ID], char out[KEY_SIZE]) {
    static const char digits[] = "0123456789abcdef";
    memcpy(out, of_prefix, sizeof(of_prefix));
    for (int i = 0; i < MEMBER_ID; i++) {
        out[sizeof(of_prefix) - 1 + 2 * i] = digits[host_id[i] >> 4];
        out[sizeof(of_prefix) + 2 * i] = digits[host_id[i] & 15];
    }
    out[KEY_SIZE - 1] = 0;
}

static void lease_of(const struct membership *m, uint8_t out[LEASE_SIZE]) {
    memcpy(out, m->self.host_id, MEMBER_ID);
    memcpy(out + MEMBER_ID, m->self.incarnation, MEMBER_ID);
}

/* Writes the record on the condition that it is as this round has read it, and that the lease still
 * names this server if it did (L2). After ENG_CHANGED, and after an error, when it may have been
 * written or not, the next round reads it again. */
static int write_record(struct membership *m, struct err *e) {
    char key[KEY_SIZE];
    uint8_t own[LEASE_SIZE];
    struct buf record;
    const struct slice found = buf_slice(&m->found), lease = slice_of(own, sizeof(own));
    bool tells = m->stale || !m->found.n;
    int64_t began_us = clock_machine_us(m->clock);
    key_of(m->self.host_id, key);
    lease_of(m, own);
    buf_init(&record, 0);
    m->self.beat++;
    member_encode(&m->self, &record);
    const struct eng_meta_change changes[] = {
        {.key = slice_str(key), .value = buf_slice(&record), .conditional = true,
         .expected = m->found.n ? &found : NULL, .quiet = !tells},
        {.key = slice_str(lease_key), .value = lease, .conditional = true, .expected = &lease, .quiet = true}};
    int rc = buf_failed(&record) ? err_nomem(e) : eng_meta_write(m->eng, atomic_load(&m->holds) ? 2 : 1, changes, e);
    if (rc == 0) {
        struct member before;
        if (!m->joined && m->found.n && member_decode(found, &before)) {
            memcpy(m->replaced, before.incarnation, MEMBER_ID);
            report_died(m, m->replaced);
        }
        atomic_store(&m->renewed_us, began_us);
        m->joined = true;
        m->stale = m->overwritten = false;
        m->changed = m->changed || tells;
        buf_clear(&m->found, SIZE_MAX);
        buf_put_slice(&m->found, buf_slice(&record));
    }
    buf_fini(&record);
    return rc;
}

static bool is_due(struct membership *m) {
    uint8_t version[MEMBER_ID] = {0};
    if (m->hooks.schema) {
        m->hooks.schema(m->hooks.arg, version);
        m->stale = m->stale || memcmp(version, m->self.schema_version, MEMBER_ID) != 0;
        memcpy(m->self.schema_version, version, MEMBER_ID);
    }
    return m->stale || m->overwritten || !m->found.n || membership_age_us(m) >= MEMBERSHIP_RENEW_US;
}

/* ---- the lease ---- */

bool membership_leads(const struct membership *m) {
    return atomic_load(&m->holds) && membership_age_us(m) < MEMBERSHIP_LEASE_US;
}

static const struct observed *find(const struct membership *m, const uint8_t *host_id) {
    const struct observed *o = m->others;
    while (o && memcmp(o->member.host_id, host_id, MEMBER_ID) != 0) o = o->next;
    return o;
}

/* Acquires the lease if its holder is dead, has left, or was restarted. */
static int take_lease(struct membership *m, struct err *e) {
    char key[KEY_SIZE];
    uint8_t own[LEASE_SIZE];
    const struct slice lease = buf_slice(&m->lease);
    const uint8_t *holder = lease.n == LEASE_SIZE ? lease.p : m->self.host_id;
    const struct observed *o = find(m, holder);
    if (atomic_load(&m->holds)) return 0;
    if (o && o->live && memcmp(o->member.incarnation, holder + MEMBER_ID, MEMBER_ID) == 0) return 0;
    bool is_own = memcmp(holder, m->self.host_id, MEMBER_ID) == 0;
    const struct slice record = is_own ? buf_slice(&m->found) : o ? buf_slice(&o->record) : slice_of("", 0);
    key_of(holder, key);
    lease_of(m, own);
    const struct eng_meta_change changes[] = {
        {.key = slice_str(lease_key), .value = slice_of(own, sizeof(own)), .conditional = true,
         .expected = lease.n ? &lease : NULL, .quiet = true},
        {.key = slice_str(key), .value = record, .deleted = !record.n, .conditional = true,
         .expected = record.n ? &record : NULL, .quiet = true}}; /* L2 */
    int rc = eng_meta_write(m->eng, ARRAY_LEN(changes), changes, e);
    if (rc == 0) log_info("this server carries unfinished DDL to its end from now on");
    atomic_store(&m->holds, rc == 0);
    return rc;
}

/* ---- the records of all ---- */

static int take_copy(struct buf *to, struct slice record, struct err *e) {
    buf_clear(to, SIZE_MAX);
    buf_put_slice(to, record);
    return buf_failed(to) ? err_nomem(e) : 0;
}

/* Keeps L3. */
static int take_own(struct membership *m, const struct member *found, struct slice record, struct err *e) {
    bool other = m->joined && memcmp(found->incarnation, m->self.incarnation, MEMBER_ID) != 0;
    m->overwritten = other;
    bool runs_on = memcmp(found->incarnation, m->replaced, MEMBER_ID) == 0;
    if (other && !m->doubled && (runs_on || membership_age_us(m) >= MEMBERSHIP_EXPIRE_US)) {
        log_error("two servers have the address %s:%u, and this one stops: give each a --broadcast-address of its own",
                  m->self.address, m->self.port ? m->self.port : m->self.tls_port);
        m->doubled = true;
        if (m->hooks.doubled) m->hooks.doubled(m->hooks.arg);
    }
    return take_copy(&m->found, record, e);
}

/* The key of a server's record is that of its host id. */
static bool decode(struct slice key, struct slice value, struct member *out) {
    char own[KEY_SIZE];
    if (!member_decode(value, out)) return false;
    key_of(out->host_id, own);
    return slice_is(key, own);
}

static int take_record(void *arg, struct slice key, struct slice value, struct err *e) {
    struct membership *m = arg;
    struct member found;
    if (slice_is(key, lease_key)) return take_copy(&m->lease, value, e);
    if (!decode(key, value, &found))
        return take_copy(&m->damaged_key, key, e) || take_copy(&m->damaged, value, e) ? -1 : 0;
    if (compare_ids(&found, &m->self) == 0) return take_own(m, &found, value, e);
    while (*m->at && compare_ids(&(*m->at)->member, &found) < 0) m->at = &(*m->at)->next;
    struct observed *o = *m->at;
    if (!o || compare_ids(&o->member, &found) != 0) {
        o = calloc(1, sizeof(*o));
        if (!o) return err_nomem(e);
        buf_init(&o->record, 0);
        o->next = *m->at;
        *m->at = o;
    }
    o->is_there = true;
    if (slice_eq(buf_slice(&o->record), value)) return 0;
    o->moved = true;
    o->altered = o->altered || !member_same_but_beat(buf_slice(&o->record), value);
    o->restarted = o->record.n && memcmp(found.incarnation, o->member.incarnation, MEMBER_ID) != 0;
    if (o->restarted && o->live) report_died(m, o->member.incarnation);
    o->member = found;
    return take_copy(&o->record, value, e);
}

/* A damaged record shows no server as alive, and fails every write on the condition that its server has
 * none. Removes it, unless it has changed; its server writes another one. */
static void remove_damaged(struct membership *m) {
    struct err e = {0};
    const struct slice found = buf_slice(&m->damaged);
    const struct eng_meta_change change = {
        .key = buf_slice(&m->damaged_key), .deleted = true, .conditional = true, .expected = &found};
    log_warn("membership: the record %.*s is damaged and is removed", SLICE_FMT(buf_slice(&m->damaged_key)));
    if (eng_meta_write(m->eng, 1, &change, &e) == -1) log_warn("membership: %s", e.text);
}

static int read_records(struct membership *m, struct err *e) {
    m->at = &m->others;
    buf_clear(&m->found, SIZE_MAX);
    buf_clear(&m->damaged_key, SIZE_MAX);
    buf_clear(&m->lease, SIZE_MAX);
    for (struct observed *o = m->others; o; o = o->next) o->is_there = false;
    int rc = eng_meta_scan(m->eng, slice_str(prefix), take_record, m, e);
    uint8_t own[LEASE_SIZE];
    lease_of(m, own);
    if (rc == 0) atomic_store(&m->holds, slice_eq(buf_slice(&m->lease), slice_of(own, sizeof(own))));
    if (rc == 0 && m->damaged_key.n) remove_damaged(m);
    return rc;
}

/* The server has not returned in time: removes its record, unless it has changed. */
static void remove_record(struct membership *m, const struct observed *o) {
    char key[KEY_SIZE];
    struct err e = {0};
    const struct slice found = buf_slice(&o->record);
    key_of(o->member.host_id, key);
    const struct eng_meta_change change = {
        .key = slice_str(key), .deleted = true, .conditional = true, .expected = &found};
    if (eng_meta_write(m->eng, 1, &change, &e) == -1) log_warn("membership: %s", e.text);
}

/* Decides which servers are alive, from the records read between the two times. */
static void judge(struct membership *m, int64_t began_us, int64_t ended_us) {
    for (struct observed *o = m->others; o; o = o->next) {
        bool was_live = o->live;
        bool restarts = o->moved || m->failing; /* L1: a record cannot change while the store fails */
        int64_t silent_us = restarts ? 0 : began_us - o->changed_us;
        if (restarts) o->changed_us = ended_us;
        o->live = o->is_there && (o->moved || (was_live && silent_us < MEMBERSHIP_EXPIRE_US)); /* L1 */
        m->changed = m->changed || o->altered || was_live != o->live;
        o->moved = o->altered = false;
        if (o->is_there && silent_us >= MEMBERSHIP_REMOVE_US) remove_record(m, o);
    }
}

static void tell(struct membership *m, enum member_event event, const struct observed *o) {
    if (m->hooks.event) m->hooks.event(m->hooks.arg, event, &o->member);
}

/* Reports the differences from the last report. */
static void report(struct membership *m) {
    for (struct observed **at = &m->others, *o; (o = *at);) {
        if (!o->is_reported) tell(m, MEMBER_NEW, o);
        if (o->live && (!o->reported_live || o->restarted)) tell(m, MEMBER_UP, o);
        if (!o->live && o->reported_live) {
            report_died(m, o->member.incarnation);
            tell(m, MEMBER_DOWN, o);
        }
        o->is_reported = true;
        o->reported_live = o->live;
        o->restarted = false;
        if (o->is_there) {
            at = &o->next;
            continue;
        }
        tell(m, MEMBER_REMOVED, o);
        *at = o->next;
        buf_fini(&o->record);
        free(o);
    }
}

/* ---- rounds ---- */

static int run_round(struct membership *m, bool writes, struct err *e) {
    int64_t began_us = clock_machine_us(m->clock);
    if (read_records(m, e)) return -1;
    judge(m, began_us, clock_machine_us(m->clock));
    writes = writes && !m->doubled;
    int rc = writes && is_due(m) ? write_record(m, e) : 0;
    if (rc == 0 && writes) rc = take_lease(m, e);
    if (m->changed) make_list(m);
    if (!m->changed) report(m);
    return rc;
}

void membership_tick(struct membership *m) {
    struct err e = {0};
    int rc = ENG_CHANGED;
    for (int i = 0; rc == ENG_CHANGED && i < TRIES; i++) {
        rc = run_round(m, true, &e);
        if (rc == -1 && !m->failing) log_warn("membership: %s", e.text);
        m->failing = rc == -1;
    }
}

static int64_t work(void *arg) {
    membership_tick(arg);
    return ROUND_US;
}

void membership_hurry(struct membership *m) { ticker_wake(&m->ticker); }

/* Runs on a thread of the engine. */
static void note_change(void *arg) { membership_hurry(arg); }

/* ---- start and stop ---- */

struct membership *membership_open(const struct membership_options *o, struct err *e) {
    struct membership *m = calloc(1, sizeof(*m));
    if (!m) return err_null(err_nomem(e));
    *m = (struct membership){.eng = o->eng, .clock = o->clock, .self = o->self, .stale = true, .changed = true};
    buf_init(&m->found, 0);
    buf_init(&m->lease, 0);
    buf_init(&m->damaged_key, 0);
    buf_init(&m->damaged, 0);
    pthread_mutex_init(&m->lock, NULL);
    ticker_init(&m->ticker, work, m);
    atomic_store(&m->renewed_us, INT64_MIN / 2);
    int rc = run_round(m, false, e) ? -1 : 0;
    if (rc == 0 && m->list) return m;
    if (rc == 0) err_nomem(e);
    membership_free(m);
    return NULL;
}

int membership_join(struct membership *m, const struct membership_hooks *hooks, struct err *e) {
    int rc = ENG_CHANGED;
    m->hooks = *hooks;
    while (rc == ENG_CHANGED) rc = run_round(m, true, e);
    return rc;
}

int membership_start(struct membership *m, struct err *e) {
    if (eng_meta_watch(m->eng, note_change, m, e)) return -1;
    return ticker_start(&m->ticker, ROUND_US, e);
}

void membership_leave(struct membership *m) {
    char key[KEY_SIZE];
    struct err e = {0};
    eng_meta_unwatch(m->eng, m);
    ticker_stop(&m->ticker);
    m->hooks = (struct membership_hooks){0};
    atomic_store(&m->holds, false);
    key_of(m->self.host_id, key);
    if (m->joined && !m->doubled && eng_meta_delete(m->eng, slice_str(key), &e))
        log_warn("membership: this server's record is not removed: %s", e.text);
}

void membership_free(struct membership *m) {
    for (struct observed *o = m->others, *next; o; o = next) {
        next = o->next;
        buf_fini(&o->record);
        free(o);
    }
    membership_unref(m->list);
    buf_fini(&m->found);
    buf_fini(&m->lease);
    buf_fini(&m->damaged_key);
    buf_fini(&m->damaged);
    ticker_fini(&m->ticker);
    pthread_mutex_destroy(&m->lock);
    free(m);
}
