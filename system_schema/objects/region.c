/* The Regions of a keyspace, from its definition. */
#include "base/log.h"
#include "system_schema/objects/objects.h"

/* The Regions of a keyspace of several: replication[1..]. A keyspace of one Region is in this
 * server's. */
static bool is_in(const struct objects *o, const struct schema_keyspace *ks, const char *region) {
    if (!strstr(ks->replication[0].value, "NetworkTopologyStrategy")) return strcmp(region, o->region) == 0;
    return option_find(ks->replication, ks->n_replication, region) != NULL;
}

static bool adds(const struct objects *o, const struct schema_keyspace *before, const struct schema_keyspace *after) {
    for (uint32_t i = 1; schema_regions(after) > 1 && i < after->n_replication; i++)
        if (!is_in(o, before, after->replication[i].name)) return true;
    return false;
}

/* The definition that an UPDATING keyspace will have, in the arena. NULL without an error: it
 * gets none. */
static const struct schema_keyspace *next_of(const struct catalog_object *x, struct arena *a, struct err *e) {
    const struct form_context at = object_context(x->objects, x);
    bool updating = x->objects->mode == MODE_KEYSPACES && x->change && x->change->next.n;
    return updating ? x->kind->decode(x->change->next, &at, a, e) : NULL;
}

int regions_show(const struct catalog_object *x, struct schema_keyspace *ks, struct arena *a, struct err *e) {
    const struct schema_keyspace *next = next_of(x, a, e);
    if (e->set) return -1;
    const struct schema_keyspace *of = next && adds(x->objects, ks, next) ? next : ks;
    ks->replicated = x->change ? x->change->replicated : 0;
    if (schema_regions(of) < 2) return 0;
    struct schema_region *all = ARENA_ARRAY(a, of->n_replication, struct schema_region);
    if (!all) return err_nomem(e);
    for (uint32_t i = 1; i < of->n_replication; i++) {
        const char *name = of->replication[i].name;
        all[ks->n_regions++] = (struct schema_region){name, of != ks && !is_in(x->objects, ks, name)};
    }
    ks->regions = all;
    return 0;
}

bool regions_are_added(const struct catalog_object *ks) { return ks->change && ks->change->adds_regions; }

bool regions_begin(const struct catalog_object *ks) {
    struct arena a;
    struct err e = {0};
    arena_init(&a, 4096, 0);
    const struct schema_keyspace *before = object_decode(ks, &a, &e), *next = next_of(ks, &a, &e);
    bool adds_some = before && next && adds(ks->objects, before, next);
    if (e.set) log_error("catalog: the Regions of keyspace %s are not counted: %s", ks->name, e.text);
    err_clear(&e);
    arena_fini(&a);
    return adds_some;
}
