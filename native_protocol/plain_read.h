/* Reads of which there is nothing to say but their rows and their charge: what nearly all requests
 * are where reads are many.
 *
 * A hot read runs through more code than the processor's first cache holds. So where a connection
 * sends reads of one prepared statement in a row, and nobody looks at what becomes of each (no
 * limit, fault, trace, audit, capture or slow log), what stands behind the plan is one short way:
 * charge, answer, queue for the ledger, and the call is free for the next one while it is still in
 * the cache. What is the same for all of them, when they ended and how many they were, is told once
 * (npi_plain_settle).
 *
 * Life: npi_plain_may says of an envelope whether it may go that way; once planned,
 * npi_plain_answer takes it, or says that it goes the long way (sequence.h).
 *
 *   Q1  those that are not settled are of one connection and one prepared statement, and began at
 *       one moment
 *   Q2  they are settled before another request of the loop is planned, and before the output is
 *       sent: who sees an answer finds it charged
 *
 * The loop's thread.
 */
#pragma once

#include "native_protocol/call.h"

struct np_conn;
struct np_loop;

/* Whether it is a read of this kind, by its envelope, and like those that are not settled. */
bool npi_plain_may(const struct np_conn *c, const struct np_envelope *env);
/* A call of such an envelope, planned. True: it is answered, and gone. False: it is not plain, and nothing happened. */
bool npi_plain_answer(struct np_call *call);
/* All that are not settled. */
void npi_plain_settle(struct np_loop *l);
