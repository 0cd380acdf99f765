/* list, set, map: int32 count, then items as [int32 length][bytes] (protocol v3 and later). Keys
 * and values of a map alternate. */
#include "types/family.h"

void cql_collection_begin(uint32_t n, struct buf *out) { buf_u32(out, n); }

void cql_elem_put(struct value item, struct buf *out) {
    buf_u32(out, (uint32_t)(item.n < 0 ? -1 : item.n));
    if (item.n > 0) buf_put(out, item.p, (size_t)item.n);
}

int cql_elems_open(const struct cql_type *t, struct slice v, struct cql_elems *it) {
    *it = (struct cql_elems){.rd = rd_of(v), .left = t->n_args};
    if (!cql_type_is_collection(t)) return 0;
    uint32_t n = rd_u32(&it->rd);
    if (it->rd.bad || n > INT32_MAX / 2) return -1;
    it->left = t->id == CQL_MAP ? n * 2 : n;
    return 0;
}

bool cql_elems_next(struct cql_elems *it, struct value *item) {
    if (it->left == 0 || rd_left(&it->rd) == 0) return false;
    it->left--;
    int32_t n = (int32_t)rd_u32(&it->rd);
    *item = value_null();
    if (!it->rd.bad && n >= 0) *item = value_of_slice(rd_bytes(&it->rd, (size_t)n));
    if (it->rd.bad) it->left = 0;
    return !it->rd.bad;
}

static const char *kind_name(const struct cql_type *t) {
    return t->id == CQL_LIST ? "list" : t->id == CQL_SET ? "set" : "map";
}

static const struct cql_type *item_type(const struct cql_type *t, uint32_t i) {
    return t->id == CQL_MAP ? t->args[i % 2] : t->args[0];
}

static int validate(const struct cql_type *t, struct slice v, struct err *e) {
    struct rd r = rd_of(v);
    int32_t n = (int32_t)rd_u32(&r);
    if (r.bad) return err_invalid(e, "Not enough bytes to read a %s", kind_name(t));
    if (n < 0) return err_invalid(e, "The data cannot be deserialized as a %s", kind_name(t));
    uint64_t items = t->id == CQL_MAP ? 2 * (uint64_t)n : (uint64_t)n;
    bool has_null = false;
    for (uint64_t i = 0; i < items; i++) {
        int32_t size = (int32_t)rd_u32(&r);
        if (r.bad) return err_invalid(e, "Not enough bytes to read a %s", kind_name(t));
        if (size < 0) has_null = true;
        if (has_null && t->id != CQL_LIST) break;
        if (size < 0) continue; /* of a list, Cassandra reads all elements first */
        struct slice item = rd_bytes(&r, (size_t)size);
        if (r.bad) return err_invalid(e, "Not enough bytes to read a %s", kind_name(t));
        if (cql_value_validate(item_type(t, (uint32_t)i), item, e) < 0) return -1;
    }
    if (has_null && (t->id != CQL_LIST || !rd_left(&r))) return err_invalid(e, "Null value read when not allowed");
    if (rd_left(&r)) return err_invalid(e, "Unexpected extraneous bytes after %s value", kind_name(t));
    return 0;
}

static int compare(const struct cql_type *t, struct slice a, struct slice b) {
    struct cql_elems x, y;
    struct value p, q;
    if (a.n == 0 || b.n == 0) return (a.n > 0) - (b.n > 0);
    if (cql_elems_open(t, a, &x) < 0 || cql_elems_open(t, b, &y) < 0) return slice_cmp(a, b);
    for (uint32_t i = 0;; i++) {
        bool more_x = cql_elems_next(&x, &p), more_y = cql_elems_next(&y, &q);
        if (!more_x || !more_y) return more_x - more_y;
        int c = cql_value_compare(item_type(t, i), value_slice(p), value_slice(q));
        if (c) return c;
    }
}

static void print(const struct cql_type *t, struct slice v, struct buf *out) {
    struct cql_elems it;
    struct value item;
    if (v.n == 0 || cql_elems_open(t, v, &it) < 0) {
        buf_put_str(out, "null");
        return;
    }
    buf_u8(out, t->id == CQL_LIST ? '[' : '{');
    for (uint32_t i = 0; cql_elems_next(&it, &item); i++) {
        if (i) buf_put_str(out, t->id == CQL_MAP && i % 2 ? ": " : ", ");
        if (item.n < 0)
            buf_put_str(out, "null");
        else
            cql_value_print(item_type(t, i), value_slice(item), out);
    }
    buf_u8(out, t->id == CQL_LIST ? ']' : '}');
}

/* Key form: a lone 0 for the empty value; otherwise a 1, then each item (each entry of a map) after
 * a 1, then a 0. So a collection sorts before the longer ones that begin with its items. */
static int key_encode(const struct cql_type *t, struct slice v, struct buf *out, bool *exact, struct err *e) {
    struct cql_elems it;
    struct value item;
    buf_u8(out, v.n > 0);
    if (v.n == 0) return 0;
    if (cql_elems_open(t, v, &it) < 0) return err_invalid(e, "Not enough bytes to read a %s", kind_name(t));
    for (uint32_t i = 0; cql_elems_next(&it, &item); i++) {
        if (t->id != CQL_MAP || i % 2 == 0) buf_u8(out, 1);
        if (cqlt_family(item_type(t, i))->key_encode(item_type(t, i), value_slice(item), out, exact, e) < 0) return -1;
    }
    buf_u8(out, 0);
    return 0;
}

static int decode_item(const struct cql_type *t, struct key_rd *key, struct buf *out) {
    size_t at = out->n;
    buf_u32(out, 0);
    if (cqlt_family(t)->key_decode(t, key, out) < 0 || key->rd->bad || buf_failed(out)) return -1;
    buf_patch_u32(out, at, (uint32_t)(out->n - at - 4));
    return 0;
}

static int key_decode(const struct cql_type *t, struct key_rd *key, struct buf *out) {
    uint8_t present = cqlt_key_u8(key);
    if (present > 1 || key->rd->bad) return -1;
    if (!present) return 0;
    size_t at = out->n;
    uint32_t n = 0;
    buf_u32(out, 0);
    for (;; n++) {
        uint8_t more = cqlt_key_u8(key);
        if (more > 1 || key->rd->bad || buf_failed(out)) return -1;
        if (!more) break;
        if (decode_item(t->args[0], key, out) < 0) return -1;
        if (t->id == CQL_MAP && decode_item(t->args[1], key, out) < 0) return -1;
    }
    buf_patch_u32(out, at, n);
    return 0;
}

/* Equality by Java's equals of the objects that Cassandra decodes the values to. */
static bool is_same(const struct cql_type *t, struct slice a, struct slice b) {
    if (t->id == CQL_TUPLE || t->id == CQL_UDT) return slice_eq(a, b);
    if (t->id == CQL_DECIMAL && a.n && b.n && memcmp(a.p, b.p, 4) != 0) return false;
    if (!cql_type_is_collection(t)) return cql_value_compare(t, a, b) == 0;
    struct cql_elems x, y;
    struct value p, q;
    if (cql_elems_open(t, a, &x) || cql_elems_open(t, b, &y) || x.left != y.left) return false;
    for (uint32_t i = 0; cql_elems_next(&x, &p) && cql_elems_next(&y, &q); i++)
        if (!is_same(item_type(t, i), value_slice(p), value_slice(q))) return false;
    return true;
}

bool cql_collection_finds(const struct cql_type *collection, const struct cql_type *of, struct value element,
                          struct value wanted) {
    if (value_is_null(element)) return false;
    struct slice a = value_slice(element), b = value_slice(wanted);
    return collection->frozen ? is_same(of, a, b) : cql_value_compare(of, a, b) == 0;
}

const struct cql_family cqlt_collection = {.validate = validate,
                                           .compare = compare,
                                           .text = print,
                                           .print = print,
                                           .key_encode = key_encode,
                                           .key_decode = key_decode};
