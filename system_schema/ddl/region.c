/* Regions that ALTER KEYSPACE adds to a keyspace, in keyspaces mode.
 *
 * The keyspace is UPDATING until its tables are in the new Regions. They get there one by one, in
 * the order of their object ids, evenly spread over the delay of the statement. The last id that
 * is there is recorded before clients see it (D1, ddl/worker.c), so that a restart goes on from
 * there. Ids are never reused and grow: a table that goes or comes meanwhile takes nothing back.
 *
 * G1. While Regions are being added, no table or type of the keyspace is created, altered or
 *     dropped.
 */
#include <assert.h>

#include "base/log.h"
#include "system_schema/ddl/ddl.h"

static bool is_left(const struct entry *ks, const struct entry *x) {
    return x->kind == &table_kind && entry_lives_in(x, ks->id) && x->id > ks->replicated;
}

void regions_schedule(struct ddl *d, struct entry *x, int64_t delay_us) {
    struct objects *o = d->objects;
    x->adds_regions = false;
    x->step_us = INT64_MAX;
    if (x->kind != &keyspace_kind || o->mode != MODE_KEYSPACES || x->status != SCHEMA_UPDATING) return;
    x->adds_regions = regions_begin(x);
    int64_t left = 0;
    for (uint32_t i = 0; x->adds_regions && i < o->n_entries; i++) left += is_left(x, o->entries[i]);
    if (!left || delay_us <= 0) return;
    x->step_every_us = delay_us / (left + 1);
    x->step_us = clock_mono_us(o->clock) + x->step_every_us;
}

int64_t regions_next_us(const struct entry *x) {
    bool held = x->due_us == INT64_MAX;
    return regions_are_added(x) && !held ? x->step_us : INT64_MAX;
}

void regions_step(struct ddl *d, struct entry *x, int64_t now_us) {
    struct objects *o = d->objects;
    enum { RETRY_US = 1000000 };
    uint32_t before = x->replicated;
    int64_t at_us = x->step_us;
    struct err e = {0};
    assert(regions_are_added(x));
    for (bool any = true; any && at_us <= now_us;) {
        uint32_t id = UINT32_MAX;
        for (uint32_t i = 0; i < o->n_entries; i++)
            if (is_left(x, o->entries[i]) && o->entries[i]->id < id) id = o->entries[i]->id;
        any = id != UINT32_MAX;
        if (any) x->replicated = id;
        at_us = any ? at_us + x->step_every_us : INT64_MAX;
    }
    if (x->replicated != before && entry_save(o, x, &e)) {
        log_error("catalog: the progress of keyspace %s is not recorded, and so not shown yet: %s", x->name, e.text);
        err_clear(&e);
        x->replicated = before;
        x->step_us = now_us + RETRY_US;
        return;
    }
    x->step_us = at_us;
    entry_touch(o, x);
}
