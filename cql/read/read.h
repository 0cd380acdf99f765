/* The interface between the operators of a read.
 *
 *   access path -> source -> filter -> group -> project -> order -> page -> the request's sink
 *
 * Each operator is a struct of its own that begins with a read_op, has what it needs below it, and
 * keeps its own state; a chain has only those that its statement needs. The page pulls: a pull goes
 * down the chain until a batch of rows comes up. Rows are sorted after they were projected, as
 * Cassandra does it, so that what is kept of them is what is sent.
 *
 * Every row that a source hands on is charged. So a pull says how many rows are wanted at most, and
 * no operator pulls more from below than it may hand on: LIMIT, pages and groups end where they
 * would if rows came one by one.
 *
 * A pull may end without a row before the rows do: AGAIN when a bounded part is done (call again,
 * everything is kept), INCOMPLETE when the cache tier has not got the data (the read starts over on
 * a thread that may block). One thread at a time.
 */
#pragma once

#include "cql/expr/term.h"
#include "cql/row/row_view.h"

enum read_pull {
    READ_AGAIN = -3,
    READ_INCOMPLETE = ENG_INCOMPLETE,
    READ_FAILED = -1 /* err is set */,
    READ_END = 0,
    READ_ROWS = 1
};

enum { READ_BATCH = 64 };

/* Rows on their way up. The rows, and what they point to, are valid until the next pull. */
struct read_batch {
    uint32_t most; /* rows that are wanted: 1 to READ_BATCH; the caller of a pull sets it */
    uint32_t n;    /* rows that came: at least one with READ_ROWS */
    const struct row_view *view;  /* of a batch of one row: its cells; NULL for no operator looks at cells */
    const struct value *latched;  /* of a group: what its first row was needed for (term_latch_all) */
    struct aggregate *aggregates; /* of a group */
    const struct value *values[READ_BATCH]; /* of each row by column; of a group: those of its first row */
    const struct value *out[READ_BATCH];    /* projected: one per result column */
};

struct read_op {
    enum read_pull (*next)(struct read_op *op, struct read_batch *batch);
};

static inline enum read_pull read_next(struct read_op *op, struct read_batch *batch) { return op->next(op, batch); }
