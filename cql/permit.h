/* Checks permissions, for every statement and for each statement of a batch. Statements about roles
 * do their own checks (cql/roles). */
#pragma once

#include "cql/request/statement.h"

/* -1: refused, r->err says why. */
int cql_permit(struct cql_run *r, const struct cql_statement *s) MUST_CHECK;
/* After the request has changed the schema: the creator gets all permissions on its keyspace or
 * table. */
int cql_permit_creator(struct cql_run *r) MUST_CHECK;
