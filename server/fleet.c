#include "server/fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/log.h"
#include "base/random.h"
#include "base/ticker.h"
#include "engine/named.h"

#define HEADS "share/head/"
#define TABLES "share/table/"
enum { HEAD_KEY = sizeof(HEADS) + 16, TABLE_KEY = sizeof(TABLES) + 16 + 1 + 8, CHUNK = 64 << 10 };

struct fleet_head {
    uint64_t incarnation, sequence;
    uint64_t tables; /* sequence of the last write that changed tables */
    struct slice demands;
};

/* A set of objects in ascending order. */
struct object_set {
    size_t n, cap;
    uint32_t *items;
};

/* Another server. */
struct other_server {
    uint64_t id, tables;            /* tables: the sequence of those read last */
    struct object_set objects;         /* with records in the store */
    uint64_t incarnation, sequence; /* of the head read last */
    int64_t changed_us;             /* machine time at which another head was read */
    struct limit_demands demands;   /* in that head */
};

struct fleet {
    struct fleet_options o;
    uint64_t id;
    struct fleet_head head;       /* as written last */
    struct buf demands;     /* in that head */
    bool owns_head;         /* the stored head is this process's; false after a write with unknown outcome */
    bool all;               /* the next write contains all tables */
    int64_t written_us;     /* machine time of the last write of tables; 0 if none yet */
    struct object_set objects; /* with records in the store, without dropped tables' common record */
    size_t n_others, others_cap;
    struct other_server **others;
    struct fleet_limits limits; /* demands is NULL if limits are not shared */
    bool (*exists)(void *arg, uint32_t object);
    void *exists_arg;
    bool failing; /* the last round failed, which was logged */
    struct ticker ticker;
};

/* ---- records ---- */

static void put_head(struct buf *out, const struct fleet_head *h) {
    buf_u64(out, h->incarnation);
    buf_u64(out, h->sequence);
    buf_u64(out, h->tables);
    buf_put_slice(out, h->demands);
}

/* The demands point into value. Returns 0, or -1 if the record is damaged. */
static int read_head(struct slice value, struct fleet_head *h) {
    struct rd r = rd_of(value);
    h->incarnation = rd_u64(&r);
    h->sequence = rd_u64(&r);
    h->tables = rd_u64(&r);
    h->demands = rd_bytes(&r, rd_left(&r));
    return r.bad ? -1 : 0;
}

/* Reads the hex digits of a record's name from position `at`. Returns 0, or -1 if they are no number. */
static int read_number(struct slice name, size_t at, size_t digits, uint64_t *out) {
    char text[17], *end;
    if (name.n < at + digits) return -1;
    snprintf(text, sizeof(text), "%.*s", (int)digits, (const char *)name.p + at);
    *out = strtoull(text, &end, 16);
    return end == text + digits ? 0 : -1;
}

static int objects_add(struct object_set *s, uint32_t object) {
    if (array_room(&s->items, s->n, &s->cap, sizeof(*s->items))) return -1;
    s->items[s->n++] = object;
    return 0;
}

static bool objects_have(const struct object_set *s, uint32_t object) {
    return s->n && bsearch(&object, s->items, s->n, sizeof(*s->items), array_u32_order);
}

/* ---- the own head ---- */

struct stored_head {
    bool found;
    struct fleet_head head; /* without demands */
    struct buf value;
};

static int on_own_head(void *arg, struct slice name, struct slice value, struct err *e) {
    struct stored_head *own = arg;
    (void)name;
    own->found = read_head(value, &own->head) == 0;
    own->head.demands = slice_of("", 0);
    buf_put_slice(&own->value, value);
    return buf_failed(&own->value) ? err_nomem(e) : 0;
}

/* Writes the head, and the other changes (the first of n is free for the head), if the stored head
 * is still as expected (E1). */
static int write_head(struct fleet *f, struct eng_meta_change *changes, size_t n, const struct slice *expected,
                      const struct fleet_head *next, struct err *e) {
    char key[HEAD_KEY];
    struct buf value;
    buf_init(&value, 0);
    snprintf(key, sizeof(key), HEADS "%016" PRIx64, f->id);
    put_head(&value, next);
    changes[0] = (struct eng_meta_change){.key = slice_str(key),
                                          .value = buf_slice(&value),
                                          .conditional = true, /* E1 */
                                          .expected = expected,
                                          .quiet = true};
    int rc = buf_failed(&value) ? err_nomem(e) : eng_meta_write(f->o.eng, (uint32_t)n, changes, e);
    if (rc == ENG_CHANGED) rc = err_set(e, ERR_SERVER, "another server has written the totals of this server's ledger");
    if (!rc) f->head = *next;
    buf_fini(&value);
    return rc;
}

/* Makes the stored head this process's: at the start, and after a write with unknown outcome. */
static int own_head(struct fleet *f, struct err *e) {
    char key[HEAD_KEY];
    struct stored_head stored = {0};
    buf_init(&stored.value, 0);
    snprintf(key, sizeof(key), HEADS "%016" PRIx64, f->id);
    int rc = eng_meta_scan(f->o.eng, slice_str(key), on_own_head, &stored, e);
    bool started = f->head.sequence > 0;
    if (!rc && started && stored.found && stored.head.incarnation != f->head.incarnation) {
        log_warn("another server writes the totals of ledger %016" PRIx64 ": its data folder is a copy of this one's, "
                 "or the reverse. This server continues under a new id; charges from before the copy count twice",
                 f->id);
        f->objects.n = 0;
        rc = ledger_renew_id(f->o.ledger, &f->id, e);
        stored.found = false;
    }
    if (!rc) {
        struct eng_meta_change change;
        const struct slice before = buf_slice(&stored.value);
        const struct fleet_head next = {.incarnation = f->head.incarnation,
                                  .sequence = (stored.found ? stored.head.sequence : f->head.sequence) + 1,
                                  .tables = stored.found ? stored.head.tables : 0,
                                  .demands = slice_of("", 0)};
        rc = write_head(f, &change, 1, stored.found ? &before : NULL, &next, e);
        f->owns_head = !rc;
        f->all = true;
    }
    buf_fini(&stored.value);
    f->demands.n = 0;
    return rc;
}

/* ---- writing ---- */

struct fleet_write {
    struct fleet *f;
    struct arena arena;
    size_t n, cap;
    struct eng_meta_change *changes; /* the first is the head's */
    struct object_set objects;          /* whose records are in the changes */
};

/* Adds the change of a table's record; records.p is NULL to delete it. */
static int add_change(struct fleet_write *w, uint32_t object, struct slice records) {
    char *key = arena_printf(&w->arena, TABLES "%016" PRIx64 "/%08x", w->f->id, object);
    struct slice copy = records.p ? arena_dup(&w->arena, records) : slice_of("", 0);
    if (!key || !copy.p || array_room(&w->changes, w->n, &w->cap, sizeof(*w->changes))) return -1;
    w->changes[w->n++] = (struct eng_meta_change){
        .key = slice_str(key), .value = copy, .deleted = !records.p, .quiet = true};
    return 0;
}

static int on_own_table(void *arg, uint32_t object, struct slice records) {
    struct fleet_write *w = arg;
    if (add_change(w, object, records)) return -1;
    return object == TOTALS_DROPPED ? 0 : objects_add(&w->objects, object);
}

/* Adds the tables that have changed. The records of dropped tables are deleted by the write that adds
 * their sums to those of dropped tables. */
static int add_tables(struct fleet_write *w) {
    const struct fleet *f = w->f;
    if (ledger_own_totals(f->o.ledger, f->all, on_own_table, w)) return -1;
    for (size_t i = 0; i < f->objects.n; i++)
        if (!ledger_has(f->o.ledger, f->objects.items[i]) && add_change(w, f->objects.items[i], (struct slice){0}))
            return -1;
    if (!f->all && w->n <= 2) w->n = 1; /* only the head and the sum of dropped tables: nothing has changed */
    return 0;
}

/* Updates the objects with records in the store after a write. */
static int update_objects(struct fleet_write *w) {
    struct object_set *stored = &w->f->objects;
    size_t n = 0;
    for (size_t i = 0; i < stored->n; i++)
        if (ledger_has(w->f->o.ledger, stored->items[i])) stored->items[n++] = stored->items[i];
    stored->n = n;
    for (size_t i = 0; i < w->objects.n; i++) {
        const struct object_set before = {.n = n, .items = stored->items};
        if (!objects_have(&before, w->objects.items[i]) && objects_add(stored, w->objects.items[i])) return -1;
    }
    if (stored->n > n) qsort(stored->items, stored->n, sizeof(*stored->items), array_u32_order);
    return 0;
}

static int send(struct fleet_write *w, struct slice demands, struct err *e) {
    struct fleet *f = w->f;
    struct buf before;
    buf_init(&before, 0);
    f->head.demands = buf_slice(&f->demands);
    put_head(&before, &f->head);
    const struct slice expected = buf_slice(&before);
    struct fleet_head next = f->head;
    next.demands = demands;
    next.sequence++;
    if (w->n > 1) next.tables = next.sequence;
    int rc = buf_failed(&before) ? err_nomem(e) : write_head(f, w->changes, w->n, &expected, &next, e);
    if (!rc) {
        f->demands.n = 0;
        buf_put_slice(&f->demands, demands);
    }
    f->owns_head = !rc && !buf_failed(&f->demands);
    buf_fini(&before);
    return rc;
}

/* Writes the tables that have changed, if tables are due, and the demands. */
static int write_own(struct fleet *f, bool tables, struct slice demands, struct err *e) {
    if (!f->owns_head && own_head(f, e)) return -1;
    tables = tables || f->all;
    struct fleet_write w = {.f = f, .n = 1};
    arena_init(&w.arena, CHUNK, 0);
    int rc = array_room(&w.changes, 0, &w.cap, sizeof(*w.changes)) || (tables && add_tables(&w)) ? err_nomem(e) : 0;
    bool without_demands = !demands.n && !f->demands.n; /* now and in the stored head */
    if (!rc && (w.n > 1 || !without_demands)) rc = send(&w, demands, e);
    if (!rc && tables && update_objects(&w)) rc = err_nomem(e);
    f->all = rc || (f->all && !tables);
    if (!rc && tables) f->written_us = clock_machine_us(f->o.clock);
    arena_fini(&w.arena);
    free(w.changes);
    free(w.objects.items);
    return rc;
}

static int on_record_at_start(void *arg, struct slice name, struct slice value, struct err *e) {
    struct fleet *f = arg;
    uint64_t object;
    if (read_number(name, TABLE_KEY - 9, 8, &object)) return 0;
    int rc = ledger_recover(f->o.ledger, value);
    if (rc > 0) log_warn("a record of this server's totals in the store is damaged, and is written again");
    if (rc < 0) return err_nomem(e);
    return object != TOTALS_DROPPED && objects_add(&f->objects, (uint32_t)object) ? err_nomem(e) : 0;
}

/* ---- reading ---- */

struct fleet_heads {
    struct fleet *f;
    bool has_own;
    struct arena arena;
    size_t n, cap;
    struct other_head {
        uint64_t id;
        struct fleet_head head;
    } *items;
};

static int on_other_head(void *arg, struct slice name, struct slice value, struct err *e) {
    struct fleet_heads *h = arg;
    struct other_head one;
    if (read_number(name, sizeof(HEADS) - 1, 16, &one.id)) return 0;
    h->has_own = h->has_own || one.id == h->f->id;
    if (one.id == h->f->id || read_head(value, &one.head)) return 0;
    one.head.demands = arena_dup(&h->arena, one.head.demands);
    if (!one.head.demands.p || array_room(&h->items, h->n, &h->cap, sizeof(*h->items))) return err_nomem(e);
    h->items[h->n++] = one;
    return 0;
}

static struct other_server *other_open(struct fleet *f, uint64_t id) {
    for (size_t i = 0; i < f->n_others; i++)
        if (f->others[i]->id == id) return f->others[i];
    if (array_room(&f->others, f->n_others, &f->others_cap, sizeof(*f->others))) return NULL;
    struct other_server *o = calloc(1, sizeof(*o));
    if (!o) return NULL;
    o->id = id;
    return f->others[f->n_others++] = o;
}

struct fleet_reading {
    struct fleet *f;
    struct other_server *other;
    struct object_set objects; /* the scan returns them in ascending order */
};

static int on_record(void *arg, struct slice name, struct slice value, struct err *e) {
    struct fleet_reading *r = arg;
    uint64_t object;
    if (read_number(name, TABLE_KEY - 9, 8, &object)) return 0;
    int rc = ledger_put_totals(r->f->o.ledger, r->other->id, (uint32_t)object, value);
    if (rc > 0) log_warn("the record %.*s is damaged, and is not counted", SLICE_FMT(name));
    return rc < 0 || objects_add(&r->objects, (uint32_t)object) ? err_nomem(e) : 0;
}

/* Reads all tables of another server. */
static int read_tables(struct fleet *f, struct other_server *o, struct err *e) {
    struct fleet_reading r = {.f = f, .other = o};
    char prefix[TABLE_KEY];
    snprintf(prefix, sizeof(prefix), TABLES "%016" PRIx64 "/", o->id);
    int rc = eng_meta_scan(f->o.eng, slice_str(prefix), on_record, &r, e);
    for (size_t i = 0; !rc && i < o->objects.n; i++)
        if (!objects_have(&r.objects, o->objects.items[i]) &&
            ledger_put_totals(f->o.ledger, o->id, o->objects.items[i], (struct slice){0}))
            rc = err_nomem(e);
    if (rc) {
        free(r.objects.items);
        return -1;
    }
    free(o->objects.items);
    o->objects = r.objects;
    return 0;
}

static uint64_t increase(uint64_t now, uint64_t before) { return now >= before ? now - before : now; }

/* Stores the demands of a head. If it has changed, the use since the head before it is counted. The
 * use in the first head is not: the totals that were read with it contain that use. */
static void read_demands(struct fleet *f, struct other_server *o, const struct fleet_head *h) {
    struct limit_demands before = o->demands;
    struct rd in = rd_of(h->demands);
    bool same_process = o->sequence && o->incarnation == h->incarnation;
    if (same_process && o->sequence == h->sequence) {
        for (size_t i = 0; i < o->demands.n; i++) o->demands.items[i].read_new = o->demands.items[i].write_new = 0;
        return;
    }
    o->changed_us = clock_machine_us(f->o.clock);
    o->incarnation = h->incarnation;
    o->sequence = h->sequence;
    o->demands = (struct limit_demands){0};
    if (h->demands.n && limit_demands_take(&o->demands, &in)) o->demands.n = 0;
    if (o->demands.n) qsort(o->demands.items, o->demands.n, sizeof(*o->demands.items), limit_demand_order);
    for (size_t i = 0; same_process && i < o->demands.n; i++) {
        struct limit_demand *d = &o->demands.items[i];
        const struct limit_demand *was =
            before.n ? bsearch(d, before.items, before.n, sizeof(*d), limit_demand_order) : NULL;
        d->read_new = increase(d->read_used, was ? was->read_used : 0);
        d->write_new = increase(d->write_used, was ? was->write_used : 0);
    }
    free(before.items);
}

static int read_others(struct fleet *f, struct err *e) {
    struct fleet_heads heads = {.f = f};
    arena_init(&heads.arena, CHUNK, 0);
    int rc = eng_meta_scan(f->o.eng, slice_str(HEADS), on_other_head, &heads, e);
    for (size_t i = 0; !rc && i < heads.n; i++) {
        const struct fleet_head *h = &heads.items[i].head;
        struct other_server *o = other_open(f, heads.items[i].id);
        if (!o) rc = err_nomem(e);
        else if (o->tables != h->tables && !(rc = read_tables(f, o, e))) o->tables = h->tables;
        if (!rc) read_demands(f, o, h);
    }
    if (!rc) f->owns_head = f->owns_head && heads.has_own;
    arena_fini(&heads.arena);
    free(heads.items);
    return rc;
}

/* Passes the demands of the servers whose heads still change to the limits. */
static int divide(struct fleet *f) {
    struct limit_demands all = {0};
    int64_t now_us = clock_machine_us(f->o.clock);
    int rc = 0;
    for (size_t i = 0; i < f->n_others; i++) {
        const struct other_server *o = f->others[i];
        bool alive = now_us - o->changed_us < FLEET_LEASE_US;
        for (size_t k = 0; alive && !rc && k < o->demands.n; k++) rc = limit_demands_add(&all, &o->demands.items[k]);
    }
    if (!rc) f->limits.divide(f->limits.arg, all.items, all.n);
    free(all.items);
    return rc;
}

/* ---- rounds ---- */

int fleet_round(struct fleet *f, bool tables, struct err *e) {
    struct limit_demands own = {0};
    struct buf demands;
    buf_init(&demands, 0);
    bool due = clock_machine_us(f->o.clock) - f->written_us >= FLEET_TABLES_US;
    int rc = f->limits.demands ? f->limits.demands(f->limits.arg, &own) : 0;
    if (!rc && own.n) limit_demands_put(&own, &demands);
    rc = rc || buf_failed(&demands) ? err_nomem(e) : write_own(f, tables || due, buf_slice(&demands), e);
    free(own.items);
    buf_fini(&demands);
    if (rc || read_others(f, e)) return -1;
    if (f->limits.divide && divide(f)) return err_nomem(e);
    if (f->exists) ledger_hide_dropped(f->o.ledger, f->exists, f->exists_arg);
    return 0;
}

static int64_t run(void *arg) {
    struct fleet *f = arg;
    struct err e = {0};
    bool fails = fleet_round(f, false, &e) != 0;
    if (fails && !f->failing) log_warn("the totals of the servers on this store: %s; retried every second", e.text);
    f->failing = fails;
    return FLEET_ROUND_US;
}

void fleet_abandon(struct fleet *f) {
    fleet_stop(f);
    for (size_t i = 0; i < f->n_others; i++) {
        free(f->others[i]->objects.items);
        free(f->others[i]->demands.items);
        free(f->others[i]);
    }
    free(f->others);
    free(f->objects.items);
    buf_fini(&f->demands);
    ticker_fini(&f->ticker);
    free(f);
}

struct fleet *fleet_open(const struct fleet_options *o, struct err *e) {
    struct fleet *f = calloc(1, sizeof(*f));
    if (!f) return err_null(err_nomem(e));
    f->o = *o;
    f->head.demands = slice_of("", 0);
    buf_init(&f->demands, 0);
    ticker_init(&f->ticker, run, f);
    int rc = random_bytes(&f->head.incarnation, sizeof(f->head.incarnation), e) || ledger_id(o->ledger, &f->id, e) ||
             own_head(f, e); /* from here on no other process writes these records */
    if (!rc) {
        char prefix[TABLE_KEY];
        snprintf(prefix, sizeof(prefix), TABLES "%016" PRIx64 "/", f->id);
        rc = eng_meta_scan(o->eng, slice_str(prefix), on_record_at_start, f, e) || read_others(f, e);
    }
    if (!rc) return f;
    fleet_abandon(f);
    return NULL;
}

void fleet_share_limits(struct fleet *f, const struct fleet_limits *limits) { f->limits = *limits; }

int fleet_start(struct fleet *f, bool (*exists)(void *arg, uint32_t object), void *arg, struct err *e) {
    f->exists = exists;
    f->exists_arg = arg;
    return ticker_start(&f->ticker, 0, e);
}

void fleet_stop(struct fleet *f) {
    if (!f) return;
    ticker_stop(&f->ticker);
    f->exists = NULL;
}

void fleet_close(struct fleet *f) {
    struct err e = {0};
    if (!f) return;
    fleet_stop(f);
    if (write_own(f, true, slice_of("", 0), &e)) log_warn("the last charges are not in the store: %s", e.text);
    fleet_abandon(f);
}
