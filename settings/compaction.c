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
    const char *choices; /* with | between */
    enum ddl_error_id no_value, too_small;
};

static const struct compaction_rule rules[] = {
#define COMPACTION_OPTION(strategies, name, kind, low, choices, no_value, too_small) \
    {strategies, name, kind, low, choices, DDL_SUB_##no_value, DDL_SUB_##too_small},
#include "settings/compaction_option.def"
#undef COMPACTION_OPTION
};

static int check_choice(const struct setting_context *c, const struct compaction_rule *r, const char *value) {
    char *text = arena_printf(c->arena, "%s", value);
    if (!text) return err_nomem(c->err);
    for (char *p = text; r->kind != CHOICE && *p; p++)
        if (*p >= 'a' && *p <= 'z') *p -= 'a' - 'A';
    size_t n = strlen(text), length;
    for (const char *p = r->choices; *p; p += length + (p[length] == '|')) {
        length = strcspn(p, "|");
        if (length == n && strncmp(p, text, n) == 0) return 0;
    }
    return option_error(c, r->no_value, r->kind == UPPER ? text : value, r->name);
}

static int check(const struct setting_context *c, const struct compaction_rule *r, const char *value) {
    int64_t n, most = strcmp(r->name, "min_sstable_size") == 0 ? INT64_MAX : INT32_MAX;
    double d;
    char text[64], *end;
    switch (r->kind) {
    case INT:
        errno = 0;
        n = strtoll(value, &end, 10);
        if (!*value || *end || errno || n > most) return option_error(c, r->no_value, value, r->name);
        return n < r->low ? option_error(c, r->too_small, value, r->name) : 0;
    case REAL:
        d = strtod(value, &end);
        if (!*value || *end || !isfinite(d)) return option_error(c, r->no_value, value, r->name);
        snprintf(text, sizeof text, r->too_small == DDL_SUB_AGE ? "%.2f" : "%f", d);
        return d < (double)r->low ? option_error(c, r->too_small, text, r->name) : 0;
    case FLAG:
        if (strcasecmp(value, "true") == 0 || strcasecmp(value, "false") == 0) return 0;
        return option_error(c, r->no_value, value, r->name);
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
    return option_error(c, DDL_BUCKET_ORDER, texts[1], texts[0]);
}
