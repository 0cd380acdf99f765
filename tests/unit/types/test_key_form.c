/* Key forms: byte order is the type's order both ways, no form is a prefix of another, and decoding
 * gives an equal value. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#include "types/type.h"

enum { VALUES = 120, NO_EMPTY = 100 };

struct fixture {
    struct arena arena;
    struct err err;
    unsigned seed;
};

static unsigned pick(struct fixture *f, unsigned n) { return (unsigned)rand_r(&f->seed) % n; }

static void put_value(struct fixture *f, const struct cql_type *t, struct buf *out, int depth);

static void put_bytes(struct fixture *f, struct buf *out, size_t n, unsigned kinds) {
    static const uint8_t edge[] = {0x00, 0xFF, 0x01, 0x7F, 0x80, 0x41};
    for (size_t i = 0; i < n; i++) buf_u8(out, pick(f, 2) ? edge[pick(f, sizeof edge)] & kinds : pick(f, 256) & kinds);
}

static void put_item(struct fixture *f, const struct cql_type *t, struct buf *out, int depth) {
    size_t at = out->n;
    buf_u32(out, 0);
    put_value(f, t, out, depth + 1);
    buf_patch_u32(out, at, (uint32_t)(out->n - at - 4));
}

static void put_scalar(struct fixture *f, const struct cql_type *t, struct buf *out) {
    size_t from = out->n;
    switch (t->id) {
    case CQL_ASCII:
    case CQL_TEXT: put_bytes(f, out, pick(f, 5), 0x7F); break;
    case CQL_BLOB: put_bytes(f, out, pick(f, 5), 0xFF); break;
    case CQL_BOOLEAN: buf_u8(out, pick(f, 3)); break;
    case CQL_TINYINT: put_bytes(f, out, 1, 0xFF); break;
    case CQL_SMALLINT: put_bytes(f, out, 2, 0xFF); break;
    case CQL_INT:
    case CQL_FLOAT:
    case CQL_DATE: put_bytes(f, out, 4, 0xFF); break;
    case CQL_UUID: put_bytes(f, out, 16, 0xFF); break;
    case CQL_TIMEUUID:
        put_bytes(f, out, 16, 0xFF);
        out->p[from + 6] = (uint8_t)(0x10 | (out->p[from + 6] & 0x0F));
        break;
    case CQL_INET: put_bytes(f, out, pick(f, 2) ? 4 : 16, 0xFF); break;
    case CQL_VARINT: put_bytes(f, out, pick(f, 8) ? 1 + pick(f, 4) : 1 + pick(f, 300), 0xFF); break;
    case CQL_DECIMAL:
        buf_u32(out, (uint32_t)((int)pick(f, 7) - 3));
        put_bytes(f, out, 1 + pick(f, 3), 0xFF);
        break;
    case CQL_LEXICAL_UUID:
    case CQL_LEGACY_TIMEUUID: put_bytes(f, out, 16, 0xFF); break;
    case CQL_EMPTY: break;
    default: put_bytes(f, out, 8, 0xFF);
    }
}

/* Its types, or of a dynamic one an alias or one of two classes, each with a value; the last may
 * end as the bound of a range does. */
static void put_composite(struct fixture *f, const struct cql_type *t, struct buf *out) {
    static const char *const classes[] = {"Int32Type", "org.apache.cassandra.db.marshal.UTF8Type"};
    static const enum cql_type_id ids[] = {CQL_INT, CQL_TEXT};
    bool dynamic = t->id == CQL_DYNAMIC_COMPOSITE;
    uint32_t n = 1 + pick(f, t->n_args);
    if (pick(f, 6) == 0) buf_u16(out, 0xFFFF);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t which = dynamic ? pick(f, t->n_args + 2) : i, class = which - t->n_args;
        bool alias = which < t->n_args;
        if (dynamic)
            buf_u16(out, alias ? 0x8000 | (uint8_t)t->field_names[which][0] : (uint16_t)strlen(classes[class]));
        if (!alias) buf_put_str(out, classes[class]);
        size_t at = out->n;
        buf_u16(out, 0);
        put_value(f, alias ? t->args[which] : cql_type_scalar(ids[class]), out, 1);
        store_u16(out->p + at, (uint16_t)(out->n - at - 2));
        buf_u8(out, i + 1 < n || pick(f, 3) ? 0 : pick(f, 2) ? 1 : 0xFF);
    }
}

static bool may_be_empty(const struct cql_type *t) {
    return t->id != CQL_TINYINT && t->id != CQL_SMALLINT && t->id != CQL_DATE && t->id != CQL_TIME && t->n_args == 0;
}

/* What stands in a vector behind its length; the lengths here are below 128. */
static bool is_sized(const struct cql_type *t) {
    static const enum cql_type_id bare[] = {CQL_BIGINT, CQL_BOOLEAN,   CQL_DOUBLE, CQL_FLOAT,
                                            CQL_INT,    CQL_TIMESTAMP, CQL_UUID,   CQL_TIMEUUID};
    if (t->id == CQL_VECTOR) return is_sized(t->args[0]);
    for (size_t i = 0; i < ARRAY_LEN(bare); i++)
        if (t->id == bare[i]) return false;
    return true;
}

static void put_vector(struct fixture *f, const struct cql_type *t, struct buf *out) {
    for (uint32_t i = 0; i < t->dimension; i++) {
        size_t at = out->n;
        if (is_sized(t->args[0])) buf_u8(out, 0);
        put_value(f, t->args[0], out, NO_EMPTY);
        if (is_sized(t->args[0])) out->p[at] = (uint8_t)(out->n - at - 1);
    }
}

static void put_value(struct fixture *f, const struct cql_type *t, struct buf *out, int depth) {
    if (depth < NO_EMPTY && may_be_empty(t) && pick(f, 12) == 0) return;
    if (cql_type_is_collection(t)) {
        uint32_t n = pick(f, 4);
        cql_collection_begin(n, out);
        for (uint32_t i = 0; i < n * t->n_args; i++) put_item(f, t->args[i % t->n_args], out, depth);
    } else if (t->id == CQL_TUPLE) {
        uint32_t n = 1 + pick(f, t->n_args);
        for (uint32_t i = 0; i < n; i++)
            if (pick(f, 5) == 0)
                cql_elem_put(value_null(), out);
            else
                put_item(f, t->args[i], out, depth);
    } else if (t->id == CQL_VECTOR) {
        put_vector(f, t, out);
    } else if (t->id == CQL_COMPOSITE || t->id == CQL_DYNAMIC_COMPOSITE) {
        put_composite(f, t, out);
    } else {
        put_scalar(f, t, out);
    }
}

static int sign(int c) { return (c > 0) - (c < 0); }

static void check_pair(const struct cql_type *t, bool desc, struct slice a, struct slice b, struct slice x,
                       struct slice y) {
    int want = sign(cql_value_compare(t, a, b));
    assert_int_equal(want, -sign(cql_value_compare(t, b, a)));
    assert_int_equal(desc ? -want : want, sign(slice_cmp(x, y)));
    if (want && x.n <= y.n) assert_true(memcmp(x.p, y.p, x.n) != 0);
}

static void check_round_trip(struct fixture *f, const struct cql_type *t, bool desc, struct slice v, struct slice form,
                             bool exact) {
    struct buf back;
    buf_init(&back, 0);
    struct rd r = rd_of(form);
    assert_int_equal(0, cql_key_decode(t, desc, &r, &back));
    assert_int_equal(0, rd_left(&r));
    assert_int_equal(0, cql_value_validate(t, buf_slice(&back), &f->err));
    assert_int_equal(0, cql_value_compare(t, v, buf_slice(&back)));
    if (exact) assert_true(slice_eq(v, buf_slice(&back)));
    buf_fini(&back);
}

static void check_type(struct fixture *f, const struct cql_type *t, bool desc) {
    struct buf values[VALUES], forms[VALUES];
    for (int i = 0; i < VALUES; i++) {
        bool exact = true;
        buf_init(&values[i], 0);
        buf_init(&forms[i], 0);
        put_value(f, t, &values[i], 0);
        assert_int_equal(0, cql_value_validate(t, buf_slice(&values[i]), &f->err));
        assert_int_equal(0, cql_key_encode(t, desc, buf_slice(&values[i]), &forms[i], &exact, &f->err));
        check_round_trip(f, t, desc, buf_slice(&values[i]), buf_slice(&forms[i]), exact);
    }
    for (int i = 0; i < VALUES; i++)
        for (int j = 0; j < i; j++)
            check_pair(t, desc, buf_slice(&values[i]), buf_slice(&values[j]), buf_slice(&forms[i]),
                       buf_slice(&forms[j]));
    for (int i = 0; i < VALUES; i++) {
        buf_fini(&values[i]);
        buf_fini(&forms[i]);
    }
}

static const char *const type_names[] = {
    "ascii",
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
    "frozen<list<text>>",
    "frozen<set<varint>>",
    "frozen<map<int, text>>",
    "tuple<int, text, decimal>",
    "frozen<list<tuple<int, frozen<list<blob>>>>>",
    "vector<float, 3>",
    "vector<vector<int, 2>, 2>",
    "vector<smallint, 2>",
    "vector<tinyint, 3>",
    "vector<date, 2>",
    "vector<time, 2>",
    "vector<text, 2>",
    "vector<vector<smallint, 2>, 2>",
    "vector<vector<uuid, 1>, 2>",
    "vector<tuple<tinyint, text>, 2>",
    "'EmptyType'",
    "'LexicalUUIDType'",
    "'LegacyTimeUUIDType'",
    "tuple<'LexicalUUIDType', 'EmptyType', int>",
    "'CompositeType(Int32Type,UTF8Type,DecimalType)'",
    "'CompositeType(CompositeType(BytesType),ListType(Int32Type))'",
    "'DynamicCompositeType(i=>Int32Type,t=>UTF8Type,c=>CompositeType(BytesType))'"};

static void test_key_form_keeps_the_order_of_every_type(void **state) {
    (void)state;
    struct fixture f = {.seed = 20220101};
    arena_init(&f.arena, 4096, 1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(type_names); i++) {
        const struct cql_type *t = cql_type_parse(&f.arena, slice_str(type_names[i]), NULL, NULL, NULL, &f.err);
        assert_non_null(t);
        check_type(&f, t, false);
        check_type(&f, t, true);
    }
    arena_fini(&f.arena);
}

/* A value written before ALTER TYPE ADD, its form among those that are written after it. */
static void test_key_form_of_a_tuple_survives_a_new_field(void **state) {
    (void)state;
    struct fixture f = {.seed = 31};
    arena_init(&f.arena, 4096, 1 << 20);
    const struct cql_type *narrow = cql_type_parse(&f.arena, slice_str("tuple<int, text>"), NULL, NULL, NULL, &f.err);
    const struct cql_type *wide = cql_type_parse(&f.arena, slice_str("tuple<int, text, blob>"), NULL, NULL, NULL,
                                                 &f.err);
    for (int desc = 0; desc < 2; desc++)
        for (int i = 0; i < 500; i++) {
            struct buf old, new, old_form, again, new_form;
            struct buf *const all[] = {&old, &new, &old_form, &again, &new_form};
            bool exact = true;
            for (size_t k = 0; k < ARRAY_LEN(all); k++) buf_init(all[k], 0);
            put_value(&f, narrow, &old, 0);
            put_value(&f, wide, &new, 0);
            assert_int_equal(0, cql_key_encode(narrow, desc, buf_slice(&old), &old_form, &exact, &f.err));
            assert_int_equal(0, cql_key_encode(wide, desc, buf_slice(&old), &again, &exact, &f.err));
            assert_int_equal(0, cql_key_encode(wide, desc, buf_slice(&new), &new_form, &exact, &f.err));
            assert_true(slice_eq(buf_slice(&old_form), buf_slice(&again)));
            check_round_trip(&f, wide, desc, buf_slice(&old), buf_slice(&old_form), false);
            check_pair(wide, desc, buf_slice(&old), buf_slice(&new), buf_slice(&old_form), buf_slice(&new_form));
            for (size_t k = 0; k < ARRAY_LEN(all); k++) buf_fini(all[k]);
        }
    arena_fini(&f.arena);
}

/* What bytes decode to is a value of the type, and its own form decodes to an equal one. */
static bool decodes_to_a_value(struct fixture *f, const struct cql_type *t, bool desc, struct slice bytes) {
    struct buf out, form;
    struct rd r = rd_of(bytes);
    bool exact = true;
    buf_init(&out, 1 << 16);
    buf_init(&form, 0);
    bool decoded = cql_key_decode(t, desc, &r, &out) == 0;
    if (decoded && out.n) { /* the empty value has a form of any type, also of those that refuse it */
        assert_true(r.p > bytes.p && r.p <= bytes.p + bytes.n);
        if (cql_value_validate(t, buf_slice(&out), &f->err) != 0)
            fail_msg("a key form gave what is no value: %s", f->err.text);
        assert_int_equal(0, cql_key_encode(t, desc, buf_slice(&out), &form, &exact, &f->err));
        check_round_trip(f, t, desc, buf_slice(&out), buf_slice(&form), exact);
    }
    buf_fini(&out);
    buf_fini(&form);
    return decoded;
}

static void check_broken(struct fixture *f, const struct cql_type *t, bool desc) {
    struct buf value, form;
    bool exact = true;
    buf_init(&value, 0);
    buf_init(&form, 0);
    put_value(f, t, &value, 0);
    assert_int_equal(0, cql_key_encode(t, desc, buf_slice(&value), &form, &exact, &f->err));
    assert_true(decodes_to_a_value(f, t, desc, buf_slice(&form)));
    for (size_t n = 0; n < form.n; n++) assert_false(decodes_to_a_value(f, t, desc, slice_of(form.p, n)));
    buf_fini(&value);
    buf_fini(&form);
}

static void test_key_decode_refuses_truncated_forms(void **state) {
    (void)state;
    struct fixture f = {.seed = 11};
    arena_init(&f.arena, 4096, 1 << 20);
    for (size_t i = 0; i < 20 * ARRAY_LEN(type_names); i++) {
        const struct cql_type *t = cql_type_parse(&f.arena, slice_str(type_names[i / 20]), NULL, NULL, NULL, &f.err);
        check_broken(&f, t, i % 2);
    }
    arena_fini(&f.arena);
}

/* Of random bytes most are refused; what is not is a value. Integers and the like take any bytes,
 * these types do not. */
static void test_key_decode_of_random_bytes_returns_a_value_or_an_error(void **state) {
    (void)state;
    static const char *const names[] = {"decimal",
                                        "varint",
                                        "blob",
                                        "boolean",
                                        "frozen<list<int>>",
                                        "frozen<map<decimal, boolean>>",
                                        "tuple<int, varint>",
                                        "vector<smallint, 2>"};
    struct fixture f = {.seed = 7};
    unsigned decoded = 0;
    enum { TRIES = 12000 };
    arena_init(&f.arena, 4096, 1 << 20);
    const struct cql_type *types[ARRAY_LEN(names)];
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        types[i] = cql_type_parse(&f.arena, slice_str(names[i]), NULL, NULL, NULL, &f.err);
    for (unsigned i = 0; i < TRIES; i++) {
        struct buf junk;
        buf_init(&junk, 0);
        put_bytes(&f, &junk, pick(&f, 40), 0xFF);
        decoded += decodes_to_a_value(&f, types[i % ARRAY_LEN(names)], i % 4 == 0, buf_slice(&junk));
        buf_fini(&junk);
    }
    assert_in_range(decoded, TRIES / 100, TRIES / 2);
    arena_fini(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_key_form_keeps_the_order_of_every_type),
                                       cmocka_unit_test(test_key_form_of_a_tuple_survives_a_new_field),
                                       cmocka_unit_test(test_key_decode_refuses_truncated_forms),
                                       cmocka_unit_test(test_key_decode_of_random_bytes_returns_a_value_or_an_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
