/* The one path of everything that writes rows: a statement is a batch of one.
 *
 * Life: the statements are bound, and the partitions they address are opened as mutations. If a
 * statement must read before it writes (a condition, a counter, a list index, sizing by the
 * resulting row), all partitions stay locked until the commit; this runs on a worker or, when few
 * rows are read and all are in memory, on the loop (cql/write/locked.h). Conditions are decided
 * together; every statement adds its changes; the size of the whole is checked. That is the plan,
 * with which write_run ends; cql_apply then hands it to the engine. Nothing is handed over before
 * everything was decided, so a write that fails or is refused leaves nothing behind.
 */
#pragma once

#include "cql/write/modify.h"

/* The batch that the items form; NULL for one statement outside a batch. */
struct write_batch {
    enum ast_batch_kind kind;
    const struct term *timestamp; /* USING TIMESTAMP of the batch; NULL if none */
};

/* batch_run checked that the items may stand together. They and the batch live while this runs. */
enum cql_outcome write_run(struct cql_run *r, const struct write_batch *batch, const struct write_item *items,
                           uint32_t n);

/* Cuts a planned batch over several partitions to the first half of them, in the order of tables
 * and tokens: the rest is neither applied nor charged. Call it once. */
void write_keep_half(struct cql_run *r);

extern const struct statement_ops insert_ops, update_ops, delete_ops;
/* kind: INSERT, UPDATE or DELETE. */
const struct statement_ops *write_ops(enum stmt_kind kind);
