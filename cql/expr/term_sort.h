/* Converts collections as clients send them to their stored form: sets and maps sorted, and every
 * element in the canonical form that Cassandra writes. */
#pragma once

#include "cql/request/request.h"
#include "types/type.h"

/* Moves the buffer's bytes to the evaluation's arena. Returns -1 if memory is exhausted. */
int term_keep(struct evaluation *ev, struct buf *b, struct value *out) MUST_CHECK;
/* Whether term_settle may change the bytes of a bound value of the type. */
bool term_settles(const struct cql_type *t);
/* Sorts a set or map by element or key and drops repeated ones (the last value wins). */
int term_sort(const struct cql_type *t, struct evaluation *ev, struct value *v) MUST_CHECK;
/* Reverses a sorted set. */
int term_turn(const struct cql_type *t, struct evaluation *ev, struct value *v) MUST_CHECK;
/* As term_sort, and brings elements to their canonical form, also within nested collections and
 * vectors. v stays as it is when nothing changes. */
int term_settle(const struct cql_type *t, struct evaluation *ev, struct value *v) MUST_CHECK;
/* The same for one element of a bound collection, of any type. */
int term_settle_item(const struct cql_type *t, struct evaluation *ev, struct value *v) MUST_CHECK;
