/* Walking a vector's elements; inside cql only. */
#pragma once

#include "types/type.h"

/* The next element, without a length when its type is of a fixed size (cqlt_type_fixed), else
 * behind an unsigned variable-length integer. -1: malformed. */
int cql_vector_next(const struct cql_type *t, struct rd *r, struct slice *element);
void cql_vector_put(const struct cql_type *t, struct slice element, struct buf *out);
