/* Metric math of CloudWatch, the plain part of it: arithmetic, SUM, AVG, MIN, MAX, ABS, CEIL,
 * FLOOR, PERIOD, FILL with a number, METRICS
 * (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html). What
 * else an expression may have there is refused by name. Pure.
 *
 * Two series meet where both have a value; a division by zero has none.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct math_point {
    int64_t at; /* seconds since 1970 */
    double value;
};
struct math_series {
    int64_t period;
    uint32_t n;
    struct math_point *points; /* in order */
};

enum { MATH_POINTS = 100800, MATH_DEPTH = 32 };

/* What an expression can name. */
struct math_scope {
    void *arg;
    /* NULL: there is none, and err says so */
    const struct math_series *(*find)(void *arg, struct slice id, struct err *e);
    /* the i-th that is no expression; NULL: there are no more */
    const struct math_series *(*metric)(void *arg, uint32_t i);
    int64_t start, end; /* that FILL fills */
};

/* One series in the arena. -1: err, which begins where the caller's text ends: "Error in expression 'e1': ". */
int math_eval(struct arena *a, struct slice text, const struct math_scope *scope, struct math_series *out,
              struct err *e) MUST_CHECK;
