#include "control_plane/metric_math.h"

#include <math.h>
#include <stdlib.h>

/* A number, a series, or a list of series. */
struct operand {
    enum { NUMBER, SERIES, LIST } kind;
    double number;
    uint32_t n;
    struct math_series *series;
};

struct parser {
    struct arena *arena;
    const uint8_t *at, *end;
    const struct math_scope *scope;
    struct err *err;
    uint32_t depth;
    uint64_t points; /* datapoints made so far */
};

static int no_memory(struct parser *p) { return err_nomem(p->err); }

/* ---- characters and names ---- */

static void skip_blanks(struct parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')) p->at++;
}

static bool takes(struct parser *p, char sign) {
    skip_blanks(p);
    if (p->at == p->end || *p->at != (uint8_t)sign) return false;
    p->at++;
    return true;
}

static int expect(struct parser *p, char sign) {
    if (takes(p, sign)) return 0;
    return err_invalid(p->err, "'%c' is missing", sign);
}

static struct slice take_name(struct parser *p) {
    const uint8_t *begin = p->at;
    for (; p->at < p->end; p->at++) {
        uint8_t c = *p->at;
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '_') break;
    }
    return slice_of(begin, (size_t)(p->at - begin));
}

/* ---- series ---- */

static struct math_series *new_series(struct parser *p, uint32_t n, uint32_t room, int64_t period) {
    struct math_series *s = ARENA_ARRAY(p->arena, n, struct math_series);
    struct math_point *points = s ? ARENA_ARRAY(p->arena, room + 1, struct math_point) : NULL;
    if (!points) return NULL;
    *s = (struct math_series){.period = period, .points = points};
    return s;
}

/* Counts new datapoints, and refuses an expression that makes too many. */
static int charge(struct parser *p, uint64_t points) {
    p->points += points;
    return p->points <= 10ULL * MATH_POINTS ? 0 : err_invalid(p->err, "it comes to too many datapoints");
}

typedef double (*binary_fn)(double x, double y);
static double add(double x, double y) { return x + y; }
static double subtract(double x, double y) { return x - y; }
static double multiply(double x, double y) { return x * y; }
static double divide(double x, double y) { return y == 0 ? NAN : x / y; }
static double least(double x, double y) { return x < y ? x : y; }
static double most(double x, double y) { return x > y ? x : y; }

static void put_point(struct math_series *s, int64_t at, double value) {
    if (isfinite(value)) s->points[s->n++] = (struct math_point){.at = at, .value = value};
}

static int with_number(struct parser *p, binary_fn fn, const struct math_series *s, double number, bool number_first,
                       struct math_series *out) {
    struct math_series *made = charge(p, s->n) ? NULL : new_series(p, 1, s->n, s->period);
    if (!made) return p->err->set ? -1 : no_memory(p);
    for (uint32_t i = 0; i < s->n; i++)
        put_point(made, s->points[i].at,
                  number_first ? fn(number, s->points[i].value) : fn(s->points[i].value, number));
    *out = *made;
    return 0;
}

/* Joins two series by time. outer: a point that only one of them has is kept; otherwise it is
 * dropped. */
static int join(struct parser *p, binary_fn fn, const struct math_series *x, const struct math_series *y, bool outer,
                struct math_series *out) {
    struct math_series *made = charge(p, (uint64_t)x->n + y->n)
                                   ? NULL
                                   : new_series(p, 1, x->n + y->n, most(x->period, y->period));
    if (!made) return p->err->set ? -1 : no_memory(p);
    for (uint32_t i = 0, k = 0; i < x->n || k < y->n;) {
        const struct math_point *a = i < x->n ? &x->points[i] : NULL, *b = k < y->n ? &y->points[k] : NULL;
        if (a && b && a->at == b->at) put_point(made, a->at, fn(a->value, b->value));
        else if (outer)
            put_point(made, a && (!b || a->at < b->at) ? a->at : b->at,
                      a && (!b || a->at < b->at) ? a->value : b->value);
        bool first = a && (!b || a->at <= b->at), second = b && (!a || b->at <= a->at);
        i += first;
        k += second;
    }
    *out = *made;
    return 0;
}

static int combine(struct parser *p, binary_fn fn, const struct operand *x, const struct operand *y,
                   struct operand *out) {
    if (x->kind == NUMBER && y->kind == NUMBER) {
        *out = (struct operand){.kind = NUMBER, .number = fn(x->number, y->number)};
        return isfinite(out->number) ? 0 : err_invalid(p->err, "a number is divided by zero");
    }
    if (x->kind == LIST && y->kind == LIST) return err_invalid(p->err, "two lists of series cannot be combined");
    const struct operand *many = x->kind == LIST || y->kind == NUMBER ? x : y;
    *out = (struct operand){.kind = x->kind == LIST || y->kind == LIST ? LIST : SERIES, .n = many->n};
    out->series = ARENA_ARRAY(p->arena, many->n + 1, struct math_series);
    if (!out->series) return no_memory(p);
    for (uint32_t i = 0; i < many->n; i++) {
        const struct math_series *a = x->kind == LIST ? &x->series[i] : x->series,
                                 *b = y->kind == LIST ? &y->series[i] : y->series;
        int rc = y->kind == NUMBER   ? with_number(p, fn, a, y->number, false, &out->series[i])
                 : x->kind == NUMBER ? with_number(p, fn, b, x->number, true, &out->series[i])
                                     : join(p, fn, a, b, false, &out->series[i]);
        if (rc) return -1;
    }
    return 0;
}

/* ---- functions ---- */

static int parse_sum(struct parser *p, struct operand *out);

/* Combines a list of series into one series, or a series into a number. */
static int aggregate(struct parser *p, binary_fn fn, bool mean, const struct operand *x, struct operand *out) {
    struct math_series all = {0}, counts = {0};
    if (x->kind == NUMBER) return err_invalid(p->err, "a number is given where a series is due");
    if (x->kind == SERIES) {
        if (!x->series->n) return err_invalid(p->err, "a series without datapoints has no such number");
        double number = x->series->points[0].value;
        for (uint32_t i = 1; i < x->series->n; i++) number = fn(number, x->series->points[i].value);
        *out = (struct operand){.kind = NUMBER, .number = mean ? number / x->series->n : number};
        return 0;
    }
    for (uint32_t i = 0; i < x->n; i++) {
        struct math_series ones;
        if (join(p, fn, &all, &x->series[i], true, &all)) return -1;
        if (mean && (with_number(p, multiply, &x->series[i], 0, false, &ones) ||
                     with_number(p, add, &ones, 1, false, &ones) || join(p, add, &counts, &ones, true, &counts)))
            return -1;
    }
    *out = (struct operand){.kind = SERIES, .n = 1, .series = new_series(p, 1, 0, 0)};
    if (!out->series) return no_memory(p);
    *out->series = all;
    return mean ? join(p, divide, &all, &counts, false, out->series) : 0;
}

static int sum_of(struct parser *p, const struct operand *x, struct operand *out) {
    return aggregate(p, add, false, x, out);
}
static int mean_of(struct parser *p, const struct operand *x, struct operand *out) {
    return aggregate(p, add, true, x, out);
}
static int least_of(struct parser *p, const struct operand *x, struct operand *out) {
    return aggregate(p, least, false, x, out);
}
static int most_of(struct parser *p, const struct operand *x, struct operand *out) {
    return aggregate(p, most, false, x, out);
}

static double absolute(double x, double unused) {
    (void)unused;
    return fabs(x);
}
static double upwards(double x, double unused) {
    (void)unused;
    return ceil(x);
}
static double downwards(double x, double unused) {
    (void)unused;
    return floor(x);
}

static int each_of(struct parser *p, binary_fn fn, const struct operand *x, struct operand *out) {
    const struct operand none = {.kind = NUMBER};
    return combine(p, fn, x, &none, out);
}
static int absolute_of(struct parser *p, const struct operand *x, struct operand *out) {
    return each_of(p, absolute, x, out);
}
static int upwards_of(struct parser *p, const struct operand *x, struct operand *out) {
    return each_of(p, upwards, x, out);
}
static int downwards_of(struct parser *p, const struct operand *x, struct operand *out) {
    return each_of(p, downwards, x, out);
}

static int period_of(struct parser *p, const struct operand *x, struct operand *out) {
    if (x->kind != SERIES) return err_invalid(p->err, "PERIOD is of one series");
    *out = (struct operand){.kind = NUMBER, .number = (double)x->series->period};
    return 0;
}

static int fill_one(struct parser *p, const struct math_series *s, double number, struct math_series *out) {
    int64_t n = s->period > 0 ? (p->scope->end - p->scope->start + s->period - 1) / s->period : 0;
    if (n > MATH_POINTS) return err_invalid(p->err, "FILL comes to more than %d datapoints", MATH_POINTS);
    struct math_series *made = charge(p, (uint64_t)n) ? NULL : new_series(p, 1, (uint32_t)n, s->period);
    if (!made) return p->err->set ? -1 : no_memory(p);
    for (uint32_t i = 0, k = 0; i < (uint32_t)n; i++) {
        int64_t at = p->scope->start + i * s->period;
        bool has = k < s->n && s->points[k].at == at;
        put_point(made, at, has ? s->points[k].value : number);
        k += has;
    }
    *out = *made;
    return 0;
}

static int parse_fill(struct parser *p, struct operand *out) {
    struct operand x, number;
    if (parse_sum(p, &x) || expect(p, ',') || parse_sum(p, &number)) return -1;
    if (x.kind == NUMBER || number.kind != NUMBER)
        return err_invalid(p->err, "FILL is of a series or a list, and a number");
    *out = (struct operand){.kind = x.kind, .n = x.n, .series = ARENA_ARRAY(p->arena, x.n + 1, struct math_series)};
    if (!out->series) return no_memory(p);
    for (uint32_t i = 0; i < x.n; i++)
        if (fill_one(p, &x.series[i], number.number, &out->series[i])) return -1;
    return 0;
}

static int parse_metrics(struct parser *p, struct operand *out) {
    uint32_t n = 0;
    while (p->scope->metric(p->scope->arg, n)) n++;
    *out = (struct operand){.kind = LIST, .n = n, .series = ARENA_ARRAY(p->arena, n + 1, struct math_series)};
    if (!out->series) return no_memory(p);
    for (uint32_t i = 0; i < n; i++) out->series[i] = *p->scope->metric(p->scope->arg, i);
    return 0;
}

static const struct {
    const char *name;
    int (*of)(struct parser *p, const struct operand *x, struct operand *out);
    int (*parse)(struct parser *p, struct operand *out); /* parses its own arguments */
} functions[] = {
    {.name = "SUM", .of = sum_of},
    {.name = "AVG", .of = mean_of},
    {.name = "MIN", .of = least_of},
    {.name = "MAX", .of = most_of},
    {.name = "ABS", .of = absolute_of},
    {.name = "CEIL", .of = upwards_of},
    {.name = "FLOOR", .of = downwards_of},
    {.name = "PERIOD", .of = period_of},
    {.name = "FILL", .parse = parse_fill},
    {.name = "METRICS", .parse = parse_metrics},
};

static int parse_call(struct parser *p, struct slice name, struct operand *out) {
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        struct operand x;
        if (!slice_is(name, functions[i].name)) continue;
        if (functions[i].parse) return functions[i].parse(p, out) || expect(p, ')') ? -1 : 0;
        return parse_sum(p, &x) || expect(p, ')') || functions[i].of(p, &x, out) ? -1 : 0;
    }
    return err_invalid(p->err,
                       "%.*s is not among the functions that Tally evaluates: SUM, AVG, MIN, MAX, ABS, CEIL, FLOOR, "
                       "PERIOD, FILL, METRICS",
                       SLICE_FMT(name));
}

/* ---- expressions ---- */

static int parse_number(struct parser *p, struct operand *out) {
    char text[64];
    size_t n = 0;
    while (p->at < p->end && n + 1 < sizeof(text) && ((*p->at >= '0' && *p->at <= '9') || *p->at == '.'))
        text[n++] = (char)*p->at++;
    text[n] = 0;
    char *end;
    *out = (struct operand){.kind = NUMBER, .number = strtod(text, &end)};
    return *end ? err_invalid(p->err, "%s is not a number", text) : 0;
}

static int parse_list(struct parser *p, struct operand *out) {
    enum { MOST = 500 };
    *out = (struct operand){.kind = LIST, .series = ARENA_ARRAY(p->arena, MOST, struct math_series)};
    if (!out->series) return no_memory(p);
    do {
        struct operand x;
        if (parse_sum(p, &x)) return -1;
        if (x.kind == NUMBER || x.n > MOST - out->n) return err_invalid(p->err, "a list is of at most %d series", MOST);
        for (uint32_t i = 0; i < x.n; i++) out->series[out->n++] = x.series[i];
    } while (takes(p, ','));
    return expect(p, ']');
}

static int parse_name(struct parser *p, struct operand *out) {
    struct slice name = take_name(p);
    if (!name.n && p->at == p->end) return err_invalid(p->err, "it ends where an operand is due");
    if (!name.n)
        return err_invalid(p->err, "an operand is due at byte %zu of what is left: '%c'", (size_t)(p->end - p->at),
                           *p->at >= ' ' && *p->at < 127 ? *p->at : '?');
    if (takes(p, '(')) return parse_call(p, name, out);
    const struct math_series *s = p->scope->find(p->scope->arg, name, p->err);
    if (!s) return -1;
    *out = (struct operand){.kind = SERIES, .n = 1, .series = new_series(p, 1, 0, 0)};
    if (!out->series) return no_memory(p);
    *out->series = *s;
    return 0;
}

static int parse_operand(struct parser *p, struct operand *out) {
    skip_blanks(p);
    if (takes(p, '(')) return parse_sum(p, out) || expect(p, ')') ? -1 : 0;
    if (takes(p, '[')) return parse_list(p, out);
    if (p->at < p->end && *p->at >= '0' && *p->at <= '9') return parse_number(p, out);
    return parse_name(p, out);
}

static int parse_factor(struct parser *p, struct operand *out) {
    struct operand base, x, y;
    bool negative = false;
    while (takes(p, '-')) negative = !negative;
    if (parse_operand(p, &base)) return -1;
    if (!takes(p, '^')) x = base;
    else if (parse_operand(p, &y) || combine(p, pow, &base, &y, &x)) return -1;
    y = (struct operand){.kind = NUMBER, .number = -1};
    if (negative) return combine(p, multiply, &x, &y, out);
    *out = x;
    return 0;
}

static int parse_product(struct parser *p, struct operand *out) {
    struct operand y;
    if (parse_factor(p, out)) return -1;
    for (;;) {
        binary_fn fn = takes(p, '*') ? multiply : takes(p, '/') ? divide : NULL;
        if (!fn) return 0;
        struct operand x = *out;
        if (parse_factor(p, &y) || combine(p, fn, &x, &y, out)) return -1;
    }
}

static int parse_sum(struct parser *p, struct operand *out) {
    struct operand y;
    if (++p->depth > MATH_DEPTH) return err_invalid(p->err, "it is nested deeper than %d levels", MATH_DEPTH);
    if (parse_product(p, out)) return -1;
    for (;;) {
        binary_fn fn = takes(p, '+') ? add : takes(p, '-') ? subtract : NULL;
        if (!fn) break;
        struct operand x = *out;
        if (parse_product(p, &y) || combine(p, fn, &x, &y, out)) return -1;
    }
    p->depth--;
    return 0;
}

int math_eval(struct arena *a, struct slice text, const struct math_scope *scope, struct math_series *out,
              struct err *e) {
    struct parser p = {.arena = a, .at = text.p, .end = text.p + text.n, .scope = scope, .err = e};
    struct operand x;
    if (parse_sum(&p, &x)) return -1;
    skip_blanks(&p);
    if (p.at != p.end)
        return err_invalid(e, "'%.*s' is not understood", (int)(p.end - p.at < 40 ? p.end - p.at : 40),
                           (const char *)p.at);
    if (x.kind == NUMBER) return err_invalid(e, "it comes to a number, and must come to a series");
    if (x.kind == LIST)
        return err_invalid(e,
                           "it comes to a list of series, and must come to one: take the SUM, AVG, MIN or MAX of it");
    *out = *x.series;
    return 0;
}
