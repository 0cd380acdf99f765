/* Casts, arithmetic and math of numbers, as Java's: integers wrap, reals saturate in casts. */
#include <math.h>

#include "cql/expr/function.h"
#include "cql/expr/number.h"
#include "types/decimal.h"

/* DecimalType: digits of a quotient, scale of a quotient, digits of a sum or product. */
enum { DECIMAL_DIGITS = 32, DECIMAL_SCALE_MAX = 1000, DECIMAL_PRECISION = 10000 };

bool function_is_number(const struct cql_type *t) {
    enum cql_type_id id = t->id;
    return id == CQL_TINYINT || id == CQL_SMALLINT || id == CQL_INT || id == CQL_BIGINT || id == CQL_COUNTER ||
           id == CQL_FLOAT || id == CQL_DOUBLE || id == CQL_VARINT || id == CQL_DECIMAL;
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

int function_cast_number(const struct function_in *in, struct buf *out) {
    struct number v;
    number_load(in->f->args[0], in->args[0], &v);
    /* Cassandra casts a real or decimal to varint through a long, so to 64 bits at most. */
    bool capped = in->f->result->id == CQL_VARINT && (v.form == REAL || in->f->args[0]->id == CQL_DECIMAL);
    struct buf whole;
    buf_init(&whole, 8);
    int rc = number_store(capped ? cql_type_scalar(CQL_BIGINT) : in->f->result, &v, capped ? &whole : out, in->ev->err);
    if (rc == 0 && capped) {
        v.form = WHOLE;
        v.i = buf_failed(&whole) ? 0 : (int64_t)load_u64(whole.p);
        rc = number_store(in->f->result, &v, out, in->ev->err);
    }
    buf_fini(&whole);
    number_fini(&v);
    return rc;
}

/* ---- arithmetic ---- */

static int fail(const struct function_in *in, const char *why) {
    static const char signs[] = {
        [EXPR_ADD] = '+', [EXPR_SUB] = '-', [EXPR_MUL] = '*', [EXPR_DIV] = '/', [EXPR_MOD] = '%'};
    struct buf a, b;
    buf_init(&a, 256);
    buf_init(&b, 256);
    cql_type_print(in->f->args[0], &a);
    cql_type_print(in->f->args[1], &b);
    struct slice x = buf_slice(&a), y = buf_slice(&b);
    err_set(in->ev->err, ERR_FUNCTION_FAILURE, "the operation '%.*s %c %.*s' failed: %s", SLICE_FMT(x),
            signs[in->f->op], SLICE_FMT(y), why);
    buf_fini(&a);
    buf_fini(&b);
    return -1;
}

/* Removes the decimal zeros at the end of an integer that is not 0, and returns their number. */
static int64_t take_zeros(mpz_t n) {
    mpz_t ten;
    mpz_init_set_ui(ten, 10);
    int64_t zeros = (int64_t)mpz_remove(n, n, ten);
    mpz_clear(ten);
    return zeros;
}

static int64_t digits_before_point(const struct number *v) { return number_digits(v->n) - v->scale; }

/* Rounds v, of the given scale, to DECIMAL_PRECISION digits and sets v->scale. Returns false if the
 * scale does not fit an int32 and v is not 0; v->scale is then the nearest. */
static bool round_decimal(struct number *v, int64_t scale) {
    int64_t drop;
    mpz_t power, half;
    mpz_inits(power, half, NULL);
    while ((drop = number_digits(v->n) - DECIMAL_PRECISION) > 0) { /* again when rounding makes a digit more */
        mpz_ui_pow_ui(power, 10, (unsigned long)drop);
        mpz_tdiv_q_2exp(half, power, 1);
        mpz_sgn(v->n) < 0 ? mpz_sub(v->n, v->n, half) : mpz_add(v->n, v->n, half);
        mpz_tdiv_q(v->n, v->n, power);
        scale -= drop;
    }
    mpz_clears(power, half, NULL);
    v->scale = (int32_t)(scale < INT32_MIN ? INT32_MIN : scale > INT32_MAX ? INT32_MAX : scale);
    return v->scale == scale || mpz_sgn(v->n) == 0;
}

/* a + b into a. When all digits of one number are after the sum's last digit, only its sign is
 * added, so that the cost does not grow with the distance of the exponents (BigDecimal.add with a
 * precision). Returns as round_decimal does. */
static bool add_decimal(struct number *a, struct number *b) {
    struct number *coarse = a->scale <= b->scale ? a : b, *fine = coarse == a ? b : a;
    int64_t from = coarse->scale, to = fine->scale, digits = number_digits(coarse->n),
            last = from - digits + DECIMAL_PRECISION;
    if (mpz_sgn(coarse->n) == 0) {
        from = to;
    } else if (mpz_sgn(fine->n) == 0) {
        if (to > last) to = last > from ? last : from;
    } else {
        int64_t highest = to - number_digits(fine->n) + 1;
        if (highest > from + 2 && highest > last + 2) {
            mpz_set_si(fine->n, mpz_sgn(fine->n));
            to = (last > from ? last : from) + 3;
        }
    }
    number_rescale(coarse->n, from, to);
    mpz_add(a->n, a->n, b->n);
    return round_decimal(a, to);
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
    if (shift >= 0) number_rescale(a->n, 0, shift);
    else number_rescale(b->n, 0, -shift);
    int sign = mpz_sgn(a->n) * mpz_sgn(b->n);
    mpz_tdiv_qr(a->n, rest, a->n, b->n);
    mpz_mul_2exp(rest, rest, 1);
    if (mpz_cmpabs(rest, b->n) >= 0) sign < 0 ? mpz_sub_ui(a->n, a->n, 1) : mpz_add_ui(a->n, a->n, 1);
    mpz_clear(rest);
    a->scale = mpz_sgn(a->n) == 0 ? 0 : (int32_t)(scale - take_zeros(a->n));
}

/* In an operation with a decimal, an integer is converted through a double: 3 becomes 3.0, and
 * beyond 2^53 digits are lost (DecimalType.toBigDecimal). */
static void through_real(struct number *v) {
    if (v->form != WHOLE) return;
    v->form = REAL;
    v->d = (double)v->i;
}

/* The remainder with the scale of BigDecimal.remainder: the quotient loses trailing zeros, at most
 * down to the difference of the scales. */
static void remainder_decimal(struct number *a, struct number *b) {
    int64_t preferred = (int64_t)a->scale - b->scale, quotient_scale = preferred, scale = a->scale;
    mpz_t q;
    mpz_init(q);
    int32_t of_divisor = b->scale;
    number_align(a, b);
    mpz_tdiv_qr(q, a->n, a->n, b->n);
    if (preferred < 0 && mpz_sgn(q)) {
        int64_t zeros = take_zeros(q);
        quotient_scale = -zeros > preferred ? -zeros : preferred;
    }
    if (quotient_scale + of_divisor > scale) scale = quotient_scale + of_divisor;
    number_rescale(a->n, a->scale, scale);
    a->scale = (int32_t)scale;
    mpz_clear(q);
}

static bool is_finite(const struct number *v) { return v->form != REAL || isfinite(v->d); }

static int big_result(const struct function_in *in, struct number *a, struct number *b) {
    bool whole = in->f->result->id == CQL_VARINT;
    struct err *e = in->ev->err;
    if (!whole) {
        through_real(a);
        through_real(b);
    }
    if (!is_finite(a) || !is_finite(b))
        return fail(in, isnan(is_finite(a) ? b->d : a->d) ? "A NaN cannot be converted into a decimal"
                                                          : "An infinite number cannot be converted into a decimal");
    if (number_to_big(a, whole, e) < 0 || number_to_big(b, whole, e) < 0) return -1;
    bool divides = in->f->op == EXPR_DIV || in->f->op == EXPR_MOD;
    if (number_is_long(a) || number_is_long(b)) return fail(in, "Overflow");
    if (divides && (number_is_huge(a) || number_is_huge(b))) return fail(in, "Overflow");
    if (in->f->op == EXPR_MOD && !whole && mpz_sgn(b->n) == 0)
        return fail(in, mpz_sgn(a->n) ? "Division by zero" : "Division undefined");
    if (divides && mpz_sgn(b->n) == 0) return fail(in, "BigInteger divide by zero");
    bool held = true;
    switch (in->f->op) {
    case EXPR_MUL:
        mpz_mul(a->n, a->n, b->n);
        if (!whole) held = round_decimal(a, (int64_t)a->scale + b->scale);
        break;
    case EXPR_DIV:
        if (whole) mpz_tdiv_q(a->n, a->n, b->n);
        else divide_decimal(a, b);
        break;
    case EXPR_MOD: remainder_decimal(a, b); break;
    default:
        if (in->f->op == EXPR_SUB) mpz_neg(b->n, b->n);
        if (whole) mpz_add(a->n, a->n, b->n);
        else held = add_decimal(a, b);
    }
    return held ? 0 : fail(in, a->scale < 0 ? "Overflow" : "Underflow");
}

int function_arithmetic(const struct function_in *in, struct buf *out) {
    struct number a, b;
    const struct cql_type *t = in->f->result;
    int rc = 0;
    number_load(in->f->args[0], in->args[0], &a);
    number_load(in->f->args[1], in->args[1], &b);
    if (t->id == CQL_VARINT || t->id == CQL_DECIMAL) {
        rc = big_result(in, &a, &b);
        if (rc == 0) rc = number_store(t, &a, out, in->ev->err);
    } else if (is_real(t->id)) {
        double x = number_to_real(&a), y = number_to_real(&b);
        enum ast_expr_kind op = in->f->op;
        double v = op == EXPR_ADD   ? x + y
                   : op == EXPR_SUB ? x - y
                   : op == EXPR_MUL ? x * y
                   : op == EXPR_DIV ? x / y
                                    : fmod(x, y);
        number_put_real(t->id, v, out);
    } else {
        uint64_t x = (uint64_t)a.i, y = (uint64_t)b.i;
        enum ast_expr_kind op = in->f->op;
        if ((op == EXPR_DIV || op == EXPR_MOD) && b.i == 0) rc = fail(in, "/ by zero");
        else if (op == EXPR_DIV) number_put_whole(t->id, b.i == -1 ? (int64_t)(0 - x) : a.i / b.i, out);
        else if (op == EXPR_MOD) number_put_whole(t->id, b.i == -1 ? 0 : a.i % b.i, out);
        else number_put_whole(t->id, (int64_t)(op == EXPR_ADD ? x + y : op == EXPR_SUB ? x - y : x * y), out);
    }
    number_fini(&a);
    number_fini(&b);
    return rc;
}

int function_negate(const struct function_in *in, struct buf *out) {
    struct number v;
    number_load(in->f->args[0], in->args[0], &v);
    v.i = (int64_t)(0 - (uint64_t)v.i);
    v.d = -v.d;
    mpz_neg(v.n, v.n);
    int rc = number_store(in->f->result, &v, out, in->ev->err);
    number_fini(&v);
    return rc;
}

/* As Math.round: a real is rounded in its own size (32 or 64 bits), halves up, NaN to 0. */
static void round_half_up(struct number *v, bool single) {
    if (v->form == REAL) {
        double limit = single ? 2147483647.0 : 9223372036854775807.0,
               lowest = single ? -2147483648.0 : -9223372036854775808.0, down = floor(v->d);
        double nearest = v->d - down >= 0.5 ? down + 1 : down;
        double bounded = nearest > limit ? limit : nearest < lowest ? lowest : nearest;
        v->d = isnan(v->d) ? 0 : bounded + 0.0; /* no negative zero */
    }
    if (v->form != BIG || v->scale == 0 || number_is_huge(v)) return;
    if (v->scale > 0) {
        mpz_t half;
        mpz_init(half);
        mpz_ui_pow_ui(half, 10, (unsigned long)v->scale);
        mpz_tdiv_q_2exp(half, half, 1);
        mpz_sgn(v->n) < 0 ? mpz_sub(v->n, v->n, half) : mpz_add(v->n, v->n, half);
        mpz_clear(half);
    }
    number_rescale(v->n, v->scale, 0);
    v->scale = 0;
}

int function_math(const struct function_in *in, struct buf *out) {
    const char *name = in->f->name;
    bool exponential = strcmp(name, "exp") == 0, ten = strcmp(name, "log10") == 0;
    struct number v;
    int rc = 0;
    number_load(in->f->args[0], in->args[0], &v);
    if (strcmp(name, "abs") == 0) {
        if (v.form == WHOLE && v.i < 0) v.i = (int64_t)(0 - (uint64_t)v.i);
        v.d = fabs(v.d);
        mpz_abs(v.n, v.n);
    } else if (strcmp(name, "round") == 0) {
        round_half_up(&v, in->f->args[0]->id == CQL_FLOAT);
    } else if (v.form == BIG) {
        rc = exponential ? decimal_exp(&v, in->ev->err) : decimal_log(&v, ten, in->ev->err);
    } else {
        double d = number_to_real(&v);
        v.d = exponential ? exp(d) : ten ? log10(d) : log(d);
        v.form = REAL;
    }
    if (rc == 0) rc = number_store(in->f->result, &v, out, in->ev->err);
    number_fini(&v);
    return rc;
}
