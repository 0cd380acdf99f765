#include "base/murmur3.h"

static uint64_t rotl(uint64_t v, int n) { return v << n | v >> (64 - n); }

static uint64_t fmix(uint64_t k) {
    k ^= k >> 33;
    k *= 0xff51afd7ed558ccdULL;
    k ^= k >> 33;
    k *= 0xc4ceb9fe1a85ec53ULL;
    return k ^ k >> 33;
}

static uint64_t load_le(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static const uint64_t C1 = 0x87c37b91114253d5ULL, C2 = 0x4cf5ad432745937fULL;

static uint64_t mix1(uint64_t k) { return rotl(k * C1, 31) * C2; }
static uint64_t mix2(uint64_t k) { return rotl(k * C2, 33) * C1; }

/* Loads up to 8 bytes, little-endian. */
static uint64_t load_short(const uint8_t *p, size_t n) {
    uint32_t low, high;
    if (n == 8) return load_le(p);
    if (n < 4) return n ? p[0] | (uint64_t)p[n / 2] << (n / 2 * 8) | (uint64_t)p[n - 1] << ((n - 1) * 8) : 0;
    memcpy(&low, p, 4);
    memcpy(&high, p + n - 4, 4);
    return low | (uint64_t)high << ((n - 4) * 8);
}

/* Combines (XOR) the bytes, each sign-extended and shifted to its place: a negative byte inverts
 * all bits above it. */
static uint64_t load_signed(const uint8_t *p, size_t n) {
    uint64_t bytes = load_short(p, n), turned = (bytes >> 7 & UINT64_C(0x0101010101010101)) << 8;
    turned ^= turned << 8;
    turned ^= turned << 16;
    turned ^= turned << 32;
    return bytes ^ turned * 255;
}

uint64_t murmur3_hash(struct slice key) {
    uint64_t h1 = 0, h2 = 0;
    size_t blocks = key.n / 16;
    for (size_t i = 0; i < blocks; i++) {
        h1 ^= mix1(load_le(key.p + i * 16));
        h1 = (rotl(h1, 27) + h2) * 5 + 0x52dce729;
        h2 ^= mix2(load_le(key.p + i * 16 + 8));
        h2 = (rotl(h2, 31) + h1) * 5 + 0x38495ab5;
    }
    const uint8_t *tail = key.p + blocks * 16;
    size_t left = key.n % 16;
    if (left > 8) h2 ^= mix2(load_signed(tail + 8, left - 8));
    if (left > 0) h1 ^= mix1(load_signed(tail, left < 8 ? left : 8));
    h1 ^= key.n;
    h2 ^= key.n;
    h1 += h2;
    h2 += h1;
    h1 = fmix(h1);
    h2 = fmix(h2);
    return h1 + h2;
}

int64_t murmur3_token(struct slice key) {
    if (key.n == 0) return INT64_MIN;
    int64_t t = (int64_t)murmur3_hash(key);
    return t == INT64_MIN ? INT64_MAX : t;
}
