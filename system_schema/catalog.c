/* Opens the rooms of the catalogue in their order, and passes calls of other rooms on to them. */
#include "engine/named.h"
#include "system_schema/catalog.h"

#include <stdlib.h>

#include "system_schema/catalog_state.h"

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
    return ticker_start(&c->objects.worker, 0, e) || ticker_start(&c->recovery.worker, 0, e) ? -1 : 0;
}

struct catalog *catalog_open(const struct catalog_options *o, struct err *e) {
    struct catalog *c = calloc(1, sizeof *c);
    if (!c) return err_null(err_nomem(e));
    arena_init(&c->arena, 64 * 1024, 0);
    objects_init(&c->objects);
    c->objects.eng = o->eng;
    c->objects.clock = o->clock;
    c->objects.mode = o->mode;
    c->objects.has_control = o->control;
    c->objects.lists_own = o->lists_own;
    const char *delay = o->ddl_delay ? arena_strdup(&c->arena, o->ddl_delay) : NULL,
               *rules = o->ddl_rules ? arena_strdup(&c->arena, o->ddl_rules) : NULL;
    if (recovery_init(&c->recovery, &c->objects, o->recovery_window_s, e) ||
        ddl_init(&c->ddl, &c->objects, &c->recovery, delay, rules, e) ||
        set_kinds(&c->objects, o->n_kinds, o->kinds, &c->arena, e))
        goto failed;
    c->ddl.quota = o->quota;
    c->ddl.membership = o->membership;
    struct system_tables *t = &c->tables;
    *t = (struct system_tables){.objects = &c->objects,
                                .recovery = &c->recovery,
                                .ddl = &c->ddl,
                                .traces = o->traces,
                                .clock_control = o->clock_control};
    if (node_init(&t->node, &o->node, o->membership, &c->objects, &c->arena, e)) goto failed;
    c->objects.region = t->node.info.region;
    c->ddl.datacenter = t->node.info.datacenter;
    if (system_tables_build(t, o->n_tables, o->tables, &c->arena, e) || system_keyspaces_load(&c->ddl, e))
        goto failed;
    pthread_mutex_lock(&c->objects.lock);
    int rc = ddl_read(&c->ddl, e) || partitioner_load(&t->partitioner, &c->ddl, e) ? -1 : 0;
    pthread_mutex_unlock(&c->objects.lock);
    if (rc) goto failed;
    ddl_move(&c->ddl);
    if (start(c, e)) goto failed;
    return c;
failed:
    catalog_close(c);
    return NULL;
}

void catalog_close(struct catalog *c) {
    eng_meta_unwatch(c->objects.eng, &c->objects);
    if (c->recovery.saved) saved_keyspaces_free(c->recovery.saved);
    c->recovery.saved = NULL;
    catalog_suspend(c);
    recovery_fini(&c->recovery);
    objects_fini(&c->objects);
    ddl_fini(&c->ddl);
    arena_fini(&c->arena);
    free(c);
}

void catalog_suspend(struct catalog *c) {
    ticker_stop(&c->objects.worker);
    ticker_stop(&c->recovery.worker);
}

int catalog_resume(struct catalog *c, bool changed, struct err *e) {
    int rc = 0;
    pthread_mutex_lock(&c->objects.lock);
    if (changed) {
        recovery_free(&c->recovery);
        rc = ddl_reload(&c->ddl, e) || partitioner_load(&c->tables.partitioner, &c->ddl, e) ? -1 : 0;
    }
    uint64_t queued = c->objects.notices.queued;
    pthread_mutex_unlock(&c->objects.lock);
    notices_deliver(&c->objects, queued);
    return start(c, e) ? -1 : rc;
}

void catalog_clock_moved(struct catalog *c) {
    ticker_wake(&c->objects.worker);
    ticker_wake(&c->recovery.worker);
}

/* ---- what the rooms tell ---- */

const struct node_info *catalog_node(const struct catalog *c) { return &c->tables.node.info; }
const uint8_t *catalog_host_id(const struct catalog *c) { return c->tables.node.host_id; }
enum partitioner_id catalog_partitioner(const struct catalog *c) { return partitioner_now(&c->tables.partitioner); }
const struct schema *catalog_schema(struct catalog *c) { return objects_schema(&c->objects); }

void catalog_schema_version(struct catalog *c, uint8_t version[16]) {
    const struct schema *s = objects_schema(&c->objects);
    memcpy(version, s->version, 16);
    schema_unref(s);
}

uint64_t catalog_generation(const struct catalog *c) {
    return atomic_load_explicit(&c->objects.published.generation, memory_order_acquire);
}

bool catalog_has_object(struct catalog *c, uint32_t object) {
    pthread_mutex_lock(&c->objects.lock);
    const struct catalog_object *x = object_by_id(&c->objects, object);
    bool there = x && !object_is_gone(x);
    pthread_mutex_unlock(&c->objects.lock);
    return there;
}

int catalog_recorded(struct catalog *c, const char *keyspace, const char *table, bool *recorded, struct err *e) {
    return objects_recorded(&c->objects, keyspace, table, recorded, e);
}

int catalog_catch_up(struct catalog *c, struct err *e) { return ddl_catch_up(&c->ddl, e); }

int catalog_settings(const struct catalog *c, const struct schema_table *t, const char *region, struct arena *a,
                     struct table_settings *out) {
    return shown_settings(&c->tables, t, region, a, out);
}

void catalog_capacity(const struct catalog *c, const struct schema_table *t, struct table_capacity *out) {
    scaled_capacity(c->tables.scaling, t, out);
}

int64_t catalog_recovery_window_us(const struct catalog *c) { return c->recovery.window_us; }

int64_t catalog_restorable_since(struct catalog *c, uint32_t history) { return recovery_since(&c->recovery, history); }

int catalog_each_history(struct catalog *c, int (*fn)(void *arg, const struct history_report *h), void *arg) {
    return recovery_each(&c->recovery, fn, arg);
}

/* ---- what other rooms provide ---- */

void catalog_set_states(struct catalog *c, const struct catalog_states *states) { c->tables.states = states; }
void catalog_set_scaling(struct catalog *c, const struct catalog_scaling *scaling) { c->tables.scaling = scaling; }

void catalog_on_change(struct catalog *c, struct catalog_listener *l) { objects_on_change(&c->objects, l); }
void catalog_off_change(struct catalog *c, struct catalog_listener *l) { objects_off_change(&c->objects, l); }

/* ---- DDL and saved states ---- */

int catalog_apply(struct catalog *c, const struct catalog_change *change, struct schema_change *out,
                  uint32_t *unfinished, struct err *e) {
    return ddl_apply(&c->ddl, change, out, unfinished, e);
}

int catalog_outcome(struct catalog *c, uint32_t unfinished, struct err *e) {
    return ddl_outcome(&c->ddl, unfinished, e);
}

void catalog_release_held(struct catalog *c) { ddl_release_held(&c->ddl); }

void catalog_saved_prepare(struct catalog *c, const char *name, const char *keyspace) {
    saved_prepare(&c->recovery, name, keyspace);
}

int catalog_saved_await(struct catalog *c, const char *name, const char *keyspace, struct err *e) {
    return saved_await(&c->recovery, name, keyspace, e);
}

void catalog_saved_forget(struct catalog *c, const char *name) { saved_forget(&c->recovery, name); }

int catalog_saved_put_back(struct catalog *c, const char *name, struct err *e) {
    return saved_put_back(&c->recovery, name, e);
}
