/* The fast path for plain reads: reads whose answer has only rows and a charge, as nearly all
 * requests under a read load.
 *
 * The full sequence of a read is more code than the processor's first-level cache holds. So where a
 * connection sends reads of one prepared statement in a row, and nothing observes each of them (no
 * limit, fault, trace, audit, capture or slow log), the steps after the plan are short: charge,
 * answer, queue for the ledger; then the call is free for the next read while it is still in the
 * cache. Their common end time and their number are recorded once (npi_loop_record_reads).
 *
 * Life: npi_plain_may checks whether an envelope qualifies; once the call is planned,
 * npi_plain_answer answers it, or returns false, and the call takes the full sequence (sequence.h).
 *
 *   Q1  reads that are not settled are of one connection and one prepared statement, and began at
 *       one moment
 *   Q2  they are settled before another request of the loop is planned, and before the output is
 *       sent: a client that has an answer finds it charged
 *
 * The loop's thread.
 */
#pragma once

#include "native_protocol/call.h"

struct np_conn;
struct np_loop;

/* Whether the envelope may be a plain read, of the same statement as the reads that are not
 * settled. */
bool npi_plain_may(const struct np_conn *c, const struct np_envelope *env);
/* Answers a planned call of such an envelope. True: it is answered and released. False: it is not
 * plain, and is unchanged. */
bool npi_plain_answer(struct np_call *call);
