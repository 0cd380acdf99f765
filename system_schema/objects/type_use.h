/* The users of a user type, for system_schema_mcs.types and the API's GetType. */
#pragma once

#include "system_schema/objects/schema.h"

/* Names of the tables with a column of the type, and of the types with a field of it, also
 * within collections and tuples. Uses through another user type do not count. */
struct type_users {
    uint32_t n_tables, n_parents;
    const char **tables, **parents;
};
/* In the arena. Returns -1 if memory is exhausted. */
int type_users_find(const struct schema_space *space, const char *name, struct arena *a,
                    struct type_users *out) MUST_CHECK;
/* Levels of nested user types, counting the type itself (inferred: the reference gives the
 * column and no example). */
int32_t type_nesting(const struct cql_type *t);
