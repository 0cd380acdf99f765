/* Size limits of writes, and warnings for large batches. */
#pragma once

#include "cql/request/request.h"
#include "cql/write/mutation.h"

/* Limits the bytes that a statement or batch writes to one partition and to all. */
int weigh_write(struct cql_request *r, const struct mutations *m) MUST_CHECK;
/* In Cassandra mode, limits and warnings for a batch over several partitions. */
int weigh_batch(struct cql_request *r, const struct mutations *m, enum ast_batch_kind kind,
                bool conditional) MUST_CHECK;
