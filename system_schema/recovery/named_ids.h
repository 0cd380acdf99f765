/* The ids of rows that the catalogue's records name: tables, histories and spares of saved
 * keyspaces. Rows that the store holds under any other id belong to no object. A record is written
 * before the rows that it names, and erased after them.
 *
 * Life: init, take every named record, ask, fini.
 */
#pragma once

#include "base/slice.h"

struct named_ids {
    uint32_t n, cap;
    uint32_t *ids;
    bool sorted;
    bool unknown; /* a record cannot be read, or there was no memory: it may name any id */
};

void named_ids_init(struct named_ids *all);
void named_ids_fini(struct named_ids *all);
void named_ids_add(struct named_ids *all, uint32_t id);
/* Adds the id that the record names, if it names one. */
void named_ids_take(struct named_ids *all, struct slice key, struct slice value);
/* Also true if unknown is set. */
bool named_ids_has(struct named_ids *all, uint32_t id);
