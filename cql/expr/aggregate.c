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
    if (number_is_huge(v) || number_is_huge(sum))
        return err_set(e, ERR_FUNCTION_FAILURE, "The decimal is too large to be calculated with");
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

/* ---- float and double ---- */

static int add_overflown(struct aggregate *a, double d, struct err *e) {
    struct number v = {.form = REAL, .d = d};
    mpz_init(v.n);
    int rc = number_to_big(&v, false, e);
    if (rc == 0) rc = add_big(&a->big, &v, e);
    number_fini(&v);
    return rc;
}

static double real_sum(const struct aggregate *a) {
    double sum = a->real + a->lost;
    return isnan(sum) && isinf(a->simple) ? a->simple : sum;
}

/* ---- adding a value ---- */

static int add_number(struct aggregate *a, bool average, const struct cql_type *t, struct value v, struct err *e) {
    struct number x;
    int rc = 0;
    number_load(t, v, &x);
    if (x.form == BIG && average && t->id == CQL_DECIMAL) {
        /* Cassandra updates its average with every value and rounds each time
         * (avg + (v - avg) / n), so the result depends on the order of values. */
        mpz_neg(a->big.n, a->big.n);
        rc = add_big(&x, &a->big, e);
        mpz_neg(a->big.n, a->big.n);
        if (rc == 0) {
            divide_half_even(&x, a->n);
            rc = add_big(&a->big, &x, e);
        }
    } else if (x.form == BIG) {
        rc = add_big(&a->big, &x, e);
    } else if (x.form == REAL) {
        rc = a->overflown ? add_overflown(a, x.d, e) : 0;
        if (!a->overflown) {
            /* Kahan's summation, as in Java's DoubleSummaryStatistics. When the sum leaves the range
             * of a double, an average continues with exact numbers. */
            double before = a->real, part = x.d - a->lost, sum = before + part;
            a->simple += x.d;
            a->lost = (sum - before) - part;
            a->real = sum;
            a->overflown = average && isinf(sum) && !isinf(x.d) && !isinf(before);
            if (a->overflown) rc = add_overflown(a, before, e) || add_overflown(a, x.d, e) ? -1 : 0;
        }
    } else {
        a->whole += x.i;
    }
    number_fini(&x);
    return rc;
}

static void put_sum(const struct aggregate *a, const struct cql_type *t, struct buf *out) {
    if (t->id == CQL_DECIMAL) cql_decimal_write(a->big.n, a->big.scale, out);
    else if (t->id == CQL_VARINT) cql_varint_write(a->big.n, out);
    else if (t->id == CQL_FLOAT || t->id == CQL_DOUBLE) number_put_real(t->id, real_sum(a), out);
    else number_put_whole(t->id, (int64_t)a->whole, out);
}

/* ---- any aggregate ---- */

const struct aggregate_op *aggregate_find(const char *name) {
    static const struct aggregate_op ops[] = {
        {"count", AGGREGATE_COUNT, false, true}, {"min", AGGREGATE_MIN, false, false},
        {"max", AGGREGATE_MAX, false, false},    {"sum", AGGREGATE_SUM, true, false},
        {"avg", AGGREGATE_AVERAGE, true, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (!strcmp(name, ops[i].name)) return &ops[i];
    return NULL;
}

int aggregate_add(struct aggregate *a, const struct aggregate_op *op, const struct cql_type *t, struct value v,
                  struct err *e) {
    if (value_is_null(v) || (op->numbers && v.n == 0)) return 0;
    a->n++;
    switch (op->kind) {
    case AGGREGATE_COUNT: return 0;
    case AGGREGATE_MIN:
    case AGGREGATE_MAX: {
        int order = a->n == 1 ? 0 : cql_value_compare(t, value_slice(v), buf_slice(&a->best));
        if (a->n > 1 && (op->kind == AGGREGATE_MIN ? order >= 0 : order <= 0)) return 0;
        buf_clear(&a->best, 1024);
        buf_put_slice(&a->best, value_slice(v));
        return buf_failed(&a->best) ? err_nomem(e) : 0;
    }
    default: return add_number(a, op->kind == AGGREGATE_AVERAGE, t, v, e);
    }
}

int aggregate_result(struct aggregate *a, const struct aggregate_op *op, const struct cql_type *t, struct buf *out,
                     struct err *e) {
    switch (op->kind) {
    case AGGREGATE_COUNT: buf_u64(out, a->n); break;
    case AGGREGATE_MIN: case AGGREGATE_MAX:
        if (a->n == 0) return 1;
        buf_put_slice(out, buf_slice(&a->best));
        break;
    case AGGREGATE_SUM: put_sum(a, t, out); break;
    case AGGREGATE_AVERAGE:
        if (t->id == CQL_FLOAT || t->id == CQL_DOUBLE) {
            double average = a->n && !a->overflown ? real_sum(a) / (double)a->n : 0;
            if (a->n && a->overflown) {
                divide_half_even(&a->big, a->n);
                average = number_to_real(&a->big);
            }
            number_put_real(t->id, average, out);
            break;
        }
        if (t->id == CQL_VARINT && a->n) mpz_tdiv_q_ui(a->big.n, a->big.n, a->n);
        if (a->n) a->whole /= (__int128)a->n;
        put_sum(a, t, out);
        break;
    }
    return buf_failed(out) ? err_nomem(e) : 0;
}

struct aggregate *aggregates_new(struct arena *a, uint32_t n) {
    struct aggregate *all = ARENA_ARRAY(a, n + 1, struct aggregate);
    for (uint32_t i = 0; all && i < n; i++) aggregate_init(&all[i]);
    return all;
}

void aggregates_clear(struct aggregate *all, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) aggregate_clear(&all[i]);
}

void aggregates_fini(struct aggregate *all, uint32_t n) {
    for (uint32_t i = 0; all && i < n; i++) aggregate_fini(&all[i]);
}
