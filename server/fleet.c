#include "server/fleet.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/log.h"
#include "base/random.h"

#define HEADS "share/head/"
#define TABLES "share/table/"
enum { HEAD_KEY = sizeof(HEADS) + 16, TABLE_KEY = sizeof(TABLES) + 16 + 1 + 8, CHUNK = 64 << 10 };

struct head {
    uint64_t incarnation, sequence, tables;
    struct slice demands;
};

/* Another server's share. */
struct other {
    uint64_t id, tables; /* tables: the sequence of those that were read */
    size_t n, cap;
    uint32_t *objects;   /* that it has, ascending */
    uint64_t incarnation, sequence; /* of the head that was read last */
    int64_t changed_us;             /* when another one was read */
    struct limit_demands demands;   /* in it */
};

struct fleet {
    struct fleet_options o;
    uint64_t id;
    struct head head;     /* as it was written last */
    struct buf demands;   /* in it */
    bool owned;           /* the stored head is this process's */
    bool all;             /* the next write has all tables */
    int64_t written_us;   /* when the tables were last written; 0: not yet */
    size_t n_objects, objects_cap;
    uint32_t *objects;    /* whose records are in the store, ascending; SHARE_DROPPED left out */
    size_t n_others, others_cap;
    struct other **others;
    struct fleet_limits limits; /* demands NULL: they are not shared */
    bool (*exists)(void *arg, uint32_t object);
    void *exists_arg;
    pthread_t thread;
    pthread_mutex_t lock; /* of ends */
    pthread_cond_t wakes;
    bool runs, ends, failing;
};

/* ---- records ---- */

static void head_key(uint64_t id, char out[HEAD_KEY]) { snprintf(out, HEAD_KEY, HEADS "%016" PRIx64, id); }
static void table_key(uint64_t id, uint32_t object, char out[TABLE_KEY]) {
    snprintf(out, TABLE_KEY, TABLES "%016" PRIx64 "/%08x", id, object);
}

static void put_head(struct buf *out, const struct head *h) {
    buf_u64(out, h->incarnation);
    buf_u64(out, h->sequence);
    buf_u64(out, h->tables);
    buf_put_slice(out, h->demands);
}

/* -1: damaged. */
static int take_head(struct slice value, struct head *h) {
    struct rd r = rd_of(value);
    h->incarnation = rd_u64(&r);
    h->sequence = rd_u64(&r);
    h->tables = rd_u64(&r);
    h->demands = rd_bytes(&r, rd_left(&r));
    return r.bad ? -1 : 0;
}

/* The number behind a prefix, of so many hex digits. -1: the name is another one. */
static int number_of(struct slice name, size_t at, size_t digits, uint64_t *out) {
    char text[17], *end;
    if (name.n < at + digits) return -1;
    snprintf(text, sizeof(text), "%.*s", (int)digits, (const char *)name.p + at);
    *out = strtoull(text, &end, 16);
    return end == text + digits ? 0 : -1;
}

/* ---- the own share ---- */

struct own_head {
    bool found;
    struct head head; /* without demands */
    struct buf value;
};

static int take_own_head(void *arg, struct slice name, struct slice value, struct err *e) {
    struct own_head *own = arg;
    (void)name, (void)e;
    own->found = take_head(value, &own->head) == 0;
    own->head.demands = slice_of("", 0);
    buf_put_slice(&own->value, value);
    return buf_failed(&own->value) ? err_nomem(e) : 0;
}

static int continue_as_other(struct fleet *f, struct err *e) {
    log_warn("another server writes the ledger's share %016" PRIx64 ": its data folder is a copy of this one's, or "
             "the reverse. This server continues under a new id; charges from before the copy count twice",
             f->id);
    f->n_objects = 0;
    return ledger_share_renew(f->o.ledger, &f->id, e);
}

/* Makes the stored head this process's. */
static int replace_head(struct fleet *f, const struct own_head *stored, struct err *e) {
    char key[HEAD_KEY];
    struct buf value;
    const struct slice before = buf_slice(&stored->value);
    struct head next = {.incarnation = f->head.incarnation,
                        .sequence = (stored->found ? stored->head.sequence : f->head.sequence) + 1,
                        .tables = stored->found ? stored->head.tables : 0,
                        .demands = slice_of("", 0)};
    buf_init(&value, 0);
    head_key(f->id, key);
    put_head(&value, &next);
    const struct eng_meta_change change = {.key = slice_str(key),
                                           .value = buf_slice(&value),
                                           .conditional = true,
                                           .expected = stored->found ? &before : NULL,
                                           .quiet = true};
    int rc = buf_failed(&value) ? err_nomem(e) : eng_meta_write(f->o.eng, 1, &change, e);
    if (rc == ENG_CHANGED) rc = err_set(e, ERR_SERVER, "the share of this server's ledger was written by another one");
    if (!rc) f->head = next;
    f->owned = !rc;
    f->all = true;
    buf_fini(&value);
    return rc;
}

/* At the start, and after a write whose outcome is unknown. */
static int own(struct fleet *f, struct err *e) {
    char key[HEAD_KEY];
    struct own_head stored = {0};
    buf_init(&stored.value, 0);
    head_key(f->id, key);
    int rc = eng_meta_scan(f->o.eng, slice_str(key), take_own_head, &stored, e);
    bool started = f->head.sequence > 0;
    if (!rc && started && stored.found && stored.head.incarnation != f->head.incarnation) {
        rc = continue_as_other(f, e);
        stored.found = false;
    }
    if (!rc) rc = replace_head(f, &stored, e);
    buf_fini(&stored.value);
    f->demands.n = 0;
    return rc;
}

struct writing {
    struct fleet *f;
    struct arena arena;
    struct slice demands;
    size_t n, cap;
    struct eng_meta_change *changes; /* the first is the head's */
    size_t n_objects, objects_cap;
    uint32_t *objects; /* in the changes */
};

static int add_change(struct writing *w, uint32_t object, struct slice records) {
    char *key = arena_alloc(&w->arena, TABLE_KEY);
    struct slice copy = records.p ? arena_dup(&w->arena, records) : slice_of("", 0);
    if (!key || !copy.p || array_room(&w->changes, w->n, &w->cap, sizeof(*w->changes))) return -1;
    table_key(w->f->id, object, key);
    w->changes[w->n++] = (struct eng_meta_change){
        .key = slice_str(key), .value = copy, .deleted = !records.p, .quiet = true};
    return 0;
}

static int add_table(void *arg, uint32_t object, struct slice records) {
    struct writing *w = arg;
    if (add_change(w, object, records)) return -1;
    if (object == SHARE_DROPPED) return 0;
    if (array_room(&w->objects, w->n_objects, &w->objects_cap, sizeof(*w->objects))) return -1;
    w->objects[w->n_objects++] = object;
    return 0;
}

static bool has(const uint32_t *objects, size_t n, uint32_t object) {
    return n && bsearch(&object, objects, n, sizeof(*objects), array_u32_order);
}

/* Tables that were dropped leave the share, in the write that adds their sums to those of dropped
 * tables. */
static int add_removals(struct writing *w) {
    for (size_t i = 0; i < w->f->n_objects; i++)
        if (!ledger_has(w->f->o.ledger, w->f->objects[i]) &&
            add_change(w, w->f->objects[i], (struct slice){0}))
            return -1;
    return 0;
}

/* The objects in the store, after the write. */
static int note_objects(struct writing *w) {
    struct fleet *f = w->f;
    size_t n = 0;
    for (size_t i = 0; i < f->n_objects; i++)
        if (ledger_has(f->o.ledger, f->objects[i])) f->objects[n++] = f->objects[i];
    f->n_objects = n;
    for (size_t i = 0; i < w->n_objects; i++) {
        if (has(f->objects, n, w->objects[i])) continue;
        if (array_room(&f->objects, f->n_objects, &f->objects_cap, sizeof(*f->objects))) return -1;
        f->objects[f->n_objects++] = w->objects[i];
    }
    if (f->n_objects > n) qsort(f->objects, f->n_objects, sizeof(*f->objects), array_u32_order);
    return 0;
}

static int send(struct writing *w, struct err *e) {
    struct fleet *f = w->f;
    char key[HEAD_KEY];
    struct buf before, after;
    buf_init(&before, 0);
    buf_init(&after, 0);
    f->head.demands = buf_slice(&f->demands);
    put_head(&before, &f->head);
    struct head next = f->head;
    next.demands = w->demands;
    next.sequence++;
    if (w->n > 1) next.tables = next.sequence;
    put_head(&after, &next);
    head_key(f->id, key);
    const struct slice expected = buf_slice(&before);
    w->changes[0] = (struct eng_meta_change){.key = slice_str(key),
                                             .value = buf_slice(&after),
                                             .conditional = true, /* E1 */
                                             .expected = &expected,
                                             .quiet = true};
    int rc = buf_failed(&before) || buf_failed(&after) ? err_nomem(e)
                                                       : eng_meta_write(f->o.eng, (uint32_t)w->n, w->changes, e);
    if (rc == ENG_CHANGED) rc = err_set(e, ERR_SERVER, "the share of this server's ledger was written by another one");
    if (!rc) {
        f->head = next;
        f->demands.n = 0;
        buf_put_slice(&f->demands, w->demands);
    }
    f->owned = f->owned && !rc && !buf_failed(&f->demands); /* it may have been written: own() finds out */
    buf_fini(&before);
    buf_fini(&after);
    return rc;
}

/* Adds the tables that have changed. */
static int add_tables(struct writing *w) {
    if (ledger_share(w->f->o.ledger, w->f->all, add_table, w) || add_removals(w)) return -1;
    bool changed = w->f->all || w->n > 2; /* more than the head and the sum of dropped tables */
    if (!changed) w->n = 1;
    return 0;
}

/* Writes the tables that have changed, if it is their turn, and the demands, in each round. */
static int write_share(struct fleet *f, bool tables, struct slice demands, struct err *e) {
    if (!f->owned && own(f, e)) return -1;
    tables = tables || f->all;
    struct writing w = {.f = f, .n = 1, .demands = demands};
    arena_init(&w.arena, CHUNK, 0);
    int rc = array_room(&w.changes, 0, &w.cap, sizeof(*w.changes)) || (tables && add_tables(&w)) ? err_nomem(e) : 0;
    bool told = !demands.n && !f->demands.n; /* there is no demand, and the others know it */
    if (!rc && (w.n > 1 || !told)) rc = send(&w, e);
    if (!rc && tables && note_objects(&w)) rc = err_nomem(e);
    f->all = f->all && !tables;
    if (rc) f->all = true;
    else if (tables) f->written_us = clock_machine_us(f->o.clock);
    arena_fini(&w.arena);
    free(w.changes);
    free(w.objects);
    return rc;
}

/* ---- the start ---- */

static int recover(void *arg, struct slice name, struct slice value, struct err *e) {
    struct fleet *f = arg;
    uint64_t object;
    if (number_of(name, TABLE_KEY - 9, 8, &object)) return 0;
    int rc = ledger_share_recover(f->o.ledger, value);
    if (rc > 0) log_warn("a record of this server's share in the store is damaged, and is written anew");
    if (rc < 0) return err_nomem(e);
    if (object == SHARE_DROPPED) return 0;
    if (array_room(&f->objects, f->n_objects, &f->objects_cap, sizeof(*f->objects))) return err_nomem(e);
    f->objects[f->n_objects++] = (uint32_t)object;
    return 0;
}

/* ---- the others' shares ---- */

static struct other *other_open(struct fleet *f, uint64_t id) {
    for (size_t i = 0; i < f->n_others; i++)
        if (f->others[i]->id == id) return f->others[i];
    if (array_room(&f->others, f->n_others, &f->others_cap, sizeof(*f->others))) return NULL;
    struct other *o = calloc(1, sizeof(*o));
    if (!o) return NULL;
    o->id = id;
    return f->others[f->n_others++] = o;
}

struct heads {
    struct fleet *f;
    struct arena arena;
    size_t n, cap;
    struct other_head {
        uint64_t id;
        struct head head;
    } *items;
};

static int take_other_head(void *arg, struct slice name, struct slice value, struct err *e) {
    struct heads *h = arg;
    struct other_head one;
    if (number_of(name, sizeof(HEADS) - 1, 16, &one.id) || one.id == h->f->id || take_head(value, &one.head)) return 0;
    one.head.demands = arena_dup(&h->arena, one.head.demands);
    if (!one.head.demands.p) return err_nomem(e);
    if (array_room(&h->items, h->n, &h->cap, sizeof(*h->items))) return err_nomem(e);
    h->items[h->n++] = one;
    return 0;
}

struct reading {
    struct fleet *f;
    struct other *other;
    size_t n, cap;
    uint32_t *objects; /* that are there now; a scan returns them in ascending order */
};

static int take_record(void *arg, struct slice name, struct slice value, struct err *e) {
    struct reading *r = arg;
    uint64_t object;
    if (number_of(name, TABLE_KEY - 9, 8, &object)) return 0;
    int rc = ledger_share_take(r->f->o.ledger, r->other->id, (uint32_t)object, value);
    if (rc > 0) log_warn("the record %.*s is damaged, and is not counted", SLICE_FMT(name));
    if (rc < 0 || array_room(&r->objects, r->n, &r->cap, sizeof(*r->objects))) return err_nomem(e);
    r->objects[r->n++] = (uint32_t)object;
    return 0;
}

/* Reads all tables of a share. */
static int read_share(struct fleet *f, struct other *o, struct err *e) {
    struct reading r = {.f = f, .other = o};
    char prefix[TABLE_KEY];
    snprintf(prefix, sizeof(prefix), TABLES "%016" PRIx64 "/", o->id);
    int rc = eng_meta_scan(f->o.eng, slice_str(prefix), take_record, &r, e);
    for (size_t i = 0; !rc && i < o->n; i++)
        if (!has(r.objects, r.n, o->objects[i]) &&
            ledger_share_take(f->o.ledger, o->id, o->objects[i], (struct slice){0}))
            rc = err_nomem(e);
    if (rc) {
        free(r.objects);
        return -1;
    }
    free(o->objects);
    o->objects = r.objects;
    o->n = r.n;
    o->cap = r.cap;
    return 0;
}

static uint64_t more_than(uint64_t now, uint64_t before) { return now >= before ? now - before : now; }

/* Takes the demands of a head that has changed. The use since the head before it is
 * counted. The use that the first head tells of is not: the totals that were read then contain it. */
static void take_demands(struct fleet *f, struct other *o, const struct head *h) {
    struct limit_demands before = o->demands;
    struct rd in = rd_of(h->demands);
    bool goes_on = o->sequence && o->incarnation == h->incarnation;
    if (goes_on && o->sequence == h->sequence) {
        for (size_t i = 0; i < o->demands.n; i++) o->demands.items[i].read_new = o->demands.items[i].write_new = 0;
        return;
    }
    o->changed_us = clock_machine_us(f->o.clock);
    o->incarnation = h->incarnation;
    o->sequence = h->sequence;
    o->demands = (struct limit_demands){0};
    if (h->demands.n && limit_demands_take(&o->demands, &in)) o->demands.n = 0;
    if (o->demands.n) qsort(o->demands.items, o->demands.n, sizeof(*o->demands.items), limit_demand_order);
    for (size_t i = 0; goes_on && i < o->demands.n; i++) {
        struct limit_demand *d = &o->demands.items[i];
        const struct limit_demand *was =
            before.n ? bsearch(d, before.items, before.n, sizeof(*d), limit_demand_order) : NULL;
        d->read_new = more_than(d->read_used, was ? was->read_used : 0);
        d->write_new = more_than(d->write_used, was ? was->write_used : 0);
    }
    free(before.items);
}

static int read_others(struct fleet *f, struct err *e) {
    struct heads heads = {.f = f};
    arena_init(&heads.arena, CHUNK, 0);
    int rc = eng_meta_scan(f->o.eng, slice_str(HEADS), take_other_head, &heads, e);
    for (size_t i = 0; !rc && i < heads.n; i++) {
        const struct head *h = &heads.items[i].head;
        struct other *o = other_open(f, heads.items[i].id);
        if (!o) rc = err_nomem(e);
        else if (o->tables != h->tables && !(rc = read_share(f, o, e))) o->tables = h->tables;
        if (!rc) take_demands(f, o, h);
    }
    arena_fini(&heads.arena);
    free(heads.items);
    return rc;
}

/* ---- limits ---- */

static int divide(struct fleet *f) {
    struct limit_demands all = {0};
    int64_t now_us = clock_machine_us(f->o.clock);
    int rc = 0;
    for (size_t i = 0; i < f->n_others; i++) {
        const struct other *o = f->others[i];
        bool lives = now_us - o->changed_us < FLEET_LEASE_US;
        for (size_t k = 0; lives && !rc && k < o->demands.n; k++) rc = limit_demands_add(&all, &o->demands.items[k]);
    }
    if (!rc) f->limits.divide(f->limits.arg, all.items, all.n);
    free(all.items);
    return rc;
}

/* ---- rounds ---- */

void fleet_share_limits(struct fleet *f, const struct fleet_limits *limits) { f->limits = *limits; }

/* Puts this server's demand, as bytes. */
static int put_demands(struct fleet *f, struct buf *out) {
    struct limit_demands own = {0};
    int rc = f->limits.demands ? f->limits.demands(f->limits.arg, &own) : 0;
    if (!rc && own.n) limit_demands_put(&own, out);
    free(own.items);
    return rc || buf_failed(out) ? -1 : 0;
}

int fleet_round(struct fleet *f, bool writes, struct err *e) {
    bool due = clock_machine_us(f->o.clock) - f->written_us >= FLEET_TABLES_US;
    struct buf demands;
    buf_init(&demands, 0);
    int rc = put_demands(f, &demands) ? err_nomem(e) : write_share(f, writes || due, buf_slice(&demands), e);
    buf_fini(&demands);
    if (rc || read_others(f, e)) return -1;
    if (f->limits.divide && divide(f)) return err_nomem(e);
    if (f->exists) ledger_share_check(f->o.ledger, f->exists, f->exists_arg);
    return 0;
}

static void *run(void *arg) {
    struct fleet *f = arg;
    for (bool ends = false; !ends;) {
        struct err e = {0};
        bool fails = fleet_round(f, false, &e) != 0;
        if (fails && !f->failing) log_warn("the shares of the ledgers on this store: %s; tried every second", e.text);
        f->failing = fails;
        pthread_mutex_lock(&f->lock);
        if (!f->ends) clock_cond_wait(&f->wakes, &f->lock, FLEET_ROUND_US);
        ends = f->ends;
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

static void fleet_free(struct fleet *f) {
    for (size_t i = 0; i < f->n_others; i++) {
        free(f->others[i]->objects);
        free(f->others[i]->demands.items);
        free(f->others[i]);
    }
    free(f->others);
    free(f->objects);
    buf_fini(&f->demands);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->wakes);
    free(f);
}

struct fleet *fleet_open(const struct fleet_options *o, struct err *e) {
    struct fleet *f = calloc(1, sizeof(*f));
    char prefix[TABLE_KEY];
    if (!f) return err_null(err_nomem(e));
    f->o = *o;
    f->head.demands = slice_of("", 0);
    buf_init(&f->demands, 0);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->wakes, NULL);
    if (random_bytes(&f->head.incarnation, sizeof(f->head.incarnation), e) || ledger_share_id(o->ledger, &f->id, e))
        goto free_fleet;
    snprintf(prefix, sizeof(prefix), TABLES "%016" PRIx64 "/", f->id);
    /* The head first: from then on nobody else writes the share. */
    if (own(f, e) || eng_meta_scan(o->eng, slice_str(prefix), recover, f, e) || read_others(f, e)) goto free_fleet;
    return f;
free_fleet:
    fleet_free(f);
    return NULL;
}

int fleet_start(struct fleet *f, bool (*exists)(void *arg, uint32_t object), void *arg, struct err *e) {
    f->exists = exists;
    f->exists_arg = arg;
    f->runs = pthread_create(&f->thread, NULL, run, f) == 0;
    return f->runs ? 0 : err_set(e, ERR_SERVER, "cannot start a thread");
}

void fleet_stop(struct fleet *f) {
    if (!f || !f->runs) return;
    pthread_mutex_lock(&f->lock);
    f->ends = true;
    pthread_cond_signal(&f->wakes);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    f->runs = false;
    f->exists = NULL;
}

void fleet_close(struct fleet *f) {
    struct err e = {0};
    if (!f) return;
    fleet_stop(f);
    if (write_share(f, true, slice_of("", 0), &e))
        log_warn("the last charges are not in this server's share: %s", e.text);
    fleet_free(f);
}

void fleet_abandon(struct fleet *f) {
    fleet_stop(f);
    fleet_free(f);
}
