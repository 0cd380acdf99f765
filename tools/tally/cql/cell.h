/* Prints values as cqlsh does: True and False, five significant digits of a floating-point number,
 * timestamps in UTC with microseconds, texts without quotes outside collections, control characters
 * as escapes.
 */
#pragma once

#include "types/type.h"

void cell_put(const struct cql_type *t, struct value v, struct buf *out);
/* Prints a text, or the name of a column; quote: as inside a collection. */
void cell_put_text(struct slice text, bool quote, struct buf *out);
