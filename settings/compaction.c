/* The values of compaction's sub-options, which are stored and shown and refused when Cassandra would refuse them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "settings/value.h"

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
#include "settings/compaction_option.def"
#undef COMPACTION_OPTION
};

/* words with the value in place of %s. */
static int refuse(const struct setting_context *c, const char *words, const char *value) {
    const char *hole = strstr(words, "%s");
    return err_set(c->err, ERR_CONFIG, "%.*s%s%s", (int)(hole - words), words, value, hole + 2);
}

/* parse_words of a choice: the values with | between, then a blank and the words of the error. */
static int check_choice(const struct setting_context *c, const struct compaction_rule *r, const char *value) {
    char *text = arena_printf(c->arena, "%s", value);
    if (!text) return err_nomem(c->err);
    for (char *p = text; r->kind != CHOICE && *p; p++)
        if (*p >= 'a' && *p <= 'z') *p -= 'a' - 'A';
    size_t n = strlen(text), length;
    for (const char *p = r->parse_words; *p && *p != ' '; p += length + 1) {
        length = strcspn(p, "|:");
        if (length == n && strncmp(p, text, n) == 0) return 0;
    }
    return refuse(c, strchr(r->parse_words, ' ') + 1, r->kind == UPPER ? text : value);
}

static int check(const struct setting_context *c, const struct compaction_rule *r, const char *value) {
    int64_t n, most = strcmp(r->name, "min_sstable_size") == 0 ? INT64_MAX : INT32_MAX;
    double d;
    char text[64], *end;
    switch (r->kind) {
    case INT:
        errno = 0;
        n = strtoll(value, &end, 10);
        if (!*value || *end || errno || n > most) return refuse(c, r->parse_words, value);
        return n < r->low ? refuse(c, r->range_words, value) : 0;
    case REAL:
        d = strtod(value, &end);
        if (!*value || *end || !isfinite(d)) return refuse(c, r->parse_words, value);
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

static const char *find(const struct setting_map *given, const char *name) {
    return option_find(given->entries, given->n, name);
}

int compaction_check(const struct setting_context *c, enum compaction_strategy strategy,
                     const struct setting_map *given) {
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        const char *value = rules[i].strategies & strategy ? find(given, rules[i].name) : NULL;
        if (value && check(c, &rules[i], value)) return -1;
    }
    const char *low = find(given, "bucket_low"), *high = find(given, "bucket_high");
    double l = low ? strtod(low, NULL) : 0.5, h = high ? strtod(high, NULL) : 1.5;
    if (!(strategy & (STCS | TWCS)) || h > l) return 0;
    char texts[2][32];
    print_real(l, texts[0]);
    print_real(h, texts[1]);
    return err_set(c->err, ERR_CONFIG, "bucket_high value (%s) is less than or equal to the bucket_low value (%s)",
                   texts[1], texts[0]);
}
