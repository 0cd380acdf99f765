/* Values of every type from hostile bytes: [type][mode][bytes]. What is valid prints, compares
 * equal to itself, and comes back from its key form; what a literal makes is valid, and what JSON
 * makes prints. */
#include <stdlib.h>

#include "types/type.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct cql_type *type_of(uint8_t n, struct arena *a) {
    static const char *const names[] = {"ascii",
                                        "bigint",
                                        "blob",
                                        "boolean",
                                        "decimal",
                                        "double",
                                        "float",
                                        "int",
                                        "timestamp",
                                        "uuid",
                                        "text",
                                        "varint",
                                        "timeuuid",
                                        "inet",
                                        "date",
                                        "time",
                                        "smallint",
                                        "tinyint",
                                        "duration",
                                        "counter",
                                        "frozen<list<int>>",
                                        "list<text>",
                                        "set<decimal>",
                                        "frozen<set<inet>>",
                                        "map<text, frozen<list<timeuuid>>>",
                                        "frozen<map<varint, boolean>>",
                                        "tuple<int, text, duration>",
                                        "frozen<tuple<tuple<blob>, date>>",
                                        "vector<float, 3>",
                                        "vector<text, 2>",
                                        "frozen<map<int, frozen<map<text, frozen<set<double>>>>>>",
                                        "vector<vector<int, 2>, 2>",
                                        "vector<smallint, 2>",
                                        "vector<vector<date, 2>, 2>",
                                        "'LexicalUUIDType'",
                                        "'LegacyTimeUUIDType'",
                                        "'EmptyType'",
                                        "'PartitionerDefinedOrder'",
                                        "'CompositeType(Int32Type,UTF8Type)'",
                                        "'CompositeType(DecimalType,CompositeType(BytesType,TimeUUIDType))'",
                                        "'DynamicCompositeType(i=>Int32Type,t=>UTF8Type)'",
                                        "frozen<list<'DynamicCompositeType'>>",
                                        "frozen<tuple<'CompositeType(InetAddressType)', 'LexicalUUIDType'>>"};
    struct err e = {0};
    const struct cql_type *t = cql_type_parse(a, slice_str(names[n % ARRAY_LEN(names)]), NULL, NULL, NULL, &e);
    if (!t) abort();
    return t;
}

static void print_all(const struct cql_type *t, struct slice v, struct buf *out) {
    cql_value_print(t, v, out);
    cql_value_text(t, v, out);
    cql_value_json(t, value_of_slice(v), out);
}

static void key_round_trip(const struct cql_type *t, bool desc, struct slice v) {
    struct buf key, back;
    struct err e = {0};
    bool exact = true;
    buf_init(&key, 0);
    buf_init(&back, 0);
    if (!cql_key_encode(t, desc, v, &key, &exact, &e)) {
        struct rd r = rd_of(buf_slice(&key));
        if (cql_key_decode(t, desc, &r, &back) || rd_left(&r)) abort();
        if (exact ? !slice_eq(buf_slice(&back), v) : cql_value_compare(t, buf_slice(&back), v) != 0) abort();
    }
    buf_fini(&key);
    buf_fini(&back);
}

/* Literals and keys may be any bytes, those of a component that has no empty value, too. */
static bool takes_any_bytes(const struct cql_type *t) {
    return t->id == CQL_COMPOSITE || t->id == CQL_DYNAMIC_COMPOSITE || t->id == CQL_PARTITION_ORDER;
}

static void wire(const struct cql_type *t, struct slice v) {
    struct buf out;
    struct err e = {0};
    buf_init(&out, 1 << 20);
    if (cql_value_validate(t, v, &e) == 0) {
        print_all(t, v, &out);
        if (t->id != CQL_DURATION && cql_value_compare(t, v, v) != 0) abort();
        if (t->id != CQL_COUNTER && t->id != CQL_DURATION && !cql_type_is_multicell(t)) {
            key_round_trip(t, false, v);
            key_round_trip(t, true, v);
        }
    } else if (!e.set) {
        abort();
    } else if (takes_any_bytes(t)) {
        print_all(t, v, &out);
        if (cql_value_compare(t, v, v) != 0) abort();
        key_round_trip(t, false, v);
        key_round_trip(t, true, v);
    }
    buf_fini(&out);
}

static void json(const struct cql_type *t, struct slice text) {
    struct buf made, again;
    struct err e = {0};
    buf_init(&made, 1 << 20);
    buf_init(&again, 1 << 20);
    int rc = cql_value_from_json(t, text, (struct cql_reading){0}, &made, &e);
    if (rc < 0 && !e.set) abort();
    if (rc == 0 && !buf_failed(&made))
        print_all(t, buf_slice(&made), &again); /* not always valid: "" is an empty tinyint, as in Cassandra */
    buf_fini(&made);
    buf_fini(&again);
}

static void literal(const struct cql_type *t, enum cql_literal kind, struct slice text) {
    struct buf made;
    struct err e = {0};
    if (!cql_literal_fits(t, kind) || (!text.n && kind != LIT_STRING)) return; /* nobody asks for these */
    buf_init(&made, 1 << 20);
    int rc = cql_literal_parse(t, kind, text, "v", (struct cql_reading){0}, &made, &e);
    if (rc && !e.set) abort();
    if (!rc && !buf_failed(&made) && !takes_any_bytes(t) && cql_value_validate(t, buf_slice(&made), &e)) abort();
    buf_fini(&made);
}

static void key_form(const struct cql_type *t, bool desc, struct slice bytes) {
    struct buf out;
    struct rd r = rd_of(bytes);
    buf_init(&out, 1 << 20);
    (void)!cql_key_decode(t, desc, &r, &out);
    buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena a;
    if (size < 2) return 0;
    arena_init(&a, 4096, 1 << 20);
    const struct cql_type *t = type_of(data[0], &a);
    struct slice in = slice_of(data + 2, size - 2);
    switch (data[1] % 6) {
    case 0:
    case 1: wire(t, in); break;
    case 2:
    case 3: json(t, in); break;
    case 4:
        if (!cql_type_is_collection(t) && t->id != CQL_TUPLE && t->id != CQL_VECTOR)
            literal(t, (enum cql_literal)(data[1] / 6 % (LIT_DURATION + 1)), in);
        break;
    case 5: key_form(t, data[1] & 128, in); break;
    }
    arena_fini(&a);
    return 0;
}
