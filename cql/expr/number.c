/* Numbers of every CQL type, for arithmetic and aggregates. */
#include "cql/expr/number.h"

#include <math.h>
#include <stdlib.h>

#include "types/decimal.h"

/* The limit on a number's digits and on their distance from the point in calculations. Java has no
 * such limit; here a client must not choose the cost and length of a product or quotient. */
enum { DECIMAL_SPAN_MAX = 20000 };

static bool is_real(enum cql_type_id id) { return id == CQL_FLOAT || id == CQL_DOUBLE; }

void number_load(const struct cql_type *t, struct value v, struct number *out) {
    *out = (struct number){.form = WHOLE};
    mpz_init(out->n);
    if (t->id == CQL_VARINT || t->id == CQL_DECIMAL) {
        out->form = BIG;
        if (t->id == CQL_VARINT) cql_varint_read(value_slice(v), out->n);
        else cql_decimal_read(value_slice(v), out->n, &out->scale);
    } else if (is_real(t->id)) {
        double d;
        float f;
        uint64_t bits = t->id == CQL_DOUBLE ? load_u64(v.p) : 0;
        uint32_t small = t->id == CQL_FLOAT ? load_u32(v.p) : 0;
        memcpy(&d, &bits, sizeof d);
        memcpy(&f, &small, sizeof f);
        out->form = REAL;
        out->d = t->id == CQL_FLOAT ? (double)f : d;
    } else {
        out->i = (int8_t)v.p[0];
        for (int32_t i = 1; i < v.n; i++) out->i = (int64_t)((uint64_t)out->i << 8 | v.p[i]);
    }
}

bool number_is_huge(const struct number *v) { return v->scale > DECIMAL_SPAN_MAX || v->scale < -DECIMAL_SPAN_MAX; }

bool number_is_long(const struct number *v) { return mpz_sizeinbase(v->n, 10) > DECIMAL_SPAN_MAX + 1; }

int64_t number_digits(const mpz_t n) {
    size_t digits = mpz_sizeinbase(n, 10); /* or one too many */
    mpz_t power;
    mpz_init(power);
    mpz_ui_pow_ui(power, 10, digits - 1);
    if (digits > 1 && mpz_cmpabs(n, power) < 0) digits--;
    mpz_clear(power);
    return (int64_t)digits;
}

void number_rescale(mpz_t n, int64_t from, int64_t to) {
    mpz_t power;
    mpz_init(power);
    mpz_ui_pow_ui(power, 10, (unsigned long)(from > to ? from - to : to - from));
    if (from < to) mpz_mul(n, n, power);
    else mpz_tdiv_q(n, n, power);
    mpz_clear(power);
}

int number_to_big(struct number *v, bool whole, struct err *e) {
    if (v->form == WHOLE) {
        mpz_set_si(v->n, v->i);
    } else if (v->form == REAL) {
        uint64_t bits;
        struct buf text, wire;
        if (!isfinite(v->d)) return err_set(e, ERR_FUNCTION_FAILURE, "java.lang.NumberFormatException");
        memcpy(&bits, &v->d, sizeof bits);
        uint8_t raw[8];
        store_u64(raw, bits);
        buf_init(&text, 64);
        buf_init(&wire, 1024);
        cql_value_text(cql_type_scalar(CQL_DOUBLE), slice_of(raw, 8), &text);
        int rc = cql_literal_parse(cql_type_scalar(CQL_DECIMAL), LIT_FLOAT, buf_slice(&text), "",
                                   (struct cql_reading){0}, &wire, e);
        if (rc == 0) cql_decimal_read(buf_slice(&wire), v->n, &v->scale);
        buf_fini(&text);
        buf_fini(&wire);
        if (rc < 0) return -1;
    }
    v->form = BIG;
    if (!whole || v->scale == 0) return 0;
    if (number_is_huge(v)) return err_set(e, ERR_FUNCTION_FAILURE, "The decimal is too large to be calculated with");
    number_rescale(v->n, v->scale, 0);
    v->scale = 0;
    return 0;
}

double number_to_real(const struct number *v) {
    if (v->form != BIG) return v->form == REAL ? v->d : (double)v->i;
    struct buf text;
    buf_init(&text, 0);
    cql_decimal_text(v->n, v->scale, false, &text);
    buf_u8(&text, 0);
    double d = buf_failed(&text) ? (double)NAN : strtod((const char *)text.p, NULL);
    buf_fini(&text);
    return d;
}

void number_put_real(enum cql_type_id id, double d, struct buf *out) {
    float f = (float)d;
    uint32_t small;
    uint64_t bits;
    memcpy(&small, &f, sizeof small);
    memcpy(&bits, &d, sizeof bits);
    if (id == CQL_FLOAT) buf_u32(out, isnan(f) ? 0x7FC00000u : small);
    else buf_u64(out, isnan(d) ? 0x7FF8000000000000u : bits);
}

void number_put_whole(enum cql_type_id id, int64_t v, struct buf *out) {
    int bytes = id == CQL_TINYINT ? 1 : id == CQL_SMALLINT ? 2 : id == CQL_INT ? 4 : 8;
    for (int shift = bytes * 8 - 8; shift >= 0; shift -= 8) buf_u8(out, (uint8_t)((uint64_t)v >> shift));
}

int number_store(const struct cql_type *t, struct number *v, struct buf *out, struct err *e) {
    int64_t whole;
    if (t->id == CQL_VARINT || t->id == CQL_DECIMAL) {
        if (number_to_big(v, t->id == CQL_VARINT, e) < 0) return -1;
        if (t->id == CQL_VARINT) cql_varint_write(v->n, out);
        else cql_decimal_write(v->n, v->scale, out);
        return 0;
    }
    if (is_real(t->id)) {
        number_put_real(t->id, number_to_real(v), out);
        return 0;
    }
    if (v->form == BIG) { /* the low 64 bits */
        if (number_to_big(v, true, e) < 0) return -1;
        mpz_t low;
        uint64_t bits = 0;
        mpz_init(low);
        mpz_fdiv_r_2exp(low, v->n, 64);
        mpz_export(&bits, NULL, -1, sizeof bits, 0, 0, low);
        mpz_clear(low);
        whole = (int64_t)bits;
    } else if (v->form == REAL) { /* saturates at 32 or 64 bits */
        bool wide = t->id == CQL_BIGINT || t->id == CQL_COUNTER;
        double top = wide ? 9223372036854775808.0 : 2147483648.0;
        int64_t max = wide ? INT64_MAX : INT32_MAX;
        whole = isnan(v->d) ? 0 : v->d >= top ? max : v->d <= -top ? -max - 1 : (int64_t)v->d;
    } else {
        whole = v->i;
    }
    number_put_whole(t->id, whole, out);
    return 0;
}

void number_align(struct number *a, struct number *b) {
    if (a->scale < b->scale) {
        number_rescale(a->n, a->scale, b->scale);
        a->scale = b->scale;
    } else {
        number_rescale(b->n, b->scale, a->scale);
        b->scale = a->scale;
    }
}
