/* CREATE and ALTER TYPE. */
#include <strings.h>

#include "base/name_tree.h"
#include "cql/schema/ddl.h"
#include "cql/syntax/ast_other.h"

/* Checks a field's type as it is written, before any name is resolved, as Cassandra does. */
static int check_as_written(struct compile *c, const struct ast_type *t) {
    if (t->n_args || t->quoted_class) return 0;
    const struct cql_type *scalar = t->keyspace ? NULL : cql_type_by_name(slice_str(t->name));
    if (!scalar) return ddl_fail(c, DDL_TYPE_OF_UDT);
    return scalar->id == CQL_COUNTER ? ddl_fail(c, DDL_TYPE_OF_COUNTER) : 0;
}

/* Names that the service refuses for types; it accepts list, map, tuple and frozen. */
static const char *const reserved[] = {
    "ascii", "bigint", "blob", "boolean", "byte", "counter", "date", "decimal", "double", "duration", "float", "inet",
    "int", "keyspace", "select", "set", "smallint", "table", "text", "time", "timestamp", "timeuuid", "tinyint", "uuid",
    "varchar", "varint"};

static int compile_create_type(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    const struct ast_create_type *a = &ast->create_type;
    struct catalog_change *change = ddl_change_of(c, CATALOG_CREATE_TYPE, &a->name, a->if_not_exists, out);
    if (!change) return -1;
    const struct schema_keyspace *ks = schema_keyspace_find(c->schema, change->keyspace);
    /* the catalogue reports the error */
    if (!ks || ks->is_system || schema_type_any(c->schema, change->keyspace, change->name)) return 0;
    struct catalog_column *fields = ARENA_ARRAY(c->arena, a->n_fields, struct catalog_column);
    if (!fields) return err_nomem(c->err);
    enum { NAME_MAX_LENGTH = 222 }; /* Cassandra 5.0's; for Keyspaces' see keyspaces/refusal.def */
    size_t n = strlen(change->name), most = NAME_MAX_LENGTH;
    if (n > most)
        return ddl_fail(c, DDL_TYPE_NAME_LENGTH, change->keyspace, change->name, most,
                         n, change->name);
    for (size_t i = 0; i < ARRAY_LEN(reserved) && !c->schema->cassandra_mode; i++)
        if (!strcasecmp(change->name, reserved[i])) return ddl_error(c->err, false, DDL_TYPE_RESERVED, change->name);
    struct name_tree named = {.arena = c->arena};
    for (uint32_t i = 0; i < a->n_fields; i++) {
        int rc = name_tree_put(&named, slice_str(a->field_names[i]), i);
        if (rc < 0) return err_nomem(c->err);
        if (rc) return ddl_fail(c, DDL_FIELD_TWICE, a->field_names[i], a->name.name);
    }
    for (uint32_t i = 0; i < a->n_fields; i++)
        if (check_as_written(c, a->field_types[i])) return -1;
    for (uint32_t i = 0; i < a->n_fields; i++) {
        fields[i].name = a->field_names[i];
        fields[i].type = ddl_type(c, change->keyspace, a->field_types[i]);
        if (!fields[i].type) return -1;
    }
    change->n_columns = a->n_fields;
    change->columns = fields;
    return 0;
}

static int compile_alter_type(struct compile *c, const struct ast_stmt *ast, struct cql_statement *out) {
    const struct ast_alter_type *a = &ast->other->alter_type;
    struct catalog_change *change = ddl_change_of(c, CATALOG_ALTER_TYPE, &a->name, a->if_exists, out);
    if (!change) return -1;
    change->column_conditional = a->field_if_exists || a->field_if_not_exists;
    const struct schema_keyspace *ks = schema_keyspace_find(c->schema, change->keyspace);
    if (!ks || ks->is_system || !schema_type_any(c->schema, change->keyspace, change->name)) return 0;
    if (a->op == ALTER_TYPE_ALTER) return ddl_fail(c, DDL_FIELD_TYPE_STAYS);
    if (a->op == ALTER_TYPE_RENAME) {
        change->n_renames = a->n_renames;
        change->rename_from = a->rename_from;
        change->rename_to = a->rename_to;
        return 0;
    }
    struct catalog_column *field = ARENA_NEW(c->arena, struct catalog_column);
    if (!field) return err_nomem(c->err);
    change->n_columns = 1;
    change->columns = field;
    if (check_as_written(c, a->type)) return -1;
    field->name = a->field;
    const struct cql_type *type = schema_type_any(c->schema, change->keyspace, change->name)->type;
    for (uint32_t i = 0; i < type->n_args; i++)
        if (strcmp(type->field_names[i], a->field) == 0)
            field->type = cql_type_scalar(CQL_INT); /* any type: the catalogue reports that the field exists */
    if (!field->type) field->type = ddl_type(c, change->keyspace, a->type);
    return field->type ? 0 : -1;
}

const struct statement_ops create_type_ops = {.compile = compile_create_type, .check = ddl_check};
const struct statement_ops alter_type_ops = {.compile = compile_alter_type, .check = ddl_check};
