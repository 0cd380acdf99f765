/* Size limits of writes, and warnings for large batches. */
#pragma once

#include "cql/request/request.h"
#include "cql/write/mutation.h"

/* Limits the bytes that a statement or batch writes to one partition and to all. */
int check_write_size(struct cql_run *r, const struct mutations *m) MUST_CHECK;
/* In Cassandra mode, limits and warnings for a batch over several partitions. */
int check_batch_size(struct cql_run *r, const struct mutations *m, enum ast_batch_kind kind,
                bool conditional) MUST_CHECK;
