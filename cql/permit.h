/* Checks permissions, for every statement and for each statement of a batch. Statements about roles
 * do their own checks (cql/roles). */
#pragma once

#include "cql/request/statement.h"

/* Returns -1 with r->err set if it is refused. */
int cql_permit(struct cql_run *r, const struct cql_statement *s) MUST_CHECK;
/* Called before a request changes the schema. Returns -1 if its role is not a superuser, and has no room for the
 * permissions on the new object. */
int cql_permit_creation(struct cql_run *r) MUST_CHECK;
/* Called after the request has changed the schema: the creator gets all permissions on its keyspace or
 * table. If another request has used the role's last room since, it gets none, and a warning. */
int cql_permit_creator(struct cql_run *r) MUST_CHECK;
