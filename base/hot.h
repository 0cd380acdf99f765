/* Helpers for code that runs for every row of a slice. */
#pragma once

#include "base/slice.h"

/* Marks a static function that a hot function calls only now and then. If it were inlined there,
 * its registers and its stack would be saved for every row. */
#define SELDOM __attribute__((noinline))

/* memcpy for sizes that are mostly short: two copies that overlap cost less than a call. */
static inline void copy_short(uint8_t *to, const uint8_t *from, size_t n) {
    if (n - 16 <= 16) {
        memcpy(to, from, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else if (n - 4 <= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else if (n) {
        memcpy(to, from, n);
    }
}
