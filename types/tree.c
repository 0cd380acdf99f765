/* Types as trees: made, compared, copied, and the fields of user types. */
#include <stdlib.h>

#include "types/family.h"

/* ---- comparing ---- */

static bool text_eq(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

bool cql_type_eq(const struct cql_type *a, const struct cql_type *b) {
    if (a == b) return true;
    if (a->id != b->id || a->n_args != b->n_args || a->dimension != b->dimension) return false;
    if (a->frozen != b->frozen && a->id != CQL_TUPLE && a->id != CQL_VECTOR) return false;
    if (a->id == CQL_UDT && (!text_eq(a->keyspace, b->keyspace) || !text_eq(a->name, b->name))) return false;
    for (uint32_t i = 0; i < a->n_args; i++) {
        if (a->field_names && !text_eq(a->field_names[i], b->field_names[i])) return false;
        if (!cql_type_eq(a->args[i], b->args[i])) return false;
    }
    return true;
}

bool cql_type_contains(const struct cql_type *t, enum cql_type_id id) {
    bool found = t->id == id;
    for (uint32_t i = 0; i < t->n_args && !found; i++) found = cql_type_contains(t->args[i], id);
    return found;
}

/* ---- making ---- */

struct extent {
    uint32_t depth, parts; /* levels; number of types in it, itself included */
    uint64_t elements;     /* elements of vectors in vectors, multiplied */
};

static struct extent extent_of(const struct cql_type *t) {
    struct extent x = {.depth = 0, .parts = 1, .elements = 1};
    for (uint32_t i = 0; i < t->n_args; i++) {
        struct extent inner = extent_of(t->args[i]);
        x.depth = inner.depth > x.depth ? inner.depth : x.depth;
        x.parts += inner.parts;
        if (t->id == CQL_VECTOR) x.elements = inner.elements * t->dimension;
    }
    x.depth++;
    return x;
}

/* Checks the limits of a type. Its arguments were checked when they were made, so the loops and the
 * recursion of extent_of are bounded. */
static int check_extent(const struct cql_type *t, struct err *e) {
    struct extent x = {.depth = 0, .parts = 1, .elements = 1};
    if (t->n_args >= CQL_TYPE_PARTS_MAX)
        return err_invalid(e, "A type may be made of at most %d types", CQL_TYPE_PARTS_MAX);
    for (uint32_t i = 0; i < t->n_args; i++) {
        struct extent inner = extent_of(t->args[i]);
        x.depth = inner.depth > x.depth ? inner.depth : x.depth;
        x.parts += inner.parts;
        x.elements = inner.elements;
        if (x.parts > CQL_TYPE_PARTS_MAX)
            return err_invalid(e, "A type may be made of at most %d types", CQL_TYPE_PARTS_MAX);
    }
    if (x.depth > CQL_TYPE_DEPTH_MAX)
        return err_invalid(e, "Types may not be nested more than %d deep", CQL_TYPE_DEPTH_MAX);
    if (t->id != CQL_VECTOR) return 0;
    if (t->dimension == 0 || t->dimension > INT32_MAX)
        return err_invalid(e, "vectors may only have positive dimensions; given %d", (int32_t)t->dimension);
    if (x.elements * t->dimension > INT32_MAX)
        return err_invalid(e, "Vectors in vectors may have at most %d elements in all", INT32_MAX);
    return 0;
}

const struct cql_type *cql_type_freeze(struct arena *a, const struct cql_type *t) {
    if (t->frozen || (t->n_args == 0 && t->id != CQL_UDT)) return t;
    struct cql_type *copy = ARENA_NEW(a, struct cql_type);
    const struct cql_type **args = ARENA_ARRAY(a, t->n_args, const struct cql_type *);
    if (!copy || !args) return NULL;
    *copy = *t;
    copy->frozen = true;
    copy->args = args;
    for (uint32_t i = 0; i < t->n_args; i++) {
        args[i] = cql_type_freeze(a, t->args[i]);
        if (!args[i]) return NULL;
    }
    return copy;
}

static const struct cql_type *new_named(struct arena *a, enum cql_type_id id, bool frozen,
                                        const struct cql_type *const *args, uint32_t n_args, uint32_t dimension,
                                        const char *const *names, struct err *e) {
    struct cql_type *t = ARENA_NEW(a, struct cql_type);
    const struct cql_type **copy = ARENA_ARRAY(a, n_args, const struct cql_type *);
    bool always_frozen = id == CQL_TUPLE || id >= CQL_VECTOR;
    if (!t || !copy) goto nomem;
    *t = (struct cql_type){
        .id = id, .frozen = frozen || always_frozen, .n_args = n_args, .args = copy, .field_names = names};
    if (id == CQL_VECTOR) t->dimension = dimension;
    for (uint32_t i = 0; i < n_args; i++) copy[i] = args[i];
    if (check_extent(t, e)) return NULL;
    for (uint32_t i = 0; i < n_args; i++) {
        if (!t->frozen && cql_type_is_multicell(args[i])) {
            struct buf text;
            buf_init(&text, 4096);
            buf_printf(&text, "Non-frozen %s are not allowed inside collections: ",
                       args[i]->id == CQL_UDT ? "UDTs" : "collections");
            cql_type_print(t, &text);
            return err_null(err_set_buf(e, ERR_INVALID, &text));
        }
        copy[i] = t->frozen && id < CQL_VECTOR ? cql_type_freeze(a, args[i]) : args[i];
        if (!copy[i]) goto nomem;
    }
    if (id < CQL_VECTOR) return t;
    /* The protocol names a type without an option (type.def) by its class, with a length of two bytes. */
    struct buf name;
    int rc = 0;
    buf_init(&name, 0);
    cql_type_print_marshal(t, &name);
    if (buf_failed(&name)) rc = err_nomem(e);
    else if (name.n > UINT16_MAX)
        rc = err_invalid(e, "A type may have at most %d bytes when it is written as a class", UINT16_MAX);
    buf_fini(&name);
    return rc ? NULL : t;
nomem:
    return err_null(err_nomem(e));
}

const struct cql_type *cql_type_new(struct arena *a, enum cql_type_id id, bool frozen,
                                    const struct cql_type *const *args, uint32_t n_args, uint32_t dimension,
                                    struct err *e) {
    return new_named(a, id, frozen, args, n_args, dimension, NULL, e);
}

const struct cql_type *cql_type_new_dynamic(struct arena *a, const char *const *aliases,
                                            const struct cql_type *const *types, uint32_t n, struct err *e) {
    return new_named(a, CQL_DYNAMIC_COMPOSITE, true, types, n, 0, aliases, e);
}

/* ---- user types ---- */

static int by_name(const void *a, const void *b, void *names) {
    const char *const *all = names;
    return strcmp(all[*(const uint16_t *)a], all[*(const uint16_t *)b]);
}

static bool sort_names(struct arena *a, struct cql_type *t) {
    uint16_t *order = ARENA_ARRAY(a, t->n_args + 1, uint16_t);
    if (!order) return false;
    for (uint32_t i = 0; i < t->n_args; i++) order[i] = (uint16_t)i;
    qsort_r(order, t->n_args, sizeof *order, by_name, (void *)t->field_names);
    t->by_name = order;
    return true;
}

/* Making a tuple of the fields checks the limits: it has as many levels and types as the user
 * type. */
const struct cql_type *cql_type_new_user(struct arena *a, const char *keyspace, const char *name,
                                         const struct cql_type *const *fields, const char *const *field_names,
                                         uint32_t n_fields, struct err *e) {
    const struct cql_type *tuple = cql_type_new(a, CQL_TUPLE, true, fields, n_fields, 0, e);
    struct cql_type *t = tuple ? ARENA_NEW(a, struct cql_type) : NULL;
    const struct cql_type **args = t ? ARENA_ARRAY(a, n_fields + 1, const struct cql_type *) : NULL;
    if (!args) {
        if (tuple) err_nomem(e);
        return NULL;
    }
    memcpy(args, fields, n_fields * sizeof *args);
    *t = (struct cql_type){.id = CQL_UDT,
                           .n_args = n_fields,
                           .args = args,
                           .keyspace = keyspace,
                           .name = name,
                           .field_names = field_names};
    if (sort_names(a, t)) return t;
    return err_null(err_nomem(e));
}

const struct cql_type *cql_type_copy(struct arena *a, const struct cql_type *t) {
    if (t->n_args == 0 && t->id != CQL_UDT) return t;
    struct cql_type *copy = ARENA_NEW(a, struct cql_type);
    const struct cql_type **args = ARENA_ARRAY(a, t->n_args + 1, const struct cql_type *);
    if (!copy || !args) return NULL;
    *copy = *t;
    copy->args = args;
    for (uint32_t i = 0; i < t->n_args; i++)
        if (!(args[i] = cql_type_copy(a, t->args[i]))) return NULL;
    if (t->field_names) {
        const char **names = ARENA_ARRAY(a, t->n_args + 1, const char *);
        if (!names) return NULL;
        for (uint32_t i = 0; i < t->n_args; i++)
            if (!(names[i] = arena_strdup(a, t->field_names[i]))) return NULL;
        copy->field_names = names;
    }
    if (t->id != CQL_UDT) return copy;
    copy->keyspace = arena_strdup(a, t->keyspace);
    copy->name = arena_strdup(a, t->name);
    return copy->keyspace && copy->name && sort_names(a, copy) ? copy : NULL;
}

uint32_t cql_type_field(const struct cql_type *t, struct slice name) {
    uint32_t from = 0, to = t->n_args;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2, at = t->by_name[mid];
        int c = slice_cmp(slice_str(t->field_names[at]), name);
        if (c == 0) return at;
        if (c < 0) from = mid + 1;
        else to = mid;
    }
    return t->n_args;
}

bool cql_type_uses(const struct cql_type *t, const char *user_type) {
    bool uses = t->id == CQL_UDT && strcmp(t->name, user_type) == 0;
    for (uint32_t i = 0; i < t->n_args && !uses; i++) uses = cql_type_uses(t->args[i], user_type);
    return uses;
}

const struct cql_type *cql_udt_by_name(void *arg, struct arena *a, const char *keyspace, const char *name,
                                       struct err *e) {
    struct cql_type *t = ARENA_NEW(a, struct cql_type);
    (void)arg;
    if (t)
        *t = (struct cql_type){.id = CQL_UDT,
                               .keyspace = arena_strdup(a, keyspace ? keyspace : ""),
                               .name = arena_strdup(a, name)};
    if (t && t->keyspace && t->name) return t;
    return err_null(err_nomem(e));
}
