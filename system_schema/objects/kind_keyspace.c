/* Keyspaces. Form, version 1:
 *
 *   version u8 | durable_writes u8 | replication | options
 */
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
