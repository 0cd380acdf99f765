#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/fault.h"

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* of data */
    alignas(max_align_t) uint8_t data[];
};

struct arena_owned {
    struct arena_owned *next;
    void (*fn)(void *p);
    void *p;
};

enum { ARENA_ALIGN = alignof(max_align_t) };

void arena_init(struct arena *a, size_t chunk_size, size_t limit) {
    *a = (struct arena){.chunk_size = chunk_size, .limit = limit ? limit : SIZE_MAX};
}

/* ---- the share ---- */

static size_t beyond_own(size_t held) { return held > ARENA_OWN ? held - ARENA_OWN : 0; }

static bool share_take(struct arena_share *s, size_t n) {
    size_t more = beyond_own(s->held + n) - beyond_own(s->held);
    if (more && atomic_fetch_add(&s->pool->held, more) + more > s->pool->limit) {
        atomic_fetch_sub(&s->pool->held, more);
        s->crowded = true;
        return false;
    }
    s->held += n;
    return true;
}

static void share_give(struct arena_share *s, size_t n) {
    size_t less = beyond_own(s->held) - beyond_own(s->held - n);
    if (less) atomic_fetch_sub(&s->pool->held, less);
    s->held -= n;
}

/* ---- chunks ---- */

static size_t size_of(size_t data) { return sizeof(struct arena_chunk) + data; }

static void drop_chunk(struct arena *a, struct arena_chunk *c) {
    if (a->share) share_give(a->share, size_of(c->size));
    unpoison(c->data, c->size);
    free(c);
}

/* Frees all chunks newer than keep; NULL frees every chunk. */
static void drop_chunks(struct arena *a, const struct arena_chunk *keep) {
    while (a->chunks && a->chunks != keep) {
        struct arena_chunk *next = a->chunks->next;
        drop_chunk(a, a->chunks);
        a->chunks = next;
    }
}

/* The free part of the newest chunk begins at at. */
static void begin_at(struct arena *a, uint8_t *at) {
    const struct arena_chunk *c = a->chunks;
    size_t left = a->limit - a->used, room = c ? c->size - (size_t)(at - c->data) : 0;
    a->at = at;
    a->end = at + (room < left ? room : left);
}

static bool add_chunk(struct arena *a, size_t need) {
    size_t size = need > a->chunk_size ? need : a->chunk_size;
    if (a->share && !share_take(a->share, size_of(size))) return false;
    struct arena_chunk *c = fault_hit(FAULT_ALLOC) ? NULL : malloc(size_of(size));
    if (!c && a->share) share_give(a->share, size_of(size));
    if (!c) return false;
    c->size = size;
    c->next = a->chunks;
    a->chunks = c;
    poison(c->data, size);
    begin_at(a, c->data);
    return true;
}

/* ---- the arena ---- */

int arena_own(struct arena *a, void (*fn)(void *p), void *p) {
    struct arena_owned *o = arena_alloc(a, sizeof(*o));
    if (!o) return -1;
    *o = (struct arena_owned){.next = a->owned, .fn = fn, .p = p};
    a->owned = o;
    return 0;
}

void arena_release(struct arena *a, struct arena_mark m) {
    while (a->owned != m.owned) {
        struct arena_owned *o = a->owned;
        a->owned = o->next;
        o->fn(o->p);
    }
}

void arena_fini(struct arena *a) {
    arena_release(a, (struct arena_mark){0});
    drop_chunks(a, NULL);
    a->at = a->end = NULL;
    a->used = 0;
}

void arena_reset(struct arena *a) {
    arena_release(a, (struct arena_mark){0});
    struct arena_chunk *keep = a->chunks;
    while (keep && keep->next) keep = keep->next;
    drop_chunks(a, keep && keep->size > a->chunk_size ? NULL : keep);
    keep = a->chunks;
    a->used = 0;
    begin_at(a, keep ? keep->data : NULL);
    poison(a->at, (size_t)(a->end - a->at)); /* X1 */
}

void arena_rewind_chunks(struct arena *a, struct arena_mark m) {
    arena_release(a, m);
    /* The oldest chunk stays, also when the mark was set before it was made: a rewind after each
     * row must not free and allocate it each time. */
    while (a->chunks && a->chunks != m.chunk && a->chunks->next) {
        struct arena_chunk *next = a->chunks->next;
        drop_chunk(a, a->chunks);
        a->chunks = next;
    }
    a->used = m.used;
    begin_at(a, m.chunk ? m.at : a->chunks ? a->chunks->data : NULL);
    poison(a->at, (size_t)(a->end - a->at)); /* X1 */
}

void *arena_alloc_chunk(struct arena *a, size_t n) {
    if (UNLIKELY(n > SIZE_MAX - ARENA_ALIGN)) return NULL;
    size_t need = (n + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (UNLIKELY(need > a->limit - a->used)) return NULL;
    if (UNLIKELY((size_t)(a->end - a->at) < need) && !add_chunk(a, need)) return NULL;
    void *p = a->at;
    unpoison(p, n);
    a->at += need;
    a->used += need;
    return p;
}

void *arena_zalloc(struct arena *a, size_t n) {
    void *p = arena_alloc(a, n);
    if (p) memset(p, 0, n);
    return p;
}

void *arena_array(struct arena *a, size_t n, size_t size) {
    size_t total;
    if (__builtin_mul_overflow(n, size, &total)) return NULL;
    return arena_zalloc(a, total);
}

struct slice arena_dup(struct arena *a, struct slice s) {
    uint8_t *p = arena_alloc(a, s.n + 1);
    if (!p) return (struct slice){0};
    if (s.n) memcpy(p, s.p, s.n);
    p[s.n] = 0;
    return slice_of(p, s.n);
}

struct slice arena_take(struct arena *a, struct buf *b) {
    struct slice copy = buf_failed(b) ? (struct slice){0} : arena_dup(a, buf_slice(b));
    buf_fini(b);
    return copy;
}

char *arena_strdup(struct arena *a, const char *s) { return (char *)arena_dup(a, slice_str(s)).p; }

char *arena_printf(struct arena *a, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
    if (p) vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}
