/* Attributes that the compilers of the project share. */
#pragma once

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
/* Of a function that is called when something is wrong: its calls, and what leads to them alone,
 * stand apart from what is done always, which so takes fewer lines of the cache. */
#define COLD __attribute__((cold))
#define UNUSED __attribute__((unused))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
