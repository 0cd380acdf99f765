/* A CQL value in wire form, exactly as the [value] of the protocol: as a driver sends it, a cell
 * stores it and a row returns it. */
#pragma once

#include "base/hot.h"

enum { VALUE_NULL = -1, VALUE_UNSET = -2 };

struct value {
    const uint8_t *p;
    int32_t n; /* bytes, or VALUE_NULL, or VALUE_UNSET (protocol v4+: leave as it is) */
};

static inline struct value value_null(void) { return (struct value){.n = VALUE_NULL}; }
static inline struct value value_of(const void *p, size_t n) { return (struct value){.p = p, .n = (int32_t)n}; }
static inline struct value value_of_slice(struct slice s) { return value_of(s.p, s.n); }
static inline bool value_is_null(struct value v) { return v.n < 0; }
static inline bool value_is_unset(struct value v) { return v.n == VALUE_UNSET; }
/* The bytes of a value; no bytes when it is null. */
static inline struct slice value_slice(struct value v) { return slice_of(v.p, v.n < 0 ? 0 : (size_t)v.n); }

/* Writes each value as [int size][bytes] from p on, null and unset with size -1. Returns the end,
 * or NULL if there is no room for all of them. */
static inline uint8_t *values_put(uint8_t *p, const uint8_t *end, const struct value *values, uint32_t n) {
    size_t left = (size_t)(end - p);
    for (const struct value *v = values, *last = values + n; v < last; v++) {
        size_t size = LIKELY(v->n >= 0) ? (size_t)v->n : 0, whole = 4 + size;
        if (UNLIKELY(left < whole)) return NULL;
        store_u32(p, LIKELY(v->n >= 0) ? (uint32_t)size : UINT32_MAX);
        copy_short(p + 4, v->p, size);
        p += whole;
        left -= whole;
    }
    return p;
}
