#include "metering/limits/limit.h"

#include <errno.h>
#include <stdlib.h>

static const struct limit_info infos[] = {
#define LIMIT(id, name_, value_, unit_, what_, confidence_, source_) \
    [LIMIT_##id] = { \
        .name = name_, .unit = unit_, .what = what_, .confidence = confidence_, .source = source_, .value = value_},
#include "metering/limits/limit.def"
#undef LIMIT
};

static const char *const modes[] = {[LIMITS_OFF] = "off", [LIMITS_SHADOW] = "shadow", [LIMITS_ENFORCE] = "enforce"};

const struct limit_info *limit_info(enum limit_id id) { return &infos[id]; }
const char *limit_mode_name(enum limit_mode m) { return modes[m]; }

int limit_mode_of(struct slice name) {
    for (int m = LIMITS_OFF; m <= LIMITS_ENFORCE; m++)
        if (slice_is(name, modes[m])) return m;
    return -1;
}

/* The next "left=right" of a list; false at its end. */
static bool next_pair(const char **text, struct slice *left, struct slice *right) {
    if (!**text) return false;
    size_t n = strcspn(*text, ","), equals = strcspn(*text, "=,");
    *left = slice_of(*text, equals);
    *right = equals < n ? slice_of(*text + equals + 1, n - equals - 1) : slice_of(*text + n, 0);
    *text += n + ((*text)[n] == ',');
    return true;
}

static int parse_value(struct slice text, int64_t *out) {
    enum { DIGITS = 12 };
    char copy[DIGITS + 1], *end;
    if (!text.n || text.n > DIGITS || text.p[0] < '0' || text.p[0] > '9') return -1;
    memcpy(copy, text.p, text.n);
    copy[text.n] = 0;
    *out = strtoll(copy, &end, 10);
    return *end || *out < 1 || *out > LIMIT_VALUE_MAX ? -1 : 0;
}

int limit_values_parse(const char *text, struct limit_values *out, struct err *e) {
    struct slice name, value;
    for (int i = 0; i < LIMITS; i++) out->of[i] = infos[i].value;
    while (next_pair(&text, &name, &value)) {
        int id = 0;
        while (id < LIMITS && !slice_is(name, infos[id].name)) id++;
        if (id == LIMITS) return err_set(e, ERR_CONFIG, "--limit-values: there is no limit '%.*s'", SLICE_FMT(name));
        if (parse_value(value, &out->of[id]))
            return err_set(e, ERR_CONFIG, "--limit-values: %s must be a number from 1 to %lld, not '%.*s'",
                           infos[id].name, (long long)LIMIT_VALUE_MAX, SLICE_FMT(value));
    }
    return 0;
}

static int parse_rule(struct slice name, struct slice mode, struct limit_rule *out, struct err *e) {
    const uint8_t *dot = memchr(name.p, '.', name.n);
    size_t n = dot ? (size_t)(dot - name.p) : 0;
    if (!n || n >= sizeof(out->keyspace) || name.n - n - 1 == 0 || name.n - n - 1 >= sizeof(out->table))
        return err_set(e, ERR_CONFIG, "--table-limits: '%.*s' is not keyspace.table or keyspace.*", SLICE_FMT(name));
    int m = limit_mode_of(mode);
    if (m < 0)
        return err_set(e, ERR_CONFIG, "--table-limits: %.*s must be off, shadow or enforce, not '%.*s'",
                       SLICE_FMT(name), SLICE_FMT(mode));
    *out = (struct limit_rule){.mode = (enum limit_mode)m};
    memcpy(out->keyspace, name.p, n);
    memcpy(out->table, dot + 1, name.n - n - 1);
    return 0;
}

int limit_rules_parse(const char *text, struct limit_rules *out, struct err *e) {
    struct slice name, mode;
    out->n = 0;
    while (next_pair(&text, &name, &mode)) {
        if (out->n == LIMIT_RULES) return err_set(e, ERR_CONFIG, "--table-limits: more than %d tables", LIMIT_RULES);
        if (parse_rule(name, mode, &out->rules[out->n++], e)) return -1;
    }
    return 0;
}

enum limit_mode limit_rules_find(const struct limit_rules *r, const char *keyspace, const char *table,
                                 enum limit_mode otherwise) {
    for (uint32_t i = 0; i < r->n; i++) {
        const struct limit_rule *rule = &r->rules[i];
        if (!strcmp(rule->keyspace, keyspace) && (!strcmp(rule->table, "*") || !strcmp(rule->table, table)))
            return rule->mode;
    }
    return otherwise;
}
