/* The reader of a partition. A partition's records are its head (ballot, deletion, static row, range
 * deletions) and then its rows. engi_head reads the head; engi_cover holds the deletions found there
 * and returns the newest one that covers a row. Reads of one row, scans, the reclaimer and the
 * fragmenting of range deletions all use these two, so none of them sees a row without the deletion of
 * its earlier state. Private to engine/.
 */
#pragma once

#include "engine/rows/tombstone.h"
#include "engine/store.h"

/* ---- the head ---- */

struct engi_head {
    struct kv_iter *it;
    struct slice prefix; /* of the partition */
    struct buf *seek;    /* scratch */
    bool on_key;         /* the iterator is on a key; set before the first call if it is on the head's first */
    bool all;            /* also returns fragments, and every loose range deletion that the partition's covers */
    /* The record: */
    enum engi_kind kind;
    struct engi_tomb tomb; /* a range deletion; of the partition's deletion only ts and at are set */
    bool fragmented;       /* the iterator is on a fragment of the range deletions */
    bool began, skips;
    int64_t partition_ts; /* the partition's deletion, once it was read */
};

static inline struct engi_head engi_head_of(struct kv_iter *it, struct slice prefix, struct buf *seek) {
    return (struct engi_head){.it = it, .prefix = prefix, .seek = seek, .partition_ts = ENG_NO_TS};
}

/* Moves to the head's next record. Returns 1, or 0 if there is none, or -1, or KV_INCOMPLETE. At 0 the
 * iterator is on the first fragment if fragmented is set, otherwise on the key after the head if on_key
 * is set. After the first loose range deletion that the partition's deletion covers, one seek skips the
 * other ones. */
int engi_head_next(struct engi_head *h, struct err *e) MUST_CHECK;

/* ---- the deletions that cover a row ---- */

enum { ENGI_WINDOW_MIN = 4, ENGI_WINDOW_MAX = 256, ENGI_WINDOW_BYTES_MAX = 256 << 10 };

/* The fragments of every clustering key in [from, to): a scan reads several with one seek. */
struct engi_window {
    struct arena arena;
    struct engi_tomb *tombs; /* ascending */
    uint32_t n, size;        /* size: how many the next load reads */
    struct engi_interval known;
    bool loaded;
};

struct engi_cover {
    struct engi_tombs tombs;   /* the partition's deletion and the loose range deletions */
    struct engi_window window; /* the fragments around the row */
    bool fragmented;           /* the partition has fragments */
};

void engi_cover_init(struct engi_cover *c);
void engi_cover_fini(struct engi_cover *c);
/* Begins another partition, whose deletions go to the arena. */
void engi_cover_begin(struct engi_cover *c, struct arena *a);
/* The slow case of engi_cover_row. */
int engi_cover_load(struct engi_cover *c, struct kv_iter *it, struct slice prefix, struct buf *seek, bool reverse,
                    int64_t *ts, struct err *e) MUST_CHECK;
/* Sets *ts to the newest deletion that covers the row at which the iterator is, or to ENG_NO_TS.
 * Returns 1 if it read fragments (window.n of them) and moved the iterator back to the row, 0 if not,
 * or -1, or KV_INCOMPLETE. seek: scratch. */
MUST_CHECK static inline int engi_cover_row(struct engi_cover *c, struct kv_iter *it, struct slice prefix,
                                            struct buf *seek, bool reverse, int64_t *ts, struct err *e) {
    if (UNLIKELY(c->fragmented)) return engi_cover_load(c, it, prefix, seek, reverse, ts, e);
    *ts = engi_tombs_at(&c->tombs, engi_rest(it->key, prefix.n));
    return 0;
}

/* ---- one row ---- */

/* Prepares the read's results: nothing is found. */
void engi_read_begin(struct store_read *r);
/* Reads the row, its static row and the deletions that cover it with a cursor over its partition in the
 * given tier. Returns 0, or -1, or KV_INCOMPLETE: in the cache tier, there are more loose range
 * deletions than a loop compares. */
int engi_walk(struct kv_iter *it, enum eng_tier tier, struct store_read *r, struct err *e) MUST_CHECK;
/* Reads a partition's ballot. */
int engi_ballot_fetch(struct store *s, const struct eng_part *part, uint64_t *ballot, struct err *e) MUST_CHECK;

/* ---- values, and their memory ----
 *
 * A small value is copied into the caller's arena, and its cells go there. A large value and its cells
 * have their own memory, or the value stays pinned in the store. The arena owns that memory, but it
 * does not count towards the arena's limit. So a row may be larger than the memory limit of a request,
 * as long as no caller copies it into one piece. */

enum { ENGI_COPIED_MAX = 4096 /* bytes of a small value */ };

/* Copies a value. */
int engi_value_copy(struct slice bytes, struct arena *a, struct store_value *out, struct err *e) MUST_CHECK;
/* Memory that the arena owns, for the cells of a large value. release, unless NULL, is called with
 * the value's handle when the arena is reset. Returns NULL if memory is exhausted. */
struct arena *engi_value_own(struct arena *a, void (*release)(void *handle), void *handle) MUST_CHECK;
