#include <stdlib.h>

#include "system_schema/catalog.h"

static bool parse_ms(const char **at, int64_t *out) {
    char *end;
    if (**at < '0' || **at > '9') return false;
    long long v = strtoll(*at, &end, 10);
    *at = end;
    *out = v;
    return v <= 86400 * 1000LL;
}

int ddl_delay_parse(const char *text, struct ddl_delay *out, struct err *e) {
    *out = (struct ddl_delay){.kind = DDL_NONE};
    if (strcmp(text, "none") == 0) return 0;
    if (strcmp(text, "held") == 0) {
        out->kind = DDL_HELD;
        return 0;
    }
    if (strcmp(text, "realistic") == 0) {
        /* Samples of Keyspaces users wait up to 60 s; most tables are there within ten. */
        *out = (struct ddl_delay){.kind = DDL_REALISTIC, .min_ms = 2000, .max_ms = 30000};
        return 0;
    }
    const char *at = text;
    if (parse_ms(&at, &out->min_ms)) {
        out->kind = DDL_FIXED;
        out->max_ms = out->min_ms;
        if (*at == 0) return 0;
        out->kind = DDL_RANGE;
        if (strncmp(at, "..", 2) == 0 && (at += 2, parse_ms(&at, &out->max_ms)) && *at == 0 && out->min_ms <= out->max_ms) return 0;
    }
    return err_invalid(e, "'%s' is no DDL delay: none, MS, MIN-MS..MAX-MS, realistic or held", text);
}
