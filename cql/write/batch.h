/* Runs many INSERT, UPDATE and DELETE statements as one: a BATCH request of the protocol, or BEGIN BATCH ... APPLY BATCH. */
#pragma once

#include "cql/request/statement.h"

struct batch_item {
    const struct cql_statement *statement; /* INSERT, UPDATE or DELETE */
    uint32_t n_values;
    const struct value *values; /* of its markers, in their order */
};

/* For a BATCH request; the items live until the request ends. */
enum cql_outcome batch_run(struct cql_request *r, enum ast_batch_kind kind, const struct batch_item *items, uint32_t n);

extern const struct statement_ops batch_ops;
