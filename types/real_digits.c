#include "types/real_digits.h"

#include <gmp.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MANTISSA_BITS = 53, SMALL_EXPONENT_MAX = 62, SMALL_EXPONENT_MIN = -21, POWERS_OF_5 = 27 };

/* value = fraction x 2^(exponent - 52). fraction has 53 bits; the first `significant` of them are
 * the precision of the format. */
struct binary {
    uint64_t fraction;
    int exponent, significant;
};

/* The number of bits of 5^n as Java estimates it: exact as far as its table of powers goes. */
static int bits_of_power(int n) { return n == 0 ? 0 : n < POWERS_OF_5 ? (int)(n * 2.321928094887362) + 1 : n * 3; }

/* The digits of a whole number below 2^63. Digits beyond the precision of the format are
 * rounded. */
static void whole_digits(const struct binary *b, struct real_digits *out) {
    int shift = b->exponent - (MANTISSA_BITS - 1), unknown = b->exponent - b->significant - 1, dropped = 0;
    uint64_t v = shift >= 0 ? b->fraction << shift : b->fraction >> -shift, power = 1;
    if (unknown > 1)
        for (int n = (int)(unknown * 0.3010299956639812); dropped < n; dropped++) power *= 10;
    if (dropped) v = v / power + (v % power >= power / 2);
    char reversed[24];
    int n = 0;
    for (; v; v /= 10) reversed[n++] = (char)('0' + v % 10);
    out->exponent = n - 1 + dropped;
    out->n = n;
    for (int i = 0; i < n; i++) out->digits[i] = reversed[n - 1 - i];
    while (out->n > 1 && out->digits[out->n - 1] == '0') out->n--;
}

/* value = rest / unit x 10^exponent. half is half the distance to the neighbouring numbers. */
struct state {
    mpz_t rest, unit, half, ten;
    int width; /* bits that Java computes with: 32 or 64, which may overflow; 0 as many as needed */
    bool low, high;
};

static void power_times(mpz_t out, uint64_t factor, int fives, int twos) {
    mpz_ui_pow_ui(out, 5, (unsigned long)fives);
    mpz_mul_ui(out, out, factor);
    mpz_mul_2exp(out, out, (mp_bitcnt_t)twos);
}

static int64_t wrapped(const mpz_t v, int width) {
    mpz_t low;
    mpz_init(low);
    mpz_fdiv_r_2exp(low, v, (mp_bitcnt_t)width);
    uint64_t bits = mpz_get_ui(low);
    mpz_clear(low);
    return width == 32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
}

/* The next digit. Sets low when the digits so far are near enough to the value, high when they are
 * after rounding up. */
static int next_digit(struct state *s, bool first) {
    mpz_t q, sum;
    mpz_inits(q, sum, NULL);
    mpz_tdiv_qr(q, s->rest, s->rest, s->unit);
    int digit = (int)mpz_get_ui(q);
    mpz_mul_ui(s->rest, s->rest, 10);
    mpz_mul_ui(s->half, s->half, 10);
    mpz_add(sum, s->rest, s->half);
    if (s->width == 0) {
        s->low = mpz_cmp(s->rest, s->half) < 0;
        s->high = mpz_cmp(sum, s->ten) >= 0;
    } else {
        int64_t half = wrapped(s->half, s->width);
        bool overflow = !first && half <= 0;
        s->low = overflow || wrapped(s->rest, s->width) < half;
        s->high = overflow || wrapped(sum, s->width) > wrapped(s->ten, s->width);
    }
    mpz_clears(q, sum, NULL);
    return digit;
}

static void develop(struct state *s, struct real_digits *out) {
    out->n = 0;
    int digit = next_digit(s, true);
    if (digit == 0 && !s->high)
        out->exponent--;
    else
        out->digits[out->n++] = (char)('0' + digit);
    if (out->exponent < -3 || out->exponent >= 8) s->low = s->high = false; /* d.dE+n has two digits at least */
    while (!s->low && !s->high && out->n < REAL_DIGITS_MAX) out->digits[out->n++] = (char)('0' + next_digit(s, false));
    mpz_mul_2exp(s->rest, s->rest, 1);
    int order = mpz_cmp(s->rest, s->ten);
    bool odd = out->digits[out->n - 1] & 1;
    if (!s->high || (s->low && (order < 0 || (order == 0 && !odd)))) return;
    /* Rounds up. */
    int i = out->n - 1;
    while (i > 0 && out->digits[i] == '9') out->digits[i--] = '0';
    if (out->digits[i] != '9') {
        out->digits[i]++;
        return;
    }
    out->digits[0] = '1';
    out->exponent++;
}

void cqlt_real_digits(double value, bool single, struct real_digits *out) {
    int exponent, least = single ? -126 : -1022, precision = single ? 24 : MANTISSA_BITS;
    double half_to_one = frexp(value, &exponent);
    struct binary b = {.fraction = (uint64_t)ldexp(half_to_one, MANTISSA_BITS), .exponent = exponent - 1};
    b.significant = b.exponent < least ? precision - (least - b.exponent) : precision;
    int zeros = __builtin_ctzll(b.fraction), bits = MANTISSA_BITS - zeros, tiny = bits - b.exponent - 1;
    if (tiny < 0) tiny = 0;
    if (b.exponent <= SMALL_EXPONENT_MAX && b.exponent >= SMALL_EXPONENT_MIN && tiny == 0 && bits < 64) {
        whole_digits(&b, out);
        return;
    }
    double m = ldexp((double)b.fraction, 1 - MANTISSA_BITS); /* in [1, 2) */
    out->exponent = (int)floor((m - 1.5) * 0.289529654 + 0.176091259 + (double)b.exponent * 0.301029995663981);
    int rest5 = out->exponent < 0 ? -out->exponent : 0, unit5 = out->exponent > 0 ? out->exponent : 0;
    int rest2 = rest5 + tiny + b.exponent, unit2 = unit5 + tiny, half2 = rest2 - b.significant;
    rest2 -= bits - 1;
    int common = rest2 < unit2 ? rest2 : unit2;
    rest2 -= common, unit2 -= common, half2 -= common;
    if (bits == 1) half2--; /* below a power of two the numbers lie closer */
    if (half2 < 0) rest2 -= half2, unit2 -= half2, half2 = 0;
    int rest_bits = bits + rest2 + bits_of_power(rest5), ten_bits = unit2 + 1 + bits_of_power(unit5 + 1);
    struct state s = {.width = rest_bits < 32 && ten_bits < 32 ? 32 : rest_bits < 64 && ten_bits < 64 ? 64 : 0};
    mpz_inits(s.rest, s.unit, s.half, s.ten, NULL);
    power_times(s.rest, b.fraction >> zeros, rest5, rest2);
    power_times(s.unit, 1, unit5, unit2);
    power_times(s.half, 1, rest5, half2);
    mpz_mul_ui(s.ten, s.unit, 10);
    develop(&s, out);
    mpz_clears(s.rest, s.unit, s.half, s.ten, NULL);
}
