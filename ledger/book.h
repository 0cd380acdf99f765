/* What is known of every table: sums since its first request, by minute for the last hour, by
 * second for the last minute.
 *
 * Life of a count: a shard (shard.h) adds it to the table's cell of the running second; when the
 * second is over, or somebody looks, the cell comes here. Minutes that changed are written to the
 * ledger's file (journal.h), which brings sums and minutes back at the next start. A table that is
 * dropped leaves the book; what it was charged stays in the sum of all, and its minutes are kept on
 * the side, for metrics outlive what they are of. Beside them stands what else the file keeps:
 * memos, of which the book knows the bytes alone.
 *
 * Not thread-safe: the ledger holds its lock.
 */
#pragma once

#include "base/compiler.h"
#include "base/object_list.h"
#include "base/slice.h"
#include "ledger/figure.h"

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
};
static inline void span_add(struct span *s, uint64_t v) {
    if (!s->n || v < s->min) s->min = v;
    if (v > s->max) s->max = v;
    s->n++;
}
void span_merge(struct span *to, const struct span *from);
void cell_add(struct cell *to, const struct cell *from);

enum { BOOK_GONE = 64 /* tables that are dropped, and whose minutes are kept */ };
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

/* Bytes that the file keeps for somebody; it knows nothing of what they say. */
struct book_memo {
    uint8_t *p;
    uint32_t n;
    bool changed; /* since they were written to the file */
};

struct book_table {
    uint32_t object; /* the catalogue's; 0: what concerns no one table */
    char keyspace[BOOK_NAME], name[BOOK_NAME];
    struct figures total;
    struct book_minute *minutes[BOOK_MINUTES]; /* by minute % BOOK_MINUTES; NULL: none yet */
    struct book_second seconds[BOOK_SECONDS];
    struct book_memo limits; /* what the limiter knows of it */
    bool changed;
    bool overran; /* a minute had to go before it was written to the file, which must be written anew */
};

struct book {
    struct object_list tables; /* struct book_table */
    struct figures dropped;    /* sums of tables that are gone */
    struct object_list gone;   /* struct book_table, of which the minutes count: those of them that were made last */
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
/* Puts a minute as the file has it, in the place of what is known of it. */
int book_put_minute(struct book_table *t, uint32_t minute, const struct cell *cell) MUST_CHECK;
/* -1: no memory. */
int book_memo_set(struct book_memo *m, struct slice bytes) MUST_CHECK;
static inline struct slice book_memo_bytes(const struct book_memo *m) {
    return slice_of(m->n ? (const void *)m->p : "", m->n);
}
/* What was added a moment ago was not so: from the sums, and from the minute, or the one before it,
 * as far as they have it. */
void book_take_back(struct book_table *t, uint32_t second, const struct figures *f);
/* Its minutes are kept as far as there is memory. */
void book_drop(struct book *b, uint32_t object);
static inline struct book_table *book_gone_at(const struct book *b, uint32_t i) { return b->gone.items[i]; }
/* Of a second that is over, or of a minute; NULL: nothing is known of it. */
const struct book_second *book_second(const struct book_table *t, uint32_t second);
const struct book_minute *book_minute(const struct book_table *t, uint32_t minute);
