/* Keyspaces. Form, version 1:
 *
 *   version u8 | durable_writes u8 | replication | options
 */
#include "base/log.h"
#include "system_schema/objects/objects.h"

enum { FORM_VERSION = 1 };

static void encode(const void *definition, struct buf *out) {
    const struct schema_keyspace *ks = definition;
    buf_u8(out, FORM_VERSION);
    buf_u8(out, ks->durable_writes);
    form_put_options(out, ks->n_replication, ks->replication);
    form_put_settings(out, &(struct table_settings){.given = SETTING_BIT(tags), .tags = ks->tags});
}

static void *decode(struct slice form, const struct form_context *at, struct arena *a, struct err *e) {
    struct schema_keyspace *ks = ARENA_NEW(a, struct schema_keyspace);
    char *name = arena_strdup(a, at->name);
    if (!ks || !name) return err_null(err_nomem(e));
    struct rd rd = rd_of(form);
    uint8_t version = rd_u8(&rd);
    ks->name = name;
    ks->durable_writes = rd_u8(&rd) != 0;
    ks->replication = form_get_options(&rd, a, &ks->n_replication, e);
    struct table_settings s;
    form_get_settings(&rd, a, &s, e);
    if (!rd.bad && rd_left(&rd) == 0 && version == FORM_VERSION) {
        ks->tags = s.tags;
        return ks;
    }
    return err_null(err_set(e, ERR_SERVER, "the catalogue's record of keyspace %s is damaged", at->name));
}

static int check(const void *definition, struct err *e) {
    const struct schema_keyspace *ks = definition;
    if (ks->tags.n <= DEFINITION_OPTIONS_MAX && ks->n_replication <= DEFINITION_OPTIONS_MAX) return 0;
    return err_invalid(e, "A keyspace may have at most %d properties", DEFINITION_OPTIONS_MAX);
}

static bool has_old_keys(const void *definition) {
    (void)definition;
    return false;
}

/* As in Cassandra, compiled statements stay valid when their keyspace is altered. */
static bool same_shape(const void *a, const void *b) {
    (void)a, (void)b;
    return true;
}

const struct object_kind keyspace_kind = {.word = "keyspace",
                                          .tag = 'k',
                                          .target = TARGET_KEYSPACE,
                                          .encode = encode,
                                          .decode = decode,
                                          .check = check,
                                          .has_old_keys = has_old_keys,
                                          .same_shape = same_shape,
                                          .show = show_keyspace};

/* ---- Regions ---- */

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
