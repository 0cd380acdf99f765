/* The one path of everything that writes rows: a statement is a batch of one.
 *
 * Life: the statements are bound, and the partitions they address are opened as mutations. If a
 * statement must read before it writes (a condition, a counter, a list index, sizing by the
 * resulting row), all partitions stay locked until the commit; this runs on a worker or, when few
 * rows are read and all are in memory, on the loop (cql/write/mutation.h). Conditions are decided
 * together; every statement adds its changes; the size of the whole is checked. write_run ends with
 * this plan, and cql_apply then passes it to the engine. Nothing is passed on before everything was
 * decided, so a write that fails or is refused changes nothing.
 */
#pragma once

#include "cql/write/modify.h"

/* The batch that the items form; NULL for one statement outside a batch. */
struct write_batch {
    enum ast_batch_kind kind;
    const struct term *timestamp; /* USING TIMESTAMP of the batch; NULL if none */
};

/* batch_run has checked the items. They and the batch live while this runs, and the request's values may be
 * other ones afterwards. */
enum cql_outcome write_run(struct cql_run *r, const struct write_batch *batch, const struct write_item *items,
                           uint32_t n);

/* Cuts a planned batch over several partitions to the first half of them, in the order of tables
 * and tokens: the rest is neither applied nor charged. Call it once. */
void write_keep_half(struct cql_run *r);

/* The write type that a timeout reports. kind: NULL for a statement outside a batch. */
const char *write_type(const enum ast_batch_kind *kind, bool conditional, bool counters);

extern const struct statement_ops insert_ops, update_ops, delete_ops;
/* kind: INSERT, UPDATE or DELETE. */
const struct statement_ops *write_ops(enum stmt_kind kind);

/* batch.c: several statements as one, a BATCH request or BEGIN BATCH ... APPLY BATCH. Checks that one batch
 * may contain all of the items, and writes them. They live with the request. */
enum cql_outcome batch_run(struct cql_run *r, const struct write_batch *batch, const struct write_item *items,
                           uint32_t n);
/* The statements of a BEGIN BATCH ... APPLY BATCH. */
const struct cql_statement *const *batch_statements(const struct cql_statement *s, uint32_t *n);
extern const struct statement_ops batch_ops;

/* virtual_write.c: writes to system tables that accept them (system_schema/system_tables/virtual.h); all
 * items are on such tables. Planning runs on a worker; the tables' functions run when the write is applied,
 * one after the other, until the first failure. */
enum cql_outcome virtual_write_run(struct cql_run *r, const struct write_item *items, uint32_t n);
