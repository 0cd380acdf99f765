#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

void buf_init(struct buf *b, size_t limit) { *b = (struct buf){.limit = limit ? limit : SIZE_MAX / 2}; }

void buf_fini(struct buf *b) {
    free(b->p);
    *b = (struct buf){.limit = b->limit};
}

void buf_clear(struct buf *b, size_t keep) {
    if (b->cap > keep) buf_fini(b);
    b->n = 0;
    b->failed = b->over = false;
}

uint8_t *buf_grow(struct buf *b, size_t n) {
    if (b->failed) return NULL;
    if (b->p && n <= b->cap - b->n) return b->p + b->n; /* n is 0 */
    if (n > b->limit - b->n) {
        b->failed = b->over = true;
        return NULL;
    }
    size_t cap = b->cap ? b->cap : 256;
    while (cap < b->n + n) cap *= 2;
    if (cap > b->limit) cap = b->limit;
    uint8_t *p = fault_hit(FAULT_ALLOC) ? NULL : realloc(b->p, cap);
    if (!p) {
        b->failed = true;
        return NULL;
    }
    b->p = p;
    b->cap = cap;
    return b->p + b->n;
}

void buf_uvarint_long(struct buf *b, uint64_t v) {
    uint8_t t[10];
    size_t n = 0;
    do {
        t[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v);
    buf_put(b, t, n);
}

void buf_printf(struct buf *b, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    uint8_t *to = n < 0 ? NULL : buf_reserve(b, (size_t)n + 1);
    if (to) {
        vsnprintf((char *)to, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

void buf_patch_u32(struct buf *b, size_t at, uint32_t v) {
    if (!b->failed) store_u32(b->p + at, v);
}

void buf_json_str(struct buf *b, struct slice s) {
    buf_u8(b, '"');
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (c == '"' || c == '\\') buf_printf(b, "\\%c", c);
        else if (c == '\n') buf_put_str(b, "\\n");
        else if (c == '\r') buf_put_str(b, "\\r");
        else if (c == '\t') buf_put_str(b, "\\t");
        else if (c == 0xC0 && i + 1 < s.n && s.p[i + 1] == 0x80) { /* a NUL in an error's text (err.h) */
            buf_put_str(b, "\\u0000");
            i++;
        } else if (c < 0x20) buf_printf(b, "\\u%04x", c);
        else buf_u8(b, c);
    }
    buf_u8(b, '"');
}

uint64_t rd_uvarint(struct rd *r) {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t c = rd_u8(r);
        if (shift == 63 && c > 1) break;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80)) return v;
    }
    r->bad = true;
    return 0;
}
