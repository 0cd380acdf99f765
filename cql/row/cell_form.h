/* How elements of non-frozen collections and UDTs are stored as cells, and how a value is assembled
 * from them again.
 *
 *   list  path: the timeuuid's key form (cql_key_encode, so that byte order is time order)   value: the element
 *   set   path: the element's key form
 *         value: the element as written
 *   map   path: the key's key form      value: [uvarint n][n bytes: the key as written, n 0 when
 *         the path decodes to it][map value]
 *   UDT   path: field index, u16                                                              value: the field
 *
 * multicell.c writes them, row_view.c reads them. Pure functions; any thread.
 */
#pragma once

#include "types/type.h"
#include "engine/row.h"
#include "metering/size/op_cost.h"

/* The value of a map's cell. key: as written when cql_key_encode said that its form is not exact, else p NULL. */
void cell_map_put(struct slice key, struct slice value, struct buf *out);
/* Splits it in place; key.p is NULL if the path is the key's form. Returns -1 if it is damaged. */
int cell_map_split(struct slice cell_value, struct slice *key, struct slice *value) MUST_CHECK;
/* The key of a map's cell: in place, or decoded into the arena. */
int cell_map_key(const struct cql_type *map, const struct eng_cell *cell, struct arena *a, struct value *out,
                 struct err *e) MUST_CHECK;

/* cells: the live cells of one column, in order (a complex deletion among them is
 * skipped). out: the serialised collection or UDT in the arena; null if no element is left. Returns 0, -1
 * if they are damaged, or 1 if the arena has no room for it. */
int cell_assemble(const struct cql_type *t, const struct eng_cell *cells, uint32_t n, struct arena *a,
                  struct value *out, struct err *e) MUST_CHECK;
/* The encoded size of the cells' value, as cql_value_size computes it for the assembled
 * value. Returns false if no element is left. */
bool cell_size(const struct cql_type *t, enum size_model model, const struct eng_cell *cells, uint32_t n,
               uint64_t *size) MUST_CHECK;
