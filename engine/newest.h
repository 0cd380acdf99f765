/* The newest timestamp that rows were ever written with: what proves that a delta may replace its row. Private to engine/.
 *
 * A delta that sets every column of its row, and is newer than anything the row was ever written with, reconciles to itself:
 * it is put instead of merged, and reading it merges nothing. Not in a table where rows were ever deleted: a row keeps its deletion, which
 * also covers columns that the table gets later. Timestamps are kept per slot of the keys' hashes, so the answer is
 * only ever too careful. Of what was written before the engine was opened one horizon is known: a record of the store that is
 * moved ahead of the timestamps, in the batch that needs it.
 */
#pragma once

#include <stdatomic.h>

#include "engine/key.h"

struct eng;
struct kv_batch;

enum { ENGI_NEWEST_SLOTS = 65536, ENGI_HORIZON_STEP = 60000000 /* microseconds */ };

struct engi_newest {
    int64_t opened;          /* no older engine wrote a timestamp at or above it */
    _Atomic int64_t horizon; /* recorded: no timestamp is written at or above it before another is */
    _Atomic int64_t slots[ENGI_NEWEST_SLOTS];
};

void engi_newest_init(struct engi_newest *n);
/* Whether everything that was ever written to the row is older than ts. */
bool engi_newest_before(const struct engi_newest *n, uint64_t hash, int64_t ts);
/* Before the write: on the row of the hash something is written with ts. */
void engi_newest_raise(struct engi_newest *n, uint64_t hash, int64_t ts);

/* Adds to the batch whatever the record must say before ts may be written; *horizon is to be told once it is. */
int engi_newest_record(struct engi_newest *n, struct kv_batch *b, int64_t ts, int64_t *horizon) MUST_CHECK;
void engi_newest_recorded(struct engi_newest *n, int64_t horizon);
/* A record found when the engine is opened. */
bool engi_newest_load(struct engi_newest *n, struct slice key);
