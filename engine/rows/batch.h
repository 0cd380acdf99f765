/* A batch: changes that are encoded when they are added, and that the store gets at the commit.
 * Private to engine/.
 *
 * A store's batch begins with a struct eng_batch.
 *
 * Invariant 12: in a store with several writers, a write to a partition that the thread has locked
 *               takes place only if the partition's ballot is as it was at the first read under the lock.
 */
#pragma once

#include "engine/engine.h"
#include "engine/store.h"

struct engi_pin {
    uint32_t id;
    void *table;
};

struct eng_batch {
    struct store *store;
    struct buf bytes;             /* keys and values of the changes */
    struct store_change *changes;
    size_t n, cap;
    struct buf value;             /* of one step at a time */
    struct arena arena;           /* bounds of one range delete */
    struct engi_pin *pins; /* of the tables that it writes to, from the first change until it is empty */
    size_t n_pinned, cap_pinned;
    struct { size_t n, n_bytes; } savepoints[ENG_SAVEPOINTS_MAX];
    size_t n_savepoints;
    uint32_t group;               /* of the next change; each outermost savepoint begins a new group */
};

static inline struct slice engi_change_key(const struct eng_batch *b, const struct store_change *c) {
    return slice_of(b->bytes.p + c->at, c->n_key);
}
static inline struct slice engi_change_value(const struct eng_batch *b, const struct store_change *c) {
    return slice_of(b->bytes.p + c->at + c->n_key, c->n_value);
}

/* Makes room for one more element of an array that doubles; -1 if memory is exhausted. */
int engi_array_grow(void **array, size_t n, size_t *cap, size_t size) MUST_CHECK;

/* Adds a delta, as a commit wrote it, to a batch for another table. rest: its key after the
 * table's id. */
int engi_batch_replay(struct eng_batch *b, uint32_t table, struct slice rest, struct slice delta,
                      struct err *e) MUST_CHECK;
