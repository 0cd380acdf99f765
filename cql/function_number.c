/* Casts between number types, arithmetic and math on them, as Cassandra's Java does: integers wrap, reals saturate in casts. */
#include <math.h>
#include <stdlib.h>

#include "cql/function.h"
#include "cql/types/decimal.h"

enum { DECIMAL_DIGITS = 32, DECIMAL_SCALE_MAX = 1000, DECIMAL_SPAN_MAX = 20000 };

bool function_is_number(const struct cql_type *t) {
    switch (t->id) {
    case CQL_TINYINT:
    case CQL_SMALLINT:
    case CQL_INT:
    case CQL_BIGINT:
    case CQL_COUNTER:
    case CQL_FLOAT:
    case CQL_DOUBLE:
    case CQL_VARINT:
    case CQL_DECIMAL: return true;
    default: return false;
    }
}

static int rank(enum cql_type_id id) {
    return id == CQL_TINYINT ? 0 : id == CQL_SMALLINT ? 1 : id == CQL_INT ? 2 : 3;
}

static bool is_real(enum cql_type_id id) { return id == CQL_FLOAT || id == CQL_DOUBLE; }

enum cql_type_id function_number_result(enum cql_type_id a, enum cql_type_id b) {
    if (a == CQL_COUNTER) a = CQL_BIGINT;
    if (b == CQL_COUNTER) b = CQL_BIGINT;
    if (a == b) return a;
    if (a == CQL_DECIMAL || b == CQL_DECIMAL) return CQL_DECIMAL;
    if (a == CQL_VARINT || b == CQL_VARINT) return is_real(a) || is_real(b) ? CQL_DECIMAL : CQL_VARINT;
    if (a == CQL_DOUBLE || b == CQL_DOUBLE) return CQL_DOUBLE;
    if (is_real(a) || is_real(b)) return a == CQL_BIGINT || b == CQL_BIGINT ? CQL_DOUBLE : CQL_FLOAT;
    return rank(a) > rank(b) ? a : b;
}

/* A number in the form its type is computed in; n is always initialised. */
struct number {
    enum { WHOLE, REAL, BIG } form;
    int64_t i;
    double d;
    mpz_t n; /* BIG: n / 10^scale */
    int32_t scale;
};

static double load_real(const struct cql_type *t, const uint8_t *p) {
    double d;
    float f;
    uint64_t bits = t->id == CQL_DOUBLE ? load_u64(p) : 0;
    uint32_t small = t->id == CQL_FLOAT ? load_u32(p) : 0;
    memcpy(&d, &bits, sizeof d);
    memcpy(&f, &small, sizeof f);
    return t->id == CQL_FLOAT ? (double)f : d;
}

static void load(const struct cql_type *t, struct value v, struct number *out) {
    *out = (struct number){.form = WHOLE};
    mpz_init(out->n);
    if (t->id == CQL_VARINT || t->id == CQL_DECIMAL) {
        out->form = BIG;
        if (t->id == CQL_VARINT)
            cql_varint_read(value_slice(v), out->n);
        else
            cql_decimal_read(value_slice(v), out->n, &out->scale);
    } else if (is_real(t->id)) {
        out->form = REAL;
        out->d = load_real(t, v.p);
    } else {
        out->i = (int8_t)v.p[0];
        for (int32_t i = 1; i < v.n; i++) out->i = (int64_t)((uint64_t)out->i << 8 | v.p[i]);
    }
}

static bool is_huge(const struct number *v) { return v->scale > DECIMAL_SPAN_MAX || v->scale < -DECIMAL_SPAN_MAX; }

/* Brings n to a scale; downwards it truncates. Scales are within DECIMAL_SPAN_MAX. */
static void rescale(mpz_t n, int64_t from, int64_t to) {
    mpz_t power;
    mpz_init(power);
    mpz_ui_pow_ui(power, 10, (unsigned long)(from > to ? from - to : to - from));
    if (from < to)
        mpz_mul(n, n, power);
    else
        mpz_tdiv_q(n, n, power);
    mpz_clear(power);
}

static int to_big(struct number *v, bool whole, struct err *e) {
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
        int rc = cql_literal_parse(cql_type_scalar(CQL_DECIMAL), LIT_FLOAT, buf_slice(&text), "", &wire, e);
        if (rc == 0) cql_decimal_read(buf_slice(&wire), v->n, &v->scale);
        buf_fini(&text);
        buf_fini(&wire);
        if (rc < 0) return -1;
    }
    v->form = BIG;
    if (!whole || v->scale == 0) return 0;
    if (is_huge(v)) return err_set(e, ERR_FUNCTION_FAILURE, "The decimal is too large to be calculated with");
    rescale(v->n, v->scale, 0);
    v->scale = 0;
    return 0;
}

static double to_real(const struct number *v) {
    if (v->form != BIG) return v->form == REAL ? v->d : (double)v->i;
    struct buf text;
    buf_init(&text, 0);
    cql_decimal_text(v->n, v->scale, false, &text);
    buf_u8(&text, 0);
    double d = buf_failed(&text) ? (double)NAN : strtod((const char *)text.p, NULL);
    buf_fini(&text);
    return d;
}

/* Low 64 bits of a big number; a real saturates at 32 or 64 bits. */
static int to_whole(struct number *v, bool wide, int64_t *out, struct err *e) {
    if (v->form == BIG) {
        if (to_big(v, true, e) < 0) return -1;
        mpz_t low;
        mpz_init(low);
        mpz_fdiv_r_2exp(low, v->n, 64);
        uint64_t bits = 0;
        mpz_export(&bits, NULL, -1, sizeof bits, 0, 0, low);
        mpz_clear(low);
        *out = (int64_t)bits;
    } else if (v->form == REAL) {
        double top = wide ? 9223372036854775808.0 : 2147483648.0;
        int64_t max = wide ? INT64_MAX : INT32_MAX;
        *out = isnan(v->d) ? 0 : v->d >= top ? max : v->d <= -top ? -max - 1 : (int64_t)v->d;
    } else {
        *out = v->i;
    }
    return 0;
}

static void store_real(enum cql_type_id id, double d, struct buf *out) {
    float f = (float)d;
    uint32_t small;
    uint64_t bits;
    memcpy(&small, &f, sizeof small);
    memcpy(&bits, &d, sizeof bits);
    if (id == CQL_FLOAT)
        buf_u32(out, isnan(f) ? 0x7FC00000u : small);
    else
        buf_u64(out, isnan(d) ? 0x7FF8000000000000u : bits);
}

static void store_whole(enum cql_type_id id, int64_t v, struct buf *out) {
    static const int bytes[] = {1, 2, 4, 8};
    for (int shift = bytes[rank(id)] * 8 - 8; shift >= 0; shift -= 8) buf_u8(out, (uint8_t)((uint64_t)v >> shift));
}

static int store(const struct cql_type *t, struct number *v, struct buf *out, struct err *e) {
    int64_t whole;
    if (t->id == CQL_VARINT || t->id == CQL_DECIMAL) {
        if (to_big(v, t->id == CQL_VARINT, e) < 0) return -1;
        if (t->id == CQL_VARINT)
            cql_varint_write(v->n, out);
        else
            cql_decimal_write(v->n, v->scale, out);
        return 0;
    }
    if (is_real(t->id)) {
        store_real(t->id, to_real(v), out);
        return 0;
    }
    if (to_whole(v, t->id == CQL_BIGINT || t->id == CQL_COUNTER, &whole, e) < 0) return -1;
    store_whole(t->id, whole, out);
    return 0;
}

int function_cast_number(const struct function_in *in, struct buf *out) {
    struct number v;
    load(in->f->args[0], in->args[0], &v);
    int rc = store(in->f->result, &v, out, in->r->err);
    mpz_clear(v.n);
    return rc;
}

/* ---- arithmetic ---- */

static int fail(const struct function_in *in, const char *why) {
    static const char signs[] = {[EXPR_ADD] = '+', [EXPR_SUB] = '-', [EXPR_MUL] = '*', [EXPR_DIV] = '/', [EXPR_MOD] = '%'};
    struct buf a, b;
    buf_init(&a, 256);
    buf_init(&b, 256);
    cql_type_print(in->f->args[0], &a);
    cql_type_print(in->f->args[1], &b);
    struct slice x = buf_slice(&a), y = buf_slice(&b);
    err_set(in->r->err, ERR_FUNCTION_FAILURE, "the operation '%.*s %c %.*s' failed: %s", SLICE_FMT(x), signs[in->f->op], SLICE_FMT(y), why);
    buf_fini(&a);
    buf_fini(&b);
    return -1;
}

static int whole_result(const struct function_in *in, int64_t a, int64_t b, int64_t *out) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (in->f->op) {
    case EXPR_ADD: *out = (int64_t)(x + y); return 0;
    case EXPR_SUB: *out = (int64_t)(x - y); return 0;
    case EXPR_MUL: *out = (int64_t)(x * y); return 0;
    default:
        if (b == 0) return fail(in, "/ by zero");
        if (b == -1)
            *out = in->f->op == EXPR_DIV ? (int64_t)(0 - x) : 0;
        else
            *out = in->f->op == EXPR_DIV ? a / b : a % b;
        return 0;
    }
}

static double real_result(enum ast_expr_kind op, double a, double b) {
    switch (op) {
    case EXPR_ADD: return a + b;
    case EXPR_SUB: return a - b;
    case EXPR_MUL: return a * b;
    case EXPR_DIV: return a / b;
    default: return fmod(a, b);
    }
}

static void strip_zeros(struct number *v) {
    if (mpz_sgn(v->n) == 0) v->scale = 0;
    while (mpz_sgn(v->n) && mpz_divisible_ui_p(v->n, 10)) {
        mpz_divexact_ui(v->n, v->n, 10);
        v->scale--;
    }
}

static int64_t digits_before_point(const struct number *v) {
    struct buf text;
    mpz_t n;
    mpz_init(n);
    mpz_abs(n, v->n);
    buf_init(&text, 0);
    cql_decimal_text(n, 0, true, &text);
    int64_t digits = (int64_t)text.n - v->scale;
    buf_fini(&text);
    mpz_clear(n);
    return digits;
}

/* At least 32 significant digits, rounded half up, zeros at the end cut (DecimalType.divide). */
static void divide_decimal(struct number *a, struct number *b) {
    int64_t scale = DECIMAL_DIGITS - (digits_before_point(a) - digits_before_point(b));
    if (scale < a->scale) scale = a->scale;
    if (scale < b->scale) scale = b->scale;
    if (scale < DECIMAL_DIGITS) scale = DECIMAL_DIGITS;
    if (scale > DECIMAL_SCALE_MAX) scale = DECIMAL_SCALE_MAX;
    int64_t shift = scale - a->scale + b->scale;
    mpz_t rest;
    mpz_init(rest);
    if (shift >= 0)
        rescale(a->n, 0, shift);
    else
        rescale(b->n, 0, -shift);
    int sign = mpz_sgn(a->n) * mpz_sgn(b->n);
    mpz_tdiv_qr(a->n, rest, a->n, b->n);
    mpz_mul_2exp(rest, rest, 1);
    if (mpz_cmpabs(rest, b->n) >= 0) sign < 0 ? mpz_sub_ui(a->n, a->n, 1) : mpz_add_ui(a->n, a->n, 1);
    mpz_clear(rest);
    a->scale = (int32_t)scale;
    strip_zeros(a);
}

static void align(struct number *a, struct number *b) {
    if (a->scale < b->scale) {
        rescale(a->n, a->scale, b->scale);
        a->scale = b->scale;
    } else {
        rescale(b->n, b->scale, a->scale);
        b->scale = a->scale;
    }
}

static int big_result(const struct function_in *in, struct number *a, struct number *b) {
    bool whole = in->f->result->id == CQL_VARINT;
    struct err *e = in->r->err;
    if (to_big(a, whole, e) < 0 || to_big(b, whole, e) < 0) return -1;
    if (is_huge(a) || is_huge(b)) return fail(in, "Overflow");
    bool divides = in->f->op == EXPR_DIV || in->f->op == EXPR_MOD;
    if (divides && mpz_sgn(b->n) == 0) return fail(in, "BigInteger divide by zero");
    switch (in->f->op) {
    case EXPR_MUL:
        mpz_mul(a->n, a->n, b->n);
        a->scale += b->scale;
        return 0;
    case EXPR_DIV:
        if (whole)
            mpz_tdiv_q(a->n, a->n, b->n);
        else
            divide_decimal(a, b);
        return 0;
    default: align(a, b);
    }
    if (in->f->op == EXPR_ADD)
        mpz_add(a->n, a->n, b->n);
    else if (in->f->op == EXPR_SUB)
        mpz_sub(a->n, a->n, b->n);
    else
        mpz_tdiv_r(a->n, a->n, b->n);
    return 0;
}

static int operate(const struct function_in *in, struct number *a, struct number *b, struct buf *out) {
    const struct cql_type *t = in->f->result;
    if (t->id == CQL_VARINT || t->id == CQL_DECIMAL) return big_result(in, a, b) < 0 ? -1 : store(t, a, out, in->r->err);
    if (is_real(t->id)) {
        store_real(t->id, real_result(in->f->op, to_real(a), to_real(b)), out);
        return 0;
    }
    int64_t v = 0;
    if (whole_result(in, a->i, b->i, &v) < 0) return -1;
    store_whole(t->id, v, out);
    return 0;
}

int function_arithmetic(const struct function_in *in, struct buf *out) {
    struct number a, b;
    load(in->f->args[0], in->args[0], &a);
    load(in->f->args[1], in->args[1], &b);
    int rc = operate(in, &a, &b, out);
    mpz_clear(a.n);
    mpz_clear(b.n);
    return rc;
}

int function_negate(const struct function_in *in, struct buf *out) {
    struct number v;
    load(in->f->args[0], in->args[0], &v);
    v.i = (int64_t)(0 - (uint64_t)v.i);
    v.d = -v.d;
    mpz_neg(v.n, v.n);
    int rc = store(in->f->result, &v, out, in->r->err);
    mpz_clear(v.n);
    return rc;
}

static void round_half_up(struct number *v) {
    if (v->form == REAL) v->d = isfinite(v->d) ? round(v->d) : v->d;
    if (v->form != BIG || v->scale <= 0 || is_huge(v)) return;
    mpz_t half;
    mpz_init(half);
    mpz_ui_pow_ui(half, 10, (unsigned long)v->scale);
    mpz_tdiv_q_2exp(half, half, 1);
    mpz_sgn(v->n) < 0 ? mpz_sub(v->n, v->n, half) : mpz_add(v->n, v->n, half);
    rescale(v->n, v->scale, 0);
    v->scale = 0;
    mpz_clear(half);
}

static void apply_math(const char *name, struct number *v) {
    if (strcmp(name, "abs") == 0) {
        if (v->form == WHOLE && v->i < 0) v->i = (int64_t)(0 - (uint64_t)v->i);
        v->d = fabs(v->d);
        mpz_abs(v->n, v->n);
    } else if (strcmp(name, "round") == 0) {
        round_half_up(v);
    } else {
        double d = to_real(v);
        v->d = strcmp(name, "exp") == 0 ? exp(d) : strcmp(name, "log") == 0 ? log(d) : log10(d);
        v->form = REAL;
        v->scale = 0;
    }
}

int function_math(const struct function_in *in, struct buf *out) {
    struct number v;
    load(in->f->args[0], in->args[0], &v);
    apply_math(in->f->name, &v);
    int rc = store(in->f->result, &v, out, in->r->err);
    mpz_clear(v.n);
    return rc;
}
