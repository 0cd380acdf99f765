/* The decimal digits that Java (before 19) gives a float or double: mostly, but not always, the
 * fewest that read back as the same number, so they cannot be had by looking for those. Steele and
 * White's free-format algorithm with Java's estimates and stops. */
#pragma once

#include <stdbool.h>

enum { REAL_DIGITS_MAX = 32 };

struct real_digits {
    int n;                        /* at least 1 */
    char digits[REAL_DIGITS_MAX]; /* '0' to '9', the first not 0 */
    int exponent;                 /* of the first digit: d.ddd x 10^exponent */
};

/* value is finite and above 0; single: it was a float. */
void cqlt_real_digits(double value, bool single, struct real_digits *out);
