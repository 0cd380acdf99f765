/* CREATE and DROP of functions and aggregates of users: none can be made, since functions are
 * switched off, as by default in Cassandra (user_defined_functions_enabled). And DROP of indexes, views
 * and triggers, none of which exist. */
#include <strings.h>

#include "cql/expr/term.h"
#include "cql/schema/ddl.h"
#include "cql/syntax/ast_other.h"

static const char *keyspace_of(struct compile *c, const struct ast_name *name) {
    const char *keyspace = ddl_keyspace(c, name);
    const struct schema_keyspace *found = keyspace ? schema_keyspace_find(c->schema, keyspace) : NULL;
    bool kept = found && found->is_system && !schema_system_is_replicated(keyspace);
    if (!kept) return keyspace;
    return err_null(err_invalid(c->err, "System keyspace '%s' is not user-modifiable", keyspace));
}

static int check_not_frozen(struct compile *c, const char *what, const struct ast_type *t) {
    if (t->keyspace || strcasecmp(t->name, "frozen") || t->n_args != 1) return 0;
    const char *inner = t->args[0]->name;
    if (!t->args[0]->keyspace && (!strcasecmp(inner, "tuple") || !strcasecmp(inner, "vector"))) return 0;
    const struct cql_type *type = compile_type(c, t);
    if (!type) return -1;
    struct buf name;
    buf_init(&name, 4096);
    cql_type_print(type, &name);
    err_invalid(c->err, "%s '%.*s' cannot be frozen; remove frozen<> modifier from '%.*s'", what,
                SLICE_FMT(buf_slice(&name)), SLICE_FMT(buf_slice(&name)));
    buf_fini(&name);
    return -1;
}

static int print_types(struct compile *c, struct ast_type *const *types, uint32_t n, bool first, struct buf *out) {
    for (uint32_t i = 0; i < n; i++) {
        if (check_not_frozen(c, "Argument", types[i])) return -1;
        const struct cql_type *t = compile_type(c, types[i]);
        if (!t) return -1;
        if (!first || i) buf_put_str(out, ", ");
        cql_type_print(t, out);
    }
    return 0;
}

static int refuse_aggregate(struct compile *c, const char *keyspace, const struct ast_create_aggregate *a,
                            struct buf *text) {
    if (check_not_frozen(c, "State type", a->stype)) return -1;
    const struct cql_type *state = compile_type(c, a->stype);
    if (!state) return -1;
    cql_type_print(state, text);
    if (print_types(c, a->arg_types, a->n_args, false, text)) return -1;
    return err_invalid(c->err, "State function %s.%s(%.*s) doesn't exist", keyspace, a->sfunc,
                       SLICE_FMT(buf_slice(text)));
}

static int compile_create(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    const struct ast_create_function *f = &ast->other->create_function;
    const struct ast_create_aggregate *a = &ast->other->create_aggregate;
    bool function = ast->kind == STMT_CREATE_FUNCTION;
    const char *keyspace = keyspace_of(c, function ? &f->name : &a->name);
    struct compile there = *c;
    struct buf text;
    if (!keyspace) return -1;
    out->keyspace = keyspace;
    if (ddl_permit(c, out)) return -1;
    if (function ? f->or_replace && f->if_not_exists : a->or_replace && a->if_not_exists)
        return err_invalid(c->err, "Cannot use both 'OR REPLACE' and 'IF NOT EXISTS' directives");
    if (function)
        return err_invalid(c->err, "User-defined functions are disabled in cassandra.yaml - set "
                                   "user_defined_functions_enabled=true to enable");
    if (!schema_keyspace_find(c->schema, keyspace))
        return err_set(c->err, ERR_CONFIG, "Keyspace %s doesn't exist", keyspace);
    there.keyspace = keyspace;
    buf_init(&text, 1 << 16);
    refuse_aggregate(&there, keyspace, a, &text);
    buf_fini(&text);
    return -1;
}

/* ---- DROP ---- */

static int compile_drop(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    const struct ast_drop_function *d = &ast->other->drop_function;
    const char *keyspace = keyspace_of(c, &d->name), *kind = ast->kind == STMT_DROP_FUNCTION ? "Function" : "Aggregate";
    struct compile there = *c;
    struct buf text;
    (void)out;
    if (!keyspace) return -1;
    there.keyspace = keyspace;
    buf_init(&text, 1 << 16);
    int rc = print_types(&there, d->arg_types, d->n_args, true, &text);
    if (!rc && !d->if_exists) {
        const char *open = d->has_args ? "(" : "", *close = d->has_args ? ")" : "";
        rc = err_invalid(c->err, "%s '%s.%s%s%.*s%s' doesn't exist", kind, keyspace, d->name.name, open,
                         SLICE_FMT(buf_slice(&text)), close);
    }
    buf_fini(&text);
    return rc;
}

static int compile_drop_absent(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    bool trigger = ast->kind == STMT_DROP_TRIGGER, index = ast->kind == STMT_DROP_INDEX;
    const struct ast_name *name = trigger ? &ast->other->trigger.table : &ast->drop.name;
    const char *keyspace = keyspace_of(c, name);
    (void)out;
    if (!keyspace) return -1;
    if (trigger ? ast->other->trigger.if_exists : ast->drop.if_exists) return 0;
    if (trigger)
        return err_invalid(c->err, "Trigger '%s' on '%s.%s' doesn't exist", ast->other->trigger.name, keyspace,
                           name->name);
    return index ? err_invalid(c->err, "Index '%s.%s' doesn't exist'", keyspace, name->name)
                 : err_invalid(c->err, "Materialized view '%s.%s' doesn't exist", keyspace, name->name);
}

static enum cql_outcome run_nothing(struct cql_run *r, const struct cql_statement *s) {
    (void)r;
    (void)s;
    return CQL_DONE;
}

const struct statement_ops create_function_ops = {compile_create, run_nothing, NULL, ddl_check};
const struct statement_ops drop_function_ops = {compile_drop, run_nothing, NULL, ddl_check};
const struct statement_ops drop_absent_ops = {compile_drop_absent, run_nothing, NULL, ddl_check};
