/* e^x and logarithms of varint and decimal to 32 significant digits, as in Cassandra. */
#pragma once

#include "base/err.h"
#include "cql/expr/number.h"

/* v, of form BIG, becomes the result. ERR_SERVER, as Java's ArithmeticException: there is none. */
int decimal_exp(struct number *v, struct err *e) MUST_CHECK;
int decimal_log(struct number *v, bool ten, struct err *e) MUST_CHECK; /* natural, or to the base of 10 */
