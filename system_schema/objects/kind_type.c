/* User types. Form, version 1:
 *
 *   version u8 | modified_ms u64 | fields uvarint, each: name | type as CQL
 *
 * The form holds other user types as names; the reader looks them up (form_context.find).
 */
#include "system_schema/objects/objects.h"
#include "system_schema/objects/snapshot.h"

enum { FORM_VERSION = 1 };

static void encode(const void *definition, struct buf *out) {
    const struct schema_type *t = definition;
    buf_u8(out, FORM_VERSION);
    buf_u64(out, (uint64_t)t->modified_ms);
    buf_uvarint(out, t->type->n_args);
    for (uint32_t i = 0; i < t->type->n_args; i++) {
        form_put_text(out, t->type->field_names[i]);
        form_put_type(out, t->type->args[i]);
    }
}

static int get_type(struct slice form, const struct form_context *at, struct arena *a, struct schema_type *t,
                    struct err *e) {
    struct rd rd = rd_of(form);
    uint8_t version = rd_u8(&rd);
    t->modified_ms = (int64_t)rd_u64(&rd);
    uint64_t n = rd_uvarint(&rd);
    if (rd.bad || version != FORM_VERSION || n == 0 || n > CQL_TYPE_PARTS_MAX || n > rd_left(&rd)) goto damaged;
    const char **names = ARENA_ARRAY(a, n, const char *);
    const struct cql_type **fields = ARENA_ARRAY(a, n, const struct cql_type *);
    char *keyspace = arena_strdup(a, at->keyspace), *name = arena_strdup(a, at->name);
    if (!names || !fields || !keyspace || !name) return err_nomem(e);
    for (uint64_t i = 0; i < n; i++) {
        names[i] = form_get_text(&rd, a, e);
        fields[i] = form_get_type(&rd, at, a, e);
        if (!fields[i]) goto damaged;
    }
    if (rd.bad || rd_left(&rd)) goto damaged;
    t->type = cql_type_new_user(a, keyspace, name, fields, names, (uint32_t)n, e);
    return t->type ? 0 : -1;
damaged:
    return e->set ? -1
                  : err_set(e, ERR_SERVER, "the catalogue's record of type %s.%s is damaged", at->keyspace, at->name);
}

static void *decode(struct slice form, const struct form_context *at, struct arena *a, struct err *e) {
    struct schema_type *t = ARENA_NEW(a, struct schema_type);
    if (!t) return err_null(err_nomem(e));
    return get_type(form, at, a, t, e) ? NULL : t;
}

static int check(const void *definition, struct err *e) {
    const struct cql_type *t = ((const struct schema_type *)definition)->type;
    for (uint32_t i = 0; i < t->n_args; i++) {
        size_t n = strlen(t->field_names[i]);
        if (n > DEFINITION_NAME_MAX)
            return err_invalid(e, "Field names must not be more than %d bytes long (got %zu bytes)",
                               DEFINITION_NAME_MAX, n);
    }
    return 0;
}

static int depend(const void *definition, object_need_fn need, void *arg) {
    const struct cql_type *t = ((const struct schema_type *)definition)->type;
    for (uint32_t i = 0; i < t->n_args; i++)
        if (form_needs_types(t->args[i], need, arg)) return -1;
    return 0;
}

static bool has_old_keys(const void *definition) {
    (void)definition;
    return false;
}

static bool same_shape(const void *a, const void *b) {
    return cql_type_eq(((const struct schema_type *)a)->type, ((const struct schema_type *)b)->type);
}

static const struct object_kind *const needs[] = {&type_kind, NULL};

const struct object_kind type_kind = {.word = "type",
                                      .tag = 'u',
                                      .in_keyspace = true,
                                      .target = TARGET_TYPE,
                                      .encode = encode,
                                      .decode = decode,
                                      .check = check,
                                      .needs = needs,
                                      .depend = depend,
                                      .has_old_keys = has_old_keys,
                                      .same_shape = same_shape,
                                      .show = show_type};
