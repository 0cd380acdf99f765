#include "cql/schema/ddl.h"

#include <stdlib.h>
#include <strings.h>

#include "cql/expr/term.h"
#include "cql/syntax/ast_other.h"

struct catalog_change *ddl_change_new(struct compile *c, enum catalog_op op, struct cql_statement *out) {
    struct catalog_change *change = ARENA_NEW(c->arena, struct catalog_change);
    if (!change) return err_null(err_nomem(c->err));
    change->op = op;
    change->durable_writes = -1;
    change->compat = &out->compat;
    out->change = change;
    return change;
}

struct catalog_change *ddl_change_of(struct compile *c, enum catalog_op op, const struct ast_name *name,
                                     bool conditional, struct cql_statement *out) {
    struct catalog_change *change = ddl_change_new(c, op, out);
    if (!change || !(change->keyspace = ddl_keyspace(c, name))) return NULL;
    change->name = name->name;
    change->conditional = conditional;
    return ddl_refuse_system(c, change) || ddl_permit(c, out) ? NULL : change;
}

const char *ddl_keyspace(struct compile *c, const struct ast_name *name) {
    const char *keyspace = name->keyspace ? name->keyspace : c->keyspace;
    if (keyspace && *keyspace) return keyspace;
    return err_null(ddl_fail(c, DDL_NO_KEYSPACE_NAMED));
}

int ddl_check(struct compile *c, const struct ast_stmt *ast) {
    const struct ast_name *name = &ast->drop.name;
    switch (ast->kind) {
    case STMT_CREATE_TABLE: name = &ast->create_table.table; break;
    case STMT_ALTER_TABLE: name = &ast->alter_table.table; break;
    case STMT_CREATE_TYPE: name = &ast->create_type.name; break;
    case STMT_ALTER_TYPE: name = &ast->other->alter_type.name; break;
    case STMT_CREATE_FUNCTION: name = &ast->other->create_function.name; break;
    case STMT_CREATE_AGGREGATE: name = &ast->other->create_aggregate.name; break;
    case STMT_DROP_FUNCTION: case STMT_DROP_AGGREGATE: name = &ast->other->drop_function.name; break;
    case STMT_DROP_TRIGGER: name = &ast->other->trigger.table; break;
    default: break;
    }
    return ddl_keyspace(c, name) ? 0 : -1;
}

int ddl_permit(struct compile *c, const struct cql_statement *s) { return c->permit ? c->permit(c->asked_by, s) : 0; }

bool ddl_is_word(const char *name) {
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return *name && !name[strspn(name, all)];
}

int ddl_refuse(struct compile *c, const char *feature) {
    return err_invalid(c->err, "%s is not yet supported.", feature);
}

int ddl_refuse_system(struct compile *c, const struct catalog_change *change) {
    const struct schema_keyspace *ks = schema_keyspace_find(c->schema, change->keyspace);
    return ks && ks->is_system ? catalog_refuse_system(change, c->schema->cassandra_mode, c->err) : 0;
}

struct option_list *option_list_new(struct compile *c) {
    struct option_list *l = ARENA_NEW(c->arena, struct option_list);
    return l ? l : err_null(err_nomem(c->err));
}

static const char *literal_text(struct compile *c, const struct ast_prop_value *v) {
    struct slice s = arena_dup(c->arena, v->text.p ? v->text : slice_str(""));
    if (!s.p) return err_null(err_nomem(c->err));
    if (memchr(s.p, 0, s.n)) return err_null(ddl_fail(c, DDL_OPTION_ZERO));
    return (const char *)s.p;
}

const char *prop_text(struct compile *c, const char *name, const struct ast_prop_value *v) {
    if (v->kind != PROP_MAP) return literal_text(c, v);
    return err_null(ddl_fail(c, DDL_OPTION_NO_STRING, name));
}

int prop_bool(struct compile *c, const char *name, const char *text, bool *out) {
    static const char *const yes[] = {"1", "true", "yes"}, *const no[] = {"0", "false", "no"};
    for (size_t i = 0; i < 3; i++) {
        if (strcasecmp(text, yes[i]) == 0) return *out = true, 0;
        if (strcasecmp(text, no[i]) == 0) return *out = false, 0;
    }
    return ddl_fail(c, DDL_OPTION_BOOL, text, name);
}

enum { MAX_DEPTH = 8 };

static int flatten(struct compile *c, const char *prefix, const struct ast_prop_value *v, int depth, bool deep,
                   struct option_list *out) {
    for (uint32_t i = 0; i < v->n; i++) {
        const char *key = v->keys[i]->kind == PROP_MAP ? NULL : literal_text(c, v->keys[i]);
        const char *name = key ? arena_printf(c->arena, "%s.%s", prefix, key) : NULL;
        if (c->err->set) return -1;
        bool is_map = v->values[i]->kind == PROP_MAP;
        if (!key || (is_map && (!deep || depth == MAX_DEPTH))) return ddl_fail(c, DDL_OPTION_NO_MAP, prefix);
        if (!name) return err_nomem(c->err);
        if (is_map && flatten(c, name, v->values[i], depth + 1, deep, out)) return -1;
        if (is_map) continue;
        const char *value = literal_text(c, v->values[i]);
        if (!value) return -1;
        if (out->n == OPTION_ROOM) return ddl_error(c->err, false, DDL_OPTIONS_MANY, OPTION_ROOM);
        out->items[out->n++] = (struct schema_option){name, value};
    }
    return 0;
}

int prop_map(struct compile *c, const char *name, const struct ast_prop_value *v, bool deep, struct option_list *out) {
    if (v->kind != PROP_MAP) return ddl_fail(c, DDL_OPTION_NO_MAP, name);
    return flatten(c, name, v, 0, deep, out);
}

static int check_keyspaces(struct compile *c, const char *keyspace, const struct ast_type *t) {
    if (t->keyspace && strcmp(t->keyspace, keyspace) != 0)
        return ddl_fail(c, DDL_TYPE_ELSEWHERE, keyspace, t->keyspace);
    for (uint32_t i = 0; i < t->n_args; i++)
        if (check_keyspaces(c, keyspace, t->args[i])) return -1;
    return 0;
}

const struct cql_type *ddl_type(struct compile *c, const char *keyspace, const struct ast_type *t) {
    if (check_keyspaces(c, keyspace, t)) return NULL;
    return compile_type_in(c, keyspace, t);
}

int ddl_check_nested(struct compile *c, const struct catalog_column *col, bool added) {
    bool nested = false;
    if (col->type->id != CQL_UDT || col->type->frozen) return 0;
    for (uint32_t i = 0; i < col->type->n_args; i++) nested = nested || cql_type_is_multicell(col->type->args[i]);
    if (!nested) return 0;
    return ddl_fail(c, added ? DDL_ADDED_NESTED : DDL_NESTED_COLLECTIONS, col->name);
}

int ddl_column(struct compile *c, const char *keyspace, const struct ast_column *col, struct catalog_column *out) {
    out->name = col->name;
    out->kind = col->is_static ? COLUMN_STATIC : COLUMN_REGULAR;
    out->type = ddl_type(c, keyspace, col->type);
    return out->type ? 0 : -1;
}
