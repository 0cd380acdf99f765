/* Settings of a table, between the API's members (`api` of settings/setting.def) and struct
 * table_settings. Inside control_plane only. */
#pragma once

#include "control_plane/tree.h"

/* Adds the settings of the request to a statement's properties. -1: a setting is not allowed. */
int table_settings_take(struct call *c, struct ast_props *props) MUST_CHECK;
/* The tags of a request; tags NULL: none. */
int tags_take(struct call *c, const struct doc *tags, struct setting_map *out) MUST_CHECK;
/* Put the table's settings into the answer. -1: no memory. */
int table_settings_put(struct call *c, const struct schema_table *t) MUST_CHECK;
void table_scaling_put(struct call *c, const struct schema_table *t);
