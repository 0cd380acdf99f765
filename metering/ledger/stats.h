/* The statistics of every table: sums since its first request, by minute for the last hour, by
 * second for the last minute.
 *
 * Life of a count: a shard (shard.h) adds it to the table's cell of the running second. The cell is
 * added to the statistics when the second is over or when the statistics are read. Minutes that
 * changed are written to the ledger's file (journal.h), which restores sums and minutes at the next
 * start. A table that is dropped leaves the statistics: its sums are added to the sum of all
 * dropped tables, and its minutes are kept on the side, because metrics of a dropped table are
 * still read until they age out. The statistics also hold blobs of the file, bytes that they do not
 * interpret.
 *
 * Not thread-safe: the caller holds the ledger's lock.
 */
#pragma once

#include "base/compiler.h"
#include "base/object_list.h"
#include "base/slice.h"

/* ---- counters of a table, and of each operation on it (figure.def, operation_figure.def) ---- */

enum figure {
#define FIGURE(id, scale, cloudwatch, unit, what) FIGURE_##id,
#include "metering/ledger/figure.def"
#undef FIGURE
    FIGURES
};

enum operation {
#define OPERATION(id) OPERATION_##id,
#include "metering/ledger/operation.def"
#undef OPERATION
    OPERATIONS
};

enum operation_figure {
#define OPERATION_FIGURE(id, scale, cloudwatch, unit, what) OF_##id,
#include "metering/ledger/operation_figure.def"
#undef OPERATION_FIGURE
    OPERATION_FIGURES
};

/* Sums over any span of time. */
struct figures {
    uint64_t n[FIGURES];
    uint64_t of[OPERATIONS][OPERATION_FIGURES];
};

static inline void figures_add(struct figures *to, const struct figures *from) {
    for (int i = 0; i < FIGURES; i++) to->n[i] += from->n[i];
    for (int o = 0; o < OPERATIONS; o++)
        for (int i = 0; i < OPERATION_FIGURES; i++) to->of[o][i] += from->of[o][i];
}

static inline void figures_sub(struct figures *from, const struct figures *what) {
    for (int i = 0; i < FIGURES; i++) from->n[i] -= what->n[i];
    for (int o = 0; o < OPERATIONS; o++)
        for (int i = 0; i < OPERATION_FIGURES; i++) from->of[o][i] -= what->of[o][i];
}

/* A row of figure.def or operation_figure.def. */
struct figure_info {
    const char *id, *cloudwatch, *unit, *what;
    double scale;
};
const struct figure_info *figure_info(enum figure f);
const struct figure_info *operation_figure_info(enum operation_figure f);
const char *operation_name(enum operation o);

/* ---- latencies, counted by size ---- */

/* Quantiles are read from the counts. There are four slots an octave, so a quantile is wrong by an
 * eighth at most. */
enum { LATENCY_SLOTS = 96 /* the last one: 28 seconds and more */ };

struct latencies {
    uint32_t n[LATENCY_SLOTS];
};

/* Below 4 a slot is one microsecond wide, then a quarter of an octave. */
static inline uint32_t latency_slot(uint64_t us) {
    if (us < 4) return (uint32_t)us;
    uint32_t octave = 63 - (uint32_t)__builtin_clzll(us);
    uint32_t slot = (octave - 1) * 4 + ((us >> (octave - 2)) & 3);
    return slot < LATENCY_SLOTS ? slot : LATENCY_SLOTS - 1;
}

static inline void latencies_add(struct latencies *to, const struct latencies *from) {
    for (int i = 0; i < LATENCY_SLOTS; i++) to->n[i] += from->n[i];
}

/* The middle of the slot that holds the quantile q, 0 to 1, in microseconds; 0 if there are no
 * counts. */
double latencies_quantile(const struct latencies *l, double q);

/* ---- statistics ---- */

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

enum { STATS_TOUCHED = 256 };
enum { STATS_GONE = 64 /* dropped tables whose minutes are kept */ };
enum { STATS_MINUTES = 60, STATS_SECONDS = 64, STATS_NAME = 64, STATS_SHARDS = 256 };

struct stats_minute {
    uint32_t minute; /* since 1970 */
    bool changed;    /* since it was written to the file */
    struct cell cell;
};
struct stats_second {
    uint32_t second;
    uint32_t read_units, write_units, entities, throttles; /* read units in halves */
};

/* Bytes that the file keeps without interpreting them. */
struct stats_blob {
    uint8_t *p;
    uint32_t n;
    bool changed; /* since they were written to the file */
};

struct table_stats {
    uint32_t object; /* the catalogue's; 0 for counts that belong to no single table */
    char keyspace[STATS_NAME], name[STATS_NAME];
    struct figures total;
    struct latencies latencies; /* since the start */
    struct stats_minute *minutes[STATS_MINUTES]; /* by minute % STATS_MINUTES; NULL if none yet */
    struct stats_second seconds[STATS_SECONDS];
    struct stats_blob limits; /* the limiter's state of the table */
    bool touched; /* listed in stats.touched */
    bool changed;
    bool unreported; /* it has changed since its last record for the other servers (totals.h) */
    bool overran; /* a minute was evicted before it was written, so the whole file must be rewritten */
};

struct stats {
    struct object_list tables; /* struct table_stats */
    /* The tables that were added to since stats_untouch, so that a reader need not read all. If
     * the list is full, a table is listed when it is added to again. */
    uint32_t n_touched;
    struct table_stats *touched[STATS_TOUCHED];
    struct figures dropped;    /* sums of all dropped tables */
    struct object_list gone;   /* struct table_stats, for their minutes: the STATS_GONE dropped last */
    struct stats_blob roles;    /* usage.h */
    struct stats_blob id;       /* of the ledger's records in the store; empty if none */
    struct stats_blob shards[STATS_SHARDS]; /* shard_put */
};
static inline struct table_stats *stats_at(const struct stats *b, uint32_t i) { return b->tables.items[i]; }

void stats_fini(struct stats *b);
void stats_table_free(struct table_stats *t);
struct table_stats *stats_find(const struct stats *b, uint32_t object);
/* Returns NULL if memory is exhausted. */
struct table_stats *stats_open(struct stats *b, uint32_t object, const char *keyspace, const char *name) MUST_CHECK;
/* Returns -1 if memory is exhausted. */
int stats_add(struct table_stats *t, uint32_t second, const struct cell *cell) MUST_CHECK;
/* Lists the table as touched. */
void stats_touch(struct stats *b, struct table_stats *t);
/* Empties the list of touched tables. */
void stats_untouch(struct stats *b);
/* Replaces the minute's cell by the one read from the file. */
int stats_put_minute(struct table_stats *t, uint32_t minute, const struct cell *cell) MUST_CHECK;
/* Returns -1 if memory is exhausted. */
int stats_blob_set(struct stats_blob *m, struct slice bytes) MUST_CHECK;
static inline struct slice stats_blob_bytes(const struct stats_blob *m) {
    return slice_of(m->n ? (const void *)m->p : "", m->n);
}
/* Subtracts figures that were added a moment ago and turned out wrong: from the totals, and from
 * the minute of second and the one before it, as far as these two still hold them. */
void stats_reverse(struct table_stats *t, uint32_t second, const struct figures *f);
/* Removes the table from the statistics. Its minutes move to gone, if there is memory. */
void stats_drop(struct stats *b, uint32_t object);
static inline struct table_stats *stats_gone_at(const struct stats *b, uint32_t i) { return b->gone.items[i]; }
/* The table's figures of a second that is over, or of a minute. Returns NULL if there are none. */
const struct stats_second *stats_second(const struct table_stats *t, uint32_t second);
const struct stats_minute *stats_minute(const struct table_stats *t, uint32_t minute);
