/* Bounds the work that one request does on the loop it arrived on. A worker runs a longer request,
 * so that the loop's other connections do not wait for it. Parsing and compiling cost about as much
 * as the text is long (tests/unit/cql/test_growth.c), a batch as its items, and values of
 * collections as their elements, which are checked and put in order. Reading and printing a number
 * takes longer than it has digits, so large values leave the loop, too, where a function or JSON
 * may print or read them; those that are stored do when they are met (cql/read/engine_source.c). */
#pragma once

#include "cql/request/statement.h"

/* Checks a QUERY, PREPARE or BATCH before any work. True: a worker of work_class must run it. */
bool loop_share_exceeded(struct cql_run *r);
/* Checks an EXECUTE when its statement is known. */
bool loop_share_exceeded_by_values(struct cql_run *r, const struct cql_statement *s);
