/* Opens and closes the rooms of the catalogue in their order. */
#include "engine/named.h"
#include "system_schema/catalog.h"

#include <stdlib.h>

#include "system_schema/system_tables/system_table.h"

struct catalog_rooms {
    struct catalog catalog; /* first */
    struct arena arena;     /* lives as long as the catalogue */
    struct objects objects;
    struct recovery recovery;
    struct ddl ddl;
    struct system_tables tables;
};

static int set_kinds(struct objects *o, uint32_t n, const struct object_kind *const *more, struct arena *a,
                     struct err *e) {
    static const struct object_kind *const own[] = {
#define KIND(name) &name##_kind,
#include "system_schema/objects/object_kind.def"
#undef KIND
    };
    o->kinds = ARENA_ARRAY(a, ARRAY_LEN(own) + n, const struct object_kind *);
    if (!o->kinds) return err_nomem(e);
    for (size_t i = 0; i < ARRAY_LEN(own); i++) o->kinds[o->n_kinds++] = own[i];
    for (uint32_t i = 0; i < n; i++) o->kinds[o->n_kinds++] = more[i];
    return 0;
}

static int start(struct catalog *c, struct err *e) {
    return ticker_start(&c->objects->worker, 0, e) || ticker_start(&c->recovery->worker, 0, e) ? -1 : 0;
}

struct catalog *catalog_open(const struct catalog_options *o, struct err *e) {
    struct catalog_rooms *r = calloc(1, sizeof *r);
    if (!r) return err_null(err_nomem(e));
    struct catalog *c = &r->catalog;
    *c = (struct catalog){&r->objects, &r->recovery, &r->ddl, &r->tables};
    arena_init(&r->arena, 64 * 1024, 0);
    objects_init(&r->objects);
    r->objects.eng = o->eng;
    r->objects.clock = o->clock;
    r->objects.mode = o->mode;
    r->objects.has_control = o->control;
    r->objects.lists_own = o->lists_own;
    const char *delay = o->ddl_delay ? arena_strdup(&r->arena, o->ddl_delay) : NULL,
               *rules = o->ddl_rules ? arena_strdup(&r->arena, o->ddl_rules) : NULL;
    if (recovery_init(&r->recovery, &r->objects, o->recovery_window_s, e) ||
        ddl_init(&r->ddl, &r->objects, &r->recovery, delay, rules, e) ||
        set_kinds(&r->objects, o->n_kinds, o->kinds, &r->arena, e))
        goto failed;
    r->ddl.quota = o->quota;
    r->ddl.membership = o->membership;
    struct system_tables *t = &r->tables;
    *t = (struct system_tables){.catalog = c, .traces = o->traces, .clock_control = o->clock_control};
    if (node_init(&t->node, &o->node, o->membership, &r->objects, &r->arena, e)) goto failed;
    r->objects.region = t->node.info.region;
    r->ddl.datacenter = t->node.info.datacenter;
    if (system_tables_build(t, o->n_tables, o->tables, &r->arena, e) || system_keyspaces_load(&r->ddl, e))
        goto failed;
    pthread_mutex_lock(&r->objects.lock);
    int rc = ddl_read(&r->ddl, e) || partitioner_load(&t->partitioner, &r->ddl, e) ? -1 : 0;
    pthread_mutex_unlock(&r->objects.lock);
    if (rc) goto failed;
    ddl_move(&r->ddl);
    if (start(c, e)) goto failed;
    return c;
failed:
    catalog_close(c);
    return NULL;
}

void catalog_close(struct catalog *c) {
    struct catalog_rooms *r = (struct catalog_rooms *)c;
    eng_meta_unwatch(r->objects.eng, &r->objects);
    if (r->recovery.saved) saved_keyspaces_free(r->recovery.saved);
    r->recovery.saved = NULL;
    catalog_suspend(c);
    recovery_fini(&r->recovery);
    objects_fini(&r->objects);
    ddl_fini(&r->ddl);
    arena_fini(&r->arena);
    free(r);
}

void catalog_suspend(struct catalog *c) {
    ticker_stop(&c->objects->worker);
    ticker_stop(&c->recovery->worker);
}

int catalog_resume(struct catalog *c, bool changed, struct err *e) {
    struct objects *o = c->objects;
    int rc = 0;
    pthread_mutex_lock(&o->lock);
    if (changed) {
        recovery_free(c->recovery);
        rc = ddl_reload(c->ddl, e) || partitioner_load(&c->tables->partitioner, c->ddl, e) ? -1 : 0;
    }
    uint64_t queued = o->notices.queued;
    pthread_mutex_unlock(&o->lock);
    notices_deliver(o, queued);
    return start(c, e) ? -1 : rc;
}

void catalog_clock_moved(struct catalog *c) {
    ticker_wake(&c->objects->worker);
    ticker_wake(&c->recovery->worker);
}

const struct node_info *catalog_node(const struct catalog *c) { return &c->tables->node.info; }
const uint8_t *catalog_host_id(const struct catalog *c) { return c->tables->node.host_id; }
enum partitioner_id catalog_partitioner(const struct catalog *c) { return atomic_load(&c->tables->partitioner.now); }
void catalog_set_states(struct catalog *c, const struct catalog_states *states) { c->tables->states = states; }
void catalog_set_scaling(struct catalog *c, const struct catalog_scaling *scaling) { c->tables->scaling = scaling; }
