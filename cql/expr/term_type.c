/* Types as written in a statement, resolved against the schema. */
#include <strings.h>

#include "cql/expr/function.h"

/* Levels as written, frozen<> being one of them. */
enum { AST_TYPE_DEPTH_MAX = 2 * CQL_TYPE_DEPTH_MAX };

static const struct {
    const char *name;
    enum cql_type_id id;
    uint32_t n_args; /* 0: any number */
} made[] = {{"list", CQL_LIST, 1}, {"set", CQL_SET, 1}, {"map", CQL_MAP, 2}, {"tuple", CQL_TUPLE, 0}, {"vector", CQL_VECTOR, 1}};

static const struct cql_type *resolve(struct compile *c, const struct ast_type *t, bool frozen, uint32_t depth);

static const struct cql_type *resolve_made(struct compile *c, const struct ast_type *t, size_t kind, bool frozen, uint32_t depth) {
    bool inner = frozen || made[kind].id == CQL_TUPLE;
    const struct cql_type **args = ARENA_ARRAY(c->arena, t->n_args, const struct cql_type *);
    if (!args) {
        err_nomem(c->err);
        return NULL;
    }
    if (made[kind].n_args && t->n_args != made[kind].n_args) {
        err_invalid(c->err, "Invalid number of parameters for type %s", t->name);
        return NULL;
    }
    for (uint32_t i = 0; i < t->n_args; i++) {
        args[i] = resolve(c, t->args[i], inner && made[kind].id != CQL_VECTOR, depth + 1);
        if (!args[i]) return NULL;
    }
    return cql_type_new(c->arena, made[kind].id, inner, args, t->n_args, t->dimension, c->err);
}

static const struct cql_type *resolve_user_type(struct compile *c, const struct ast_type *t, bool frozen) {
    const char *keyspace = t->keyspace ? t->keyspace : c->keyspace;
    const struct cql_type *u = keyspace ? schema_type_find(c->schema, keyspace, t->name) : NULL;
    if (!u) {
        err_invalid(c->err, "Unknown type %s%s%s", keyspace ? keyspace : "", keyspace ? "." : "", t->name);
        return NULL;
    }
    if (frozen) u = cql_type_freeze(c->arena, u);
    if (!u) err_nomem(c->err);
    return u;
}

static const struct cql_type *resolve_frozen(struct compile *c, const struct ast_type *inner, uint32_t depth) {
    const struct cql_type *t = resolve(c, inner, true, depth + 1);
    if (!t || t->n_args || t->id == CQL_UDT) return t;
    err_set(c->err, ERR_SYNTAX, "frozen<> is only allowed on collections, tuples, and user-defined types (got %s)", inner->name);
    return NULL;
}

static const struct cql_type *resolve(struct compile *c, const struct ast_type *t, bool frozen, uint32_t depth) {
    if (depth > AST_TYPE_DEPTH_MAX) {
        err_invalid(c->err, "Types may not be nested more than %d deep", CQL_TYPE_DEPTH_MAX);
        return NULL;
    }
    if (t->quoted_class) {
        const struct cql_type *class = cql_type_by_class(slice_str(t->name));
        if (!class) err_invalid(c->err, "Unable to find abstract-type class '%s'", t->name);
        return class;
    }
    if (!t->keyspace && strcasecmp(t->name, "frozen") == 0 && t->n_args == 1) return resolve_frozen(c, t->args[0], depth);
    for (size_t i = 0; i < ARRAY_LEN(made) && !t->keyspace && t->n_args; i++)
        if (strcasecmp(t->name, made[i].name) == 0) return resolve_made(c, t, i, frozen, depth);
    const struct cql_type *scalar = t->keyspace || t->n_args ? NULL : cql_type_by_name(slice_str(t->name));
    return scalar ? scalar : resolve_user_type(c, t, frozen);
}

const struct cql_type *compile_type(struct compile *c, const struct ast_type *t) { return resolve(c, t, false, 0); }
