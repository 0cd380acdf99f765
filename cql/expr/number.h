/* A number of any CQL number type, to calculate with: whole numbers wrap, reals are doubles, varint
 * and decimal are exact.
 *
 * Life: number_load reads a value, the caller calculates with the fields, number_store writes the
 * result, number_fini frees it.
 */
#pragma once

#include <gmp.h>

#include "types/type.h"

struct number {
    enum { WHOLE, REAL, BIG } form; /* what the type is computed in */
    int64_t i;
    double d;
    mpz_t n; /* BIG: n / 10^scale; always initialised */
    int32_t scale;
};

/* v is valid, and neither null nor empty */
void number_load(const struct cql_type *t, struct value v, struct number *out);
static inline void number_fini(struct number *v) { mpz_clear(v->n); }
/* Appends v as a value of type t, which may be another than it was read as. */
int number_store(const struct cql_type *t, struct number *v, struct buf *out, struct err *e) MUST_CHECK;
void number_put_real(enum cql_type_id id, double d, struct buf *out);
void number_put_whole(enum cql_type_id id, int64_t v, struct buf *out); /* its low bytes */

/* Converts to the form BIG; whole: drops the digits after the point. ERR_FUNCTION_FAILURE: it is
 * infinite, or has too many digits to be written out. */
int number_to_big(struct number *v, bool whole, struct err *e) MUST_CHECK;
double number_to_real(const struct number *v);
/* For the form BIG: whether it has more digits before or after the point than the limit. */
bool number_is_huge(const struct number *v);
/* Likewise: whether it has too many digits to be multiplied, divided or added. */
bool number_is_long(const struct number *v);
/* Decimal digits of n without its sign; 1 for 0. */
int64_t number_digits(const mpz_t n);
/* Converts n from one scale to another; a lower scale truncates. Neither may be a huge number's. */
void number_rescale(mpz_t n, int64_t from, int64_t to);
/* Converts two numbers, both BIG and not huge, to the greater of their scales. */
void number_align(struct number *a, struct number *b);
/* e^x and logarithms (natural, or to the base of 10) of varint and decimal to 32 significant digits,
 * as in Cassandra (decimal_math.c). v, of form BIG, becomes the result. ERR_SERVER, as Java's
 * ArithmeticException: there is none. */
int decimal_exp(struct number *v, struct err *e) MUST_CHECK;
int decimal_log(struct number *v, bool ten, struct err *e) MUST_CHECK;
