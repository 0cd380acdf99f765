/* What a batch may weigh, and what it is warned of. */
#pragma once

#include "cql/request/request.h"
#include "cql/write/mutation.h"

int weigh_batch(struct cql_request *r, const struct mutations *m, enum ast_batch_kind kind, bool conditional) MUST_CHECK;
