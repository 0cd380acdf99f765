/* One operation on one object's omap. A write is applied as a whole or not at all; a read is a consistent
 * snapshot.
 *
 * Q1. librados empties an operation when it runs it, and running an empty one succeeds and does
 * nothing. So every run of a write makes a new operation.
 * Q2. The iterators of a read that failed hold garbage. They are freed and not read.
 * Q4. No stored value is empty: in a comparison an empty value equals one that is absent.
 */
#pragma once

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "engine/rados/pool.h"

struct omap_pair {
    struct slice key, value;
};

struct omap_pairs {
    struct omap_pair *items;
    size_t n, cap;
};

/* A write. Its slices point to the caller's bytes until it has run. */
struct omap_write {
    struct omap_pairs compares; /* each key must have that value, or be absent if the value is empty */
    struct omap_pairs sets;     /* no value is empty: an empty one compares as an absent one does */
    struct omap_pairs removes;
    bool clears;                /* first removes all keys */
    bool creates, exclusive;    /* makes the object; exclusive: -EEXIST if there is one */
    bool failed;                /* no memory */
};

void omap_write_fini(struct omap_write *w);
/* Empties the write and keeps its memory. */
void omap_write_clear(struct omap_write *w);
void omap_write_compare(struct omap_write *w, struct slice key, struct slice value);
void omap_write_set(struct omap_write *w, struct slice key, struct slice value);
void omap_write_remove(struct omap_write *w, struct slice key);
/* Runs the write and waits. Returns 0, -ECANCELED if a comparison failed, -ENOENT if there is no object, or another
 * negative error number of librados. It may run again. */
int omap_write_run(const struct omap_write *w, const struct pool *p, const char *object) MUST_CHECK;
/* Starts the write; omap_write_wait waits for its end. The slices are no longer used once it has started. */
struct omap_started {
    void *completion; /* NULL if nothing was started */
    const char *object; /* the caller's, valid until the end of the write */
    int64_t began_us;
};
int omap_write_start(const struct omap_write *w, const struct pool *p, const char *object,
                     struct omap_started *started) MUST_CHECK;
int omap_write_wait(const struct pool *p, const struct omap_started *started) MUST_CHECK;

enum { OMAP_READ_PARTS = 8, OMAP_READ_MAX = 1024 }; /* an OSD returns at most this many keys of one part */

/* A read of some ranges of keys. Initialise it with zeros and the pool. */
struct omap_read {
    const struct pool *pool;
    void *op;
    uint32_t n;
    bool ran; /* the iterators may be read */
    struct {
        void *iter;
        bool keys_only;
        unsigned char more; /* keys follow after the returned ones */
        int rc;
    } parts[OMAP_READ_PARTS];
};

/* Adds a range: at most max keys after start_after that begin with prefix. Both are NUL-terminated. */
void omap_read_add(struct omap_read *r, const char *start_after, const char *prefix, uint64_t max);
/* Adds a range of at most max keys after start_after, without their values. */
void omap_read_add_keys(struct omap_read *r, const char *start_after, uint64_t max);
/* Returns 0, -ENOENT if there is no object, or another negative error number. */
int omap_read_run(struct omap_read *r, const char *object) MUST_CHECK;
/* Appends the pairs of a part, copied to the arena. Returns 0, -ENOMEM, or -EBADMSG if the object is damaged: a key is
 * empty or has a NUL byte, or a value is empty (Q4). */
int omap_read_take(struct omap_read *r, uint32_t part, struct arena *a, struct omap_pairs *to) MUST_CHECK;
void omap_read_fini(struct omap_read *r);

static inline void omap_pairs_fini(struct omap_pairs *p) { free(p->items); }
