/* Indexes and views that a schema defines and Amazon Keyspaces refuses. The definitions are left
 * out; a read that then fails for lack of one names its place. */
#pragma once

#include "cql/cql.h"

struct left_out {
    struct left_out *next;
    const char *place; /* "schema.cql:7" */
    const char *keyspace, *table; /* table: of the index, or the view itself */
    bool is_view;
    uint32_t n_columns;
    const char **columns; /* of the index */
};

/* Adds the index or view that a text defines; other statements are not added. The arena holds the
 * entry. keyspace: the session's, for names without one. */
void left_out_add(struct left_out **list, struct arena *a, struct slice text, const char *keyspace, const char *path,
                  uint32_t line);
/* Returns why a statement failed with why: "the index that schema.cql:7 would create", in the
 * arena, or NULL if it needs none of the list. */
const char *left_out_needed(const struct left_out *list, struct arena *a, struct slice text, const char *keyspace,
                            const struct err *why);
