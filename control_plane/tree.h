/* Statements as trees, made of what the API was asked, and run as CQL runs those that it has
 * parsed. Inside control_plane only.
 *
 * Makers return NULL without memory, and take NULL: the statement is NULL in the end, which
 * tree_run tells.
 */
#pragma once

#include "control_plane/operation.h"
#include "cql/syntax/ast_other.h"

struct ast_stmt *tree_new(struct call *c, enum stmt_kind kind) MUST_CHECK;

/* Settings: texts, and maps of them. */
struct ast_prop_value *tree_text(struct call *c, const char *text);
struct ast_prop_value *tree_number(struct call *c, int64_t n);
struct ast_prop_value *tree_map(struct call *c);
/* An entry of a map; value NULL: nothing. */
void tree_put(struct call *c, struct ast_prop_value *map, const char *key, struct ast_prop_value *value);
void tree_add_prop(struct call *c, struct ast_props *p, const char *name, struct ast_prop_value *value);
/* The same when the map has entries. */
void tree_add_map(struct call *c, struct ast_props *p, const char *name, struct ast_prop_value *map);

/* Tags of a request; NULL: it has none. */
struct ast_prop_value *tree_tags(struct call *c, const struct doc *tags);

/* Runs it for who has signed. -1: the catalogue, the rules of Keyspaces or the roles say no, in the API's terms. */
int tree_run(struct call *c, struct ast_stmt *s) MUST_CHECK;
