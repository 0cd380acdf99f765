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
#include "engine/table.h"
#include "system_schema/ddl/ddl.h"
#include "system_schema/objects/table_event.h"

static const int64_t retry_us = 1000000, pinned_us = 100000, awaited_us = 10000;

/* ---- delay and failure by the rules ---- */

static void statement_of(const struct catalog_object *x, enum schema_status status, char out[DDL_STATEMENT_MAX]) {
    const char *verb = schema_status_verb(status);
    int n = snprintf(out, DDL_STATEMENT_MAX, "%s %s", verb ? verb : "", x->kind->word);
    for (int i = 0; i < n && i < DDL_STATEMENT_MAX - 1; i++) out[i] = (char)toupper((unsigned char)out[i]);
}

void change_statement(const struct catalog_object *x, char out[DDL_STATEMENT_MAX]) {
    statement_of(x, x->status, out);
}

void change_schedule(struct ddl *d, struct catalog_object *x) {
    char statement[DDL_STATEMENT_MAX];
    const struct form_context at = object_context(d->objects, x);
    const struct ddl_subject of = {statement, at.keyspace, at.name};
    change_statement(x, statement);
    int64_t delay = ddl_rules_draw(&d->rules, &of);
    struct change_under_way *c = x->change;
    c->due_us = delay < 0 ? INT64_MAX : clock_mono_us(d->objects->clock) + delay;
    c->at_once = delay == 0;
    regions_schedule(d, x, delay);
    change_fail_with(c, ddl_rules_failure(&d->rules, &of));
}

/* The object is being created, and rows under its name are still to be freed (D2). */
static bool awaits_namesake(const struct catalog_object *x) {
    const struct objects *o = x->objects;
    if (x->status != SCHEMA_CREATING || eng_one_writer(o->eng)) return false;
    for (const struct catalog_object *y = o->busy; y; y = y->busy_next) {
        bool namesake = y->kind == x->kind && y->keyspace_id == x->keyspace_id && strcmp(y->name, x->name) == 0;
        if (namesake && object_is_gone(y)) return true;
    }
    return false;
}

bool change_ends_at_once(const struct catalog_object *x) {
    const struct change_under_way *c = x->change;
    return c->at_once && !c->failure && !c->waits && !awaits_namesake(x);
}

/* ---- the end of a change ---- */

void change_finish(struct ddl *d, struct catalog_object *x, struct change_before *before) {
    struct objects *o = d->objects;
    assert(!awaits_namesake(x)); /* D2 */
    const struct change_under_way *c = x->change;
    *before = (struct change_before){x->status, x->form};
    if (c->next.n && !c->failure) x->form = c->next;
    bool drops = x->status == SCHEMA_DELETING, creates = x->status == SCHEMA_CREATING || x->status == SCHEMA_RESTORING;
    object_set_status(o, x, (drops && !c->failure) || (creates && c->failure) ? SCHEMA_DELETED : SCHEMA_ACTIVE);
}

void change_finish_undo(struct ddl *d, struct catalog_object *x, const struct change_before *before) {
    x->form = before->form;
    object_restore_status(d->objects, x, before->status);
}

/* words: of the failure; NULL if the change succeeded. */
static void log_end(struct ddl *d, const struct catalog_object *x, enum schema_status during, const char *words) {
    char statement[DDL_STATEMENT_MAX];
    const struct form_context at = object_context(d->objects, x);
    bool in_keyspace = x->kind->in_keyspace;
    statement_of(x, during, statement);
    log_info("%s %s%s%s %s%s", statement, in_keyspace ? at.keyspace : "", in_keyspace ? "." : "", x->name,
             words ? "failed: " : "done", words ? words : "");
}

void ddl_note_failure(struct ddl *d, const struct catalog_object *x, enum schema_status during, const char *words) {
    struct ddl_failure *f = &d->failures[d->n_failures++ % FAILURES_KEPT];
    f->id = x->id;
    snprintf(f->words, sizeof f->words, "%s", words);
    log_end(d, x, during, words);
}

void change_finish_keep(struct ddl *d, struct catalog_object *x, const struct change_before *before) {
    struct objects *o = d->objects;
    if (before->status == SCHEMA_UPDATING) {
        const struct form_context at = object_context(o, x);
        bool taken = x->form.p != before->form.p;
        struct err e = {0};
        struct arena a;
        arena_init(&a, 16 * 1024, 0);
        for (uint32_t i = 0; taken && x->kind == &keyspace_kind && i < o->n_all; i++)
            if (o->all[i]->keyspace_id == x->id)
                object_touch(o, o->all[i]); /* points to the old definition */
        if (taken && x->kind == &type_kind) type_touch_users(d, x);
        const void *was = taken ? x->kind->decode(before->form, &at, &a, &e) : NULL;
        const void *now = was ? object_decode(x, &a, &e) : NULL;
        if (taken && !(now && x->kind->same_shape(was, now))) x->shape++;
        arena_fini(&a);
        if (taken) {
            free((void *)before->form.p);
            x->change->next = slice_of(NULL, 0); /* it is x->form */
        }
    }
    if (x->change->failure) ddl_note_failure(d, x, before->status, x->change->failure);
    object_free_change(x);
    if (!object_is_gone(x)) x->awaited = false;
    /* The keyspace's objects are gone with it, or stay if its drop failed. */
    bool keyspace_dropped = before->status == SCHEMA_DELETING && x->kind == &keyspace_kind;
    for (uint32_t i = 0; keyspace_dropped && i < o->n_all; i++) {
        struct catalog_object *y = o->all[i];
        if (y->keyspace_id != x->id || y->status != SCHEMA_DELETING) continue;
        if (object_is_gone(x)) {
            object_free_change(y);
            object_set_status(o, y, SCHEMA_DELETED);
        } else if (!y->change) {
            object_set_status(o, y, SCHEMA_ACTIVE);
        }
    }
    /* An object whose own drop failed still goes with its keyspace if that is being dropped. */
    const struct catalog_object *ks = x->kind->in_keyspace ? object_by_id(o, x->keyspace_id) : NULL;
    if (before->status == SCHEMA_DELETING && x->status == SCHEMA_ACTIVE && ks && ks->status == SCHEMA_DELETING)
        object_set_status(o, x, SCHEMA_DELETING);
}

void table_tell_engine(struct objects *o, const struct catalog_object *x) {
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

static void move_on(struct ddl *d, struct catalog_object *x) {
    struct objects *o = d->objects;
    struct err e = {0};
    struct change_before before;
    bool failed = x->change->failure;
    change_finish(d, x, &before);
    fault_dies(FAULT_DDL);
    o->overtaken = false;
    if (notices_reserve(o, 1, &e) || history_save(o, x, before.status, &e)) {
        if (!o->overtaken) /* else the records are read again first, and say whether it has ended */
            log_error("catalog: the end of %s of %s %s is not recorded, so clients are not notified yet: %s",
                      schema_status_verb(before.status), x->kind->word, x->name, e.text);
        err_clear(&e);
        change_finish_undo(d, x, &before);
        x->change->due_us = clock_mono_us(o->clock) + (o->overtaken ? pinned_us : retry_us);
        return;
    }
    fault_dies(FAULT_DDL);
    change_finish_keep(d, x, &before);
    if (!failed) log_end(d, x, before.status, NULL);
    recovery_follow(d->recovery, x, before.status == SCHEMA_CREATING);
    if (objects_publish(o, &e)) log_error("catalog: no snapshot: %s", e.text);
    else if (!object_is_gone(x)) table_tell_engine(d->objects, x);
    fault_dies(FAULT_DDL);
    /* DROPPED was sent when a drop began: a drop that failed sends CREATED. */
    if (object_is_gone(x)) object_notify(o, CHANGE_GONE, x);
    else if (x->status == SCHEMA_ACTIVE && before.status != SCHEMA_UPDATING) object_notify(o, CHANGE_CREATED, x);
    else if (x->status == SCHEMA_ACTIVE && !failed) object_notify(o, CHANGE_UPDATED, x);
    objects_moved(o);
}

/* ---- freeing deleted objects ---- */

static bool leads(const struct ddl *d) { return !d->membership || membership_leads(d->membership); }

/* True if this server ends the change of the object, and frees it. */
static bool is_carried(struct ddl *d, const struct catalog_object *x, bool leads) {
    const struct catalog_object *ks = x->kind->in_keyspace ? object_by_id(d->objects, x->keyspace_id) : NULL;
    return leads || x->awaited || (ks && ks->awaited);
}

/* True if an object's data and record can be freed: it is gone, the current snapshot says so, and no
 * object lives in it. */
static bool is_garbage(const struct catalog_object *x) {
    return object_is_gone(x) && !x->freeing && !x->touched && x->n_objects == 0;
}

/* Frees the data and the record of one deleted object; releases the lock while the engine works.
 * A table with writes under way is tried again soon. A keyspace is freed after its tables,
 * because its record makes a restart delete them. */
static bool free_one(struct ddl *d) {
    struct objects *o = d->objects;
    int64_t now = clock_machine_us(o->clock);
    struct catalog_object *x = o->busy;
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
    if (rc == 0) rc = object_erase(o, x, &e);
    if (rc) {
        bool overtaken = o->overtaken; /* the records are read again first, and say whether it is freed */
        if (!overtaken) log_error("catalog: %s is not freed yet: %s", x->name, e.text);
        x->free_us = now + (overtaken ? pinned_us : retry_us);
        return true;
    }
    fault_dies(FAULT_DDL);
    object_remove(o, x);
    objects_moved(o);
    return true;
}

/* Microseconds until a change is due or an object can be freed; INT64_MAX: there is none. */
static int64_t next_wait(struct ddl *d) {
    struct objects *o = d->objects;
    int64_t due = d->guest.due_us, freed = INT64_MAX;
    bool own = leads(d);
    for (const struct catalog_object *x = o->busy; x; x = x->busy_next) {
        if (!is_carried(d, x, own)) continue;
        if (is_garbage(x) && x->free_us < freed) freed = x->free_us;
        if (!x->change || x->change->waits || awaits_namesake(x)) continue;
        if (x->change->due_us < due) due = x->change->due_us;
        if (regions_next_us(x) < due) due = regions_next_us(x);
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
    for (struct catalog_object *x = o->busy; x;) {
        bool carried = is_carried(d, x, own);
        const struct change_under_way *c = carried ? x->change : NULL;
        bool due = c && !c->waits && !awaits_namesake(x) && c->due_us <= now;
        if (due) move_on(d, x);
        else if (carried && regions_next_us(x) <= now) regions_step(d, x, now);
        x = due ? o->busy : x->busy_next; /* move_on changes the list */
    }
    if (d->guest.due_us <= now) d->guest.step(d->guest.arg, now);
    struct err e = {0}; /* an object is still touched if an earlier snapshot failed */
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

void catalog_release_held(struct catalog *c) {
    struct objects *o = c->objects;
    pthread_mutex_lock(&o->lock);
    int64_t now = clock_mono_us(o->clock);
    for (struct catalog_object *x = o->busy; x; x = x->busy_next)
        if (x->change) x->change->due_us = now;
    c->ddl->guest.due_us = now;
    objects_moved(o);
    pthread_mutex_unlock(&o->lock);
}
