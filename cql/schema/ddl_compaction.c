/* The values of compaction's sub-options, which are stored and shown and refused when Cassandra would refuse them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "cql/schema/ddl.h"

enum {
    STCS = COMPACTION_STCS, LCS = COMPACTION_LCS, TWCS = COMPACTION_TWCS, UCS = COMPACTION_UCS, DTCS = COMPACTION_DTCS,
    ANY = STCS | LCS | TWCS | UCS | DTCS
};
enum kind { INT, REAL, FLAG, CHOICE, ANYCASE, UPPER };

struct compaction_rule {
    unsigned strategies;
    const char *name;
    enum kind kind;
    int64_t low;
    const char *parse_words, *range_words;
};

static const struct compaction_rule rules[] = {
#define COMPACTION_OPTION(strategies, name, kind, low, parse_words, range_words) \
    {strategies, name, kind, low, parse_words, range_words},
#include "cql/schema/compaction_option.def"
#undef COMPACTION_OPTION
};

static const char *find(const struct option_list *given, const char *name) {
    for (uint32_t i = 0; i < given->n; i++)
        if (strcmp(strchr(given->items[i].name, '.') + 1, name) == 0) return given->items[i].value;
    return NULL;
}

/* words with the value in place of %s. */
static int refuse(struct compile *c, const char *words, const char *value) {
    const char *hole = strstr(words, "%s");
    return err_set(c->err, ERR_CONFIG, "%.*s%s%s", (int)(hole - words), words, value, hole + 2);
}

static bool parse_int(const char *text, int64_t max, int64_t *out) {
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return *text && !*end && errno == 0 && *out <= max;
}

static bool parse_real(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return *text && !*end && isfinite(*out);
}

static bool is_choice(const char *value, const char *choices) {
    size_t n = strlen(value), length;
    for (const char *p = choices; *p && *p != ' '; p += length + 1) {
        length = strcspn(p, "|:");
        if (length == n && strncmp(p, value, n) == 0) return true;
    }
    return false;
}

static int check_choice(struct compile *c, const struct compaction_rule *r, const char *value) {
    char *text = arena_printf(c->arena, "%s", value);
    if (!text) return err_nomem(c->err);
    for (char *p = text; r->kind != CHOICE && *p; p++)
        if (*p >= 'a' && *p <= 'z') *p -= 'a' - 'A';
    return is_choice(text, r->parse_words)
               ? 0
               : refuse(c, strchr(r->parse_words, ' ') + 1, r->kind == UPPER ? text : value);
}

static int check(struct compile *c, const struct compaction_rule *r, const char *value) {
    int64_t n;
    double d;
    char text[64];
    switch (r->kind) {
    case INT:
        if (!parse_int(value, strcmp(r->name, "min_sstable_size") == 0 ? INT64_MAX : INT32_MAX, &n))
            return refuse(c, r->parse_words, value);
        return n < r->low ? refuse(c, r->range_words, value) : 0;
    case REAL:
        if (!parse_real(value, &d)) return refuse(c, r->parse_words, value);
        snprintf(text, sizeof text, "%f", d);
        return d < (double)r->low ? refuse(c, r->range_words, text) : 0;
    case FLAG: return strcasecmp(value, "true") && strcasecmp(value, "false") ? refuse(c, r->parse_words, value) : 0;
    case CHOICE:
    case ANYCASE:
    case UPPER: return check_choice(c, r, value);
    }
    return 0;
}

/* As Java prints a double of this size. */
static void print_real(double d, char text[32]) {
    snprintf(text, 32, "%.15g", d);
    if (!strpbrk(text, ".e")) strcat(text, ".0");
}

static int check_buckets(struct compile *c, const struct option_list *given) {
    const char *low = find(given, "bucket_low"), *high = find(given, "bucket_high");
    char texts[2][32];
    double l = low ? strtod(low, NULL) : 0.5, h = high ? strtod(high, NULL) : 1.5;
    if (h > l) return 0;
    print_real(l, texts[0]);
    print_real(h, texts[1]);
    return err_set(c->err, ERR_CONFIG, "bucket_high value (%s) is less than or equal to the bucket_low value (%s)",
                   texts[1], texts[0]);
}

int compaction_check(struct compile *c, enum compaction_strategy strategy, const struct option_list *given) {
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        const char *value = rules[i].strategies & strategy ? find(given, rules[i].name) : NULL;
        if (value && check(c, &rules[i], value)) return -1;
    }
    return strategy & (STCS | TWCS) ? check_buckets(c, given) : 0;
}
