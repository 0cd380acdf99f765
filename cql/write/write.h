/* The one path of everything that writes rows: a statement is a batch of one.
 *
 * Life: the statements are bound, the partitions they address opened as mutations; when something
 * reads before it writes (a condition, a counter, a list index, the size of the row that it leaves)
 * that is done with all partitions locked until the commit, on a worker or, when little is read and
 * all of it is in memory, on the loop (cql/write/locked.h); conditions are decided together; every
 * statement adds its changes; the whole is weighed. That is the plan, with which write_run ends;
 * cql_apply hands it to the engine at once. Nothing is handed over before everything was decided,
 * so a write that fails or is refused leaves nothing behind.
 */
#pragma once

#include "cql/write/modify.h"

/* What makes a batch of the items; NULL: a statement that stands alone. */
struct write_batch {
    enum ast_batch_kind kind;
    const struct term *timestamp; /* USING TIMESTAMP of the batch; NULL: none */
};

/* What goes together has been checked. The items and the batch live while this runs. */
enum cql_outcome write_run(struct cql_request *r, const struct write_batch *batch, const struct write_item *items,
                           uint32_t n);

/* Cuts a planned batch over several partitions to the first half of them, in the order of their
 * tokens: the rest is neither applied nor charged. Once. */
void write_keep_half(struct cql_request *r);

extern const struct statement_ops insert_ops, update_ops, delete_ops;
/* Of INSERT, UPDATE, DELETE. */
const struct statement_ops *write_ops(enum stmt_kind kind);
