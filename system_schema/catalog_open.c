#include "system_schema/catalog.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/random.h"
#include "system_schema/catalog_state.h"
#include "system_schema/recovery/recovery.h"

static const char host_id_key[] = "catalog/host_id";

static int load_host_id(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)key, (void)e;
    struct catalog *c = arg;
    if (value.n == 16) memcpy(c->system.host_id, value.p, 16);
    else log_error("catalog: the record of the host id is damaged: this node gets a new one");
    return 0;
}

/* Continues the changes that were under way when the server stopped, with a new delay. The
 * objects of a keyspace that is being deleted go with it even if their own records do not say
 * so. */
static void resume(struct catalog *c) {
    for (uint32_t i = 0; i < c->objects.n_entries; i++) {
        struct entry *x = c->objects.entries[i];
        const struct entry *ks = x->kind->in_keyspace ? entry_by_id(c, x->keyspace_id) : NULL;
        bool orphan = ks && (ks->status == SCHEMA_DELETING || entry_is_gone(ks)) && !entry_is_gone(x);
        if (orphan && x->status != SCHEMA_DELETING) {
            entry_set_status(c, x, SCHEMA_DELETING);
            x->with_keyspace = true;
        }
        if (orphan && entry_is_gone(ks)) entry_set_status(c, x, SCHEMA_DELETED);
        else if (entry_is_pending(x) && !x->with_keyspace) entry_schedule(c, x);
    }
}

static int show(struct catalog *c, struct err *e) {
    resume(c);
    if (truncate_resume(c, e) || catalog_publish(c, e)) return -1;
    for (uint32_t i = 0; i < c->objects.n_entries; i++) {
        const struct schema_table *t = c->objects.entries[i]->shown;
        if (t && t->status != SCHEMA_DELETING) table_tell_engine(c, c->objects.entries[i]);
    }
    return 0;
}

int catalog_read(struct catalog *c, struct err *e) {
    strays_reset(&c->recovery.strays);
    if (rules_load(c, e) || saved_keyspaces_clean(c, e) || entries_load(c, e) || history_prune(c, e) ||
        recovery_load(c, e) || partitioner_load(c, e))
        return -1;
    return show(c, e);
}

int catalog_read_objects(struct catalog *c, struct err *e) { return entries_load(c, e) ? -1 : show(c, e); }

/* The engine calls this on any thread, with the store locked. The worker then reads the records
 * itself. */
static void note_change(void *arg) {
    struct catalog *c = arg;
    atomic_store(&c->noticed, true);
    pthread_cond_broadcast(&c->moved);
}

static int open_parts(struct catalog *c, const struct catalog_options *o, struct err *e) {
    static const struct object_kind *const own[] = {
#define KIND(name) &name##_kind,
#include "system_schema/objects/object_kind.def"
#undef KIND
    };
    c->objects.kinds = ARENA_ARRAY(&c->system.arena, ARRAY_LEN(own) + o->n_kinds, const struct object_kind *);
    if (!c->objects.kinds) return err_nomem(e);
    for (size_t i = 0; i < ARRAY_LEN(own); i++) c->objects.kinds[c->objects.n_kinds++] = own[i];
    for (uint32_t i = 0; i < o->n_kinds; i++) c->objects.kinds[c->objects.n_kinds++] = o->kinds[i];
    if (random_bytes(&c->ddl.rules.random, sizeof c->ddl.rules.random, e)) return -1;
    c->ddl.delay = arena_strdup(&c->system.arena, o->ddl_delay ? o->ddl_delay : "none");
    c->ddl.rule_text = arena_strdup(&c->system.arena, o->ddl_rules ? o->ddl_rules : "");
    if (!c->ddl.delay || !c->ddl.rule_text) return err_nomem(e);
    c->system.traces = o->traces;
    c->saved = saved_keyspaces_new();
    if (!c->saved) return err_nomem(e);
    if (eng_meta_watch(c->eng, note_change, c, e)) return -1;
    /* The host id is a random UUID (version 4), made once per data folder. */
    if (eng_meta_scan(c->eng, slice_str(host_id_key), load_host_id, c, e)) return -1;
    if (!c->system.host_id[6] && (random_uuid(c->system.host_id, e) ||
                           eng_meta_put(c->eng, slice_str(host_id_key), slice_of(c->system.host_id, 16), e)))
        return -1;
    if (system_tables_build(c, e) || system_keyspaces_load(c, e) || catalog_read(c, e)) return -1;
    catalog_move(c);
    return worker_start(c, e) || recovery_start(c, e) ? -1 : 0;
}

struct catalog *catalog_open(const struct catalog_options *o, struct err *e) {
    struct catalog *c = calloc(1, sizeof *c);
    if (!c) {
        err_nomem(e);
        return NULL;
    }
    c->eng = o->eng;
    c->clock = o->clock;
    c->clock_control = o->clock_control;
    c->mode = o->mode;
    c->system.control = o->control;
    c->quota = o->quota;
    c->system.n_tables = o->n_tables;
    c->system.tables = o->tables;
    c->system.started_s = clock_wall_us(o->clock) / 1000000;
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->published.lock, NULL);
    pthread_cond_init(&c->moved, NULL);
    pthread_cond_init(&c->recovery.keep, NULL);
    notices_init(&c->notices);
    c->recovery.window_us = (o->recovery_window_s ? o->recovery_window_s : RECOVERY_WINDOW_S) * 1000000;
    arena_init(&c->system.arena, 64 * 1024, 0);
    const struct node_info *n = &o->node;
    c->system.node = (struct node_info){arena_strdup(&c->system.arena, n->cluster_name),
                                 arena_strdup(&c->system.arena, n->datacenter),
                                 arena_strdup(&c->system.arena, n->rack),
                                 arena_strdup(&c->system.arena, n->release_version),
                                 arena_strdup(&c->system.arena, n->cql_version),
                                 arena_strdup(&c->system.arena, n->listen_address),
                                 n->port,
                                 arena_strdup(&c->system.arena, n->peers ? n->peers : "none"),
                                 arena_strdup(&c->system.arena, n->region ? n->region : n->datacenter),
                                 arena_strdup(&c->system.arena, n->account ? n->account : "111122223333")};
    if (open_parts(c, o, e)) {
        catalog_close(c);
        return NULL;
    }
    return c;
}

void catalog_close(struct catalog *c) {
    struct err e = {0};
    if (eng_meta_watch(c->eng, NULL, NULL, &e)) log_error("catalog: %s", e.text);
    if (c->saved) saved_keyspaces_free(c->saved);
    worker_stop(c);
    recovery_stop(c);
    recovery_free(c);
    strays_reset(&c->recovery.strays);
    if (c->published.current) schema_unref(&c->published.current->schema);
    for (uint32_t i = 0; i < c->objects.n_entries; i++) entry_free(c->objects.entries[i]);
    free(c->objects.entries);
    free(c->objects.by_id);
    free(c->objects.by_name);
    for (uint32_t i = 0; i < c->system.n; i++) space_unref(c->system.spaces[i]);
    notices_fini(&c->notices);
    ddl_rules_fini(&c->ddl.rules);
    arena_fini(&c->system.arena);
    pthread_cond_destroy(&c->moved);
    pthread_cond_destroy(&c->recovery.keep);
    pthread_mutex_destroy(&c->published.lock);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

const struct node_info *catalog_node(const struct catalog *c) { return &c->system.node; }
enum tally_mode catalog_mode(const struct catalog *c) { return c->mode; }
const uint8_t *catalog_host_id(const struct catalog *c) { return c->system.host_id; }

void change_describe(struct catalog *c, enum schema_change_kind kind, const struct entry *x,
                     struct schema_change *out) {
    *out = (struct schema_change){.kind = kind, .target = x->kind->target, .object = x->id};
    strncpy(out->keyspace, entry_place(c, x).keyspace, sizeof out->keyspace - 1);
    if (x->kind->in_keyspace) strncpy(out->name, x->name, sizeof out->name - 1);
}

void catalog_notify(struct catalog *c, enum schema_change_kind kind, struct entry *x) {
    struct schema_change change;
    change_describe(c, kind, x, &change);
    x->notice = notice_queue(c, &change);
}
