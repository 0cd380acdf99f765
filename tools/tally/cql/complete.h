/* What may stand at the cursor: commands, keywords, and names of the schema, by the words in front
 * of it. Pure functions of a text and of names that were read before.
 */
#pragma once

#include "base/arena.h"
#include "base/slice.h"

/* A column, or a keyspace without tables (table NULL). Those of a table, and those of a keyspace,
 * stand together. */
struct schema_name {
    const char *keyspace, *table, *column;
};
struct schema_names {
    uint32_t n, cap;
    struct schema_name *list;
    struct arena arena; /* of the texts */
};

enum { COMPLETIONS_MAX = 1000 };
struct completions {
    size_t typed; /* bytes in front of the cursor that a completion takes the place of */
    uint32_t n;   /* each once; those beyond COMPLETIONS_MAX are left out */
    const char *list[COMPLETIONS_MAX];
    bool goes_on; /* the only one is a keyspace's name, behind which a table's comes */
};

/* before: the statement up to the cursor. keyspace: the current one; "": none. The texts are in the
 * arena, or live as long as names. */
void complete(struct slice before, const char *keyspace, const struct schema_names *names, struct arena *a,
              struct completions *out);
/* The bytes that all completions begin with, beginning with what is typed; 0: there is none. */
size_t completions_common(const struct completions *c);
