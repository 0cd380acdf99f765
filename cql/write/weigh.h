/* What a write may weigh, and what a batch is warned of. */
#pragma once

#include "cql/request/request.h"
#include "cql/write/mutation.h"

/* Of any statement or batch: what it writes to one partition, and to all. */
int weigh_write(struct cql_request *r, const struct mutations *m) MUST_CHECK;
/* Of a batch over several partitions, beside. */
int weigh_batch(struct cql_request *r, const struct mutations *m, enum ast_batch_kind kind,
                bool conditional) MUST_CHECK;
