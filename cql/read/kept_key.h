/* A key that a reader remembers from row to row: a short one in place, so that reading one row
 * allocates nothing. Inside cql only. */
#pragma once

#include "base/buf.h"
#include "base/hot.h"

enum { KEPT_KEY_SMALL = 64, KEPT_KEY_LARGE = 1 << 16 /* memory that stays for the next long one */ };

struct kept_key {
    struct slice is; /* until the next is kept */
    struct buf large;
    uint8_t small[KEPT_KEY_SMALL];
};

static inline void kept_key_init(struct kept_key *k) {
    k->is = (struct slice){0};
    buf_init(&k->large, 0);
}
static inline void kept_key_fini(struct kept_key *k) {
    if (UNLIKELY(k->large.p != NULL)) buf_fini(&k->large);
}

/* Returns -1 if memory is exhausted. */
MUST_CHECK static inline int kept_key_put(struct kept_key *k, struct slice key) {
    if (LIKELY(key.n <= KEPT_KEY_SMALL)) {
        copy_short(k->small, key.p, key.n);
        k->is = slice_of(k->small, key.n);
        return 0;
    }
    buf_clear(&k->large, KEPT_KEY_LARGE);
    buf_put_slice(&k->large, key);
    k->is = buf_slice(&k->large);
    return buf_failed(&k->large) ? -1 : 0;
}
