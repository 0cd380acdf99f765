/* Reads what is recorded: at the start, and again after the store was put back to a saved state or
 * another server on the store has changed a record. Unfinished changes go on; clients are notified
 * of the differences. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/random.h"
#include "engine/named.h"
#include "engine/table.h"
#include "system_schema/ddl/ddl.h"
#include "system_schema/objects/table_event.h"

/* The engine calls this on any thread, with the store locked. The worker then reads the records
 * itself. */
static void note_change(void *arg) {
    struct objects *o = arg;
    atomic_store(&o->noticed, true);
    ticker_wake(&o->worker);
}

static int64_t run_worker(void *d) { return ddl_step(d); }

int ddl_init(struct ddl *d, struct objects *o, struct recovery *r, const char *delay, const char *rule_text,
             struct err *e) {
    *d = (struct ddl){.objects = o, .recovery = r, .guest = {.due_us = INT64_MAX}};
    d->delay = delay ? delay : "none";
    d->rule_text = rule_text ? rule_text : "";
    ticker_init(&o->worker, run_worker, d);
    if (random_bytes(&d->rules.random, sizeof d->rules.random, e)) return -1;
    return eng_meta_watch(o->eng, note_change, o, e);
}

void ddl_fini(struct ddl *d) {
    ddl_rules_fini(&d->rules);
    ticker_fini(&d->objects->worker);
}

/* ---- reading ---- */

/* Publishes what was read. The changes that were under way when the server stopped go on, with a new
 * delay. The objects of a keyspace that is being deleted go with it even if their own records do not
 * say so. */
static int show(struct ddl *d, struct err *e) {
    struct objects *o = d->objects;
    for (uint32_t i = 0; i < o->n_all; i++) {
        struct catalog_object *x = o->all[i];
        const struct catalog_object *ks = x->kind->in_keyspace ? object_by_id(o, x->keyspace_id) : NULL;
        bool orphan = ks && (ks->status == SCHEMA_DELETING || object_is_gone(ks)) && !object_is_gone(x);
        if (orphan && (x->status != SCHEMA_DELETING || object_is_gone(ks))) object_free_change(x);
        if (orphan && x->status != SCHEMA_DELETING) object_set_status(o, x, SCHEMA_DELETING);
        if (orphan && object_is_gone(ks)) object_set_status(o, x, SCHEMA_DELETED);
        if (x->change) change_schedule(d, x);
    }
    if (objects_publish(o, e)) return -1;
    for (uint32_t i = 0; i < o->n_all; i++) {
        const struct schema_table *t = o->all[i]->shown;
        if (t && t->status != SCHEMA_DELETING) table_tell_engine(d->objects, o->all[i]);
    }
    return 0;
}

int ddl_read(struct ddl *d, struct err *e) {
    strays_reset(&d->recovery->strays);
    if (rules_load(d, e) || saved_keyspaces_clean(d->recovery, e) || objects_load(d->objects, e) ||
        truncate_forget(d, e) || history_prune(d->objects, e) || recovery_load(d->recovery, e))
        return -1;
    return show(d, e);
}

static int read_objects(struct ddl *d, struct err *e) {
    return objects_load(d->objects, e) || system_keyspaces_load(d, e) ? -1 : show(d, e);
}

/* ---- reading again ---- */

struct before {
    uint32_t n, next_id;
    struct catalog_object **entries; /* by id */
};

static int by_id(const void *a, const void *b) {
    const uint32_t x = (*(struct catalog_object *const *)a)->id, y = (*(struct catalog_object *const *)b)->id;
    return (x > y) - (x < y);
}

static struct catalog_object *old_of(const struct before *b, uint32_t id) {
    struct catalog_object sought = {.id = id}, *key = &sought;
    struct catalog_object **found = b->n ? bsearch(&key, b->entries, b->n, sizeof(*b->entries), by_id) : NULL;
    return found ? *found : NULL;
}

static bool is_same(const struct catalog_object *a, const struct catalog_object *b) {
    return a->status == b->status && a->storage == b->storage && slice_eq(a->form, b->form) &&
           strcmp(a->name, b->name) == 0;
}

/* A change that began at another server is that server's to end while its client waits. The leader
 * ends it when that server has had the time. */
static void leave_time(struct ddl *d, struct catalog_object *x) {
    const int64_t grace_us = 2000000;
    struct change_under_way *c = d->objects->mode == MODE_CASSANDRA ? x->change : NULL;
    int64_t late_us = clock_mono_us(d->objects->clock) + grace_us;
    if (object_is_gone(x)) x->free_us = clock_machine_us(d->objects->clock) + grace_us;
    else if (c && c->due_us < late_us) c->due_us = late_us;
}

/* An unchanged object keeps its shape number. A changed one gets a number that was not used
 * before, so that statements compiled for the old definition do not match it. */
static void set_shapes(struct ddl *d, const struct before *b, bool keep_restores) {
    struct objects *o = d->objects;
    for (uint32_t i = 0; i < o->n_all; i++) {
        struct catalog_object *old = old_of(b, o->all[i]->id), *now = o->all[i];
        bool same = old && is_same(old, now);
        now->shape = same ? old->shape : d->n_reloads << 16;
        now->awaited = old && old->awaited && now->status != SCHEMA_ACTIVE;
        if (d->membership && !same && !now->awaited) leave_time(d, now);
        if (d->membership && same && object_is_gone(now)) now->free_us = old->free_us;
        if (same && object_is_changing(now)) now->since_us = old->since_us;
        if (same && now->change && old->change) { /* it keeps its due time, but not what was recorded */
            struct change_under_way *c = old->change, *read = now->change;
            const struct slice next = c->next;
            c->next = read->next;
            c->replicated = read->replicated;
            read->next = next;
            now->change = c;
            old->change = read;
        }
        if (old && keep_restores) { /* the records of the objects do not hold these */
            now->history = old->history;
            now->restored_from = old->restored_from;
            now->restored_at_us = old->restored_at_us;
        }
        if (now->shown) object_touch(o, now);
    }
}

/* Whether the object is as it was before the change that old was in. */
static bool is_undone(const struct catalog_object *old, const struct catalog_object *now) {
    if (old->status == SCHEMA_CREATING) return !now || object_is_gone(now);
    if (!now || now->status != SCHEMA_ACTIVE) return false;
    return old->status == SCHEMA_DELETING || (old->status == SCHEMA_UPDATING && slice_eq(old->form, now->form));
}

/* D3. A change that a client of this server waits for may have been ended by another server (C3). Its record
 *     tells whether a rule made it fail, and the client is told the same. */
static void note_failures(struct ddl *d, const struct before *b) {
    for (uint32_t i = 0; i < b->n; i++) {
        const struct catalog_object *old = b->entries[i];
        char statement[DDL_STATEMENT_MAX];
        if (!old->awaited || !is_undone(old, object_by_id(d->objects, old->id))) continue;
        const struct form_context at = object_context(d->objects, old);
        change_statement(old, statement);
        const struct ddl_subject of = {statement, at.keyspace, at.name};
        const char *words =
            old->change && old->change->failure ? old->change->failure : ddl_rules_failure(&d->rules, &of);
        if (words) ddl_note_failure(d, old, old->status, words);
    }
}

static int by_storage(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Rows whose last record is gone were freed by another server: this server's engine forgets their table. */
static void forget_freed(struct ddl *d, const struct before *b) {
    const struct objects *o = d->objects;
    uint32_t *ids = calloc(o->n_all + 1, sizeof(*ids)), n = 0;
    for (uint32_t i = 0; ids && i < o->n_all; i++)
        if (o->all[i]->kind->has_rows) ids[n++] = o->all[i]->storage;
    if (n) qsort(ids, n, sizeof(*ids), by_storage);
    for (uint32_t i = 0; ids && i < b->n; i++) {
        const struct catalog_object *old = b->entries[i];
        if (old->kind->has_rows && !bsearch(&old->storage, ids, n, sizeof(*ids), by_storage))
            eng_table_forget(o->eng, old->storage);
    }
    free(ids);
}

static bool is_seen(const struct catalog_object *x) {
    return x->status != SCHEMA_CREATING && x->status != SCHEMA_DELETING && !object_is_gone(x);
}

static void tell(struct ddl *d, enum schema_change_kind kind, const char *keyspace, const struct catalog_object *x) {
    struct schema_change change = {.kind = kind, .target = x->kind->target, .object = x->id};
    snprintf(change.keyspace, sizeof change.keyspace, "%s", keyspace);
    if (x->kind->in_keyspace) snprintf(change.name, sizeof change.name, "%s", x->name);
    (void)notice_queue(d->objects, &change);
}

/* Returns the number of differences; really: also queues a notice for each. */
static uint32_t tell_all(struct ddl *d, const struct before *b, bool really) {
    struct objects *o = d->objects;
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        const struct catalog_object *old = b->entries[i], *now = object_by_id(o, old->id);
        const struct catalog_object *ks = old->kind->in_keyspace ? old_of(b, old->keyspace_id) : old;
        bool drops = is_seen(old) && (!now || !is_seen(now));
        bool goes = !object_is_gone(old) && (!now || object_is_gone(now));
        n += drops + goes;
        if (drops && really) tell(d, CHANGE_DROPPED, ks ? ks->name : "", old);
        if (goes && really) tell(d, CHANGE_GONE, ks ? ks->name : "", old);
    }
    for (uint32_t i = 0; i < o->n_all; i++) {
        const struct catalog_object *now = o->all[i], *old = old_of(b, now->id);
        if (!is_seen(now) || (old && is_seen(old) && is_same(old, now))) continue;
        n++;
        if (really)
            tell(d, old && is_seen(old) ? CHANGE_UPDATED : CHANGE_CREATED, object_context(o, now).keyspace, now);
    }
    return n;
}

static int reload(struct ddl *d, int (*read)(struct ddl *d, struct err *e), struct err *e) {
    struct objects *o = d->objects;
    /* The old objects are kept until the new ones are visible. */
    struct before b = {.n = o->n_all, .next_id = o->next_id, .entries = o->all};
    if (b.n) qsort(b.entries, b.n, sizeof(*b.entries), by_id);
    free(o->by_id);
    free(o->by_name);
    o->by_id = o->by_name = NULL;
    o->all = NULL;
    o->n_all = o->n_buckets = 0;
    o->busy = o->touched = NULL;
    o->sums[0] = o->sums[1] = 0;
    memset(o->counts, 0, sizeof o->counts);
    o->published.shares_nothing = true;
    d->n_reloads++;
    int rc = read(d, e);
    if (!rc && o->next_id < b.next_id) {
        /* Ids must not be reused: prepared statements and the ledger identify objects by them. */
        uint32_t id;
        o->next_id = b.next_id;
        rc = objects_next_id(o, &id, e);
    }
    set_shapes(d, &b, read == read_objects);
    if (!rc) note_failures(d, &b);
    if (!rc && read == read_objects && !o->n_set_aside) forget_freed(d, &b); /* a record set aside may name rows */
    if (!rc) rc = notices_reserve(o, tell_all(d, &b, false), e);
    if (!rc) rc = objects_publish(o, e);
    if (!rc) (void)tell_all(d, &b, true);
    for (uint32_t i = 0; i < b.n; i++) object_free(b.entries[i]);
    free(b.entries);
    return rc;
}

int ddl_reload(struct ddl *d, struct err *e) { return reload(d, ddl_read, e); }

int catalog_catch_up(struct catalog *c, struct err *e) {
    enum { TRIES = 100, PAUSE_US = 10000 }; /* the records cannot be read again while an object is freed */
    struct objects *o = c->objects;
    uint64_t version;
    bool behind = true;
    if (eng_one_writer(o->eng)) return 0;
    if (objects_stored_version(o, &version, e)) return -1;
    for (int i = 0; behind && i < TRIES; i++) {
        pthread_mutex_lock(&o->lock);
        behind = o->version < version || atomic_load(&o->stale);
        if (behind && i > 1) clock_cond_wait(&o->moved, &o->lock, PAUSE_US);
        if (behind) atomic_store(&o->noticed, true); /* the rules and the guest, too */
        if (behind) atomic_store(&o->stale, true);
        pthread_mutex_unlock(&o->lock);
        if (behind) ddl_move(c->ddl); /* reads the records again */
    }
    if (!behind) return 0;
    return err_set(e, ERR_OVERLOADED, "The schema has changed at another server and is not read yet; try again");
}

void ddl_look_again(struct ddl *d) {
    struct err e = {0};
    for (const struct catalog_object *x = d->objects->busy; x; x = x->busy_next)
        if (x->freeing) return;
    if (atomic_exchange(&d->objects->noticed, false)) {
        bool read = rules_look_again(d, &e) == 0 && d->guest.look_again(d->guest.arg, &e) == 0;
        if (!read) atomic_store(&d->objects->noticed, true); /* all of them again, at the next look */
        if (!read || !objects_are_current(d->objects, &e)) atomic_store(&d->objects->stale, true);
    }
    if (!atomic_exchange(&d->objects->stale, false)) return;
    d->objects->overtaken = false;
    err_clear(&e);
    if (reload(d, read_objects, &e) == 0) {
        objects_moved(d->objects);
        return;
    }
    if (!d->objects->overtaken) log_error("catalog: what another server has changed cannot be read: %s", e.text);
    atomic_store(&d->objects->stale, true);
}
