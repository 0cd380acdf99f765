/* The worker moves a change from its first status to its last: it is due after its delay, recorded,
 * then visible, then (if deleted) freed.
 *
 * D1. A new status of an object is recorded before any client can see it, so that a restart never
 *     shows an older status.
 *
 * Of the servers on a store the leader carries changes to their end, because one suffices
 * (membership/membership.h). It knows of a change that another server has begun from its record. A
 * server whose client waits for the end of a change carries that change itself. If two servers carry
 * one change all the same, the first to record its end wins, and the other one reads it again (C3).
 *
 * D2. On a store of several servers no object becomes ACTIVE while the rows of a dropped one of its name are
 *     there. A server that does not know the drop yet can write to them until they are freed, and no
 *     such write may be acknowledged after the creation of the new object.
 */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/log.h"
#include "system_schema/ddl/ddl.h"
#include "system_schema/objects/table_event.h"

static const int64_t retry_us = 1000000, pinned_us = 100000, awaited_us = 10000;

/* ---- delay and failure by the rules ---- */

void entry_statement(const struct entry *x, char out[DDL_STATEMENT_MAX]) {
    const char *verb = schema_status_verb(x->status);
    int n = snprintf(out, DDL_STATEMENT_MAX, "%s %s", verb ? verb : "", x->kind->word);
    for (int i = 0; i < n && i < DDL_STATEMENT_MAX - 1; i++) out[i] = (char)toupper((unsigned char)out[i]);
}

void entry_schedule(struct ddl *d, struct entry *x) {
    char statement[DDL_STATEMENT_MAX];
    const struct object_place at = entry_place(d->objects, x);
    const struct ddl_subject of = {statement, at.keyspace, at.name};
    entry_statement(x, statement);
    int64_t delay = ddl_rules_draw(&d->rules, &of);
    x->due_us = delay < 0 ? INT64_MAX : clock_mono_us(d->objects->clock) + delay;
    x->at_once = delay == 0;
    regions_schedule(d, x, delay);
    entry_fail_with(x, ddl_rules_failure(&d->rules, &of));
}

/* The object is being created, and rows under its name are still to be freed (D2). */
static bool awaits_namesake(const struct entry *x) {
    const struct objects *o = x->objects;
    if (x->status != SCHEMA_CREATING || eng_one_writer(o->eng)) return false;
    for (const struct entry *y = o->busy; y; y = y->busy_next) {
        bool namesake = y->kind == x->kind && y->keyspace_id == x->keyspace_id && strcmp(y->name, x->name) == 0;
        if (namesake && entry_is_gone(y)) return true;
    }
    return false;
}

bool entry_is_due_at_once(const struct entry *x) {
    return x->at_once && !x->failure && !x->waits && !awaits_namesake(x);
}

/* ---- the end of a change ---- */

void entry_finish(struct ddl *d, struct entry *x, struct entry_before *before) {
    struct objects *o = d->objects;
    assert(!awaits_namesake(x)); /* D2 */
    *before = (struct entry_before){x->status, x->form, x->next, x->replicated};
    x->due_us = INT64_MAX;
    x->replicated = 0;
    switch (x->status) {
    case SCHEMA_CREATING:
    case SCHEMA_RESTORING: entry_set_status(o, x, x->failure ? SCHEMA_DELETED : SCHEMA_ACTIVE); return;
    case SCHEMA_DELETING: entry_set_status(o, x, x->failure ? SCHEMA_ACTIVE : SCHEMA_DELETED); return;
    default: break;
    }
    if (x->next.n && !x->failure) x->form = x->next;
    x->next = slice_of(NULL, 0);
    entry_set_status(o, x, SCHEMA_ACTIVE);
}

void entry_finish_undo(struct ddl *d, struct entry *x, const struct entry_before *before) {
    x->form = before->form;
    x->next = before->next;
    x->replicated = before->replicated;
    entry_restore_status(d->objects, x, before->status);
}

void ddl_note_failure(struct ddl *d, const struct entry *x, enum schema_status during, const char *words) {
    struct ddl_failure *f = &d->failures[d->n_failures++ % FAILURES_KEPT];
    f->id = x->id;
    snprintf(f->words, sizeof f->words, "%s", words);
    log_info("catalog: %s of %s %s has failed, as configured: %s", schema_status_verb(during), x->kind->word,
             x->name, words);
}

void entry_finish_keep(struct ddl *d, struct entry *x, const struct entry_before *before) {
    struct objects *o = d->objects;
    if (before->status == SCHEMA_UPDATING) {
        const struct object_place at = entry_place(o, x);
        bool taken = x->form.p == before->next.p;
        struct err e = {0};
        struct arena a;
        arena_init(&a, 16 * 1024, 0);
        for (uint32_t i = 0; taken && x->kind == &keyspace_kind && i < o->n_entries; i++)
            if (o->entries[i]->keyspace_id == x->id)
                entry_touch(o, o->entries[i]); /* points to the old definition */
        if (taken && x->kind == &type_kind) type_touch_users(d, x);
        const void *was = taken ? x->kind->decode(before->form, &at, &a, &e) : NULL;
        const void *now = was ? entry_decode(x, &a, &e) : NULL;
        if (taken && !(now && x->kind->same_shape(was, now))) x->shape++;
        arena_fini(&a);
        free((void *)(taken ? before->form : before->next).p);
    }
    /* The keyspace's objects are gone with it, or stay if its drop failed. */
    bool keyspace_dropped = before->status == SCHEMA_DELETING && x->kind == &keyspace_kind;
    for (uint32_t i = 0; keyspace_dropped && i < o->n_entries; i++) {
        struct entry *y = o->entries[i];
        if (y->keyspace_id != x->id || y->status != SCHEMA_DELETING) continue;
        if (entry_is_gone(x)) entry_set_status(o, y, SCHEMA_DELETED);
        else if (y->with_keyspace) entry_set_status(o, y, SCHEMA_ACTIVE);
        y->with_keyspace = false;
    }
    /* An object whose own drop failed still goes with its keyspace if that is being dropped. */
    const struct entry *ks = x->kind->in_keyspace ? entry_by_id(o, x->keyspace_id) : NULL;
    if (before->status == SCHEMA_DELETING && x->status == SCHEMA_ACTIVE && ks && ks->status == SCHEMA_DELETING) {
        entry_set_status(o, x, SCHEMA_DELETING);
        x->with_keyspace = true;
    }
    if (x->failure) ddl_note_failure(d, x, before->status, x->failure);
    entry_fail_with(x, NULL);
    if (!entry_is_gone(x)) x->awaited = false;
}

void table_tell_engine(struct objects *o, const struct entry *x) {
    const struct schema_table *t = x->shown;
    struct err e = {0};
    if (!t) return;
    eng_table_set(o->eng, t->storage, schema_gc_grace(t, o->mode));
    struct eng_dropped *dropped = t->n_dropped ? calloc(t->n_dropped, sizeof *dropped) : NULL;
    for (uint32_t i = 0; dropped && i < t->n_dropped; i++) {
        const struct schema_dropped *d = &t->dropped[i];
        dropped[i] =
            (struct eng_dropped){.column = d->id, .ts = d->dropped_us, .gone = t->column_ordinals[d->id] == UINT32_MAX};
    }
    if ((t->n_dropped && !dropped) || eng_table_set_dropped(o->eng, t->storage, t->n_dropped, dropped, &e))
        log_error("catalog: there is no memory to hide the dropped columns of %s", t->name);
    free(dropped);
}

static void move_on(struct ddl *d, struct entry *x) {
    struct objects *o = d->objects;
    struct err e = {0};
    struct entry_before before;
    bool failed = x->failure;
    entry_finish(d, x, &before);
    fault_dies(FAULT_DDL);
    o->overtaken = false;
    if (notices_reserve(o, 1, &e) || history_save(o, x, before.status, &e)) {
        if (!o->overtaken) /* else the records are read again first, and say whether it has ended */
            log_error("catalog: the end of %s of %s %s is not recorded, so clients are not notified yet: %s",
                      schema_status_verb(before.status), x->kind->word, x->name, e.text);
        err_clear(&e);
        entry_finish_undo(d, x, &before);
        x->due_us = clock_mono_us(o->clock) + (o->overtaken ? pinned_us : retry_us);
        return;
    }
    fault_dies(FAULT_DDL);
    entry_finish_keep(d, x, &before);
    recovery_follow(d->recovery, x, before.status == SCHEMA_CREATING);
    if (objects_publish(o, &e)) log_error("catalog: no snapshot: %s", e.text);
    else if (!entry_is_gone(x)) table_tell_engine(d->objects, x);
    fault_dies(FAULT_DDL);
    /* DROPPED was sent when a drop began: a drop that failed sends CREATED. */
    if (entry_is_gone(x)) entry_notify(o, CHANGE_GONE, x);
    else if (x->status == SCHEMA_ACTIVE && before.status != SCHEMA_UPDATING) entry_notify(o, CHANGE_CREATED, x);
    else if (x->status == SCHEMA_ACTIVE && !failed) entry_notify(o, CHANGE_UPDATED, x);
    objects_moved(o);
}

/* ---- freeing deleted objects ---- */

static bool leads(const struct ddl *d) { return !d->membership || membership_leads(d->membership); }

/* True if this server ends the change of the object, and frees it. */
static bool is_carried(struct ddl *d, const struct entry *x, bool leads) {
    const struct entry *ks = x->kind->in_keyspace ? entry_by_id(d->objects, x->keyspace_id) : NULL;
    return leads || x->awaited || (ks && ks->awaited);
}

/* True if an object's data and record can be freed: it is gone, the current snapshot says so, no
 * object lives in it, and no restore is writing its rows. */
static bool is_garbage(const struct entry *x) {
    return entry_is_gone(x) && !x->freeing && !x->waits && !x->touched && x->n_objects == 0;
}

/* Frees the data and the record of one deleted object; releases the lock while the engine works.
 * A table with writes under way is tried again soon. A keyspace is freed after its tables,
 * because its record makes a restart delete them. */
static bool free_one(struct ddl *d) {
    struct objects *o = d->objects;
    int64_t now = clock_machine_us(o->clock);
    struct entry *x = o->busy;
    bool own = leads(d);
    while (x && (!is_garbage(x) || !is_carried(d, x, own) || x->free_us > now)) x = x->busy_next;
    if (!x) return false;
    x->freeing = true;
    struct err e = {0};
    pthread_mutex_unlock(&o->lock);
    int rc = x->kind->has_rows ? eng_table_drop(o->eng, x->storage, &e) : 0;
    fault_dies(FAULT_DDL);
    pthread_mutex_lock(&o->lock);
    x->freeing = false;
    if (rc == ENG_BUSY) {
        x->free_us = now + (x->awaited ? awaited_us : pinned_us);
        return true;
    }
    o->overtaken = false;
    if (rc == 0) rc = entry_erase(o, x, &e);
    if (rc) {
        bool overtaken = o->overtaken; /* the records are read again first, and say whether it is freed */
        if (!overtaken) log_error("catalog: %s is not freed yet: %s", x->name, e.text);
        x->free_us = now + (overtaken ? pinned_us : retry_us);
        return true;
    }
    fault_dies(FAULT_DDL);
    entry_remove(o, x);
    objects_moved(o);
    return true;
}

/* Microseconds until a change is due or an object can be freed; INT64_MAX: there is none. */
static int64_t next_wait(struct ddl *d) {
    struct objects *o = d->objects;
    int64_t due = d->guest.due_us, freed = INT64_MAX;
    bool own = leads(d);
    for (const struct entry *x = o->busy; x; x = x->busy_next) {
        if (!is_carried(d, x, own)) continue;
        if (is_garbage(x) && x->free_us < freed) freed = x->free_us;
        int64_t step_us = regions_next_us(x), due_us = x->due_us < step_us ? x->due_us : step_us;
        if (due_us < due && !x->waits && !awaits_namesake(x)) due = due_us;
    }
    if (due != INT64_MAX) due -= clock_mono_us(o->clock);
    if (freed != INT64_MAX) freed -= clock_machine_us(o->clock);
    return due < freed ? due : freed;
}

/* Ends all changes that are due; releases the lock while it delivers the notices. */
static void move_due(struct ddl *d) {
    struct objects *o = d->objects;
    ddl_look_again(d);
    int64_t now = clock_mono_us(o->clock);
    bool own = leads(d);
    for (struct entry *x = o->busy; x;) {
        bool carried = is_carried(d, x, own);
        bool due = carried && entry_is_pending(x) && !x->waits && !awaits_namesake(x) && x->due_us <= now;
        if (due) move_on(d, x);
        else if (carried && regions_next_us(x) <= now) regions_step(d, x, now);
        x = due ? o->busy : x->busy_next; /* move_on changes the list */
    }
    if (d->guest.due_us <= now) d->guest.step(d->guest.arg, now);
    struct err e = {0}; /* an entry is still touched if an earlier snapshot failed */
    if (o->touched && objects_publish(o, &e)) log_error("catalog: no snapshot: %s", e.text);
    uint64_t told = o->notices.queued;
    pthread_mutex_unlock(&o->lock);
    notices_deliver(o, told);
    pthread_mutex_lock(&o->lock);
}

void ddl_move(struct ddl *d) {
    pthread_mutex_lock(&d->objects->lock);
    move_due(d);
    pthread_mutex_unlock(&d->objects->lock);
}

/* Frees a bounded number of objects before the caller looks again for due changes: a start may
 * find many objects to free, and no statement should wait for all of them. */
int64_t ddl_step(struct ddl *d) {
    enum { FREED_AT_A_TIME = 16, LEASE_CHECK_US = 100000 };
    struct objects *o = d->objects;
    pthread_mutex_lock(&o->lock);
    move_due(d);
    for (int i = 0; i < FREED_AT_A_TIME && !ticker_is_stopping(&o->worker) && free_one(d); i++) continue;
    int64_t wait_us = next_wait(d);
    if (!eng_one_writer(o->eng) && wait_us > LEASE_CHECK_US) wait_us = LEASE_CHECK_US; /* it may become the leader */
    pthread_mutex_unlock(&o->lock);
    return wait_us;
}

void ddl_release_held(struct ddl *d) {
    struct objects *o = d->objects;
    pthread_mutex_lock(&o->lock);
    int64_t now = clock_mono_us(o->clock);
    for (struct entry *x = o->busy; x; x = x->busy_next)
        if (entry_is_pending(x) && !x->with_keyspace) x->due_us = now;
    d->guest.due_us = now;
    objects_moved(o);
    pthread_mutex_unlock(&o->lock);
}
