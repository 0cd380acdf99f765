/* Growable byte buffer and read cursor, big-endian as the native protocol is.
 *
 * A failure to append is sticky: callers append without checks and ask buf_failed once. A buffer
 * fails when it would exceed its limit, or without memory; the bytes that it has stay.
 *
 * A read cursor is bounded by its slice. A read past the end returns zeros and sets bad, which
 * callers check once per structure.
 */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

static inline uint16_t load_u16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
static inline uint32_t load_u32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}
static inline uint64_t load_u64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return __builtin_bswap64(v);
}
static inline void store_u16(uint8_t *p, uint16_t v) { p[0] = (uint8_t)(v >> 8), p[1] = (uint8_t)v; }
static inline void store_u32(uint8_t *p, uint32_t v) {
    v = __builtin_bswap32(v);
    memcpy(p, &v, 4);
}
static inline void store_u64(uint8_t *p, uint64_t v) {
    v = __builtin_bswap64(v);
    memcpy(p, &v, 8);
}

struct buf {
    uint8_t *p;
    size_t n, cap, limit; /* cap is at most limit */
    bool failed, over; /* over: it failed because of its limit */
};

void buf_init(struct buf *b, size_t limit); /* limit 0: none */
void buf_fini(struct buf *b);
/* Empties the buffer and clears its failure. Frees the memory when it is more than keep bytes. */
void buf_clear(struct buf *b, size_t keep);
/* The uncommon part of buf_reserve. */
uint8_t *buf_grow(struct buf *b, size_t n) MUST_CHECK;
/* Makes room for n more bytes. Returns NULL if the buffer failed. The bytes count only after
 * buf_advance. */
MUST_CHECK static inline uint8_t *buf_reserve(struct buf *b, size_t n) {
    bool room = n - 1 < b->cap - b->n && !b->failed; /* none for n 0: there may be no memory yet */
    return LIKELY(room) ? b->p + b->n : buf_grow(b, n);
}
static inline void buf_advance(struct buf *b, size_t n) { b->n += n; }
static inline bool buf_failed(const struct buf *b) { return b->failed; }
static inline struct slice buf_slice(const struct buf *b) { return slice_of(b->p ? b->p : (const uint8_t *)"", b->n); }

static inline void buf_put(struct buf *b, const void *p, size_t n) {
    uint8_t *to = buf_reserve(b, n);
    if (!to || !n) return;
    memcpy(to, p, n);
    b->n += n;
}
static inline void buf_put_slice(struct buf *b, struct slice s) { buf_put(b, s.p, s.n); }
static inline void buf_put_str(struct buf *b, const char *s) { buf_put(b, s, strlen(s)); }
static inline void buf_u8(struct buf *b, uint8_t v) { buf_put(b, &v, 1); }
static inline void buf_u16(struct buf *b, uint16_t v) {
    uint8_t t[2];
    store_u16(t, v);
    buf_put(b, t, 2);
}
static inline void buf_u32(struct buf *b, uint32_t v) {
    uint8_t t[4];
    store_u32(t, v);
    buf_put(b, t, 4);
}
static inline void buf_u64(struct buf *b, uint64_t v) {
    uint8_t t[8];
    store_u64(t, v);
    buf_put(b, t, 8);
}
/* LEB128, 1 to 10 bytes */
void buf_uvarint_long(struct buf *b, uint64_t v);
static inline void buf_uvarint(struct buf *b, uint64_t v) {
    if (LIKELY(v < 0x80)) buf_u8(b, (uint8_t)v);
    else buf_uvarint_long(b, v);
}
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Overwrites 4 bytes that were appended earlier. */
void buf_patch_u32(struct buf *b, size_t at, uint32_t v);
/* "text" with JSON escapes, quotes included. */
void buf_json_str(struct buf *b, struct slice s);

struct rd {
    const uint8_t *p, *end;
    bool bad;
};

static inline struct rd rd_of(struct slice s) { return (struct rd){.p = s.p, .end = s.p + s.n}; }
static inline size_t rd_left(const struct rd *r) { return (size_t)(r->end - r->p); }
/* The next n bytes, not copied. p is NULL and bad is set when fewer are left. */
static inline struct slice rd_bytes(struct rd *r, size_t n) {
    if (UNLIKELY(rd_left(r) < n)) {
        r->bad = true;
        r->p = r->end;
        return (struct slice){0};
    }
    struct slice s = slice_of(r->p, n);
    r->p += n;
    return s;
}
static inline uint8_t rd_u8(struct rd *r) {
    struct slice s = rd_bytes(r, 1);
    return s.p ? s.p[0] : 0;
}
static inline uint16_t rd_u16(struct rd *r) {
    struct slice s = rd_bytes(r, 2);
    return s.p ? load_u16(s.p) : 0;
}
static inline uint32_t rd_u32(struct rd *r) {
    struct slice s = rd_bytes(r, 4);
    return s.p ? load_u32(s.p) : 0;
}
static inline uint64_t rd_u64(struct rd *r) {
    struct slice s = rd_bytes(r, 8);
    return s.p ? load_u64(s.p) : 0;
}
uint64_t rd_uvarint(struct rd *r);
