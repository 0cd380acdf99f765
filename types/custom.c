/* Two classes of which CQL has no values. EmptyType has only the empty value.
 * PartitionerDefinedOrder has any bytes in the order of their tokens. Cassandra uses it for its own
 * tables; there most operations on its values end in a Java exception, and so they do here. */
#include "base/murmur3.h"
#include "types/family.h"

static int validate(const struct cql_type *t, struct slice v, struct err *e) {
    if (t->id == CQL_PARTITION_ORDER)
        return err_set(e, ERR_SERVER, "java.lang.IllegalStateException: You shouldn't be validating this.");
    return v.n ? err_invalid(e, "EmptyType only accept empty values") : 0;
}

static int compare(const struct cql_type *t, struct slice a, struct slice b) {
    if (t->id == CQL_EMPTY) return 0;
    int64_t x = murmur3_token(a), y = murmur3_token(b);
    return x == y ? slice_cmp(a, b) : x < y ? -1 : 1;
}

static int parse(const struct cql_type *t, struct slice text, struct cql_reading how, struct buf *out, struct err *e) {
    (void)how, (void)out;
    if (t->id == CQL_PARTITION_ORDER) return err_set(e, ERR_SERVER, "java.lang.UnsupportedOperationException");
    return text.n ? err_invalid(e, "'%.*s' is not empty", CQLT_QUOTE(text)) : 0;
}

static void text(const struct cql_type *t, struct slice v, struct buf *out) {
    if (t->id == CQL_PARTITION_ORDER) cql_value_text(cql_type_scalar(CQL_BLOB), v, out);
}

/* Key form: the token and the bytes. EMPTY has one byte, since no form may be a prefix of
 * another. */
static int key_encode(const struct cql_type *t, struct slice v, struct buf *out, bool *exact, struct err *e) {
    if (t->id == CQL_PARTITION_ORDER) {
        buf_u64(out, (uint64_t)murmur3_token(v) ^ 1ull << 63);
        return cqlt_key_encode_bytes(t, v, out, exact, e);
    }
    buf_u8(out, 0);
    return 0;
}

static int key_decode(const struct cql_type *t, struct key_rd *key, struct buf *out) {
    if (t->id == CQL_EMPTY) return cqlt_key_u8(key) == 0 ? 0 : -1;
    (void)cqlt_key_uint(key, 8);
    return cqlt_key_decode_bytes(t, key, out);
}

const struct cql_family cqlt_custom = {.validate = validate,
                                       .compare = compare,
                                       .parse = parse,
                                       .text = text,
                                       .key_encode = key_encode,
                                       .key_decode = key_decode};
