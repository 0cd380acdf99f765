/* The history of tables that the page shows: series of a table's figures (series.def), of 256 ranges
 * of its tokens, and of its heaviest partitions.
 *
 * Life of a second: the history's thread wakes after each second of the clock, reads from the ledger
 * the tables that were posted to, and adds their figures to the rings of those that it watches. Once
 * a minute, and at the end, it writes the slots that changed to its file.
 *
 * Memory and work are bounded: at most HISTORY_TABLES tables are watched, those with traffic. When
 * all entries are in use, a table replaces the one that has had the least load in the last whole
 * minute, if it had more than that itself; a table that was replaced has no history.
 *
 * The file, history.tally, is a head and an entry for each table, with checksums. Damaged parts are
 * left out and named in the log. Without a file the history is in memory only.
 */
#pragma once

#include <pthread.h>

#include "base/clock.h"
#include "base/ticker.h"
#include "metering/ledger/ledger.h"
#include "metering/limits/limit_table.h"
#include "server/page/parts.h"

enum { HISTORY_TABLES = SHARD_WATCHED };

enum series {
#define SERIES(id, name, gauge, what) SERIES_##id,
#include "server/page/series.def"
#undef SERIES
    SERIES_N
};
struct series_info {
    const char *name, *what;
    bool gauge;
};
const struct series_info *series_info(enum series s);

struct history_options {
    struct ledger *ledger;
    struct clock *clock;
    const char *path; /* NULL for no file */
    /* The capacity that a table may use. NULL if no capacity is recorded. */
    bool (*capacity)(void *arg, uint32_t object, double *read, double *write);
    bool (*exists)(void *arg, uint32_t object); /* false: the table was dropped. NULL if all exist */
    void *arg;
};

/* A watched table. */
struct history_table {
    uint32_t object; /* 0 if the entry is free */
    char keyspace[STATS_NAME], name[STATS_NAME];
    uint32_t seen;   /* the last second with a request */
    bool counts;     /* last is set */
    double minute_load; /* of the last whole minute with a request */
    struct figures last;
    struct latencies last_latencies;
    uint32_t last_ranges[SHARD_RANGES][RANGE_FIGURES];
    float values[SERIES_N]; /* of the second that is being added */
    uint32_t seconds;       /* that values covers; 0 means nothing to add */
    uint8_t *image;         /* history_file.c */
    struct rings series, ranges;
    struct parts parts;
};

struct page_history {
    struct history_options o;
    struct ticker ticker; /* takes a sample each second */
    pthread_mutex_t lock; /* of all below */
    uint32_t second; /* that was sampled last */
    uint32_t since;  /* seconds that this sample covers */
    uint32_t saved;  /* the minute of the last save */
    int fd;          /* of the file; -1 if none */
    bool failing;    /* a write has failed, and the log says so */
    struct history_candidate {
        uint32_t object;
        char keyspace[STATS_NAME], name[STATS_NAME];
        double minute_load;
        struct figures last;
        struct latencies last_latencies;
    } candidate; /* object 0: none */
    struct history_table tables[HISTORY_TABLES];
};

/* Returns NULL with e set. A file that cannot be opened is named in the log. */
struct page_history *history_open(const struct history_options *o, struct err *e) MUST_CHECK;
void history_close(struct page_history *h);
/* Adds the second that has just ended. The thread calls it; tests, too, of a history without thread. */
void history_sample(struct page_history *h);
/* history_open without the thread, for tests. */
struct page_history *history_open_still(const struct history_options *o, struct err *e) MUST_CHECK;
/* The table's entry, under the lock; NULL if it is not watched. */
struct history_table *history_find(struct page_history *h, uint32_t object);

/* ---- history_file.c; under the lock ---- */

size_t history_image_bytes(void);
/* Makes the rings of an entry on an image, which then belongs to the entry. Returns -1 with e set. */
int history_table_open(struct history_table *t, uint8_t *image, struct err *e) MUST_CHECK;
void history_table_close(struct history_table *t);
void history_file_open(struct page_history *h);
/* Writes all changes. */
void history_file_save(struct page_history *h);
void history_file_forget(struct page_history *h, const struct history_table *t);
