/* Names of JMX objects, "domain:key=value,key=value", which GRANT ... ON MBEAN names. This server has none. */
#include "cql/syntax/build.h"

enum { PROPERTIES_MAX = 64 };

struct reader {
    const char *p, *end;
    bool pattern, any, open; /* any: a * for further properties was read; open: it was read last */
    uint32_t n;
    struct slice keys[PROPERTIES_MAX];
};

static bool read_key(struct reader *r) {
    const char *from = r->p;
    while (r->p < r->end && *r->p != '=' && !strchr("*?,:\n", *r->p)) r->p++;
    if (r->p == r->end || *r->p != '=' || r->p == from) return false;
    struct slice key = slice_of(from, (size_t)(r->p++ - from));
    for (uint32_t i = 0; i < r->n; i++)
        if (slice_eq(r->keys[i], key)) return false;
    if (r->n == PROPERTIES_MAX) return false;
    r->keys[r->n++] = key;
    return true;
}

static bool read_value(struct reader *r) {
    if (r->p < r->end && *r->p == '"') {
        for (r->p++; r->p < r->end && *r->p != '"'; r->p++) {
            if (*r->p == '\n') return false;
            if (*r->p == '*' || *r->p == '?') r->pattern = true;
            if (*r->p == '\\' && (++r->p == r->end || !*r->p || !strchr("\\\"?*n", *r->p))) return false;
        }
        return r->p < r->end && (++r->p == r->end || *r->p == ',');
    }
    for (; r->p < r->end && *r->p != ','; r->p++) {
        if (strchr("=:\"\n", *r->p)) return false;
        if (*r->p == '*' || *r->p == '?') r->pattern = true;
    }
    return true;
}

bool object_name_read(struct slice s, bool *pattern) {
    struct reader r = {.p = (const char *)s.p, .end = (const char *)s.p + s.n};
    *pattern = false;
    for (; r.p < r.end && *r.p != ':'; r.p++) { /* the domain */
        if (*r.p == '\n') return false;
        if (*r.p == '*' || *r.p == '?') *pattern = r.pattern = true;
    }
    bool is = r.p < r.end && ++r.p < r.end;
    while (is && r.p < r.end) {
        r.open = *r.p == '*';
        if (r.open) {
            is = !r.any && (++r.p == r.end || *r.p == ',');
            r.any = r.pattern = true;
        } else {
            is = read_key(&r) && read_value(&r);
        }
        if (is && r.p < r.end && ++r.p == r.end) is = r.open; /* only after * may a comma be last */
    }
    *pattern = r.pattern;
    return is;
}
