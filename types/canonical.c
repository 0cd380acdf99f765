/* Scalars of which one value has several encodings: an IPv4 address as a mapped IPv6 one, true as
 * any byte but 0, integers with superfluous sign bytes, the parts of a duration as longer integers.
 * Cassandra keeps such a value as the client sent it, with one exception: it decodes and encodes
 * the elements of a collection that a client binds (CollectionSerializer), including vectors in it.
 * Tuples and user types in a collection stay as the client sent them. */
#include "types/decimal.h"
#include "types/duration.h"
#include "types/family.h"

bool cql_type_has_forms(const struct cql_type *t) {
    return t->id == CQL_INET || t->id == CQL_BOOLEAN || t->id == CQL_VARINT || t->id == CQL_DECIMAL ||
           t->id == CQL_DURATION;
}

bool cql_value_is_canonical(const struct cql_type *t, struct slice v) {
    if (t->id == CQL_INET) return !cqlt_inet_is_mapped(v);
    if (t->id == CQL_BOOLEAN) return v.n != 1 || v.p[0] <= 1;
    if (t->id == CQL_VARINT) return cql_varint_shortest(v).n == v.n;
    if (t->id == CQL_DECIMAL) return v.n <= 4 || cql_varint_shortest(slice_of(v.p + 4, v.n - 4)).n == v.n - 4;
    if (t->id != CQL_DURATION) return true;
    struct cql_duration d;
    struct buf shortest;
    buf_init(&shortest, 0);
    if (cql_duration_read(v, &d) == 0) cql_duration_write(&d, &shortest);
    bool same = buf_failed(&shortest) || !shortest.n || shortest.n == v.n;
    buf_fini(&shortest);
    return same;
}

void cql_value_canonical(const struct cql_type *t, struct slice v, struct buf *out) {
    struct cql_duration d;
    if (cql_value_is_canonical(t, v)) buf_put_slice(out, v);
    else if (t->id == CQL_INET) buf_put(out, v.p + 12, 4);
    else if (t->id == CQL_BOOLEAN) buf_u8(out, 1);
    else if (t->id == CQL_VARINT) buf_put_slice(out, cql_varint_shortest(v));
    else if (t->id == CQL_DURATION && cql_duration_read(v, &d) == 0) cql_duration_write(&d, out);
    else if (t->id == CQL_DECIMAL) {
        buf_put(out, v.p, 4);
        buf_put_slice(out, cql_varint_shortest(slice_of(v.p + 4, v.n - 4)));
    }
}
