#include "system_schema/ddl/ddl_delay.h"

#include <math.h>
#include <stdlib.h>

/* ---- statements ---- */

static const struct ddl_statement {
    const char *words;
    int64_t min_s, max_s;
} statements[] = {
#define DDL_STATEMENT(words_, min_s_, max_s_) {.words = words_, .min_s = min_s_, .max_s = max_s_},
#include "system_schema/ddl/ddl_statement.def"
#undef DDL_STATEMENT
};

static const struct ddl_statement *find_statement(const char *words) {
    for (size_t i = 0; i < ARRAY_LEN(statements); i++)
        if (strcmp(statements[i].words, words) == 0) return &statements[i];
    return NULL;
}

bool ddl_statement_is_known(const char *statement) { return find_statement(statement); }

void ddl_statement_list(struct buf *out) {
    for (size_t i = 0; i < ARRAY_LEN(statements); i++) buf_printf(out, "%s%s", i ? ", " : "", statements[i].words);
}

/* ---- reading ---- */

struct reader {
    const char *at;
};

static bool take(struct reader *r, const char *word) {
    size_t n = strlen(word);
    while (*r->at == ' ') r->at++;
    if (strncmp(r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

static bool take_whole(struct reader *r, uint64_t max, uint64_t *out) {
    char *end;
    while (*r->at == ' ') r->at++;
    if (*r->at < '0' || *r->at > '9') return false;
    *out = strtoull(r->at, &end, 10);
    r->at = end;
    return *out <= max;
}

static bool take_ms(struct reader *r, int64_t *out) {
    uint64_t v;
    if (!take_whole(r, DDL_DELAY_MAX_MS, &v)) return false;
    *out = (int64_t)v;
    return true;
}

static bool take_sigma(struct reader *r, double *out) {
    char *end;
    while (*r->at == ' ') r->at++;
    if (*r->at < '0' || *r->at > '9') return false;
    *out = strtod(r->at, &end);
    r->at = end;
    return *out <= 10;
}

/* [, seed] ) */
static bool take_seed(struct reader *r, struct ddl_delay *d) {
    d->seeded = take(r, ",");
    return (!d->seeded || take_whole(r, UINT64_MAX, &d->seed)) && take(r, ")");
}

static bool take_delay(struct reader *r, struct ddl_delay *d) {
    if (take(r, "none")) return true;
    d->kind = take(r, "held") ? DDL_HELD : take(r, "realistic") ? DDL_REALISTIC : DDL_FIXED;
    if (d->kind != DDL_FIXED) return true;
    if (take(r, "uniform(")) {
        d->kind = DDL_RANGE;
        return take_ms(r, &d->min_ms) && take(r, ",") && take_ms(r, &d->max_ms) && d->min_ms <= d->max_ms &&
               take_seed(r, d);
    }
    if (take(r, "lognormal(")) {
        d->kind = DDL_LOGNORMAL;
        return take_ms(r, &d->min_ms) && take(r, ",") && take_sigma(r, &d->sigma) && take_seed(r, d);
    }
    if (!take_ms(r, &d->min_ms)) return false;
    d->max_ms = d->min_ms;
    if (!take(r, "..")) return true;
    d->kind = DDL_RANGE;
    return take_ms(r, &d->max_ms) && d->min_ms <= d->max_ms;
}

int ddl_delay_parse(const char *text, struct ddl_delay *out, struct err *e) {
    struct reader r = {text};
    *out = (struct ddl_delay){.kind = DDL_NONE};
    if (take_delay(&r, out) && r.at[strspn(r.at, " ")] == 0) return 0;
    return err_invalid(e,
                       "'%s' is no DDL delay: none, MS, MIN-MS..MAX-MS, uniform(MIN-MS, MAX-MS[, SEED]), "
                       "lognormal(MEDIAN-MS, SIGMA[, SEED]), "
                       "realistic or held",
                       text);
}

/* ---- drawing ---- */

static uint64_t next_random(uint64_t *random) {
    uint64_t x = *random += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* A uniform random number in (0, 1). */
static double next_even(uint64_t *random) { return ((double)(next_random(random) >> 11) + 0.5) / 9007199254740992.0; }

static int64_t draw_range(int64_t min_ms, int64_t max_ms, uint64_t *random) {
    return (min_ms + (int64_t)(next_random(random) % (uint64_t)(max_ms - min_ms + 1))) * 1000;
}

int64_t ddl_delay_draw(const struct ddl_delay *d, const char *statement, uint64_t *random) {
    const struct ddl_statement *s;
    double ms, u, v;
    switch (d->kind) {
    case DDL_NONE: return 0;
    case DDL_FIXED: return d->min_ms * 1000;
    case DDL_RANGE: return draw_range(d->min_ms, d->max_ms, random);
    case DDL_REALISTIC:
        s = find_statement(statement);
        return s ? draw_range(s->min_s * 1000, s->max_s * 1000, random) : 0;
    case DDL_LOGNORMAL:
        u = next_even(random);
        v = next_even(random);
        /* A normal random number, by the Box-Muller method, is the exponent. */
        ms = (double)d->min_ms * exp(d->sigma * (sqrt(-2 * log(u)) * cos(6.283185307179586 * v)));
        return ms < DDL_DELAY_MAX_MS ? (int64_t)(ms * 1000) : (int64_t)DDL_DELAY_MAX_MS * 1000;
    case DDL_HELD: break;
    }
    return -1;
}
