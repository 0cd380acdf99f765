/* Who may run what: the one place that is asked, for every statement and for each of a batch. */
#pragma once

#include "cql/request/statement.h"

/* -1: refused, r->err says why. */
int cql_permit(struct cql_request *r, const struct cql_statement *s) MUST_CHECK;
