/* Collections as clients send them, as they are kept: sets and maps in their order, and every
 * element in the one form that Cassandra writes. */
#pragma once

#include "cql/request/request.h"
#include "types/type.h"

/* May the bytes of a bound value of the type have to change? */
bool term_settles(const struct cql_type *t);
/* Sorts a set's or map's wire form by element or key and drops what repeats (the last value wins). */
int term_sort(const struct cql_type *t, struct cql_request *r, struct value *v) MUST_CHECK;
/* A sorted set, from the greatest element to the least. */
int term_turn(const struct cql_type *t, struct cql_request *r, struct value *v) MUST_CHECK;
/* That, and the elements in their canonical form, within collections and vectors in it, too. v
 * stays as it is when nothing changes. */
int term_settle(const struct cql_type *t, struct cql_request *r, struct value *v) MUST_CHECK;
/* The same of one element of a bound collection, whatever its type. */
int term_settle_item(const struct cql_type *t, struct cql_request *r, struct value *v) MUST_CHECK;
