/* A value as cqlsh shows it: True and False, five significant digits of a floating-point number,
 * timestamps in UTC with microseconds, texts without quotes unless they are inside a collection,
 * control characters as escapes.
 */
#pragma once

#include "types/type.h"

void cell_put(const struct cql_type *t, struct value v, struct buf *out);
/* A name of a column: as a text outside a collection. */
void cell_put_text(struct slice text, bool quote, struct buf *out);
