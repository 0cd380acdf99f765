/* Ceilings of timestamps that the local store records. Private to engine/.
 *
 * A horizon is a ceiling of timestamps, recorded in the store before any write reaches it. A
 * restart knows the written timestamps only by this ceiling.
 *
 * Invariant 1: no timestamp of the horizon's kind is in the store at or above the highest ceiling
 * recorded there. The batch that would break it carries the next ceiling, a step ahead, so that one
 * batch in many pays for a record.
 */
#pragma once

#include <stdatomic.h>

#include "engine/rows/key.h"

struct kv_batch;

enum engi_horizon_kind {
    /* every timestamp, from clients too, except those that a mark for far timestamps covers
     * (engine/local/marks.h) */
    ENGI_HORIZON_NEWEST,
    ENGI_HORIZON_CLOCK,  /* timestamps that this server assigned (engine/front/write_clock.c) */
};

enum { ENGI_HORIZON_STEP = 60000000 }; /* microseconds, of ENGI_HORIZON_NEWEST */

struct engi_horizon {
    enum engi_horizon_kind kind;
    int64_t step; /* microseconds */
    int64_t opened; /* the ceiling found when the engine was opened; INT64_MIN: none */
    _Atomic int64_t ceiling;
};

void engi_horizon_init(struct engi_horizon *h, enum engi_horizon_kind kind, int64_t step);
/* Adds to the batch the record that must be in the store before ts may be written, if any. The
 * caller passes *ceiling on once the batch is in the store. */
void engi_horizon_record(const struct engi_horizon *h, struct kv_batch *b, int64_t ts, int64_t *ceiling);
void engi_horizon_recorded(struct engi_horizon *h, int64_t ceiling);
/* Loads a record found when the engine is opened; false: it is not of this kind. */
bool engi_horizon_load(struct engi_horizon *h, struct slice key);
