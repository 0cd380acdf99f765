/* CompositeType and DynamicCompositeType: several values in one, as Thrift's clients stored them
 * (CompositeType.java). The components follow one another:
 *
 *   [header] | length (2) | value | end (1)
 *
 * A static value begins with FF FF. The end is 0; in the bound of a range it is 1 or -1, and no
 * component follows. The components of a CompositeType have the types of its arguments. In a
 * DynamicCompositeType the header names the type: 80 and the letter of an alias, or a length and
 * the name of a class.
 *
 * A literal 0x... may have any bytes. Bytes that are no composite sort after all composites, by
 * their bytes.
 */
#include "types/family.h"

struct component {
    const struct cql_type *type;
    struct slice name, value; /* name: alias or class, as in the header; empty in a CompositeType */
    bool is_alias;
    int8_t end;
};

/* A walk over the components of a value. The arena holds the types of the classes that the value
 * names. */
struct walk {
    const struct cql_type *t;
    struct rd rd;
    struct arena arena;
    uint32_t at;
    bool is_static;
};

static void walk_open(struct walk *w, const struct cql_type *t, struct slice v) {
    *w = (struct walk){.t = t, .rd = rd_of(v.n ? v : slice_str(""))};
    arena_init(&w->arena, 1024, 1 << 20);
    w->is_static = v.n >= 2 && v.p[0] == 0xFF && v.p[1] == 0xFF;
    if (w->is_static) (void)rd_u16(&w->rd);
}

static void walk_close(struct walk *w) { arena_fini(&w->arena); }

static const struct cql_type *alias_of(const struct cql_type *t, char letter) {
    for (uint32_t i = 0; i < t->n_args; i++)
        if (t->field_names[i][0] == letter) return t->args[i];
    return NULL;
}

/* The type of a class that a value names. A class that contains a dynamic composite is refused: so
 * a value is nested no deeper than its type. A class in reversed order is refused because no type
 * here has it. */
static const struct cql_type *class_of(struct walk *w, struct slice name, struct err *e) {
    const struct cql_type *t = cql_type_by_class(&w->arena, name, e);
    if (!t || !(cql_type_contains(t, CQL_DYNAMIC_COMPOSITE) || cql_class_is_reversed(name))) return t;
    return err_null(err_invalid(e, "Unable to find abstract-type class '%.*s'", CQLT_QUOTE(name)));
}

static int read_header(struct walk *w, struct component *c, struct err *e) {
    struct err ignored = {0};
    if (rd_left(&w->rd) < 2)
        return err_invalid(e, "Not enough bytes to header of the comparator part of component %u", w->at);
    uint16_t header = rd_u16(&w->rd);
    c->is_alias = header & 0x8000;
    if (c->is_alias) {
        c->name = slice_of(w->rd.p - 1, 1);
        c->type = alias_of(w->t, (char)(header & 0xFF));
    } else {
        if (rd_left(&w->rd) < header)
            return err_invalid(e, "Not enough bytes to read comparator name of component %u", w->at);
        c->name = rd_bytes(&w->rd, header);
        c->type = class_of(w, c->name, &ignored);
    }
    return c->type ? 0 : err_invalid(e, "Cannot find comparator for component %u", w->at);
}

/* Reads the next component. Returns 1 if read. Returns 0 if there is no further one. Returns -1 if
 * the bytes are malformed, with Cassandra's error text. */
static int next_component(struct walk *w, struct component *c, struct err *e) {
    if (!rd_left(&w->rd)) return 0;
    *c = (struct component){0};
    if (w->t->id == CQL_DYNAMIC_COMPOSITE) {
        if (read_header(w, c, e)) return -1;
    } else {
        if (w->at >= w->t->n_args) return err_invalid(e, "Too many bytes for comparator");
        c->type = w->t->args[w->at];
    }
    if (rd_left(&w->rd) < 2) return err_invalid(e, "Not enough bytes to read value size of component %u", w->at);
    uint16_t n = rd_u16(&w->rd);
    if (rd_left(&w->rd) < n) return err_invalid(e, "Not enough bytes to read value of component %u", w->at);
    c->value = rd_bytes(&w->rd, n);
    if (cql_value_validate(c->type, c->value, e)) return -1;
    if (!rd_left(&w->rd))
        return err_invalid(e, "Not enough bytes to read the end-of-component byte of component%u", w->at);
    c->end = (int8_t)rd_u8(&w->rd);
    if (c->end && rd_left(&w->rd))
        return err_invalid(e, "Invalid bytes remaining after an end-of-component at component%u", w->at);
    w->at++;
    return 1;
}

static int validate(const struct cql_type *t, struct slice v, struct err *e) {
    struct walk w;
    struct component c;
    int rc;
    walk_open(&w, t, v);
    while ((rc = next_component(&w, &c, e)) > 0) continue;
    walk_close(&w);
    return rc;
}

/* ---- order ---- */

/* Key form: a byte for the kind (kinds sort in this order), then the components. A component is
 * COMPONENT_MORE, in a dynamic composite the short name of the class (which sorts) and its whole
 * name, the key form of the value, and the end. COMPONENT_NONE follows the last one. The empty
 * value is KIND_EMPTY alone; the form of bytes that are no composite is KIND_NONE and the form of a
 * blob. */
enum { KIND_EMPTY, KIND_STATIC, KIND_PLAIN, KIND_NONE };
enum { COMPONENT_NONE, COMPONENT_MORE };

static void encode_class(const struct cql_type *t, struct buf *out) {
    bool exact;
    struct err ignored = {0};
    struct buf class;
    buf_init(&class, 0);
    buf_put_str(&class, cqlt_type_info(t->id)->marshal);
    (void)cqlt_key_encode_bytes(t, buf_slice(&class), out, &exact, &ignored);
    buf_clear(&class, 0);
    cql_type_print_marshal(t, &class);
    (void)cqlt_key_encode_bytes(t, buf_slice(&class), out, &exact, &ignored);
    if (buf_failed(&class)) out->failed = true;
    buf_fini(&class);
}

static int encode_component(const struct cql_type *t, const struct component *c, struct buf *out, bool *exact,
                            struct err *e) {
    buf_u8(out, COMPONENT_MORE);
    if (t->id == CQL_DYNAMIC_COMPOSITE) encode_class(c->type, out);
    if (cqlt_family(c->type)->key_encode(c->type, c->value, out, exact, e)) return -1;
    buf_u8(out, (uint8_t)c->end ^ 0x80);
    return 0;
}

static int key_encode(const struct cql_type *t, struct slice v, struct buf *out, bool *exact, struct err *e) {
    struct err why = {0};
    struct component c;
    struct walk w;
    int rc;
    if (validate(t, v, &why)) {
        buf_u8(out, KIND_NONE);
        return cqlt_key_encode_bytes(t, v, out, exact, e);
    }
    walk_open(&w, t, v);
    buf_u8(out, !v.n ? KIND_EMPTY : w.is_static ? KIND_STATIC : KIND_PLAIN);
    while ((rc = next_component(&w, &c, e)) > 0 && (rc = encode_component(t, &c, out, exact, e)) == 0) continue;
    if (v.n) buf_u8(out, COMPONENT_NONE);
    walk_close(&w);
    return rc;
}

/* Reads a class of a key form and writes its whole name to out; the short name is skipped. */
static const struct cql_type *decode_class(struct walk *w, struct key_rd *key, struct buf *out) {
    const struct cql_type *t = NULL;
    struct err ignored = {0};
    struct buf name;
    buf_init(&name, UINT16_MAX);
    if (cqlt_key_decode_bytes(w->t, key, &name) == 0) {
        buf_clear(&name, UINT16_MAX);
        if (cqlt_key_decode_bytes(w->t, key, &name) == 0 && !buf_failed(&name))
            t = class_of(w, buf_slice(&name), &ignored);
    }
    if (t) buf_u16(out, (uint16_t)name.n);
    if (t) buf_put_slice(out, buf_slice(&name));
    buf_fini(&name);
    return t;
}

static int decode_component(struct walk *w, struct key_rd *key, struct buf *out) {
    bool dynamic = w->t->id == CQL_DYNAMIC_COMPOSITE;
    const struct cql_type *t = dynamic ? decode_class(w, key, out) : w->at < w->t->n_args ? w->t->args[w->at] : NULL;
    struct buf value;
    if (!t) return -1;
    buf_init(&value, UINT16_MAX);
    int rc = cqlt_family(t)->key_decode(t, key, &value) || key->rd->bad || buf_failed(&value) ? -1 : 0;
    buf_u16(out, (uint16_t)value.n);
    buf_put_slice(out, buf_slice(&value));
    buf_fini(&value);
    buf_u8(out, cqlt_key_u8(key) ^ 0x80);
    w->at++;
    return rc;
}

static int key_decode(const struct cql_type *t, struct key_rd *key, struct buf *out) {
    uint8_t kind = cqlt_key_u8(key), more = COMPONENT_MORE;
    if (key->rd->bad || kind > KIND_NONE) return -1;
    if (kind == KIND_EMPTY) return 0;
    if (kind == KIND_NONE) return cqlt_key_decode_bytes(t, key, out);
    if (kind == KIND_STATIC) buf_u16(out, UINT16_MAX);
    struct walk w;
    int rc = 0;
    walk_open(&w, t, (struct slice){0});
    while (!rc && (more = cqlt_key_u8(key)) == COMPONENT_MORE) rc = key->rd->bad ? -1 : decode_component(&w, key, out);
    walk_close(&w);
    return rc || more != COMPONENT_NONE || key->rd->bad ? -1 : 0;
}

static int compare(const struct cql_type *t, struct slice a, struct slice b) {
    struct buf x, y;
    struct err ignored = {0};
    bool exact;
    buf_init(&x, 0);
    buf_init(&y, 0);
    int rc = key_encode(t, a, &x, &exact, &ignored) || key_encode(t, b, &y, &exact, &ignored) || buf_failed(&x) ||
             buf_failed(&y);
    int c = rc ? slice_cmp(a, b) : slice_cmp(buf_slice(&x), buf_slice(&y));
    buf_fini(&x);
    buf_fini(&y);
    return c;
}

/* ---- text: components with colons between them, each value of a dynamic composite after its
 * class and "@", then ":!" or ":_" for an end of 1 or -1 ---- */

/* Writes a backslash before each colon. A text that ends in a backslash or in "!" gets another "!",
 * which parse_component removes. */
static void put_escaped(struct slice s, struct buf *out) {
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == ':') buf_u8(out, '\\');
        buf_u8(out, s.p[i]);
    }
    if (s.n && (s.p[s.n - 1] == '\\' || s.p[s.n - 1] == '!')) buf_u8(out, '!');
}

static void text(const struct cql_type *t, struct slice v, struct buf *out) {
    struct err ignored = {0};
    struct component c;
    struct walk w;
    walk_open(&w, t, v);
    for (bool first = true; next_component(&w, &c, &ignored) > 0; first = false) {
        struct buf value;
        buf_init(&value, 0);
        cql_value_text(c.type, c.value, &value);
        if (!first || w.is_static) buf_u8(out, ':');
        if (t->id == CQL_DYNAMIC_COMPOSITE) buf_put_slice(out, c.name);
        if (t->id == CQL_DYNAMIC_COMPOSITE) buf_u8(out, '@');
        put_escaped(buf_slice(&value), out);
        buf_fini(&value);
        if (c.end) buf_put_str(out, c.end < 0 ? ":_" : ":!");
    }
    walk_close(&w);
}

/* Reads the class or alias of "class@value" or "alias@value" and writes the header to out. Leaves
 * the value in *part; without "@" it is empty. */
static const struct cql_type *parse_header(struct walk *w, struct slice *part, struct buf *out, struct err *e) {
    const uint8_t *at = part->n ? memchr(part->p, '@', part->n) : NULL;
    struct slice name = at ? slice_of(part->p, (size_t)(at - part->p)) : *part,
                 value = at ? slice_of(at + 1, part->n - name.n - 1) : slice_of(part->p, 0);
    while (value.n && value.p[value.n - 1] == '@') value.n--;
    if (value.n && memchr(value.p, '@', value.n)) {
        err_set(e, ERR_SERVER, "java.lang.IllegalArgumentException: Invalid component representation: %.*s",
                CQLT_QUOTE(*part));
        return NULL;
    }
    *part = value;
    const struct cql_type *t = name.n == 1 ? alias_of(w->t, (char)name.p[0]) : NULL;
    if (t) {
        buf_u16(out, 0x8000 | name.p[0]);
        return t;
    }
    struct err why = {0};
    if (!(t = class_of(w, name, &why))) {
        const char *words = strstr(why.text, "Unable to find");
        err_set(e, ERR_SERVER,
                "java.lang.IllegalArgumentException: org.apache.cassandra.exceptions.ConfigurationException: %s",
                words ? words : why.text);
        return NULL;
    }
    buf_u16(out, (uint16_t)name.n);
    buf_put_slice(out, name);
    return t;
}

static int parse_component(struct walk *w, struct slice part, struct cql_reading how, struct buf *out, struct err *e) {
    bool dynamic = w->t->id == CQL_DYNAMIC_COMPOSITE;
    if (!dynamic && w->at == w->t->n_args) return err_invalid(e, "Too many bytes for comparator");
    const struct cql_type *t = dynamic ? parse_header(w, &part, out, e) : w->t->args[w->at];
    if (!t) return -1;
    const struct cql_type *as = cqlt_family(t)->parse ? t : cql_type_scalar(CQL_BLOB); /* a collection as its bytes */
    struct buf plain; /* part as it was before put_escaped */
    size_t from = out->n;
    buf_init(&plain, out->limit);
    if (part.n && part.p[part.n - 1] == '!') part.n--;
    for (size_t i = 0; i < part.n; i++)
        if (part.p[i] != '\\' || i + 1 == part.n || part.p[i + 1] != ':') buf_u8(&plain, part.p[i]);
    buf_u16(out, 0);
    int rc = cqlt_family(as)->parse(as, buf_slice(&plain), how, out, e);
    buf_fini(&plain);
    if (rc || buf_failed(out)) return rc ? rc : err_nomem(e);
    if (as != t && cql_value_validate(t, slice_of(out->p + from + 2, out->n - from - 2), e)) return -1;
    size_t n = out->n - from - 2;
    if (n > UINT16_MAX) return err_invalid(e, "A component may have at most %d bytes", UINT16_MAX);
    store_u16(out->p + from, (uint16_t)n);
    buf_u8(out, 0);
    w->at++;
    return 0;
}

static int parse(const struct cql_type *t, struct slice text, struct cql_reading how, struct buf *out, struct err *e) {
    struct walk w;
    bool more = text.n > 0;
    int rc = 0;
    size_t from = out->n;
    walk_open(&w, t, (struct slice){0});
    while (more && !rc) {
        /* The next part of the text: up to a colon that does not follow a backslash. */
        size_t i = 0;
        while (i < text.n && (text.p[i] != ':' || (i && text.p[i - 1] == '\\'))) i++;
        struct slice part = slice_of(text.p, i);
        more = i < text.n;
        text = more ? slice_of(text.p + i + 1, text.n - i - 1) : slice_of(text.p + i, 0);
        bool ends = slice_is(part, "!") || slice_is(part, "_");
        if (!ends) rc = parse_component(&w, part, how, out, e);
        else if (!buf_failed(out) && out->n > from) out->p[out->n - 1] = slice_is(part, "!") ? 1 : 0xFF;
        if (ends) break;
    }
    walk_close(&w);
    return rc;
}

const struct cql_family cqlt_composite = {.validate = validate,
                                          .compare = compare,
                                          .parse = parse,
                                          .text = text,
                                          .key_encode = key_encode,
                                          .key_decode = key_decode};
