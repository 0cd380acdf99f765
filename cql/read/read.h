/* The interface between the operators of a read.
 *
 *   access path -> source -> filter -> group -> project -> order -> page -> the request's sink
 *
 * Each operator is a struct of its own that begins with a read_op, has what it needs below it, and
 * keeps its own state; a chain has only those that its statement needs. The page pulls: a pull goes
 * down the chain until a row comes up. Rows are sorted after they were projected, as Cassandra does
 * it, so that what is kept of them is what is sent.
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
    READ_ROW = 1
};

/* Valid until the next pull. */
struct read_row {
    const struct value *values;   /* by column; of a group: those of its first row */
    const struct row_view *view;  /* NULL: of a group, or of a table that has no more than values */
    const struct value *latched;  /* of a group: what its first row was needed for (term_latch_all) */
    struct aggregate *aggregates; /* of a group */
    const struct value *out;      /* projected: one per result column */
};

struct read_op {
    enum read_pull (*next)(struct read_op *op, struct read_row *row);
};

static inline enum read_pull read_next(struct read_op *op, struct read_row *row) { return op->next(op, row); }
