/* Makes the syntax trees of CQL statements from the API's requests. control_plane.c runs them as CQL
 * runs the trees that it has parsed. Inside control_plane only.
 *
 * A function that makes a value returns NULL when memory runs out, and accepts NULL for other values.
 * So a caller need not check each call: make.failed of the call reports the error.
 */
#pragma once

#include "control_plane/operation.h"
#include "cql/syntax/ast_other.h"

/* The call's statement. NULL with the error: no memory. */
struct ast_stmt *tree_new(struct call *c, enum stmt_kind kind) MUST_CHECK;

/* Values of properties: texts and maps of values. */
struct ast_prop_value *tree_text(struct call *c, const char *text);
struct ast_prop_value *tree_map(struct call *c);
/* Adds an entry to a map. value NULL: adds nothing. */
void tree_put(struct call *c, struct ast_prop_value *map, const char *key, struct ast_prop_value *value);
void tree_add_prop(struct call *c, struct ast_props *p, const char *name, struct ast_prop_value *value);
/* Adds a property whose value is a map, unless the map is empty. */
void tree_add_map(struct call *c, struct ast_props *p, const char *name, struct ast_prop_value *map);
/* The tags of a request as a map; tags NULL: returns NULL. */
struct ast_prop_value *tree_tags(struct call *c, const struct doc *tags);
