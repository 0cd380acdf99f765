/* speculative_retry and additional_write_policy: nothing is retried here, but the values that are
 * taken, and how they are shown, are Cassandra's (SpeculativeRetryPolicy.fromString, of 5.0.8). */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "settings/value.h"

/* 99p, 99percentile, 50ms */
struct policy {
    enum { PERCENTILE, FIXED } kind;
    double value;
    size_t n_digits; /* of its text */
};

static bool is_unit(const char *text, size_t n, const char *unit) {
    return n == strlen(unit) && strncasecmp(text, unit, n) == 0;
}

/* Returns false if the n bytes are no such policy. A percentile that is out of range is one. */
static bool read_policy(const char *text, size_t n, struct policy *out) {
    char *end;
    *out = (struct policy){.n_digits = strspn(text, "0123456789.")};
    if (!out->n_digits || out->n_digits >= n) return false;
    out->value = strtod(text, &end);
    if (end != text + out->n_digits) return false;
    bool fixed = is_unit(end, n - out->n_digits, "ms");
    out->kind = fixed ? FIXED : PERCENTILE;
    return fixed || is_unit(end, n - out->n_digits, "p") || is_unit(end, n - out->n_digits, "percentile");
}

/* Cassandra 3.11 allows 0 and 100, too. */
static bool is_in_range(const struct setting_context *c, const struct policy *p) {
    bool ends = p->value == 0 || p->value == 100;
    return p->kind == FIXED || (ends ? !c->cassandra_mode : p->value > 0 && p->value < 100);
}

/* Milliseconds are whole; a percentile has at most four decimal places. */
static const char *print_policy(const struct setting_context *c, const struct policy *p) {
    if (p->kind == FIXED) return arena_printf(c->arena, "%dms", (int)fmin(p->value, INT32_MAX));
    char *text = arena_printf(c->arena, "%.4f", p->value);
    if (!text) return NULL;
    size_t n = strlen(text);
    while (text[n - 1] == '0') n--;
    if (text[n - 1] == '.') n--;
    return arena_printf(c->arena, "%.*sp", (int)n, text);
}

static const char *refuse(const struct setting_context *c, const char *text) {
    return err_null(option_error(c, DDL_OPTION_RETRY, text));
}

/* MIN(99p,50ms) and MAX: one policy of each kind, in either order; shown with the percentile
 * first. */
static const char *two_policies(const struct setting_context *c, const char *text) {
    const char *first = text + 4, *comma = strchr(first, ','), *end = text + strlen(text) - 1;
    struct policy a, b;
    if (!comma || *end != ')') return refuse(c, text);
    const char *behind = comma, *second = comma + 1;
    while (behind > first && strchr(" \t\r\n", behind[-1])) behind--;
    second += strspn(second, " \t\r\n");
    if (second >= end || !read_policy(first, (size_t)(behind - first), &a)) return refuse(c, text);
    if (!read_policy(second, (size_t)(end - second), &b)) return refuse(c, text);
    if (a.kind == b.kind) return err_null(option_error(c, DDL_OPTION_RETRY_KINDS, text,
        a.kind == FIXED ? "FIXED" : "PERCENTILE"));
    if (!is_in_range(c, &a) || !is_in_range(c, &b)) return refuse(c, text);
    if (!c->cassandra_mode) return text;
    const char *percentile = print_policy(c, a.kind == PERCENTILE ? &a : &b);
    const char *fixed = print_policy(c, a.kind == FIXED ? &a : &b);
    if (!percentile || !fixed) return NULL;
    return arena_printf(c->arena, "%s(%s,%s)", strncasecmp(text, "min", 3) == 0 ? "MIN" : "MAX", percentile, fixed);
}

const char *retry_policy(const struct setting_context *c, const char *text) {
    struct policy p;
    size_t n = strlen(text);
    bool two = strncasecmp(text, "min(", 4) == 0 || strncasecmp(text, "max(", 4) == 0;
    bool short_percentile = n > 1 && isdigit((uint8_t)text[n - 2]) && tolower((uint8_t)text[n - 1]) == 'p';
    /* Cassandra 3.11 accepts 99PERCENTILE, 50ms, ALWAYS and NONE; every other form is newer. */
    if ((two || strcasecmp(text, "never") == 0 || short_percentile) &&
        compat_refuse(c->compat, REFUSE_SPECULATIVE_RETRY, c->err, text))
        return NULL;
    bool never = strcasecmp(text, "never") == 0 || strcasecmp(text, "none") == 0;
    if (strcasecmp(text, "always") == 0) return "ALWAYS";
    if (never) return c->cassandra_mode ? "NEVER" : "NONE";
    if (two) return two_policies(c, text);
    if (!read_policy(text, n, &p)) return refuse(c, text);
    if (!is_in_range(c, &p)) return err_null(option_error(c, DDL_OPTION_PERCENTILE, text));
    if (c->cassandra_mode) return print_policy(c, &p);
    return p.kind == FIXED ? text : arena_printf(c->arena, "%.*sPERCENTILE", (int)p.n_digits, text);
}
