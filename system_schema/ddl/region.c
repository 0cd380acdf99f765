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

static bool is_left(const struct catalog_object *ks, const struct catalog_object *x) {
    return x->kind == &table_kind && object_lives_in(x, ks->id) && x->id > ks->change->replicated;
}

void regions_schedule(struct ddl *d, struct catalog_object *x, int64_t delay_us) {
    struct objects *o = d->objects;
    struct change_under_way *c = x->change;
    c->adds_regions = false;
    c->step_us = INT64_MAX;
    if (x->kind != &keyspace_kind || o->mode != MODE_KEYSPACES || x->status != SCHEMA_UPDATING) return;
    c->adds_regions = regions_begin(x);
    int64_t left = 0;
    for (uint32_t i = 0; c->adds_regions && i < o->n_all; i++) left += is_left(x, o->all[i]);
    if (!left || delay_us <= 0) return;
    c->step_every_us = delay_us / (left + 1);
    c->step_us = clock_mono_us(o->clock) + c->step_every_us;
}

int64_t regions_next_us(const struct catalog_object *x) {
    const struct change_under_way *c = x->change;
    return regions_are_added(x) && c->due_us != INT64_MAX ? c->step_us : INT64_MAX;
}

void regions_step(struct ddl *d, struct catalog_object *x, int64_t now_us) {
    struct objects *o = d->objects;
    struct change_under_way *c = x->change;
    enum { RETRY_US = 1000000 };
    uint32_t before = c->replicated;
    int64_t at_us = c->step_us;
    struct err e = {0};
    assert(regions_are_added(x));
    for (bool any = true; any && at_us <= now_us;) {
        uint32_t id = UINT32_MAX;
        for (uint32_t i = 0; i < o->n_all; i++)
            if (is_left(x, o->all[i]) && o->all[i]->id < id) id = o->all[i]->id;
        any = id != UINT32_MAX;
        if (any) c->replicated = id;
        at_us = any ? at_us + c->step_every_us : INT64_MAX;
    }
    if (c->replicated != before && object_save(o, x, &e)) {
        log_error("catalog: the progress of keyspace %s is not recorded, and so not shown yet: %s", x->name, e.text);
        err_clear(&e);
        c->replicated = before;
        c->step_us = now_us + RETRY_US;
        return;
    }
    c->step_us = at_us;
    object_touch(o, x);
}
