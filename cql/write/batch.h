/* Many INSERT, UPDATE and DELETE statements as one: a BATCH request of the protocol, or BEGIN BATCH
 * ... APPLY BATCH. */
#pragma once

#include "cql/write/write.h"

/* Checks that the items may stand in one batch, and writes them. They live until the request
 * ends. */
enum cql_outcome batch_run(struct cql_run *r, const struct write_batch *batch, const struct write_item *items,
                           uint32_t n);

/* The statements of a BEGIN BATCH ... APPLY BATCH. */
const struct cql_statement *const *batch_statements(const struct cql_statement *s, uint32_t *n);

extern const struct statement_ops batch_ops;
