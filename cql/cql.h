/* CQL from text or a prepared id to rows, without knowing the protocol.
 *
 * Life of a run: native_protocol decodes a cql_request, fills a cql_run (arena, clock reading,
 * session, a row sink) and calls cql_run on a loop with blocking false. The outcome is one of: DONE,
 * the result is in the run's answer; COMMIT, the same, but it may be sent only when what it writes is durable;
 * OFFLOAD, nothing was done: call again on a blocking thread with blocking true (cold data, DDL,
 * LWT), which thread work_class says; FAILED, with the reason in err. On a blocking thread a long
 * read answers AGAIN after every bounded part, so that other requests get their turn; cql_run_more
 * continues it.
 *
 * cql_run decides and writes nothing: after DONE and COMMIT the cost is in op_cost, cql_admit
 * checks whether the request is admitted, and cql_apply makes the change. The caller of cql_run
 * calls one of cql_apply and cql_abandon after it, on the same thread: a write that read first
 * holds its partitions' locks until then. cql_apply may answer CONFLICT: the request then starts over
 * in a run of its own. (The sequence of all that is native_protocol/dispatch.c.)
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
/* The size that cql_table_billable_bytes found last; returns at once, on any thread. Result: the
 * time of that call, in microseconds since 1970; 0 for no call yet. */
int64_t cql_table_billable_last(struct cql_db *db, const struct schema_table *t, uint64_t *bytes);

enum cql_outcome cql_run(struct cql_run *r);
/* Makes sure that schema and roles are as new as the call: other servers on the store may have changed them.
 * cql_run does so before it refuses a request. Waits for the store. */
int cql_catch_up(struct cql_db *db, struct err *e) MUST_CHECK;
/* The next part of a request that answered CQL_AGAIN. Only batch may have been changed by the caller meanwhile. */
enum cql_outcome cql_run_more(struct cql_run *r);
/* After DONE or COMMIT: asks the admission of cql_db_options, once in a request. Returns -1 with err set
 * if it is refused. */
int cql_admit(struct cql_run *r) MUST_CHECK;
/* After DONE or COMMIT, once admitted: writes what was planned. On a loop it stands in batch
 * (nothing on FAILED); on a thread that may block it is committed. outcome is cql_run's; returned
 * is it, FAILED, CONFLICT, or AGAIN (a change of the schema that takes its time). */
enum cql_outcome cql_apply(struct cql_run *r, enum cql_outcome outcome);
/* A planned unlogged batch over several partitions is cut to the first half of its partitions, in the
 * order of their tokens, and op_cost to what that costs. Before cql_admit. */
void cql_keep_half(struct cql_run *r);
/* Drops what was planned; its locks are given back. */
void cql_abandon(struct cql_run *r);
/* Drops references and what a request between two parts holds; after the response is encoded, before the arena goes. */
void cql_run_fini(struct cql_run *r);
