/* tuple and UDT: fields as [int32 length][bytes], length -1 is null; fields left out at the end are
 * null. */
#include "types/family.h"

static int refuse(const struct cql_type *t, const char *what, uint32_t i, struct err *e) {
    if (t->id == CQL_UDT) return err_invalid(e, "Not enough bytes to read %s%uth field %s", what, i, t->field_names[i]);
    return err_invalid(e, "Not enough bytes to read %s%uth component", what, i);
}

static int validate(const struct cql_type *t, struct slice v, struct err *e) {
    struct rd r = rd_of(v);
    for (uint32_t i = 0; i < t->n_args && rd_left(&r); i++) {
        int32_t size = (int32_t)rd_u32(&r);
        if (r.bad) return refuse(t, "size of ", i, e);
        if (size < 0) continue;
        struct slice field = rd_bytes(&r, (size_t)size);
        if (r.bad) return refuse(t, "", i, e);
        if (t->id != CQL_UDT) {
            if (cql_value_validate(t->args[i], field, e)) return -1;
            continue;
        }
        struct err inner = {0};
        if (cql_value_validate(t->args[i], field, &inner))
            return err_invalid(e, "Failure validating the %uth field %s; %s", i, t->field_names[i], inner.text);
    }
    if (rd_left(&r))
        return err_invalid(e, "Invalid remaining data after end of %s value", t->id == CQL_UDT ? "UDT" : "tuple");
    return 0;
}

/* The next field; null past the last one. */
static struct value next_field(struct cql_elems *it) {
    struct value v;
    return cql_elems_next(it, &v) ? v : value_null();
}

static int compare(const struct cql_type *t, struct slice a, struct slice b) {
    struct cql_elems x, y;
    if (cql_elems_open(t, a, &x) < 0 || cql_elems_open(t, b, &y) < 0) return slice_cmp(a, b);
    for (uint32_t i = 0; i < t->n_args; i++) {
        struct value p = next_field(&x), q = next_field(&y);
        int c = p.n < 0 || q.n < 0 ? (p.n >= 0) - (q.n >= 0)
                                   : cql_value_compare(t->args[i], value_slice(p), value_slice(q));
        if (c) return c;
    }
    return 0;
}

static int parse_field(const struct cql_type *t, struct slice field, struct cql_reading how, struct buf *out,
                       struct err *e) {
    if (slice_is(field, "@")) {
        cql_elem_put(value_null(), out);
        return 0;
    }
    const struct cql_family *f = cqlt_family(t);
    struct buf plain;
    buf_init(&plain, out->limit);
    for (size_t i = 0; i < field.n; i++) {
        if (field.p[i] == '\\' && i + 1 < field.n && (field.p[i + 1] == ':' || field.p[i + 1] == '@')) i++;
        buf_u8(&plain, field.p[i]);
    }
    size_t at = out->n;
    buf_u32(out, 0);
    int rc = f->parse ? f->parse(t, buf_slice(&plain), how, out, e)
                      : err_invalid(e, "cannot parse '%.*s'", CQLT_QUOTE(field));
    if (rc == 0 && !buf_failed(out)) buf_patch_u32(out, at, (uint32_t)(out->n - at - 4));
    buf_fini(&plain);
    return rc;
}

/* Takes the next field of "1:a\:b:@" off the text: fields end at a colon that no backslash precedes.
 * text->p is NULL after the last one. */
static struct slice take_field(struct slice *text) {
    size_t n = 0;
    while (n < text->n && text->p[n] != ':') n += text->p[n] == '\\' && n + 1 < text->n ? 2 : 1;
    struct slice field = slice_of(text->p, n);
    *text = n < text->n ? slice_of(text->p + n + 1, text->n - n - 1) : (struct slice){0};
    return field;
}

static int parse(const struct cql_type *t, struct slice text, struct cql_reading how, struct buf *out, struct err *e) {
    uint32_t n = 0;
    if (text.n == 0) return 0;
    for (struct slice rest = text; rest.p; n++) take_field(&rest);
    if (n > t->n_args) {
        struct buf type;
        buf_init(&type, 0);
        cql_type_print(t, &type);
        struct slice s = buf_slice(&type);
        err_invalid(e, "Invalid tuple literal: too many elements. Type %.*s expects %u but got %u", CQLT_QUOTE(s),
                    t->n_args, n);
        buf_fini(&type);
        return -1;
    }
    for (uint32_t i = 0; i < n; i++)
        if (parse_field(t->args[i], take_field(&text), how, out, e) < 0) return -1;
    return 0;
}

static void print(const struct cql_type *t, struct slice v, struct buf *out) {
    struct cql_elems it;
    if (cql_elems_open(t, v, &it) < 0) return;
    buf_u8(out, t->id == CQL_UDT ? '{' : '(');
    for (uint32_t i = 0; i < t->n_args; i++) {
        struct value field = next_field(&it);
        if (i) buf_put_str(out, ", ");
        if (t->id == CQL_UDT) {
            cql_identifier_print(t->field_names[i], false, out); /* the name may be a reserved word */
            buf_put_str(out, ": ");
        }
        if (field.n < 0)
            buf_put_str(out, "null");
        else
            cql_value_print(t->args[i], value_slice(field), out);
    }
    buf_u8(out, t->id == CQL_UDT ? '}' : ')');
}

static void text(const struct cql_type *t, struct slice v, struct buf *out) {
    struct cql_elems it;
    struct value field;
    if (cql_elems_open(t, v, &it) < 0) return;
    for (uint32_t i = 0; cql_elems_next(&it, &field); i++) {
        if (i) buf_u8(out, ':');
        if (field.n < 0) {
            buf_u8(out, '@');
            continue;
        }
        struct buf plain;
        buf_init(&plain, 0);
        cql_value_text(t->args[i], value_slice(field), &plain);
        for (size_t k = 0; k < plain.n; k++) {
            if (plain.p[k] == ':' || plain.p[k] == '@') buf_u8(out, '\\');
            buf_u8(out, plain.p[k]);
        }
        buf_fini(&plain);
    }
}

/* Key form: the fields up to the last that is not null, each as FIELD_NULL or as FIELD_VALUE and
 * its form, then FIELDS_END. A value keeps its form when the type gets another field. As in
 * Cassandra, fields left out at the end are nulls, and null sorts before any value. */
enum { FIELDS_END = 0, FIELD_NULL = 1, FIELD_VALUE = 2 };

static int key_encode(const struct cql_type *t, struct slice v, struct buf *out, bool *exact, struct err *e) {
    struct cql_elems it, ahead;
    struct value last;
    uint32_t written = 0, n = 0; /* fields with and without the nulls at the end */
    if (cql_elems_open(t, v, &it) < 0) return err_invalid(e, "Not enough bytes to read size of 0th component");
    ahead = it;
    while (written < t->n_args && cql_elems_next(&ahead, &last)) {
        written++;
        if (last.n >= 0) n = written;
    }
    if (written < t->n_args) *exact = false; /* fields left out decode as nulls */
    for (uint32_t i = 0; i < n; i++) {
        struct value field = next_field(&it);
        buf_u8(out, field.n < 0 ? FIELD_NULL : FIELD_VALUE);
        if (field.n >= 0 && cqlt_family(t->args[i])->key_encode(t->args[i], value_slice(field), out, exact, e) < 0)
            return -1;
    }
    buf_u8(out, FIELDS_END);
    return 0;
}

static int key_decode(const struct cql_type *t, struct key_rd *key, struct buf *out) {
    uint8_t mark = FIELD_NULL;
    for (uint32_t i = 0; i < t->n_args; i++) {
        if (mark != FIELDS_END) mark = cqlt_key_u8(key);
        if (mark > FIELD_VALUE || key->rd->bad) return -1;
        size_t at = out->n;
        buf_u32(out, mark == FIELD_VALUE ? 0 : UINT32_MAX);
        if (mark != FIELD_VALUE) continue;
        if (cqlt_family(t->args[i])->key_decode(t->args[i], key, out) < 0 || key->rd->bad || buf_failed(out)) return -1;
        buf_patch_u32(out, at, (uint32_t)(out->n - at - 4));
    }
    return mark == FIELDS_END || cqlt_key_u8(key) == FIELDS_END ? 0 : -1;
}

const struct cql_family cqlt_tuple = {.validate = validate,
                                      .compare = compare,
                                      .parse = parse,
                                      .text = text,
                                      .print = print,
                                      .key_encode = key_encode,
                                      .key_decode = key_decode};
