/* User types as parts of the tree of types. */
#include <stdlib.h>

#include "types/type.h"

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
