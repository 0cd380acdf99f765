#include "cql/expr/number.h"

#include <math.h>

/* Numbers are integers with BITS bits after the point. That suffices for 32 digits and for
 * cancellation: the logarithm of a decimal very near 1 loses as many digits as it shares with 1. */
enum { BITS = 1024, DIGITS_MIN = 32, DIGITS_MAX = 250, ZERO_EXPONENT = 33 };
static const int64_t exponent_max = INT32_MAX;

/* Significant digits of a result: as many as the argument has, between 32 and 250. */
static int digits_of(const struct number *v) {
    int64_t n = number_digits(v->n);
    return n < DIGITS_MIN ? DIGITS_MIN : n > DIGITS_MAX ? DIGITS_MAX : (int)n;
}

/* ln of m in [1, 2]: 2 x the series of y + y^3/3 + y^5/5 ..., y = (m - 1) / (m + 1). */
static void small_log(mpz_t out, const mpz_t m) {
    mpz_t y, square, one, part;
    mpz_inits(y, square, one, part, NULL);
    mpz_setbit(one, BITS);
    mpz_sub(y, m, one);
    mpz_mul_2exp(y, y, BITS);
    mpz_add(part, m, one);
    mpz_tdiv_q(y, y, part);
    mpz_mul(square, y, y);
    mpz_tdiv_q_2exp(square, square, BITS);
    mpz_set_ui(out, 0);
    for (unsigned long i = 1; mpz_sgn(y); i += 2) {
        mpz_tdiv_q_ui(part, y, i);
        mpz_add(out, out, part);
        mpz_mul(y, y, square);
        mpz_tdiv_q_2exp(y, y, BITS);
    }
    mpz_mul_2exp(out, out, 1);
    mpz_clears(y, square, one, part, NULL);
}

/* ln of a positive integer. */
static void whole_log(mpz_t out, const mpz_t n) {
    mpz_t m, two;
    mpz_inits(m, two, NULL);
    size_t top = mpz_sizeinbase(n, 2) - 1;
    if (top > BITS) mpz_tdiv_q_2exp(m, n, top - BITS);
    else mpz_mul_2exp(m, n, BITS - top);
    small_log(out, m);
    mpz_setbit(two, BITS + 1);
    small_log(m, two);
    mpz_addmul_ui(out, m, top);
    mpz_clears(m, two, NULL);
}

static void log_of_ten(mpz_t out) {
    mpz_t ten;
    mpz_init_set_ui(ten, 10);
    whole_log(out, ten);
    mpz_clear(ten);
}

/* Converts n / 2^BITS, not 0, to a decimal of the given digits, rounded half up. */
static void to_decimal(const mpz_t n, int digits, struct number *v) {
    mpz_t power, half, limit;
    mpz_inits(power, half, limit, NULL);
    long top;
    double d = fabs(mpz_get_d_2exp(&top, n));
    int64_t scale = digits - 1 - (int64_t)floor(log10(d) + (double)(top - BITS) * 0.30102999566398120 - 1e-9);
    mpz_ui_pow_ui(limit, 10, (unsigned long)digits);
    for (bool again = true; again; scale--) {
        mpz_ui_pow_ui(power, 10, (unsigned long)(scale < 0 ? -scale : scale));
        mpz_set_ui(half, 0);
        mpz_setbit(half, BITS);
        if (scale < 0) mpz_mul(half, half, power);
        mpz_mul_ui(v->n, n, 2);
        if (scale > 0) mpz_mul(v->n, v->n, power);
        mpz_sgn(n) < 0 ? mpz_sub(v->n, v->n, half) : mpz_add(v->n, v->n, half);
        mpz_mul_2exp(half, half, 1);
        mpz_tdiv_q(v->n, v->n, half);
        again = mpz_cmpabs(v->n, limit) >= 0; /* the estimate was one too small, or rounding made a digit more */
    }
    v->scale = (int32_t)(scale + 1);
    mpz_clears(power, half, limit, NULL);
}

static int set_small(struct number *v, unsigned long n) {
    mpz_set_ui(v->n, n);
    v->scale = 0;
    return 0;
}

int decimal_log(struct number *v, bool ten, struct err *e) {
    if (mpz_sgn(v->n) <= 0)
        return err_set(e, ERR_SERVER, "java.lang.ArithmeticException: %s of number zero or less",
                       ten ? "Log10" : "Natural log");
    if (v->scale >= 0 && v->scale <= 1000 && mpz_sizeinbase(v->n, 10) <= (size_t)v->scale + 2) {
        mpz_t one;
        mpz_init(one);
        mpz_ui_pow_ui(one, 10, (unsigned long)v->scale);
        bool is_one = mpz_cmp(one, v->n) == 0;
        mpz_clear(one);
        if (is_one) set_small(v, 0);
        if (is_one && ten) v->scale = -ZERO_EXPONENT;
        if (is_one) return 0;
    }
    int digits = digits_of(v);
    mpz_t log, log10;
    mpz_inits(log, log10, NULL);
    whole_log(log, v->n);
    log_of_ten(log10);
    if (v->scale < 0) mpz_addmul_ui(log, log10, (unsigned long)-(int64_t)v->scale);
    else mpz_submul_ui(log, log10, (unsigned long)v->scale);
    if (ten) {
        mpz_mul_2exp(log, log, BITS);
        mpz_tdiv_q(log, log, log10);
    }
    if (mpz_sgn(log)) to_decimal(log, digits, v);
    else set_small(v, 0);
    /* Cassandra returns logarithms of 10, 100 and their inverses without zeros after the point, and
     * those of most other powers with them. */
    static const long whole[] = {1, 2, -1, -2};
    for (size_t i = 0; i < ARRAY_LEN(whole) && ten && v->scale > 0; i++) {
        mpz_ui_pow_ui(log, 10, (unsigned long)v->scale);
        mpz_mul_si(log, log, whole[i]);
        if (mpz_cmp(log, v->n) != 0) continue;
        mpz_set_si(v->n, whole[i]);
        v->scale = 0;
    }
    mpz_clears(log, log10, NULL);
    return 0;
}

/* e^r of r in [0, 3): the series, on r / 2^16, squared 16 times. */
static void small_exp(mpz_t out, const mpz_t r) {
    enum { HALVINGS = 16 };
    mpz_t part, x;
    mpz_inits(part, x, NULL);
    mpz_tdiv_q_2exp(x, r, HALVINGS);
    mpz_set_ui(out, 0);
    mpz_setbit(part, BITS);
    for (unsigned long i = 1; mpz_sgn(part); i++) {
        mpz_add(out, out, part);
        mpz_mul(part, part, x);
        mpz_tdiv_q_2exp(part, part, BITS);
        mpz_tdiv_q_ui(part, part, i);
    }
    for (int i = 0; i < HALVINGS; i++) {
        mpz_mul(out, out, out);
        mpz_tdiv_q_2exp(out, out, BITS);
    }
    mpz_clears(part, x, NULL);
}

int decimal_exp(struct number *v, struct err *e) {
    if (mpz_sgn(v->n) == 0) return set_small(v, 1);
    int64_t whole = (int64_t)mpz_sizeinbase(v->n, 10) - v->scale; /* digits before the point, or one more */
    if (whole > 12)
        return err_set(e, ERR_SERVER, "java.lang.ArithmeticException: %s",
                       mpz_sgn(v->n) > 0 ? "Overflow" : "Underflow");
    if (whole > -DIGITS_MIN && number_is_huge(v))
        return err_set(e, ERR_FUNCTION_FAILURE, "The decimal is too large to be calculated with");
    int digits = digits_of(v);
    mpz_t x, log10, quotient;
    mpz_inits(x, log10, quotient, NULL);
    if (whole > -DIGITS_MIN) { /* else the result is 1, which the series gives for x = 0 */
        int64_t scale = v->scale;
        mpz_mul_2exp(x, v->n, BITS);
        mpz_ui_pow_ui(quotient, 10, (unsigned long)(scale < 0 ? -scale : scale));
        if (scale < 0) mpz_mul(x, x, quotient);
        else mpz_tdiv_q(x, x, quotient);
    }
    log_of_ten(log10);
    mpz_fdiv_qr(quotient, x, x, log10);
    int64_t tens = mpz_get_si(quotient);
    small_exp(quotient, x);
    to_decimal(quotient, digits, v);
    int64_t scale = v->scale - tens;
    mpz_clears(x, log10, quotient, NULL);
    if (scale < -exponent_max || scale > exponent_max)
        return err_set(e, ERR_SERVER, "java.lang.ArithmeticException: %s", scale < 0 ? "Overflow" : "Underflow");
    v->scale = (int32_t)scale;
    return 0;
}
