/* The decimal digits that Java (before 19) prints for a float or double. Mostly, but not always,
 * they are the fewest that read back as the same number, so an algorithm for the fewest digits does
 * not find them. This is the free-format algorithm of Steele and White with the estimates and stops
 * of Java. */
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
