/* Timestamps: the ceilings of them that the store records, and the server's write clock. Private to
 * engine/.
 *
 * A horizon is a ceiling of timestamps, recorded in the store before any write reaches it. A restart
 * knows the written timestamps only by this ceiling.
 *
 * Invariant 1: no timestamp of the horizon's kind is in the store at or above the highest ceiling
 *              recorded there. The batch that would break it carries the next ceiling, a step ahead,
 *              so that one batch in many pays for a record.
 *
 * The write clock gives out microseconds that never repeat, and the finer ticks that order the
 * elements of lists. A write without a timestamp of its own takes the request's clock reading, or,
 * when that is not later than the last assigned timestamp, one microsecond more than that one: two
 * writes never tie, and a later one wins. That holds across a restart, too, even if the machine's
 * clock was set back: a commit records a ceiling above all assigned timestamps, and the next run
 * starts there. The ceiling's step is short, so that a quick restart does not put the server's
 * timestamps ahead of those that clients send. One per engine; any thread.
 */
#pragma once

#include <stdatomic.h>

#include "engine/rows/key.h"

struct kv_batch;

enum engi_horizon_kind {
    /* every timestamp, from clients too, except those that a mark for far timestamps covers
     * (engine/local/marks.h) */
    ENGI_HORIZON_NEWEST,
    ENGI_HORIZON_CLOCK,  /* timestamps that this server assigned (struct engi_write_clock) */
};

/* of the kinds, in microseconds */
enum { ENGI_HORIZON_STEP = 60000000, ENGI_CLOCK_STEP = 100000 };

struct engi_horizon {
    enum engi_horizon_kind kind;
    int64_t step; /* microseconds */
    int64_t opened; /* the ceiling found when the engine was opened; INT64_MIN: none */
    _Atomic int64_t ceiling;
};

void engi_horizon_init(struct engi_horizon *h, enum engi_horizon_kind kind, int64_t step);
/* Adds to the batch the record that must be in the store before ts may be written, if any. The
 * caller passes *ceiling on once the batch is in the store. */
int engi_horizon_record(const struct engi_horizon *h, struct kv_batch *b, int64_t ts, int64_t *ceiling) MUST_CHECK;
void engi_horizon_recorded(struct engi_horizon *h, int64_t ceiling);
/* Loads a record found when the engine is opened; false: it is not of this kind. */
bool engi_horizon_load(struct engi_horizon *h, struct slice key);

/* ---- the write clock ---- */

struct engi_write_clock {
    _Atomic int64_t last_us;
    _Atomic int64_t last_tick;
    struct engi_horizon horizon;
};

void engi_write_clock_init(struct engi_write_clock *c);
/* Starts the clock after the store's records are loaded. now_us: the machine's clock. */
void engi_write_clock_start(struct engi_write_clock *c, int64_t now_us);
/* eng_write_us and eng_write_ticks. */
int64_t engi_write_clock_us(struct engi_write_clock *c, int64_t now_us);
int64_t engi_write_clock_ticks(struct engi_write_clock *c, int64_t now_us, uint32_t n);
/* A ceiling above all assigned timestamps. */
static inline int64_t engi_write_clock_end(const struct engi_write_clock *c) {
    int64_t us = atomic_load_explicit(&c->last_us, memory_order_relaxed),
            tick = atomic_load_explicit(&c->last_tick, memory_order_relaxed) / 10;
    return (us > tick ? us : tick) + 1;
}
