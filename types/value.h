/* A CQL value in wire form, exactly as the protocol's [value]: what a driver sends, what a cell stores, what a row returns. */
#pragma once

#include "base/slice.h"

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
/* Of a value that is not null. */
static inline struct slice value_slice(struct value v) { return slice_of(v.p, v.n < 0 ? 0 : (size_t)v.n); }
