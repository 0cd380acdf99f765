/* Bump allocator: one per request, prepared statement or schema snapshot, freed as a whole.
 *
 * An arena has a limit in bytes, so that a client's input cannot make the server grow without
 * bound. Past the limit every allocation returns NULL, and the caller turns that into an error
 * reply (err_nomem). Not thread-safe; one owner at a time.
 *
 * X1. Memory that was handed out before a reset, or between a mark and the rewind to it, is never
 * read afterwards. The arena hands the same memory out again. Builds with the address sanitizer
 * poison all memory of an arena that is not handed out (base/poison.h).
 */
#pragma once

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/poison.h"
#include "base/slice.h"

/* The memory that the arenas of all requests may hold together. The first ARENA_OWN bytes of each
 * request do not count. Any thread. */
struct arena_pool {
    _Atomic size_t held;
    size_t limit;
};
enum { ARENA_OWN = 256 << 10 };

/* One request's part of a pool, shared by all arenas of the request. One owner at a time. */
struct arena_share {
    struct arena_pool *pool;
    size_t held;  /* bytes of its arenas' chunks, ARENA_OWN included */
    bool crowded; /* an allocation failed because the pool was full; the owner clears it */
};

struct arena_chunk;
struct arena_owned;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    struct arena_owned *owned;  /* newest first */
    uint8_t *at, *end;          /* free part of the newest chunk, no longer than the limit allows */
    size_t used, limit;         /* bytes handed out, and their maximum */
    size_t chunk_size;
    struct arena_share *share; /* counts the chunks of this arena; NULL if none */
};

/* Allocates nothing yet: the first arena_alloc does. limit 0: no limit. */
void arena_init(struct arena *a, size_t chunk_size, size_t limit);
/* Initialises an arena that counts in a share. The share must outlive the arena. */
static inline void arena_init_in(struct arena *a, struct arena_share *share, size_t chunk_size, size_t limit) {
    arena_init(a, chunk_size, limit);
    a->share = share;
}
void arena_fini(struct arena *a);
/* Frees all chunks but the oldest, so that the next request allocates nothing. The oldest is freed,
 * too, when a large allocation made it larger than chunk_size. All memory handed out becomes
 * invalid. */
void arena_reset(struct arena *a);

/* A point to rewind to: memory handed out after the mark becomes invalid, memory handed out before
 * it stays valid. */
struct arena_mark {
    struct arena_chunk *chunk;
    struct arena_owned *owned;
    uint8_t *at;
    size_t used;
};
static inline struct arena_mark arena_mark(const struct arena *a) {
    return (struct arena_mark){.chunk = a->chunks, .owned = a->owned, .at = a->at, .used = a->used};
}
void arena_rewind_chunks(struct arena *a, struct arena_mark m); /* the uncommon part of arena_rewind */
static inline void arena_rewind(struct arena *a, struct arena_mark m) {
    if (UNLIKELY(a->chunks != m.chunk || !m.chunk || a->owned != m.owned)) {
        arena_rewind_chunks(a, m);
        return;
    }
    poison(m.at, (size_t)(a->at - m.at)); /* X1 */
    a->at = m.at;
    a->used = m.used;
}

/* Calls fn(p) when the memory that was handed out last becomes invalid. This frees resources that
 * are not the arena's memory but live as long. -1 if no memory, and fn is not called. */
int arena_own(struct arena *a, void (*fn)(void *p), void *p) MUST_CHECK;
/* Calls the functions that arena_own registered after the mark, the newest first. The memory handed
 * out stays valid. */
void arena_release(struct arena *a, struct arena_mark m);

/* The memory is aligned for any type. Returns NULL if the limit is reached, or memory is exhausted. */
void *arena_alloc_chunk(struct arena *a, size_t n) MUST_CHECK; /* the uncommon part of arena_alloc */
MUST_CHECK static inline void *arena_alloc(struct arena *a, size_t n) {
    enum { ALIGN = _Alignof(max_align_t) };
    size_t need = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1); /* 0 if n is 0 or the sum is too large */
    if (UNLIKELY(need - 1 >= (size_t)(a->end - a->at))) return arena_alloc_chunk(a, n);
    void *p = a->at;
    unpoison(p, n);
    a->at += need;
    a->used += need;
    return p;
}
void *arena_zalloc(struct arena *a, size_t n) MUST_CHECK;
/* n elements of the given size, overflow-checked, zeroed. */
void *arena_array(struct arena *a, size_t n, size_t size) MUST_CHECK;
/* Copies the bytes and appends a NUL, which the slice does not count. p is NULL on failure. */
struct slice arena_dup(struct arena *a, struct slice s) MUST_CHECK;
struct buf;
/* Moves the bytes of a buffer, which it frees, as arena_dup. p NULL also when the buffer failed. */
struct slice arena_take(struct arena *a, struct buf *b) MUST_CHECK;
char *arena_strdup(struct arena *a, const char *s) MUST_CHECK;
char *arena_printf(struct arena *a, const char *fmt, ...) MUST_CHECK PRINTF_LIKE(2, 3);

#define ARENA_NEW(a, type) ((type *)arena_zalloc((a), sizeof(type)))
#define ARENA_ARRAY(a, n, type) ((type *)arena_array((a), (n), sizeof(type)))
