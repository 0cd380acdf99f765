/* Copies of tables from one engine to another. */
#pragma once

#include "engine/engine.h"

/* Copies a table from another engine, perhaps to another id, into a table that holds nothing yet.
 * Neither table is written to meanwhile. Copies all rows or, on -1, none. Earlier proofs about the
 * table no longer hold. Durable when it returns. Blocking, long. */
int eng_ingest(struct eng *eng, uint32_t table, struct eng *from, uint32_t from_table, struct err *e) MUST_CHECK;

/* A stored record of a table, to move it to another engine (tools/tally/move.c). */
struct eng_record {
    struct slice at;  /* where to continue; it does not depend on the table's id */
    struct slice key; /* without the table's id */
    struct slice value; /* the reconciliation of everything that was written to the record */
};
/* Calls fn for each stored record of a table, in the order of its place, from one on (empty: the
 * first). Deletions and what has expired are records, too; a range deletion has the same form from
 * every store. Ballots are not included: conditional writes in another store start with new ones. fn
 * returns 0 to continue, -1 to stop with its error. Blocking, long. */
typedef int (*eng_record_fn)(void *arg, const struct eng_record *r, struct err *e);
int eng_each_record(struct eng *eng, uint32_t table, struct slice from, eng_record_fn fn, void *arg,
                    struct err *e) MUST_CHECK;
/* Adds such a record to a batch. Adding it twice changes nothing. */
int eng_batch_record(struct eng_batch *b, uint32_t table, const struct eng_record *r, struct err *e) MUST_CHECK;
/* Named records of a move into this store that is not complete begin with it. A server does not
 * start on such a store. */
#define ENG_MOVE_RECORDS "move/"
