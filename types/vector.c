/* vector<element, dimension>: exactly that many elements, none null. */
#include "types/duration.h"
#include "types/family.h"

int cql_vector_next(const struct cql_type *t, struct rd *r, struct slice *element) {
    int64_t fixed = cqlt_type_fixed(t->args[0]);
    uint64_t n = (uint64_t)fixed;
    const uint8_t *start = r->p;
    if (fixed < 0) {
        if (cqlt_vint_read(r, &n) < 0) return -1;
        /* As Cassandra: skips the shortest encoding of n, however long the one read is. */
        r->p = start + cqlt_vint_bytes(n);
    }
    if (n > rd_left(r)) return -1;
    *element = rd_bytes(r, (size_t)n);
    return r->bad ? -1 : 0;
}

void cql_vector_put(const struct cql_type *t, struct slice element, struct buf *out) {
    if (cqlt_type_fixed(t->args[0]) < 0) cqlt_vint_write(element.n, out);
    buf_put_slice(out, element);
}

static int fail(const struct cql_type *t, const char *before, size_t extra, struct err *e) {
    struct buf text;
    buf_init(&text, 4096);
    if (extra) buf_printf(&text, "Unexpected %zu extraneous bytes after ", extra);
    else buf_printf(&text, "%s ", before);
    cql_type_print(t, &text);
    if (extra) buf_put_str(&text, " value");
    return err_set_buf(e, ERR_INVALID, &text);
}

static int validate(const struct cql_type *t, struct slice v, struct err *e) {
    struct rd r = rd_of(v);
    struct slice element;
    if (v.n == 0) return err_invalid(e, "Invalid empty vector value");
    for (uint32_t i = 0; i < t->dimension; i++) {
        if (cql_vector_next(t, &r, &element) < 0) return fail(t, "Not enough bytes to read a", 0, e);
        if (cql_value_validate(t->args[0], element, e) < 0) return -1;
    }
    return rd_left(&r) ? fail(t, NULL, rd_left(&r), e) : 0;
}

static int compare(const struct cql_type *t, struct slice a, struct slice b) {
    struct rd x = rd_of(a), y = rd_of(b);
    struct slice p, q;
    if (a.n == 0 || b.n == 0) return (a.n > 0) - (b.n > 0);
    for (uint32_t i = 0; i < t->dimension; i++) {
        if (cql_vector_next(t, &x, &p) < 0 || cql_vector_next(t, &y, &q) < 0) return slice_cmp(a, b);
        int c = cql_value_compare(t->args[0], p, q);
        if (c) return c;
    }
    return 0;
}

static void print(const struct cql_type *t, struct slice v, struct buf *out) {
    struct rd r = rd_of(v);
    struct slice element;
    buf_u8(out, '[');
    for (uint32_t i = 0; i < t->dimension && cql_vector_next(t, &r, &element) == 0; i++) {
        if (i) buf_put_str(out, ", ");
        cql_value_print(t->args[0], element, out);
    }
    buf_u8(out, ']');
}

static int key_encode(const struct cql_type *t, struct slice v, struct buf *out, bool *exact, struct err *e) {
    struct rd r = rd_of(v);
    struct slice element;
    for (uint32_t i = 0; i < t->dimension; i++) {
        if (cql_vector_next(t, &r, &element) < 0) return fail(t, "Not enough bytes to read a", 0, e);
        if (cqlt_family(t->args[0])->key_encode(t->args[0], element, out, exact, e) < 0) return -1;
    }
    return 0;
}

static int key_decode(const struct cql_type *t, struct key_rd *key, struct buf *out) {
    for (uint32_t i = 0; i < t->dimension; i++) {
        struct buf element;
        buf_init(&element, out->limit);
        int rc = cqlt_family(t->args[0])->key_decode(t->args[0], key, &element);
        if (rc == 0 && (key->rd->bad || buf_failed(&element))) rc = -1;
        if (rc == 0) cql_vector_put(t, buf_slice(&element), out);
        buf_fini(&element);
        if (rc < 0) return -1;
    }
    return 0;
}

const struct cql_family cqlt_vector = {.validate = validate,
                                       .compare = compare,
                                       .text = print,
                                       .print = print,
                                       .key_encode = key_encode,
                                       .key_decode = key_decode};
