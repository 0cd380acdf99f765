/* Several statements as one: a BATCH request, or BEGIN BATCH ... APPLY BATCH. */
#pragma once

#include "cql/write/write.h"

/* Checks that the items may stand together, and writes them. They live with the request. */
enum cql_outcome batch_run(struct cql_run *r, const struct write_batch *batch, const struct write_item *items,
                           uint32_t n);

/* The statements of a BEGIN BATCH ... APPLY BATCH. */
const struct cql_statement *const *batch_statements(const struct cql_statement *s, uint32_t *n);

extern const struct statement_ops batch_ops;
