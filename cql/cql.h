/* CQL from text or a prepared id to rows, without knowing the protocol.
 *
 * Life of a run: native_protocol decodes a cql_request, fills a cql_run (arena, clock reading,
 * session, a row sink) and calls cql_run on a loop with blocking false. The outcome is one of: DONE,
 * the result is in the run's answer; COMMIT, likewise, but the response may be sent only when its writes are durable;
 * OFFLOAD, nothing was done: call again with blocking true on a thread of the class work_class (cold data, DDL,
 * LWT); FAILED, with the reason in err. On a blocking thread a long
 * read returns AGAIN after every bounded part, so that other requests can run; cql_run_more
 * continues it.
 *
 * cql_run plans and writes nothing: after DONE and COMMIT the cost is in op_cost, cql_admit
 * checks whether the request is admitted, and cql_apply makes the change. The caller then
 * calls either cql_apply or cql_abandon, on the same thread: a write that read first
 * holds its partitions' locks until then. cql_apply may return CONFLICT: the request then starts over
 * in a new run. (native_protocol/dispatch.c has the whole sequence.)
 */
#pragma once

#include "cql/prepared.h"
#include "cql/request/request.h"
#include "metering/size/size.h"
#include "system_schema/system_tables/virtual.h"

struct cql_db *cql_db_new(const struct cql_db_options *o, struct err *e) MUST_CHECK;
void cql_db_free(struct cql_db *db);

/* The stored size of a table, by the size model of the options. Expired data counts until it is
 * removed. The size covers every write that was acknowledged before the call. The function reads
 * the data that has changed since the last call, so it must not run on a loop. schema: the current
 * one, which contains t. */
int cql_table_billable_bytes(struct cql_db *db, const struct schema *schema, const struct schema_table *t,
                             const struct stop_check *stop_check, struct table_size *out, struct err *e) MUST_CHECK;
/* The last size that cql_table_billable_bytes found; returns at once, on any thread. Returns the
 * time of that call, in microseconds since 1970; 0 if there was none. */
int64_t cql_table_billable_last(struct cql_db *db, const struct schema_table *t, uint64_t *bytes);

enum cql_outcome cql_run(struct cql_run *r);
/* Reads the changes that other servers on the store have made to schema and roles before the call.
 * cql_run does so before it refuses a request. Waits for the store. */
int cql_catch_up(struct cql_db *db, struct err *e) MUST_CHECK;
/* Runs the next part of a request after CQL_AGAIN. The caller may change only batch between two parts. */
enum cql_outcome cql_run_more(struct cql_run *r);
/* After DONE or COMMIT: asks the admission of cql_db_options, once in a request. Returns -1 with err set
 * if it is refused. */
int cql_admit(struct cql_run *r) MUST_CHECK;
/* After DONE or COMMIT, once admitted: makes the planned writes. On a loop they are then in batch
 * (none on FAILED); on a thread that may block they are committed. outcome: cql_run's. Returns outcome,
 * FAILED, CONFLICT, or AGAIN (for a change of the schema that is not visible yet). */
enum cql_outcome cql_apply(struct cql_run *r, enum cql_outcome outcome);
/* Reduces a planned unlogged batch over several partitions to the first half of its partitions, in the
 * order of their tokens, and op_cost with it. Before cql_admit. */
void cql_keep_half(struct cql_run *r);
/* Drops the planned change and releases its locks. */
void cql_abandon(struct cql_run *r);
/* Drops references, and the state of a request between two parts. Called after the response is encoded, before the
 * arena is reset. */
void cql_run_fini(struct cql_run *r);
