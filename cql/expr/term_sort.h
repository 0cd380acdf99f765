/* Sets and maps as clients send them, in the order that they are kept in. */
#pragma once

#include "cql/request/request.h"
#include "types/type.h"

/* Are values of the type, or of collections in it, in an order? */
bool term_sorts(const struct cql_type *t);
/* Of such a type: sorts a set's or map's wire form by element or key and drops what repeats (the last wins), within collections too; in place when that is
 * so already. */
int term_sort(const struct cql_type *t, struct cql_request *r, struct value *v) MUST_CHECK;
