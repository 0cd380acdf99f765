/* A view of bytes that another object owns. The comment where a slice is handed over names the
 * owner and the lifetime. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const uint8_t *p; /* NULL for no value; an empty value has n == 0 and p != NULL */
    size_t n;
};

static inline struct slice slice_of(const void *p, size_t n) { return (struct slice){.p = p, .n = n}; }

static inline struct slice slice_str(const char *s) { return (struct slice){.p = (const uint8_t *)s, .n = strlen(s)}; }

static inline bool slice_eq(struct slice a, struct slice b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool slice_is(struct slice a, const char *s) { return slice_eq(a, slice_str(s)); }

/* Byte order; a slice sorts after its prefixes. */
static inline int slice_cmp(struct slice a, struct slice b) {
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

/* Takes the bytes before the first separator, or all bytes, off the text. text->p is NULL when no
 * separator was left. */
static inline struct slice slice_cut(struct slice *text, char separator) {
    const uint8_t *at = text->n ? memchr(text->p, separator, text->n) : NULL;
    struct slice first = slice_of(text->p, at ? (size_t)(at - text->p) : text->n);
    *text = at ? slice_of(at + 1, text->n - first.n - 1) : (struct slice){0};
    return first;
}

/* For "%.*s". */
#define SLICE_FMT(s) (int)(s).n, (const char *)(s).p
