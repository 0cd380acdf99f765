#include "cql/expr/aggregate.h"

#include <math.h>

#include "types/decimal.h"

void aggregate_init(struct aggregate *a) {
    *a = (struct aggregate){.big.form = BIG};
    mpz_init(a->big.n);
    buf_init(&a->best, 0);
}

void aggregate_fini(struct aggregate *a) {
    number_fini(&a->big);
    buf_fini(&a->best);
}

void aggregate_clear(struct aggregate *a) {
    a->n = 0;
    a->whole = 0;
    a->real = a->lost = a->simple = 0;
    a->overflown = false;
    mpz_set_ui(a->big.n, 0);
    a->big.scale = 0;
    buf_clear(&a->best, 1024);
}

/* ---- varint and decimal ---- */

static int add_big(struct number *sum, struct number *v, struct err *e) {
    if (number_is_huge(v) || number_is_huge(sum)) return err_set(e, ERR_FUNCTION_FAILURE, "The decimal is too large to be calculated with");
    number_align(sum, v);
    mpz_add(sum->n, sum->n, v->n);
    return 0;
}

/* Divides, keeping the scale; half goes to the even neighbour. */
static void divide_half_even(struct number *v, uint64_t by) {
    mpz_t rest, divisor;
    mpz_init(rest);
    mpz_init_set_ui(divisor, by);
    int sign = mpz_sgn(v->n);
    mpz_tdiv_qr(v->n, rest, v->n, divisor);
    mpz_mul_2exp(rest, rest, 1);
    int half = mpz_cmpabs(rest, divisor);
    if (half > 0 || (half == 0 && mpz_odd_p(v->n))) sign < 0 ? mpz_sub_ui(v->n, v->n, 1) : mpz_add_ui(v->n, v->n, 1);
    mpz_clear(rest);
    mpz_clear(divisor);
}

/* Cassandra moves its average with every value and rounds each time (avg + (v - avg) / n), so the order of values shows. */
static int move_average(struct aggregate *a, struct number *v, struct err *e) {
    mpz_neg(a->big.n, a->big.n);
    int rc = add_big(v, &a->big, e);
    mpz_neg(a->big.n, a->big.n);
    if (rc < 0) return -1;
    divide_half_even(v, a->n);
    return add_big(&a->big, v, e);
}

static int add_exact(struct aggregate *a, enum aggregate_kind kind, const struct cql_type *t, struct value value, struct err *e) {
    struct number v;
    number_load(t, value, &v);
    bool moves = kind == AGGREGATE_AVG && t->id == CQL_DECIMAL;
    int rc = moves ? move_average(a, &v, e) : add_big(&a->big, &v, e);
    number_fini(&v);
    return rc;
}

/* ---- float and double ---- */

static int add_overflown(struct aggregate *a, double d, struct err *e) {
    struct number v = {.form = REAL, .d = d};
    mpz_init(v.n);
    int rc = number_to_big(&v, false, e);
    if (rc == 0) rc = add_big(&a->big, &v, e);
    number_fini(&v);
    return rc;
}

/* Kahan's summation, as Java's DoubleSummaryStatistics does it. An average goes on exactly where the sum leaves the range of a double. */
static int add_real(struct aggregate *a, enum aggregate_kind kind, double d, struct err *e) {
    if (a->overflown) return add_overflown(a, d, e);
    double before = a->real, part = d - a->lost, sum = before + part;
    a->simple += d;
    a->lost = (sum - before) - part;
    a->real = sum;
    if (kind != AGGREGATE_AVG || !isinf(sum) || isinf(d) || isinf(before)) return 0;
    a->overflown = true;
    return add_overflown(a, before, e) < 0 ? -1 : add_overflown(a, d, e);
}

static double real_sum(const struct aggregate *a) {
    double sum = a->real + a->lost;
    return isnan(sum) && isinf(a->simple) ? a->simple : sum;
}

static double real_average(struct aggregate *a) {
    if (a->n == 0) return 0;
    if (!a->overflown) return real_sum(a) / (double)a->n;
    divide_half_even(&a->big, a->n);
    return number_to_real(&a->big);
}

/* ---- the run ---- */

static int keep_best(struct aggregate *a, enum aggregate_kind kind, const struct cql_type *t, struct slice v, struct err *e) {
    int order = a->n == 1 ? 0 : cql_value_compare(t, v, buf_slice(&a->best));
    if (a->n > 1 && (kind == AGGREGATE_MIN ? order >= 0 : order <= 0)) return 0;
    buf_clear(&a->best, 1024);
    buf_put_slice(&a->best, v);
    return buf_failed(&a->best) ? err_nomem(e) : 0;
}

int aggregate_add(struct aggregate *a, enum aggregate_kind kind, const struct cql_type *t, struct value v, struct err *e) {
    if (value_is_null(v)) return 0;
    if (kind == AGGREGATE_COUNT) return a->n++, 0;
    if (kind == AGGREGATE_MIN || kind == AGGREGATE_MAX) return a->n++, keep_best(a, kind, t, value_slice(v), e);
    if (v.n == 0) return 0;
    a->n++;
    if (t->id == CQL_DECIMAL || t->id == CQL_VARINT) return add_exact(a, kind, t, v, e);
    struct number x;
    number_load(t, v, &x);
    int rc = 0;
    if (x.form == REAL)
        rc = add_real(a, kind, x.d, e);
    else
        a->whole += x.i;
    number_fini(&x);
    return rc;
}

int aggregate_result(struct aggregate *a, enum aggregate_kind kind, const struct cql_type *t, struct buf *out, struct err *e) {
    bool average = kind == AGGREGATE_AVG;
    if (kind == AGGREGATE_COUNT) {
        buf_u64(out, a->n);
    } else if (kind == AGGREGATE_MIN || kind == AGGREGATE_MAX) {
        if (a->n == 0) return 1;
        buf_put_slice(out, buf_slice(&a->best));
    } else if (t->id == CQL_DECIMAL) {
        cql_decimal_write(a->big.n, a->big.scale, out);
    } else if (t->id == CQL_VARINT) {
        if (average && a->n) mpz_tdiv_q_ui(a->big.n, a->big.n, a->n);
        cql_varint_write(a->big.n, out);
    } else if (t->id == CQL_FLOAT || t->id == CQL_DOUBLE) {
        number_put_real(t->id, average ? real_average(a) : real_sum(a), out);
    } else {
        number_put_whole(t->id, (int64_t)(average && a->n ? a->whole / (__int128)a->n : a->whole), out);
    }
    return buf_failed(out) ? err_nomem(e) : 0;
}
