#include "control_plane/form.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "control_plane/moment.h"
#include "types/type.h"

enum { ENTRIES = 50000 };

struct form_entry {
    struct slice path, value; /* decoded */
    uint32_t at;              /* in the body */
};

/* ---- text of a form ---- */

static int hex_digit(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes + as a blank and %XX as a byte. Returns false when the result is not UTF-8. */
static bool decode(struct arena *a, struct slice s, struct slice *out) {
    struct err not_utf8 = {0};
    uint8_t *to = arena_alloc(a, s.n + 1);
    size_t n = 0;
    if (!to) return false;
    for (size_t i = 0; i < s.n; i++) {
        int high = s.p[i] == '%' && i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1,
            low = high < 0 ? -1 : hex_digit(s.p[i + 2]);
        if (s.p[i] == '%' && low < 0) return false;
        to[n++] = s.p[i] == '+' ? ' ' : low < 0 ? s.p[i] : (uint8_t)(high << 4 | low);
        i += low < 0 ? 0 : 2;
    }
    to[n] = 0;
    *out = slice_of(to, n);
    return !memchr(to, 0, n) && cql_value_validate(cql_type_scalar(CQL_TEXT), *out, &not_utf8) == 0;
}

/* Takes the next "name=value" off the front. Returns false when nothing is left. */
static bool next_pair(struct slice *body, struct slice *name, struct slice *value) {
    if (!body->n) return false;
    const uint8_t *end = memchr(body->p, '&', body->n);
    size_t n = end ? (size_t)(end - body->p) : body->n;
    const uint8_t *equals = memchr(body->p, '=', n);
    size_t name_n = equals ? (size_t)(equals - body->p) : n;
    *name = slice_of(body->p, name_n);
    *value = slice_of(body->p + name_n + (equals != NULL), n - name_n - (equals != NULL));
    *body = slice_of(body->p + n + (end != NULL), body->n - n - (end != NULL));
    return true;
}

const char *form_find(struct arena *a, struct slice body, const char *name) {
    struct slice key, value;
    while (next_pair(&body, &key, &value))
        if (slice_is(key, name)) return decode(a, value, &value) ? (const char *)value.p : NULL;
    return NULL;
}

/* ---- paths: "a.member.10.b" comes after "a.member.2.b" ---- */

static struct slice first_part(struct slice path) {
    const uint8_t *dot = path.n ? memchr(path.p, '.', path.n) : NULL;
    return dot ? slice_of(path.p, (size_t)(dot - path.p)) : path;
}

static struct slice behind(struct slice path, struct slice part) {
    size_t skip = part.n + (part.n < path.n);
    return slice_of(path.p + skip, path.n - skip);
}

static bool is_number(struct slice s) {
    size_t i = 0;
    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9') i++;
    return s.n && i == s.n;
}

static int entry_order(const void *x, const void *y) {
    const struct form_entry *a = x, *b = y;
    struct slice left = a->path, right = b->path;
    while (left.n && right.n) {
        struct slice l = first_part(left), r = first_part(right);
        bool by_length = is_number(l) && is_number(r) && l.n != r.n;
        int c = by_length ? 0 : memcmp(l.p, r.p, l.n < r.n ? l.n : r.n);
        if (c) return c;
        if (l.n != r.n) return l.n < r.n ? -1 : 1;
        left = behind(left, l);
        right = behind(right, r);
    }
    if (left.n != right.n) return left.n ? 1 : -1;
    return (a->at > b->at) - (a->at < b->at);
}

/* ---- the tree ---- */

static struct doc *add(struct arena *a, struct doc *to, struct slice name, enum doc_kind kind, uint32_t *n_nodes) {
    struct doc *d = ++*n_nodes > DOCUMENT_NODES ? NULL : doc_new(a, kind);
    if (!d) return NULL;
    d->name = name;
    doc_append(to, d);
    return d;
}

/* Adds an entry to the tree, with the maps of its path. Entries are sorted, so that a map which
 * this path needs and which exists already is the last of its parent. */
static bool put_entry(struct arena *a, struct doc *root, const struct form_entry *x, uint32_t *n_nodes) {
    struct doc *at = root;
    struct slice path = x->path;
    for (uint32_t depth = 0; depth < DOCUMENT_DEPTH; depth++) {
        struct slice part = first_part(path);
        path = behind(path, part);
        if (!path.n) {
            struct doc *leaf = add(a, at, part, DOC_TEXT, n_nodes);
            if (leaf) leaf->text = x->value;
            return leaf != NULL;
        }
        bool open = at->last && at->last->kind == DOC_MAP && slice_eq(at->last->name, part);
        at = open ? at->last : add(a, at, part, DOC_MAP, n_nodes);
        if (!at) return false;
    }
    return false;
}

static struct form_entry *read_entries(struct arena *a, struct slice body, uint32_t *n) {
    uint32_t most = 1;
    for (size_t i = 0; i < body.n; i++) most += body.p[i] == '&';
    struct form_entry *list = most > ENTRIES ? NULL : ARENA_ARRAY(a, most, struct form_entry);
    struct slice name, value;
    *n = 0;
    while (list && next_pair(&body, &name, &value)) {
        if (!name.n && !value.n) continue;
        struct form_entry *x = &list[*n];
        x->at = (*n)++;
        if (!decode(a, name, &x->path) || !decode(a, value, &x->value)) return NULL;
    }
    return list;
}

struct doc *form_read(struct arena *a, struct slice body, struct err *e) {
    uint32_t n, n_nodes = 0;
    struct form_entry *list = read_entries(a, body, &n);
    struct doc *root = list ? doc_new(a, DOC_MAP) : NULL;
    if (list) qsort(list, n, sizeof(*list), entry_order);
    for (uint32_t i = 0; root && i < n; i++)
        if (!put_entry(a, root, &list[i], &n_nodes)) root = NULL;
    if (!root) err_invalid(e, "The body is not a form of UTF-8, or too deep or too large");
    return root;
}

/* ---- XML ---- */

/* Writes a text. Bytes that XML cannot express become question marks. */
static void put_escaped(struct slice s, struct buf *out) {
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (c == '&') buf_put_str(out, "&amp;");
        else if (c == '<') buf_put_str(out, "&lt;");
        else if (c == '>') buf_put_str(out, "&gt;");
        else buf_u8(out, c < ' ' && c != '\t' && c != '\n' ? '?' : c);
    }
}

static void put_value(const struct doc *d, struct buf *out);

static void put_items(const struct doc *d, struct buf *out) {
    for (const struct doc *x = d->first; x; x = x->next) {
        struct slice name = d->kind == DOC_MAP ? x->name : slice_str("member");
        buf_printf(out, "<%.*s>", SLICE_FMT(name));
        put_value(x, out);
        buf_printf(out, "</%.*s>", SLICE_FMT(name));
    }
}

static void put_value(const struct doc *d, struct buf *out) {
    char text[MOMENT_TEXT];
    switch (d->kind) {
    case DOC_NULL: break;
    case DOC_FLAG: buf_put_str(out, d->flag ? "true" : "false"); break;
    case DOC_WHOLE: buf_printf(out, "%" PRId64, d->whole); break;
    case DOC_REAL:
        isfinite(d->real) ? buf_printf(out, "%.17g", d->real)
                          : buf_put_str(out, isnan(d->real) ? "NaN"
                                             : d->real < 0  ? "-Infinity"
                                                            : "Infinity");
        break;
    case DOC_TEXT: put_escaped(d->text, out); break;
    case DOC_MOMENT:
        moment_write(d->whole, text);
        buf_put_str(out, text);
        break;
    case DOC_LIST:
    case DOC_MAP: put_items(d, out); break;
    }
}

void form_write_answer(const struct doc *d, const char *xmlns, const char *operation, const char *request_id,
                       struct buf *out) {
    buf_printf(out, "<%sResponse xmlns=\"%s\"><%sResult>", operation, xmlns, operation);
    put_items(d, out);
    buf_printf(out, "</%sResult><ResponseMetadata><RequestId>%s</RequestId></ResponseMetadata></%sResponse>", operation,
               request_id, operation);
}

void form_write_error(const char *xmlns, bool of_sender, const char *code, const char *message, const char *request_id,
                      struct buf *out) {
    buf_printf(out, "<ErrorResponse xmlns=\"%s\"><Error><Type>%s</Type><Code>%s</Code><Message>", xmlns,
               of_sender ? "Sender" : "Receiver", code);
    put_escaped(slice_str(message), out);
    buf_printf(out, "</Message></Error><RequestId>%s</RequestId></ErrorResponse>", request_id);
}
