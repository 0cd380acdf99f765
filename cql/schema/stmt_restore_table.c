/* RESTORE TABLE new FROM TABLE old [WITH restore_timestamp = '...' AND custom_properties = {...} AND tags = {...}]
 * (https://docs.aws.amazon.com/keyspaces/latest/devguide/cql.ddl.table.html). */
#include <strings.h>

#include "cql/schema/ddl.h"
#include "cql/syntax/ast_other.h"

static int take_moment(struct compile *c, const struct ast_prop_value *v, struct catalog_change *change) {
    struct err ignored = {0};
    struct buf b;
    if (v->kind == PROP_MAP)
        return err_set(c->err, ERR_SYNTAX, "Invalid value for property 'restore_timestamp'. It should be a string");
    buf_init(&b, 64);
    int rc = cql_literal_parse(cql_type_scalar(CQL_TIMESTAMP), LIT_STRING, v->text, "restore_timestamp", c->reading, &b,
                               &ignored);
    int64_t ms = !rc && b.n == 8 ? (int64_t)load_u64(b.p) : INT64_MAX;
    buf_fini(&b);
    if (ms > INT64_MAX / 1000 || ms < 0) {
        const char *shown = arena_printf(c->arena, "%.*s", SLICE_FMT(v->text));
        return shown ? ddl_fail(c, DDL_RESTORE_TIME, shown) : err_nomem(c->err);
    }
    change->has_restore_us = true;
    change->restore_us = ms * 1000;
    return 0;
}

static int compile_restore_table(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    const struct ast_restore_table *a = &ast->other->restore;
    struct catalog_change *change = ddl_change_new(c, CATALOG_RESTORE_TABLE, out);
    if (!change || !(change->keyspace = ddl_keyspace(c, &a->table)) ||
        !(change->from_keyspace = ddl_keyspace(c, &a->from)))
        return -1;
    change->name = a->table.name;
    change->from_name = a->from.name;
    /* The moment, and the settings that take the place of the old table's. */
    const struct ast_props *given = &a->props;
    struct ast_props rest = *given;
    struct ast_prop *props = ARENA_ARRAY(c->arena, given->n + 1, struct ast_prop);
    if (!props) return err_nomem(c->err);
    rest.n = 0;
    rest.props = props;
    for (uint32_t i = 0; i < given->n; i++) {
        const struct ast_prop *p = &given->props[i];
        bool moment = !strcasecmp(p->name, "restore_timestamp");
        if (moment && change->has_restore_us)
            return err_set(c->err, ERR_SYNTAX, "Multiple definition for property 'restore_timestamp'");
        if (moment && take_moment(c, p->value, change)) return -1;
        bool setting = !strcasecmp(p->name, "custom_properties") || !strcasecmp(p->name, "tags") ||
                       !strcasecmp(p->name, "autoscaling_settings");
        if (!moment && !setting) return err_set(c->err, ERR_SYNTAX, "Unknown property '%s'", p->name);
        if (!moment) props[rest.n++] = *p;
    }
    if (given->n_order || given->compact_storage || given->id) return ddl_fail(c, DDL_RESTORE_PROPERTIES);
    if (table_props_kinds(c, &rest)) return -1;
    change->settings = table_props_settings(c, &rest, NULL);
    return change->settings ? 0 : -1;
}

const struct statement_ops restore_table_ops = {.compile = compile_restore_table};
