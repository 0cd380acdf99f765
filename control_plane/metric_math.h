/* The basic part of CloudWatch's metric math
 * (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html):
 * arithmetic, SUM, AVG, MIN, MAX, ABS, CEIL, FLOOR, PERIOD, FILL with a number, METRICS. Other
 * functions are refused by name. Pure.
 *
 * An operation on two series has a value at the times at which both have one. A division by zero
 * gives no value.
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

/* The series that an expression can name. */
struct math_scope {
    void *arg;
    /* the series of that id; NULL: there is none, and err says so */
    const struct math_series *(*find)(void *arg, struct slice id, struct err *e);
    /* the i-th series that is a metric and not an expression; NULL: there are no more */
    const struct math_series *(*metric)(void *arg, uint32_t i);
    int64_t start, end; /* the time that FILL fills, seconds since 1970 */
};

/* Evaluates an expression to one series in the arena. -1: err; the caller puts its own words,
 * such as "Error in expression 'e1': ", before the text. */
int math_eval(struct arena *a, struct slice text, const struct math_scope *scope, struct math_series *out,
              struct err *e) MUST_CHECK;
