/* What one request may ask of the loop it arrived on: a longer one is run by a worker, so that
 * whoever shares the loop is not kept waiting. Parsing and compiling cost about as much as the text
 * is long (tests/unit/cql/test_growth.c), a batch as its items, and values of collections as their
 * elements, which are checked and put in order. Reading and printing a number takes longer than it
 * has digits, so large values leave the loop, too, where a function or JSON may print or read them;
 * those that are stored do when they are met (cql/read/engine_source.c). */
#pragma once

#include "cql/request/statement.h"

/* Of QUERY, PREPARE and BATCH, before anything is done: true, and work_class says who is to run it. */
bool loop_share_exceeded(struct cql_request *r);
/* Of EXECUTE, when its statement is known. */
bool loop_share_exceeded_by_values(struct cql_request *r, const struct cql_statement *s);
