/* TRUNCATE: the table gets a new storage id, at once for all readers; the rows of the old one are
 * freed later.
 *
 * A record of a DELETED table takes over the old storage id, so that a stop does not leak it; it is
 * freed as a dropped table is.
 *
 * G2. Both records are written together. So no server and no start finds a table whose rows belong
 *     to a DELETED one, too, and frees the rows of a live table. Older versions wrote one after the
 *     other: a start takes back a truncation that was killed in between (truncate_forget).
 *
 * Where several servers share a store, another one may not know the new id yet. So the
 * statement is answered when the old rows are freed: from then on the store refuses writes to the
 * old id, and no write that is acknowledged after the answer is lost.
 */
#include "base/fault.h"
#include "base/log.h"
#include "engine/named.h"
#include "system_schema/ddl/apply.h"

/* How long statements that began before the TRUNCATE may still write to the old storage id,
 * whose rows are freed afterwards. A later write to it is refused (eng_table_drop). */
static const int64_t last_writers_us = 1000000;

/* Gives x a new storage id, and its old one to y. If x has a history, the same batch ends it and
 * begins one for the new id. */
static int move_out(struct ddl *d, struct catalog_object *x, const struct catalog_object *y, struct err *e) {
    uint32_t old = x->storage, storage;
    struct recovery_turn turn;
    struct object_record of_y;
    struct eng_meta_change more[1 + ARRAY_LEN(turn.changes)];
    if (objects_next_id(d->objects, &storage, e)) return -1;
    int rc = recovery_turn_begin(d->recovery, x, storage, &turn, e);
    fault_dies(FAULT_DDL);
    if (object_record(d->objects, y, &of_y, e)) rc = -1;
    more[0] = of_y.change;
    memcpy(more + 1, turn.changes, turn.n * sizeof(*more));
    x->storage = storage;
    if (!rc) rc = object_save_with(d->objects, x, 1 + turn.n, more, e); /* G2 */
    if (rc) x->storage = old;
    fault_dies(FAULT_DDL);
    object_record_fini(&of_y);
    recovery_turn_end(d->recovery, x, rc ? storage : old, &turn, !rc);
    return rc;
}

int apply_truncate_table(struct apply *a) {
    struct catalog_object *x = apply_existing(a, &table_kind, DDL_NO_TABLE);
    if (!x) return a->err->set ? -1 : NOTHING_TO_DO;
    /* y is a DELETED object that owns the rows that x had. */
    uint32_t id;
    if (objects_next_id(a->objects, &id, a->err)) return -1;
    struct catalog_object *y = object_add(a->objects, x->kind, id, x->keyspace_id, x->name, a->err);
    if (!y) return -1;
    y->storage = x->storage;
    object_free_change(y);
    object_restore_status(a->objects, y, SCHEMA_DELETED);
    if (form_set(&y->form, x->form, a->err) || move_out(a->ddl, x, y, a->err)) {
        object_remove(a->objects, y);
        return -1;
    }
    object_touch(a->objects, x);
    bool shared = !eng_one_writer(a->objects->eng);
    if (shared) a->awaits = y->id;
    if (!shared) y->free_us = clock_machine_us(a->objects->clock) + last_writers_us;
    int rc = objects_publish(a->objects, a->err);
    table_tell_engine(a->objects, x);
    objects_moved(a->objects);
    return rc;
}

int truncate_forget(struct ddl *d, struct err *e) {
    struct objects *o = d->objects;
    for (uint32_t i = 0; i < o->n_all;) {
        struct catalog_object *y = o->all[i];
        const struct catalog_object *x =
            y->kind->has_rows && object_is_gone(y) ? object_find(o, y->kind, y->keyspace_id, y->name) : NULL;
        if (!x || x->storage != y->storage) {
            i++;
            continue;
        }
        log_warn("catalog: a truncation of %s that a stop interrupted was not done", x->name);
        if (object_erase(o, y, e)) return -1;
        object_remove(o, y);
    }
    return 0;
}
