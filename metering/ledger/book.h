/* The statistics of every table: sums since its first request, by minute for the last hour, by
 * second for the last minute.
 *
 * Life of a count: a shard (shard.h) adds it to the table's cell of the running second. The cell is
 * added to the book when the second is over or when the statistics are read. Minutes that changed
 * are written to the ledger's file (journal.h), which restores sums and minutes at the next start.
 * A table that is dropped leaves the book: its sums are added to the sum of all dropped tables, and
 * its minutes are kept on the side, because metrics of a dropped table are still read until they
 * age out. The book also holds the file's memos, as bytes that it does not interpret.
 *
 * Not thread-safe: the caller holds the ledger's lock.
 */
#pragma once

#include "base/compiler.h"
#include "base/object_list.h"
#include "base/slice.h"
#include "metering/ledger/figure.h"
#include "metering/ledger/latency.h"

/* Least, most and number of a figure's samples, one a request. */
struct span {
    uint64_t min, max, n;
};
enum span_id {
    SPAN_READ_UNITS,
    SPAN_WRITE_UNITS,
    SPAN_LATENCY,
    SPAN_RETURNED = SPAN_LATENCY + OPERATIONS,
    SPANS = SPAN_RETURNED + OPERATIONS
};

struct cell {
    struct figures f;
    struct span spans[SPANS];
    struct latencies latencies; /* of successful requests; not in the file */
};
static inline void span_add(struct span *s, uint64_t v) {
    if (!s->n || v < s->min) s->min = v;
    if (v > s->max) s->max = v;
    s->n++;
}
void span_merge(struct span *to, const struct span *from);
void cell_add(struct cell *to, const struct cell *from);

enum { BOOK_TOUCHED = 256 };
enum { BOOK_GONE = 64 /* dropped tables whose minutes are kept */ };
enum { BOOK_MINUTES = 60, BOOK_SECONDS = 64, BOOK_NAME = 64, BOOK_SHARDS = 256 };

struct book_minute {
    uint32_t minute; /* since 1970 */
    bool changed;    /* since it was written to the file */
    struct cell cell;
};
struct book_second {
    uint32_t second;
    uint32_t read_units, write_units, entities, throttles; /* read units in halves */
};

/* Bytes that the file keeps without interpreting them. */
struct book_memo {
    uint8_t *p;
    uint32_t n;
    bool changed; /* since they were written to the file */
};

struct book_table {
    uint32_t object; /* the catalogue's; 0: what concerns no one table */
    char keyspace[BOOK_NAME], name[BOOK_NAME];
    struct figures total;
    struct latencies latencies; /* since the start */
    struct book_minute *minutes[BOOK_MINUTES]; /* by minute % BOOK_MINUTES; NULL: none yet */
    struct book_second seconds[BOOK_SECONDS];
    struct book_memo limits; /* the limiter's state of the table */
    bool touched; /* the book lists it in touched */
    bool changed;
    bool overran; /* a minute was evicted before it was written, so the whole file must be rewritten */
};

struct book {
    struct object_list tables; /* struct book_table */
    /* The tables that were added to since book_untouch, so that a reader need not look at all. A
     * table that finds the list full is listed when it is added to again. */
    uint32_t n_touched;
    struct book_table *touched[BOOK_TOUCHED];
    struct figures dropped;    /* sums of all dropped tables */
    struct object_list gone;   /* struct book_table, for their minutes: the BOOK_GONE dropped last */
    struct book_memo roles;    /* roles.h */
    struct book_memo shards[BOOK_SHARDS]; /* shard_state.c */
};
static inline struct book_table *book_at(const struct book *b, uint32_t i) { return b->tables.items[i]; }

void book_fini(struct book *b);
struct book_table *book_find(const struct book *b, uint32_t object);
/* NULL: no memory. */
struct book_table *book_open(struct book *b, uint32_t object, const char *keyspace, const char *name) MUST_CHECK;
/* -1: no memory. */
int book_add(struct book_table *t, uint32_t second, const struct cell *cell) MUST_CHECK;
/* Lists the table as touched. */
void book_touch(struct book *b, struct book_table *t);
/* Empties the list of touched tables. */
void book_untouch(struct book *b);
/* Replaces the minute's cell by the one read from the file. */
int book_put_minute(struct book_table *t, uint32_t minute, const struct cell *cell) MUST_CHECK;
/* -1: no memory. */
int book_memo_set(struct book_memo *m, struct slice bytes) MUST_CHECK;
static inline struct slice book_memo_bytes(const struct book_memo *m) {
    return slice_of(m->n ? (const void *)m->p : "", m->n);
}
/* Subtracts figures that were added a moment ago and turned out wrong: from the totals, and from
 * the minute of second and the one before it, as far as these two still hold them. */
void book_take_back(struct book_table *t, uint32_t second, const struct figures *f);
/* Removes the table from the book. Its minutes move to gone, if there is memory. */
void book_drop(struct book *b, uint32_t object);
static inline struct book_table *book_gone_at(const struct book *b, uint32_t i) { return b->gone.items[i]; }
/* The table's figures of a second that is over, or of a minute. NULL: there are none. */
const struct book_second *book_second(const struct book_table *t, uint32_t second);
const struct book_minute *book_minute(const struct book_table *t, uint32_t minute);
