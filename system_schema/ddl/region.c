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
#include "system_schema/catalog_state.h"

/* ---- what the definitions say ---- */

/* The Regions of a keyspace of several: replication[1..]. A keyspace of one Region is in this
 * server's. */
static bool is_in(const struct catalog *c, const struct schema_keyspace *ks, const char *region) {
    if (!strstr(ks->replication[0].value, "NetworkTopologyStrategy")) return strcmp(region, c->system.node.region) == 0;
    return option_find(ks->replication, ks->n_replication, region) != NULL;
}

static bool adds(const struct catalog *c, const struct schema_keyspace *before, const struct schema_keyspace *after) {
    for (uint32_t i = 1; schema_regions(after) > 1 && i < after->n_replication; i++)
        if (!is_in(c, before, after->replication[i].name)) return true;
    return false;
}

/* The definition that an UPDATING keyspace will have, in the arena. NULL without an error: it
 * gets none. */
static const struct schema_keyspace *next_of(const struct entry *x, struct arena *a, struct err *e) {
    const struct object_place at = entry_place(x->catalog, x);
    bool updating = x->catalog->mode == MODE_KEYSPACES && x->status == SCHEMA_UPDATING && x->next.n;
    return updating ? x->kind->decode(x->next, &at, a, e) : NULL;
}

int regions_show(const struct entry *x, struct schema_keyspace *ks, struct arena *a, struct err *e) {
    const struct schema_keyspace *next = next_of(x, a, e);
    if (e->set) return -1;
    const struct schema_keyspace *of = next && adds(x->catalog, ks, next) ? next : ks;
    ks->replicated = x->replicated;
    if (schema_regions(of) < 2) return 0;
    struct schema_region *all = ARENA_ARRAY(a, of->n_replication, struct schema_region);
    if (!all) return err_nomem(e);
    for (uint32_t i = 1; i < of->n_replication; i++) {
        const char *name = of->replication[i].name;
        all[ks->n_regions++] = (struct schema_region){name, of != ks && !is_in(x->catalog, ks, name)};
    }
    ks->regions = all;
    return 0;
}

/* ---- the tables, one by one ---- */

static bool is_left(const struct entry *ks, const struct entry *x) {
    return x->kind == &table_kind && x->keyspace_id == ks->id && x->id > ks->replicated &&
           x->status != SCHEMA_DELETING && !entry_is_gone(x);
}

bool regions_are_added(const struct entry *ks) { return ks->adds_regions && ks->status == SCHEMA_UPDATING; }

void regions_schedule(struct catalog *c, struct entry *x, int64_t delay_us) {
    struct arena a;
    struct err e = {0};
    x->adds_regions = false;
    x->step_us = INT64_MAX;
    if (x->kind != &keyspace_kind || c->mode != MODE_KEYSPACES || x->status != SCHEMA_UPDATING) return;
    arena_init(&a, 4096, 0);
    const struct object_place at = entry_place(c, x);
    const struct schema_keyspace *before = x->kind->decode(x->form, &at, &a, &e), *next = next_of(x, &a, &e);
    x->adds_regions = before && next && adds(c, before, next);
    if (e.set) log_error("catalog: the Regions of keyspace %s are not counted: %s", x->name, e.text);
    err_clear(&e);
    arena_fini(&a);
    int64_t left = 0;
    for (uint32_t i = 0; x->adds_regions && i < c->objects.n_entries; i++) left += is_left(x, c->objects.entries[i]);
    if (!left || delay_us <= 0) return;
    x->step_every_us = delay_us / (left + 1);
    x->step_us = clock_mono_us(c->clock) + x->step_every_us;
}

int64_t regions_next_us(const struct entry *x) {
    bool held = x->due_us == INT64_MAX;
    return regions_are_added(x) && !held ? x->step_us : INT64_MAX;
}

void regions_step(struct catalog *c, struct entry *x, int64_t now_us) {
    enum { RETRY_US = 1000000 };
    uint32_t before = x->replicated;
    int64_t at_us = x->step_us;
    struct err e = {0};
    assert(regions_are_added(x));
    for (bool any = true; any && at_us <= now_us;) {
        uint32_t id = UINT32_MAX;
        for (uint32_t i = 0; i < c->objects.n_entries; i++)
            if (is_left(x, c->objects.entries[i]) && c->objects.entries[i]->id < id) id = c->objects.entries[i]->id;
        any = id != UINT32_MAX;
        if (any) x->replicated = id;
        at_us = any ? at_us + x->step_every_us : INT64_MAX;
    }
    if (x->replicated != before && entry_save(c, x, &e)) {
        log_error("catalog: the progress of keyspace %s is not recorded, and so not shown yet: %s", x->name, e.text);
        err_clear(&e);
        x->replicated = before;
        x->step_us = now_us + RETRY_US;
        return;
    }
    x->step_us = at_us;
    entry_touch(c, x);
}
