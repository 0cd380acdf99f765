/* Shared by the statements that change the schema. Inside cql only.
 *
 * Life of one: compile analyses the tree into a catalog_change, the statement's change. cql.c passes it to the
 * catalogue on a blocking thread and answers SCHEMA_CHANGE, or VOID when there was nothing to do.
 */
#pragma once

#include "cql/request/db.h"
#include "cql/request/statement.h"
#include "keyspaces/ddl_error.h"

/* Sets a definition's error in the words of the server's mode. Returns -1. */
#define ddl_fail(c, ...) ddl_error((c)->err, (c)->schema->cassandra_mode, __VA_ARGS__)

/* A change with the fields that all statements set. Returns NULL if memory is exhausted. */
struct catalog_change *ddl_change_new(struct compile *c, enum catalog_op op, struct cql_statement *out) MUST_CHECK;
/* Likewise for an object of a keyspace. conditional: IF EXISTS or IF NOT EXISTS. Checks the keyspace
 * (ddl_keyspace, ddl_refuse_system) and the permission. Returns NULL on error. */
struct catalog_change *ddl_change_of(struct compile *c, enum catalog_op op, const struct ast_name *name,
                                     bool conditional, struct cql_statement *out) MUST_CHECK;
/* Returns the keyspace that a statement names, or the session's, or NULL with Cassandra's ERR_INVALID if
 * there is neither. */
const char *ddl_keyspace(struct compile *c, const struct ast_name *name) MUST_CHECK;
/* Returns -1 if the client's role may not do it. Called as soon as the plan names its object, as
 * Cassandra does: before any error that would reveal what exists. */
int ddl_permit(struct compile *c, const struct cql_statement *s) MUST_CHECK;
/* PREPARE's check of a statement about an object of a keyspace: returns -1 if neither the object's name nor
 * the session gives a keyspace. */
int ddl_check(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
/* Whether a name has only letters, digits and _, and at least one of them. */
bool ddl_is_word(const char *name);
int ddl_refuse(struct compile *c, const char *feature); /* "<feature> is not yet supported."; returns -1 */
/* Returns -1 if the object is in one of the server's own keyspaces. Checked before all else. */
int ddl_refuse_system(struct compile *c, const struct catalog_change *change) MUST_CHECK;

/* ---- properties ---- */

enum { OPTION_ROOM = 256 };

/* Entries of a map property. */
struct option_list {
    uint32_t n;
    struct schema_option items[OPTION_ROOM];
};

/* Returns an empty list in the statement's arena, or NULL if memory is exhausted. */
struct option_list *option_list_new(struct compile *c) MUST_CHECK;
/* Returns the text of a property's value, or NULL with an error, ERR_SYNTAX if it is a map. */
const char *prop_text(struct compile *c, const char *name, const struct ast_prop_value *v) MUST_CHECK;
int prop_bool(struct compile *c, const char *name, const char *text, bool *out) MUST_CHECK;
/* Appends the entries of a map property as options "name.key". ERR_SYNTAX if it is no map. Nested maps are
 * allowed if deep. */
int prop_map(struct compile *c, const char *name, const struct ast_prop_value *v, bool deep,
             struct option_list *out) MUST_CHECK;

/* How the settings of a statement are checked. */
static inline struct setting_context ddl_settings(struct compile *c) {
    return (struct setting_context){c->arena, c->err, &c->compat, c->schema->cassandra_mode};
}
/* Settings of a table: the kinds of their values first (ERR_SYNTAX), names and ranges second
 * (ERR_SYNTAX, ERR_CONFIG), in Cassandra's order, because the existence of the table is checked in between. */
int table_props_kinds(struct compile *c, const struct ast_props *p) MUST_CHECK;
/* Returns the settings that the statement sets, in the arena, or NULL on error. */
const struct table_settings *table_props_settings(struct compile *c, const struct ast_props *p,
                                                  const struct schema_table *altered) MUST_CHECK;
/* The id that WITH ID gives the table, if it does: has_id and id of the change. */
int table_id(struct compile *c, const struct ast_props *p, struct catalog_change *change) MUST_CHECK;
/* The tags of a map; ERR_SYNTAX, ERR_INVALID. */
int prop_tags(struct compile *c, const struct ast_prop_value *v, struct setting_map *out) MUST_CHECK;

/* ---- columns and fields ---- */

/* Resolves a type in the keyspace, of which its user types must be. */
const struct cql_type *ddl_type(struct compile *c, const char *keyspace, const struct ast_type *t) MUST_CHECK;
/* "Non-frozen UDTs with nested non-frozen collections are not supported", with the column's name where it is added. */
int ddl_check_nested(struct compile *c, const struct catalog_column *col, bool added);

/* Resolves a column's type in the table's keyspace and refuses what columns cannot be. */
int ddl_column(struct compile *c, const char *keyspace, const struct ast_column *col,
               struct catalog_column *out) MUST_CHECK;

extern const struct statement_ops create_keyspace_ops, alter_keyspace_ops, drop_keyspace_ops, create_table_ops,
    alter_table_ops, drop_ops, restore_table_ops, describe_ops, create_type_ops, alter_type_ops, truncate_ops,
    create_function_ops, drop_function_ops, drop_absent_ops;
