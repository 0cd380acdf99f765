/* A perfect hash table of the words of keyword.def, which keyword_slots.c makes when Tally is built. The key of
 * a word is two numbers, of its first eight bytes and of the rest, in lower case and padded with 0. */
#pragma once

#include "base/buf.h"

enum { KEYWORD_MAX = 16, KEYWORD_SLOTS = 1024 }; /* bytes of the longest word; a power of two */

struct keyword_key {
    uint64_t first, rest;
};

/* Up to 8 bytes, of which there is at least one. */
static inline uint64_t keyword_number(const uint8_t *p, size_t n) {
    if (n >= 4) return (uint64_t)load_u32(p) << 32 | (uint64_t)load_u32(p + n - 4) << (64 - 8 * n);
    return (uint64_t)p[0] << 56 | (uint64_t)p[n / 2] << (56 - 8 * (n / 2)) | (uint64_t)p[n - 1] << (64 - 8 * n);
}

/* In each byte: 32 more if it is from A to Z. */
static inline uint64_t keyword_lower(uint64_t v) {
    const uint64_t each = UINT64_C(0x0101010101010101), low = v & each * 0x7f;
    uint64_t from_a = low + each * (0x80 - 'A'), behind_z = low + each * (0x7f - 'Z');
    return v + ((from_a & ~behind_z & ~v & each * 0x80) >> 2);
}

/* The word has 1 to KEYWORD_MAX bytes. */
static inline struct keyword_key keyword_key(struct slice word) {
    size_t n = word.n;
    if (n <= 8) return (struct keyword_key){.first = keyword_lower(keyword_number(word.p, n))};
    return (struct keyword_key){.first = keyword_lower(load_u64(word.p)),
                                .rest = keyword_lower(load_u64(word.p + n - 8) << (8 * (16 - n)))};
}

static inline size_t keyword_slot(struct keyword_key k, uint64_t factor) {
    return (size_t)((k.first ^ k.rest >> 7) * factor >> 54);
}
_Static_assert(KEYWORD_SLOTS == 1 << (64 - 54), "a slot is the upper bits of a product");
