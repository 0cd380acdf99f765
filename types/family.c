/* Operations on values that go through the family tables, the shared scalars, and what all families
 * use. */
#include "types/family.h"

static const struct cql_type_info infos[CQL_TYPES] = {
#define TYPE(id_, option_, cql_, marshal_, wire_, fixed_, family_) \
    [CQL_##id_] = {.id = #id_, \
                   .option = option_, \
                   .cql = cql_, \
                   .marshal = marshal_, \
                   .wire = wire_, \
                   .fixed = fixed_, \
                   .family = &cqlt_##family_},
#include "types/type.def"
#undef TYPE
};

static const struct cql_type scalars[CQL_TYPES] = {
#define TYPE(id_, option, cql, marshal, wire, fixed, family) [CQL_##id_] = {.id = CQL_##id_},
#include "types/type.def"
#undef TYPE
};

const struct cql_type_info *cqlt_type_info(enum cql_type_id id) { return &infos[id]; }

const struct cql_type *cql_type_scalar(enum cql_type_id id) { return &scalars[id]; }

int64_t cqlt_type_fixed(const struct cql_type *t) {
    if (t->id != CQL_VECTOR) return infos[t->id].fixed ? infos[t->id].wire : -1;
    int64_t element = cqlt_type_fixed(t->args[0]);
    return element < 0 ? -1 : element * t->dimension;
}

static bool text_eq(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

bool cql_type_eq(const struct cql_type *a, const struct cql_type *b) {
    if (a == b) return true;
    if (a->id != b->id || a->n_args != b->n_args || a->dimension != b->dimension) return false;
    if (a->frozen != b->frozen && a->id != CQL_TUPLE && a->id != CQL_VECTOR) return false;
    if (a->id == CQL_UDT && (!text_eq(a->keyspace, b->keyspace) || !text_eq(a->name, b->name))) return false;
    for (uint32_t i = 0; i < a->n_args; i++) {
        if (a->field_names && !text_eq(a->field_names[i], b->field_names[i])) return false;
        if (!cql_type_eq(a->args[i], b->args[i])) return false;
    }
    return true;
}

bool cql_type_contains(const struct cql_type *t, enum cql_type_id id) {
    bool found = t->id == id;
    for (uint32_t i = 0; i < t->n_args && !found; i++) found = cql_type_contains(t->args[i], id);
    return found;
}

int cql_value_validate(const struct cql_type *t, struct slice v, struct err *e) {
    return cqlt_family(t)->validate(t, v, e);
}

int cql_value_compare(const struct cql_type *t, struct slice a, struct slice b) {
    return cqlt_family(t)->compare(t, a, b);
}

_Static_assert(CQL_TYPES <= 32, "a type is a bit");
static const uint32_t literal_fits[] = {
#define BIT(id) (1u << CQL_##id)
    [LIT_STRING] = BIT(ASCII) | BIT(TEXT) | BIT(INET) | BIT(DATE) | BIT(TIME) | BIT(TIMESTAMP),
    [LIT_INTEGER] = BIT(BIGINT) | BIT(COUNTER) | BIT(DATE) | BIT(DECIMAL) | BIT(DOUBLE) | BIT(DURATION) | BIT(FLOAT) |
                    BIT(INT) | BIT(SMALLINT) | BIT(TIME) | BIT(TIMESTAMP) | BIT(TINYINT) | BIT(VARINT),
    [LIT_FLOAT] = BIT(DECIMAL) | BIT(DOUBLE) | BIT(FLOAT),
    [LIT_BOOLEAN] = BIT(BOOLEAN),
    [LIT_UUID] = BIT(UUID) | BIT(TIMEUUID) | BIT(LEGACY_TIMEUUID),
    [LIT_HEX] = BIT(BLOB),
    [LIT_DURATION] = BIT(DURATION),
#undef BIT
};

bool cql_literal_fits(const struct cql_type *t, enum cql_literal kind) {
    /* Cassandra parses any literal for a tuple or a class from its text form, and so refuses none. */
    return t->id == CQL_TUPLE || cql_type_takes_text(t) || (literal_fits[kind] & 1u << t->id);
}

/* A literal 0x... is the bytes of a value of any type. As in Cassandra, composites and
 * PartitionerDefinedOrder take any bytes, and all other types check them. */
static int parse_bytes(const struct cql_type *t, struct slice text, struct buf *out, struct err *e) {
    size_t from = out->n;
    if (text.n >= 2) text = slice_of(text.p + 2, text.n - 2);
    if (cqlt_text.parse(cql_type_scalar(CQL_BLOB), text, (struct cql_reading){0}, out, e)) return -1;
    if (buf_failed(out)) return err_nomem(e);
    bool any = t->id == CQL_COMPOSITE || t->id == CQL_DYNAMIC_COMPOSITE || t->id == CQL_PARTITION_ORDER;
    const uint8_t *made = out->n > from ? out->p + from : (const uint8_t *)"";
    return any ? 0 : cql_value_validate(t, slice_of(made, out->n - from), e);
}

int cql_literal_parse(const struct cql_type *t, enum cql_literal kind, struct slice text, const char *receiver,
                      struct cql_reading how, struct buf *out, struct err *e) {
    static const char *const names[] = {"STRING", "INTEGER", "FLOAT", "BOOLEAN", "UUID", "HEX", "DURATION"};
    if (!cql_literal_fits(t, kind)) {
        struct buf refusal;
        buf_init(&refusal, 4096);
        buf_printf(&refusal, "Invalid %s constant (", names[kind]);
        buf_put(&refusal, text.p, text.n > 512 ? 512 : text.n);
        buf_printf(&refusal, ") for \"%s\" of type ", receiver ? receiver : "");
        cql_type_print(t, &refusal);
        return err_set_buf(e, ERR_INVALID, &refusal);
    }
    if (kind == LIT_HEX) return parse_bytes(t, text, out, e);
    if (cqlt_family(t)->parse(t, text, how, out, e) < 0) return -1;
    return buf_failed(out) ? err_nomem(e) : 0;
}

void cql_value_text(const struct cql_type *t, struct slice v, struct buf *out) { cqlt_family(t)->text(t, v, out); }

void cql_value_print(const struct cql_type *t, struct slice v, struct buf *out) {
    const struct cql_family *f = cqlt_family(t);
    if (cql_type_takes_text(t)) {
        buf_put_str(out, "0x");
        cql_value_text(cql_type_scalar(CQL_BLOB), v, out);
    } else if (f->print) {
        f->print(t, v, out);
    } else if (v.n == 0 && t->id != CQL_ASCII && t->id != CQL_TEXT && t->id != CQL_BLOB) {
        buf_put_str(out, "null");
    } else if (t->id == CQL_ASCII || t->id == CQL_TEXT) {
        buf_u8(out, '\'');
        for (size_t i = 0; i < v.n; i++) {
            if (v.p[i] == '\'') buf_u8(out, '\'');
            buf_u8(out, v.p[i]);
        }
        buf_u8(out, '\'');
    } else {
        bool quoted = t->id == CQL_INET || t->id == CQL_DATE || t->id == CQL_TIME || t->id == CQL_TIMESTAMP;
        if (t->id == CQL_BLOB) buf_put_str(out, "0x");
        if (quoted) buf_u8(out, '\'');
        f->text(t, v, out);
        if (quoted) buf_u8(out, '\'');
    }
}

bool cqlt_is_digits(struct slice text) {
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9') return false;
    return text.n > 0;
}

int cqlt_parse_int64(struct slice text, int64_t *out) {
    bool negative = text.n > 0 && text.p[0] == '-';
    size_t i = negative || (text.n > 0 && text.p[0] == '+');
    if (!cqlt_is_digits(slice_of(text.p + i, text.n - i))) return -1;
    int64_t v = 0;
    for (; i < text.n; i++) {
        int digit = text.p[i] - '0';
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, digit, &v)) return -1;
    }
    if (!negative && v == INT64_MIN) return -1;
    *out = negative ? v : -v;
    return 0;
}
