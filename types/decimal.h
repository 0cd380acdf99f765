/* varint and decimal as GMP integers, for calculations. */
#pragma once

#include <gmp.h>

#include "base/buf.h"

/* Two's complement, big-endian. Every mpz given must be initialised. */
void cql_varint_read(struct slice v, mpz_t out);
struct slice cql_varint_shortest(struct slice v); /* the same number in the fewest bytes */
void cql_varint_write(const mpz_t v, struct buf *out); /* in the fewest bytes */

/* value = unscaled / 10^scale; v has at least 4 bytes. */
void cql_decimal_read(struct slice v, mpz_t unscaled, int32_t *scale);
void cql_decimal_write(const mpz_t unscaled, int32_t scale, struct buf *out);
/* Prints as BigDecimal.toPlainString (plain) or toString, which is scientific for some
 * exponents. */
void cql_decimal_text(const mpz_t unscaled, int32_t scale, bool plain, struct buf *out);
