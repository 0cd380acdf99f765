/* Settings of a table, between the API's specifications and CUSTOM_PROPERTIES. Inside
 * control_plane only. */
#pragma once

#include "control_plane/tree.h"

/* Adds the settings of the request to a statement's properties. -1: a setting is not allowed. */
int table_settings_props(struct call *c, struct ast_props *props) MUST_CHECK;
/* Put the table's settings into the answer. */
void table_settings_put(struct call *c, const struct schema_table *t);
void table_scaling_put(struct call *c, const struct schema_table *t);
