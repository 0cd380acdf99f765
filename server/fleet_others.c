/* The shares of the other servers' ledgers. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "server/fleet_state.h"

static struct other *other_open(struct fleet *f, uint64_t id) {
    for (size_t i = 0; i < f->n_others; i++)
        if (f->others[i]->id == id) return f->others[i];
    if (array_room(&f->others, f->n_others, &f->others_cap, sizeof(*f->others))) return NULL;
    struct other *o = calloc(1, sizeof(*o));
    if (!o) return NULL;
    o->id = id;
    return f->others[f->n_others++] = o;
}

/* ---- heads ---- */

void fleet_other_free(struct other *o) {
    free(o->objects);
    free(o->demands.items);
    free(o);
}

struct heads {
    struct fleet *f;
    bool has_own;
    struct arena arena;
    size_t n, cap;
    struct other_head {
        uint64_t id;
        struct fleet_head head;
    } *items;
};

static int take_other_head(void *arg, struct slice name, struct slice value, struct err *e) {
    struct heads *h = arg;
    struct other_head one;
    if (fleet_number(name, sizeof(FLEET_HEADS) - 1, 16, &one.id)) return 0;
    h->has_own = h->has_own || one.id == h->f->id;
    if (one.id == h->f->id || fleet_head_take(value, &one.head)) return 0;
    one.head.demands = arena_dup(&h->arena, one.head.demands);
    if (!one.head.demands.p) return err_nomem(e);
    if (array_room(&h->items, h->n, &h->cap, sizeof(*h->items))) return err_nomem(e);
    h->items[h->n++] = one;
    return 0;
}

/* ---- tables ---- */

struct reading {
    struct fleet *f;
    struct other *other;
    size_t n, cap;
    uint32_t *objects; /* that are there now; a scan returns them in ascending order */
};

static int take_record(void *arg, struct slice name, struct slice value, struct err *e) {
    struct reading *r = arg;
    uint64_t object;
    if (fleet_number(name, FLEET_TABLE_KEY - 9, 8, &object)) return 0;
    int rc = ledger_share_take(r->f->o.ledger, r->other->id, (uint32_t)object, value);
    if (rc > 0) log_warn("the record %.*s is damaged, and is not counted", SLICE_FMT(name));
    if (rc < 0 || array_room(&r->objects, r->n, &r->cap, sizeof(*r->objects))) return err_nomem(e);
    r->objects[r->n++] = (uint32_t)object;
    return 0;
}

/* Reads all tables of a share. */
static int read_share(struct fleet *f, struct other *o, struct err *e) {
    struct reading r = {.f = f, .other = o};
    char prefix[FLEET_TABLE_KEY];
    snprintf(prefix, sizeof(prefix), FLEET_TABLES "%016" PRIx64 "/", o->id);
    int rc = eng_meta_scan(f->o.eng, slice_str(prefix), take_record, &r, e);
    for (size_t i = 0; !rc && i < o->n; i++)
        if (!fleet_has_object(r.objects, r.n, o->objects[i]) &&
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

/* ---- demands ---- */

static uint64_t more_than(uint64_t now, uint64_t before) { return now >= before ? now - before : now; }

/* Takes the demands of a head that has changed. The use since the head before it is
 * counted. The use that the first head tells of is not: the totals that were read then contain it. */
static void take_demands(struct fleet *f, struct other *o, const struct fleet_head *h) {
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

/* ---- a round ---- */

static const struct fleet_head *find_head(const struct heads *h, uint64_t id) {
    for (size_t i = 0; i < h->n; i++)
        if (h->items[i].id == id) return &h->items[i].head;
    return NULL;
}

/* Forgets shares that have no head any more: they are in the common share, which was read before. */
static void forget_folded(struct fleet *f, const struct heads *heads) {
    size_t n = 0;
    for (size_t i = 0; i < f->n_others; i++) {
        struct other *o = f->others[i];
        if (find_head(heads, o->id)) {
            f->others[n++] = o;
            continue;
        }
        ledger_share_close(f->o.ledger, o->id);
        fleet_other_free(o);
    }
    f->n_others = n;
}

/* Folds the first share that is old, if it is time to. */
static int fold_one(struct fleet *f, const struct heads *heads, struct err *e) {
    int64_t now_us = clock_machine_us(f->o.clock);
    uint32_t before = (uint32_t)((clock_wall_us(f->o.clock) - FLEET_OLD_US) / FLEET_MINUTE_US);
    if (now_us - f->folded_us < FLEET_FOLD_US) return 0;
    for (size_t i = 0; i < f->n_others; i++) {
        const struct other *o = f->others[i];
        if (o->id == SHARE_COMMON || now_us - o->changed_us < FLEET_SILENT_US ||
            !ledger_share_old(f->o.ledger, o->id, before))
            continue;
        f->folded_us = now_us;
        return fleet_fold(f, o->id, find_head(heads, o->id), find_head(heads, SHARE_COMMON), e);
    }
    return 0;
}

int fleet_read_others(struct fleet *f, struct err *e) {
    struct heads heads = {.f = f};
    arena_init(&heads.arena, FLEET_CHUNK, 0);
    int rc = eng_meta_scan(f->o.eng, slice_str(FLEET_HEADS), take_other_head, &heads, e);
    for (size_t i = 0; !rc && i < heads.n; i++) {
        const struct fleet_head *h = &heads.items[i].head;
        struct other *o = other_open(f, heads.items[i].id);
        if (!o) rc = err_nomem(e);
        else if (o->tables != h->tables && !(rc = read_share(f, o, e))) o->tables = h->tables;
        if (!rc) take_demands(f, o, h);
    }
    if (!rc) {
        f->owned = f->owned && heads.has_own; /* else it was folded */
        forget_folded(f, &heads);
        rc = fold_one(f, &heads, e);
    }
    arena_fini(&heads.arena);
    free(heads.items);
    return rc;
}
