/* Walks a vector's elements. */
#pragma once

#include "types/type.h"

/* Reads the next element. An element of a fixed size (cqlt_type_fixed) has no length; others follow
 * an unsigned variable-length integer. Returns -1 if malformed. */
int cql_vector_next(const struct cql_type *t, struct rd *r, struct slice *element);
void cql_vector_put(const struct cql_type *t, struct slice element, struct buf *out);
