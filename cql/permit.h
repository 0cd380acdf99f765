/* Checks permissions, for every statement and for each statement of a batch. Statements about roles
 * do their own checks (cql/roles). */
#pragma once

#include "cql/request/statement.h"

/* Returns -1 with r->err set if it is refused. */
int cql_permit(struct cql_run *r, const struct cql_statement *s) MUST_CHECK;
/* Before a request changes the schema. Returns -1 if its role has no room for the permissions on
 * what it would create, and is not a superuser. */
int cql_permit_creation(struct cql_run *r) MUST_CHECK;
/* After the request has changed the schema: the creator gets all permissions on its keyspace or
 * table. If another request took the role's last room meanwhile, it gets none, and a warning. */
int cql_permit_creator(struct cql_run *r) MUST_CHECK;
