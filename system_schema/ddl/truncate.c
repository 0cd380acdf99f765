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
#include "system_schema/ddl/apply.h"

/* How long statements that began before the TRUNCATE may still write to the old storage id,
 * whose rows are freed afterwards. A later write to it is refused (eng_table_drop). */
static const int64_t last_writers_us = 1000000;

/* Gives x a new storage id, and its old one to y. If x has a history, the same batch ends it and
 * begins one for the new id. */
static int move_out(struct ddl *d, struct entry *x, const struct entry *y, struct err *e) {
    uint32_t old = x->storage, storage;
    struct recovery_turn turn;
    struct entry_record of_y;
    struct eng_meta_change more[1 + ARRAY_LEN(turn.changes)];
    if (entry_next_id(d->objects, &storage, e)) return -1;
    int rc = recovery_turn_begin(d->recovery, x, storage, &turn, e);
    fault_dies(FAULT_DDL);
    if (entry_record(d->objects, y, &of_y, e)) rc = -1;
    more[0] = of_y.change;
    memcpy(more + 1, turn.changes, turn.n * sizeof(*more));
    x->storage = storage;
    if (!rc) rc = entry_save_with(d->objects, x, 1 + turn.n, more, e); /* G2 */
    if (rc) x->storage = old;
    fault_dies(FAULT_DDL);
    entry_record_fini(&of_y);
    recovery_turn_end(d->recovery, x, rc ? storage : old, &turn, !rc);
    return rc;
}

int apply_truncate_table(struct apply *a) {
    struct entry *x = apply_existing(a, &table_kind, DDL_NO_TABLE);
    if (!x) return a->err->set ? -1 : NOTHING_TO_DO;
    /* y is a DELETED entry that owns the rows that x had. */
    uint32_t id;
    if (entry_next_id(a->objects, &id, a->err)) return -1;
    struct entry *y = entry_add(a->objects, x->kind, id, x->keyspace_id, x->name, a->err);
    if (!y) return -1;
    y->storage = x->storage;
    entry_restore_status(a->objects, y, SCHEMA_DELETED);
    if (form_set(&y->form, x->form, a->err) || move_out(a->ddl, x, y, a->err)) {
        entry_remove(a->objects, y);
        return -1;
    }
    entry_touch(a->objects, x);
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
    for (uint32_t i = 0; i < o->n_entries;) {
        struct entry *y = o->entries[i];
        const struct entry *x =
            y->kind->has_rows && entry_is_gone(y) ? entry_find(o, y->kind, y->keyspace_id, y->name) : NULL;
        if (!x || x->storage != y->storage) {
            i++;
            continue;
        }
        log_warn("catalog: a truncation of %s that a stop interrupted was not done", x->name);
        if (entry_erase(o, y, e)) return -1;
        entry_remove(o, y);
    }
    return 0;
}
