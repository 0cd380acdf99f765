/* Attributes that the compilers of the project share. */
#pragma once

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
/* Marks a function that is called only when something is wrong. The compiler places it, and the
 * code that leads only to it, away from the common path, which then takes fewer cache lines. */
#define COLD __attribute__((cold))
#define UNUSED __attribute__((unused))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
