/* The share of this server's ledger. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/random.h"
#include "server/fleet_state.h"

/* ---- whose it is ---- */

struct own_head {
    bool found;
    struct fleet_head head; /* without demands */
    struct buf value;
};

static int take_own_head(void *arg, struct slice name, struct slice value, struct err *e) {
    struct own_head *own = arg;
    (void)name, (void)e;
    own->found = fleet_head_take(value, &own->head) == 0;
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
    char key[FLEET_HEAD_KEY];
    struct buf value;
    const struct slice before = buf_slice(&stored->value);
    struct fleet_head next = {.incarnation = f->head.incarnation,
                        .sequence = (stored->found ? stored->head.sequence : f->head.sequence) + 1,
                        .tables = stored->found ? stored->head.tables : 0,
                        .demands = slice_of("", 0)};
    buf_init(&value, 0);
    fleet_head_key(f->id, key);
    fleet_head_put(&value, &next);
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

int fleet_own(struct fleet *f, struct err *e) {
    char key[FLEET_HEAD_KEY];
    struct own_head stored = {0};
    buf_init(&stored.value, 0);
    fleet_head_key(f->id, key);
    int rc = eng_meta_scan(f->o.eng, slice_str(key), take_own_head, &stored, e);
    bool started = f->head.sequence > 0;
    if (!rc && started && stored.found && stored.head.incarnation != f->head.incarnation) {
        rc = continue_as_other(f, e);
        stored.found = false;
    }
    if (!rc && !stored.found) rc = fleet_resume(f, e);
    if (!rc) rc = replace_head(f, &stored, e);
    buf_fini(&stored.value);
    f->demands.n = 0;
    return rc;
}

/* ---- writing ---- */

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
    char *key = arena_alloc(&w->arena, FLEET_TABLE_KEY);
    struct slice copy = records.p ? arena_dup(&w->arena, records) : slice_of("", 0);
    if (!key || !copy.p || array_room(&w->changes, w->n, &w->cap, sizeof(*w->changes))) return -1;
    fleet_table_key(w->f->id, object, key);
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
        if (fleet_has_object(f->objects, n, w->objects[i])) continue;
        if (array_room(&f->objects, f->n_objects, &f->objects_cap, sizeof(*f->objects))) return -1;
        f->objects[f->n_objects++] = w->objects[i];
    }
    if (f->n_objects > n) qsort(f->objects, f->n_objects, sizeof(*f->objects), array_u32_order);
    return 0;
}

static int send(struct writing *w, struct err *e) {
    struct fleet *f = w->f;
    char key[FLEET_HEAD_KEY];
    struct buf before, after;
    buf_init(&before, 0);
    buf_init(&after, 0);
    f->head.demands = buf_slice(&f->demands);
    fleet_head_put(&before, &f->head);
    struct fleet_head next = f->head;
    next.demands = w->demands;
    next.sequence++;
    if (w->n > 1) next.tables = next.sequence;
    fleet_head_put(&after, &next);
    fleet_head_key(f->id, key);
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

int fleet_write(struct fleet *f, bool tables, struct slice demands, struct err *e) {
    if (!f->owned && fleet_own(f, e)) return -1;
    tables = tables || f->all;
    struct writing w = {.f = f, .n = 1, .demands = demands};
    arena_init(&w.arena, FLEET_CHUNK, 0);
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

static int recover_record(void *arg, struct slice name, struct slice value, struct err *e) {
    struct fleet *f = arg;
    uint64_t object;
    if (fleet_number(name, FLEET_TABLE_KEY - 9, 8, &object)) return 0;
    int rc = ledger_share_recover(f->o.ledger, value);
    if (rc > 0) log_warn("a record of this server's share in the store is damaged, and is written again");
    if (rc < 0) return err_nomem(e);
    if (object == SHARE_DROPPED) return 0;
    if (array_room(&f->objects, f->n_objects, &f->objects_cap, sizeof(*f->objects))) return err_nomem(e);
    f->objects[f->n_objects++] = (uint32_t)object;
    return 0;
}

int fleet_recover(struct fleet *f, struct err *e) {
    char prefix[FLEET_TABLE_KEY];
    snprintf(prefix, sizeof(prefix), FLEET_TABLES "%016" PRIx64 "/", f->id);
    return eng_meta_scan(f->o.eng, slice_str(prefix), recover_record, f, e);
}
