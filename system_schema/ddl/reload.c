/* Reads the catalogue again after the store was put back to a saved state, or another server on
 * the store has changed a record. Clients are notified of the differences. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "system_schema/catalog_state.h"
#include "system_schema/recovery/recovery.h"

struct before {
    uint32_t n, next_id;
    struct entry **entries;
};

void catalog_set_states(struct catalog *c, const struct catalog_states *states) { c->states = states; }

void catalog_suspend(struct catalog *c) {
    worker_stop(c);
    recovery_stop(c);
}

static struct entry *old_of(const struct before *b, uint32_t id) {
    for (uint32_t i = 0; i < b->n; i++)
        if (b->entries[i]->id == id) return b->entries[i];
    return NULL;
}

static bool is_same(const struct entry *a, const struct entry *b) {
    return a->status == b->status && a->storage == b->storage && slice_eq(a->form, b->form) &&
           strcmp(a->name, b->name) == 0;
}

/* An unchanged object keeps its shape number. A changed one gets a number that was not used
 * before, so that statements compiled for the old definition do not match it. */
static void set_shapes(struct catalog *c, const struct before *b, bool keep_restores) {
    for (uint32_t i = 0; i < c->objects.n_entries; i++) {
        struct entry *old = old_of(b, c->objects.entries[i]->id), *now = c->objects.entries[i];
        bool same = old && is_same(old, now);
        now->shape = same ? old->shape : c->n_reloads << 16;
        if (same && entry_is_pending(now)) { /* it keeps its due time */
            now->due_us = old->due_us;
            now->since_us = old->since_us;
            now->at_once = old->at_once;
            now->adds_regions = old->adds_regions;
            now->step_us = old->step_us;
            now->step_every_us = old->step_every_us;
            entry_fail_with(now, old->failure);
        }
        if (old && keep_restores) { /* the records of the objects do not hold these */
            now->history = old->history;
            now->restored_from = old->restored_from;
            now->restored_at_us = old->restored_at_us;
        }
        if (now->shown) entry_touch(c, now);
    }
}

static bool is_seen(const struct entry *x) {
    return x->status != SCHEMA_CREATING && x->status != SCHEMA_DELETING && !entry_is_gone(x);
}

static void tell(struct catalog *c, enum schema_change_kind kind, const char *keyspace, const struct entry *x) {
    struct schema_change change = {.kind = kind, .target = x->kind->target, .object = x->id};
    snprintf(change.keyspace, sizeof change.keyspace, "%s", keyspace);
    if (x->kind->in_keyspace) snprintf(change.name, sizeof change.name, "%s", x->name);
    (void)notice_queue(c, &change);
}

/* Returns the number of differences; really: also queues a notice for each. */
static uint32_t tell_all(struct catalog *c, const struct before *b, bool really) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        const struct entry *old = b->entries[i], *now = entry_by_id(c, old->id);
        const struct entry *ks = old->kind->in_keyspace ? old_of(b, old->keyspace_id) : old;
        bool drops = is_seen(old) && (!now || !is_seen(now));
        bool goes = !entry_is_gone(old) && (!now || entry_is_gone(now));
        n += drops + goes;
        if (drops && really) tell(c, CHANGE_DROPPED, ks ? ks->name : "", old);
        if (goes && really) tell(c, CHANGE_GONE, ks ? ks->name : "", old);
    }
    for (uint32_t i = 0; i < c->objects.n_entries; i++) {
        const struct entry *now = c->objects.entries[i], *old = old_of(b, now->id);
        if (!is_seen(now) || (old && is_seen(old) && is_same(old, now))) continue;
        n++;
        if (really) tell(c, old && is_seen(old) ? CHANGE_UPDATED : CHANGE_CREATED, entry_place(c, now).keyspace, now);
    }
    return n;
}

static int reload(struct catalog *c, int (*read)(struct catalog *c, struct err *e), struct err *e) {
    /* The old entries are kept until the new ones are visible. */
    struct before b = {.n = c->objects.n_entries, .next_id = c->objects.next_id, .entries = c->objects.entries};
    free(c->objects.by_id);
    free(c->objects.by_name);
    c->objects.by_id = c->objects.by_name = NULL;
    c->objects.entries = NULL;
    c->objects.n_entries = c->objects.n_buckets = 0;
    c->objects.busy = c->objects.touched = NULL;
    c->objects.sums[0] = c->objects.sums[1] = 0;
    memset(c->objects.counts, 0, sizeof c->objects.counts);
    c->published.begin_anew = true;
    c->n_reloads++;
    int rc = read(c, e);
    if (!rc && c->objects.next_id < b.next_id) {
        /* Ids must not be reused: prepared statements and the ledger identify objects by them. */
        uint32_t id;
        c->objects.next_id = b.next_id;
        rc = entry_next_id(c, &id, e);
    }
    set_shapes(c, &b, read == catalog_read_objects);
    if (!rc) rc = notices_reserve(c, tell_all(c, &b, false), e);
    if (!rc) rc = catalog_publish(c, e);
    if (!rc) (void)tell_all(c, &b, true);
    for (uint32_t i = 0; i < b.n; i++) entry_free(b.entries[i]);
    free(b.entries);
    return rc;
}

int catalog_resume(struct catalog *c, bool changed, struct err *e) {
    pthread_mutex_lock(&c->lock);
    c->closing = false;
    if (changed) recovery_free(c);
    int rc = changed ? reload(c, catalog_read, e) : 0;
    uint64_t told = c->notices.queued;
    pthread_mutex_unlock(&c->lock);
    notices_deliver(c, told);
    if (worker_start(c, e) || recovery_start(c, e)) return -1;
    return rc;
}

void catalog_look_again(struct catalog *c) {
    struct err e = {0};
    for (const struct entry *x = c->objects.busy; x; x = x->busy_next)
        if (x->freeing) return;
    if (!atomic_exchange(&c->noticed, false)) return;
    if (reload(c, catalog_read_objects, &e) == 0) return;
    log_error("catalog: what another server has changed cannot be read: %s", e.text);
    atomic_store(&c->noticed, true);
}
