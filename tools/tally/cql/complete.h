/* Completions at the cursor: commands, keywords and names of the schema that fit after the
 * preceding words. Pure functions of a text and of names that were read before.
 */
#pragma once

#include "base/arena.h"
#include "base/slice.h"

/* A column, or a keyspace (table NULL). In the list the entries of a table are adjacent, and so are
 * those of a keyspace. */
struct schema_name {
    const char *keyspace, *table, *column;
};
struct schema_names {
    size_t n, cap;
    struct schema_name *list;
    struct arena arena; /* of the texts */
};

enum { COMPLETIONS_MAX = 1000 };
struct completions {
    size_t typed; /* bytes before the cursor that a completion replaces */
    uint32_t n;   /* distinct completions, at most COMPLETIONS_MAX */
    const char *list[COMPLETIONS_MAX];
    bool goes_on; /* the only completion is a keyspace's name, and a table's name must follow */
};

/* before: the text up to the cursor. keyspace: the current one; "": none. The completions live in
 * the arena. */
void completions_find(struct slice before, const char *keyspace, const struct schema_names *names, struct arena *a,
                      struct completions *out);
/* The length of the longest common prefix of all completions; 0 if there are no completions. */
size_t completions_common(const struct completions *c);
