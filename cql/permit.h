/* Who may run what: the one place that is asked, for every statement and for each of a batch.
 * Statements about roles ask themselves (cql/roles). */
#pragma once

#include "cql/request/statement.h"

/* -1: refused, r->err says why. */
int cql_permit(struct cql_request *r, const struct cql_statement *s) MUST_CHECK;
/* After it was applied: who has made a keyspace or a table may do everything with it. */
int cql_permit_creator(struct cql_request *r) MUST_CHECK;
