/* One operation on one object's omap. A write happens as a whole or not at all; a read sees one
 * moment.
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

/* A write. The bytes that it names stay the caller's until it has run. */
struct omap_write {
    struct omap_pairs compares; /* each key must have that value; empty: or be absent */
    struct omap_pairs sets;     /* no value is empty: an empty one compares as an absent one does */
    struct omap_pairs removes;
    bool clears;                /* first removes all keys */
    bool creates, exclusive;    /* makes the object; exclusive: -EEXIST if there is one */
    bool failed;                /* no memory */
};

void omap_write_fini(struct omap_write *w);
/* Empties it and keeps its memory. */
void omap_write_clear(struct omap_write *w);
void omap_write_compare(struct omap_write *w, struct slice key, struct slice value);
void omap_write_set(struct omap_write *w, struct slice key, struct slice value);
void omap_write_remove(struct omap_write *w, struct slice key);
/* Runs it and waits. 0; -ECANCELED: a comparison failed; -ENOENT: there is no object; another error
 * number of librados, negative. It may run again. */
int omap_write_run(const struct omap_write *w, const struct pool *p, const char *object) MUST_CHECK;
/* Starts it; omap_write_wait waits and ends. Its bytes are the caller's again once it has started. */
struct omap_started {
    void *completion; /* NULL if nothing was started */
    const char *object; /* the caller's, until it has ended */
    int64_t began_us;
};
int omap_write_start(const struct omap_write *w, const struct pool *p, const char *object,
                     struct omap_started *started) MUST_CHECK;
int omap_write_wait(const struct pool *p, const struct omap_started *started) MUST_CHECK;

enum { OMAP_READ_PARTS = 8, OMAP_READ_MAX = 1024 }; /* an OSD returns at most this many keys of one part */

/* A read of some ranges of keys. Begin with zeros, and pool. */
struct omap_read {
    const struct pool *pool;
    void *op;
    uint32_t n;
    bool ran; /* the iterators may be read */
    struct {
        void *iter;
        bool keys_only;
        unsigned char more; /* keys behind those returned */
        int rc;
    } parts[OMAP_READ_PARTS];
};

/* Adds a range: keys behind start_after that begin with prefix, at most max. Both are NUL-terminated. */
void omap_read_add(struct omap_read *r, const char *start_after, const char *prefix, uint64_t max);
/* Adds keys behind start_after, of whatever follows it in the object, without their values. */
void omap_read_add_keys(struct omap_read *r, const char *start_after, uint64_t max);
/* 0, or a negative error number; -ENOENT: there is no object. */
int omap_read_run(struct omap_read *r, const char *object) MUST_CHECK;
/* Appends what a part returned, copied to the arena. 0, -ENOMEM; -EBADMSG: no key is empty or has a NUL
 * byte, and no value is empty (Q4), so the object is damaged. */
int omap_read_take(struct omap_read *r, uint32_t part, struct arena *a, struct omap_pairs *to) MUST_CHECK;
void omap_read_fini(struct omap_read *r);

static inline void omap_pairs_fini(struct omap_pairs *p) { free(p->items); }
