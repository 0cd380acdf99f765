/* An iterator over ordered keys and their values, of any store, and the results that stores answer
 * with. An iterator belongs to one thread at a time.
 */
#pragma once

#include "base/err.h"
#include "base/poison.h"
#include "base/slice.h"
#include "engine/tier.h"

/* Results in addition to 1, 0 and -1, with err not set. INCOMPLETE: the answer is on disk, or after many
 * deleted keys, and the tier excludes both. BUSY: the store wants writers to wait. CHANGED: a
 * condition of the write does not hold. */
enum { KV_INCOMPLETE = -2, KV_BUSY = -3, KV_CHANGED = -4 };

enum kv_move { KV_SEEK /* first key >= */, KV_SEEK_BACK /* last key <= */, KV_NEXT, KV_PREV };

struct kv_iter;
struct kv_iter_ops {
    /* Returns 1 if it is on a key, 0 if at the end, or -1 or KV_INCOMPLETE. The key is used by the
     * seeks only. */
    int (*iter_move)(struct kv_iter *it, enum kv_move move, struct slice key, struct err *e);
    void (*iter_free)(struct kv_iter *it);
};

/* key and value are valid until the next move, or with stays as long as the iterator; and only after
 * a move that returned 1. */
struct kv_iter {
    const struct kv_iter_ops *ops;
    struct slice key, value;
    bool stays;
    uint8_t *lent; /* with the address sanitizer: where key and value are, until the next move */
};

/* Every iter_move ends by calling this and returns its result: got, or -1 without memory; iter_free
 * calls it with 0. A store's own memory often stays readable after a move, so with the address
 * sanitizer key and value are copies that the next move frees, and a use after the move is
 * reported. In other builds it does nothing. */
#if POISONS
int kv_iter_lend(struct kv_iter *it, int got, struct err *e);
#else
static inline int kv_iter_lend(struct kv_iter *it, int got, struct err *e) { return (void)it, (void)e, got; }
#endif
