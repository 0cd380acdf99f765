/* Checks a statement's text against the rules of keyspaces/refusal.def that need only the tree and
 * the schema.
 *
 * cql/statement.c calls these functions when it compiles or prepares a statement. The rules that
 * depend on values are checked where the values are bound (cql/write/write_rules.h, cql/read). All
 * return 0, or -1 with the error. Inside cql only, but for compat_rule_of.
 */
#pragma once

#include "cql/request/compile.h"

/* Runs before the statement is compiled: statements and operators that Keyspaces does not have,
 * whether Tally has them or not. */
int compat_check_kind(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
/* Runs after the statement was compiled, so that a statement that is wrong in itself fails with
 * Cassandra's own error first. */
int compat_check(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
/* Runs for a PREPARE. */
int compat_check_prepare(struct compat *k, const struct ast_stmt *ast, struct err *e) MUST_CHECK;

/* The rule by which Keyspaces refuses every statement of a kind; REFUSALS: none. */
enum refusal_id compat_rule_of(enum stmt_kind kind);

/* ---- inside this room ---- */

/* The table that a statement names, which errors and notes are about from now on. */
const struct schema_table *compat_table(struct compile *c, const struct ast_name *name);

/* The functions that the rows of cql/syntax/stmt.def name. */
int compat_check_nothing(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
int compat_check_select(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
int compat_check_insert(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
int compat_check_update(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
int compat_check_delete(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
int compat_check_batch(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
int compat_check_create_keyspace(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
int compat_check_create_table(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
int compat_check_alter_table(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
int compat_check_restore_table(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
int compat_check_create_type(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;

/* Functions and types of an expression, which may be NULL. */
int compat_check_expr(struct compile *c, const struct ast_expr *x) MUST_CHECK;
int compat_check_type(struct compile *c, const struct ast_type *t) MUST_CHECK;
/* The name of a keyspace or table; what: the kind of object. */
int compat_check_name(struct compile *c, const char *what, const char *name) MUST_CHECK;
