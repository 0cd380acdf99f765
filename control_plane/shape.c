#include "control_plane/shape.h"

#include <ctype.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

#include "control_plane/moment.h"

enum kind { TEXTUAL, CHOICE, NUMERIC, BOOLEAN, TIME, LISTING, NAMED, MAPPING };

struct shape {
    enum kind kind;
    bool whole;
    int64_t least, most;
    const char *pattern, *values;
    enum shape_id of, key; /* of: items or values; key: of a dictionary's names */
};

/* Patterns as the service model writes them. */
#define XML_TEXT "[\\u0020-\\uD7FF\\uE000-\\uFFFD\\uD800\\uDC00-\\uDBFF\\uDFFF\\r\\n\\t]*"
#define PRINTABLE "\\p{Print}+"

static const struct shape shapes[SHAPES] = {
#define TEXT(name, least_, most_, pattern_) \
    [SHAPE_##name] = {.kind = TEXTUAL, .least = least_, .most = most_, .pattern = pattern_},
#define ENUM(name, values_) [SHAPE_##name] = {.kind = CHOICE, .values = values_},
#define NUMBER(name, whole_, least_, most_) \
    [SHAPE_##name] = {.kind = NUMERIC, .whole = whole_, .least = least_, .most = most_},
#define FLAG(name) [SHAPE_##name] = {.kind = BOOLEAN},
#define MOMENT(name) [SHAPE_##name] = {.kind = TIME},
#define LIST(name, of_, least_, most_) \
    [SHAPE_##name] = {.kind = LISTING, .of = SHAPE_##of_, .least = least_, .most = most_},
#define DICTIONARY(name, key_, value_) [SHAPE_##name] = {.kind = NAMED, .key = SHAPE_##key_, .of = SHAPE_##value_},
#define STRUCTURE(name) [SHAPE_##name] = {.kind = MAPPING},
#include "control_plane/shape.def"
};

struct shape_member {
    enum shape_id of, shape;
    const char *name;
    bool required;
};

static const struct shape_member members[] = {
#define MEMBER(of_, name_, shape_, required_) \
    {.of = SHAPE_##of_, .shape = SHAPE_##shape_, .name = #name_, .required = required_},
#include "control_plane/shape.def"
};

/* A running check: its path in the document, and the breaches that it has found. */
struct shape_checking {
    char path[512];
    struct buf found;
    uint32_t n_found;
    bool other_kind;
};

/* ---- breaches ---- */

enum { FOUND_MOST = 10, VALUE_SHOWN = 256 };

static void put_value(const struct doc *d, struct buf *out) {
    switch (d ? d->kind : DOC_NULL) {
    case DOC_TEXT:
        buf_printf(out, "'%.*s'", (int)(d->text.n < VALUE_SHOWN ? d->text.n : VALUE_SHOWN), (const char *)d->text.p);
        break;
    case DOC_WHOLE: buf_printf(out, "'%" PRId64 "'", d->whole); break;
    case DOC_REAL: buf_printf(out, "'%g'", d->real); break;
    case DOC_LIST: buf_put_str(out, "'[]'"); break;
    default: buf_put_str(out, "null");
    }
}

static void find(struct shape_checking *c, const struct doc *d, const char *constraint, const char *of) {
    if (c->n_found++ >= FOUND_MOST) return;
    if (c->found.n) buf_put_str(&c->found, "; ");
    buf_put_str(&c->found, "Value ");
    put_value(d, &c->found);
    buf_printf(&c->found, " at '%s' failed to satisfy constraint: Member must %s%s", c->path, constraint, of);
}

static void find_bound(struct shape_checking *c, const struct doc *d, const char *what, int64_t bound) {
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, bound);
    find(c, d, what, text);
}

static size_t enter(struct shape_checking *c, const char *name, int64_t index) {
    size_t n = strlen(c->path);
    if (name)
        snprintf(c->path + n, sizeof(c->path) - n, "%s%c%s", n ? "." : "", tolower((unsigned char)*name), name + 1);
    else snprintf(c->path + n, sizeof(c->path) - n, ".%" PRId64 ".member", index);
    return n;
}

/* ---- values ---- */

static bool fits_pattern(const char *pattern, const struct doc *d) {
    char whole[256], text[8192];
    regex_t r;
    /* Two of the model's patterns have another form in POSIX. */
    const char *posix = !strcmp(pattern, XML_TEXT)    ? "[^\x01-\x08\x0B\x0C\x0E-\x1F]*"
                        : !strcmp(pattern, PRINTABLE) ? "[ -~]+"
                                                      : pattern;
    snprintf(whole, sizeof(whole), "^(%s)$", posix);
    if (d->text.n >= sizeof(text) || memchr(d->text.p, 0, d->text.n) || regcomp(&r, whole, REG_EXTENDED | REG_NOSUB))
        return false;
    memcpy(text, d->text.p, d->text.n);
    text[d->text.n] = 0;
    bool fits = regexec(&r, text, 0, NULL, 0) == 0;
    regfree(&r);
    return fits;
}

static void check_choice(struct shape_checking *c, const struct shape *s, const struct doc *d) {
    char all[2048];
    for (const char *at = s->values; *at;) {
        size_t n = strcspn(at, ",");
        if (d->text.n == n && !memcmp(d->text.p, at, n)) return;
        at += n + (at[n] ? 2 : 0);
    }
    snprintf(all, sizeof(all), "[%s]", s->values);
    find(c, d, "satisfy enum value set: ", all);
}

/* ---- documents ---- */

static bool is_of_kind(const struct shape *s, const struct doc *d) {
    switch (s->kind) {
    case TEXTUAL:
    case CHOICE: return d->kind == DOC_TEXT && !memchr(d->text.p, 0, d->text.n);
    case NUMERIC: return d->kind == DOC_WHOLE || (d->kind == DOC_REAL && !s->whole);
    case TIME: return d->kind == DOC_WHOLE || d->kind == DOC_REAL;
    case BOOLEAN: return d->kind == DOC_FLAG;
    case LISTING: return d->kind == DOC_LIST;
    case NAMED:
    case MAPPING: return d->kind == DOC_MAP;
    }
    return false;
}

/* Checks a node and all below it. The recursion is as deep as the model, which is finite. */
static void check_doc(struct shape_checking *c, enum shape_id id, const struct doc *d) {
    const struct shape *s = &shapes[id];
    if (!is_of_kind(s, d)) {
        c->other_kind = true;
        return;
    }
    switch (s->kind) {
    case TEXTUAL: {
        size_t n = 0; /* characters */
        for (size_t i = 0; i < d->text.n; i++) n += (d->text.p[i] & 0xC0) != 0x80;
        if ((int64_t)n > s->most) find_bound(c, d, "have length less than or equal to ", s->most);
        if ((int64_t)n < s->least) find_bound(c, d, "have length greater than or equal to ", s->least);
        if (s->pattern && !fits_pattern(s->pattern, d)) find(c, d, "satisfy regular expression pattern: ", s->pattern);
        break;
    }
    case CHOICE: check_choice(c, s, d); break;
    case NUMERIC:
        if (s->whole && d->whole > s->most) find_bound(c, d, "have value less than or equal to ", s->most);
        if (s->whole && d->whole < s->least) find_bound(c, d, "have value greater than or equal to ", s->least);
        break;
    case LISTING: {
        int64_t i = 0;
        if (d->n > s->most) find_bound(c, d, "have length less than or equal to ", s->most);
        if (d->n < s->least) find_bound(c, d, "have length greater than or equal to ", s->least);
        for (const struct doc *x = d->first; x; x = x->next) {
            size_t at = enter(c, NULL, ++i);
            check_doc(c, s->of, x);
            c->path[at] = 0;
        }
        break;
    }
    case NAMED:
        for (const struct doc *x = d->first; x; x = x->next) {
            struct doc key = {.kind = DOC_TEXT, .text = x->name};
            check_doc(c, s->key, &key);
            check_doc(c, s->of, x);
        }
        break;
    case MAPPING:
        for (size_t i = 0; i < ARRAY_LEN(members); i++) {
            if (members[i].of != id) continue;
            const struct doc *x = doc_get(d, members[i].name);
            size_t at = enter(c, members[i].name, 0);
            if (x) check_doc(c, members[i].shape, x);
            else if (members[i].required) find(c, NULL, "not be null", "");
            c->path[at] = 0;
        }
        break;
    case BOOLEAN:
    case TIME: break;
    }
}

enum shape_verdict shape_check(enum shape_id shape, const struct doc *d, struct err *e) {
    struct shape_checking c = {0};
    buf_init(&c.found, 0);
    check_doc(&c, shape, d);
    bool found = c.n_found > 0;
    if (c.other_kind) err_invalid(e, "A member has a value of another type than the model gives it");
    else if (found)
        err_invalid(e, "%u validation error%s detected: %.*s", c.n_found, c.n_found == 1 ? "" : "s",
                    SLICE_FMT(buf_slice(&c.found)));
    buf_fini(&c.found);
    return c.other_kind ? SHAPE_OF_OTHER_KIND : found ? SHAPE_INVALID : SHAPE_FITS;
}

/* ---- forms, in which all values are texts ---- */

static void convert_number(const struct shape *s, struct doc *d) {
    char text[64], *end;
    if (!d->text.n || d->text.n >= sizeof(text) || memchr(d->text.p, 0, d->text.n)) return;
    memcpy(text, d->text.p, d->text.n);
    text[d->text.n] = 0;
    if (isspace((unsigned char)*text)) return;
    int64_t whole = strtoll(text, &end, 10);
    if (!*end) {
        d->kind = DOC_WHOLE;
        d->whole = whole;
        return;
    }
    double real = strtod(text, &end);
    if (*end || s->whole) return;
    d->kind = DOC_REAL;
    d->real = real;
}

/* Turns {"member": {"1": a, "2": b}} into the list of a and b. form_read has sorted the numbers. */
static void convert_list(struct doc *d) {
    const struct doc *numbered = doc_get(d, "member");
    if (d->kind != DOC_MAP || d->n != 1 || !numbered || numbered->kind != DOC_MAP) return;
    *d = (struct doc){.kind = DOC_LIST,
                      .name = d->name,
                      .n = numbered->n,
                      .first = numbered->first,
                      .last = numbered->last,
                      .next = d->next};
}

void shape_convert_texts(enum shape_id id, struct doc *d) {
    const struct shape *s = &shapes[id];
    if (d->kind == DOC_TEXT) {
        if (s->kind == NUMERIC) convert_number(s, d);
        if (s->kind == TIME && moment_read(d->text, &d->real)) d->kind = DOC_REAL;
        if (s->kind == BOOLEAN && (slice_is(d->text, "true") || slice_is(d->text, "false"))) {
            d->flag = slice_is(d->text, "true");
            d->kind = DOC_FLAG;
        }
        if (s->kind == LISTING && !d->text.n) d->kind = DOC_LIST; /* an empty list */
    }
    if (s->kind == LISTING) convert_list(d);
    for (struct doc *x = d->first; x; x = x->next) {
        if (d->kind == DOC_LIST) shape_convert_texts(s->of, x);
        for (size_t i = 0; d->kind == DOC_MAP && s->kind == MAPPING && i < ARRAY_LEN(members); i++)
            if (members[i].of == id && slice_is(x->name, members[i].name)) shape_convert_texts(members[i].shape, x);
    }
}
