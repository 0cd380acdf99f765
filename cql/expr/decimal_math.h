/* e^x and logarithms of decimals to 32 significant digits, as Cassandra has them of varint and decimal. */
#pragma once

#include "base/err.h"
#include "cql/expr/number.h"

/* v, of form BIG, becomes the result. ERR_SERVER, in the words of Java's ArithmeticException: there is none. */
int decimal_exp(struct number *v, struct err *e) MUST_CHECK;
int decimal_log(struct number *v, bool ten, struct err *e) MUST_CHECK; /* natural, or to the base of 10 */
