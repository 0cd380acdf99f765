/* What uses a user type: told by system_schema_mcs.types and by the API's GetType. */
#pragma once

#include "system_schema/schema.h"

/* Names of tables with a column of it, and of types with a field of it, whatever is around it; not
 * those that use it by way of another type. */
struct type_users {
    uint32_t n_tables, n_parents;
    const char **tables, **parents;
};
/* In the arena. -1: no memory. */
int type_users_find(const struct schema_space *space, const char *name, struct arena *a,
                    struct type_users *out) MUST_CHECK;
/* Levels of user types, the type itself being the first (I: the reference gives the column and no example). */
int32_t type_nesting(const struct cql_type *t);
