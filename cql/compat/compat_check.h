/* What Amazon Keyspaces refuses of a statement's text: the rules of keyspaces/refusal.def that can
 * be told from the tree and the schema.
 *
 * Asked in one place, when a statement is compiled (cql/statement.c) or prepared; what depends on
 * values is asked where they are bound (cql/write/write_rules.h, cql/read). All return 0, or -1
 * with the error. Inside cql only.
 */
#pragma once

#include "cql/request/compile.h"

/* Before it is compiled: statements and operators that Keyspaces does not have, whether Tally has them or not. */
int compat_check_kind(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
/* Once it is compiled, so that what is wrong in itself is told as such. */
int compat_check(struct compile *c, const struct ast_stmt *ast) MUST_CHECK;
/* PREPARE. */
int compat_check_prepare(struct compat *k, const struct ast_stmt *ast, struct err *e) MUST_CHECK;

/* ---- inside this room ---- */

/* A statement under examination; t is its table, or NULL. */
int compat_check_select(struct compile *c, const struct ast_select *ast, const struct schema_table *t) MUST_CHECK;
int compat_check_insert(struct compile *c, const struct ast_insert *ast, const struct schema_table *t) MUST_CHECK;
int compat_check_update(struct compile *c, const struct ast_update *ast, const struct schema_table *t) MUST_CHECK;
int compat_check_delete(struct compile *c, const struct ast_delete *ast, const struct schema_table *t) MUST_CHECK;
int compat_check_create_table(struct compile *c, const struct ast_create_table *ast) MUST_CHECK;
int compat_check_alter_table(struct compile *c, const struct ast_alter_table *ast) MUST_CHECK;

/* Functions and types of an expression, which may be NULL. */
int compat_check_expr(struct compile *c, const struct ast_expr *x) MUST_CHECK;
int compat_check_type(struct compile *c, const struct ast_type *t) MUST_CHECK;
/* Of a keyspace or table. */
int compat_check_name(struct compile *c, const char *what, const char *name) MUST_CHECK;
/* Operators of WHERE, or of IF, that are in no list: told before the statement is compiled, as
 * Tally may not have them either. */
int compat_check_operators(struct compile *c, struct ast_relation *const *relations, uint32_t n,
                           bool conditions) MUST_CHECK;
/* What WHERE may name, and IF may not: columns, each by itself. */
int compat_check_restrictions(struct compile *c, const struct ast_where *where) MUST_CHECK;
/* What relations compare, and with what. */
int compat_check_relations(struct compile *c, struct ast_relation *const *relations, uint32_t n,
                           const struct schema_table *t) MUST_CHECK;
