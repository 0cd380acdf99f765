/* Settings of a table, between the API's specifications and CUSTOM_PROPERTIES. Inside control_plane only. */
#pragma once

#include "control_plane/tree.h"

/* Those that the request gives, as properties of a statement; -1: one cannot be. */
int table_settings_props(struct call *c, struct ast_props *props) MUST_CHECK;
/* Those that the table has, into the answer. */
void table_settings_put(struct call *c, const struct schema_table *t);
void table_scaling_put(struct call *c, const struct schema_table *t);
