/* The one response of a call: encoded from its result or its error, and given to the connection.
 *
 * npi_answer_encode completes what np_reply_init began: the body that the rows' sink has not
 * written, charge, capacity, warnings, tracing id. npi_answer_deliver sends it, or has the loop
 * hold it until the write is durable. The loop's thread.
 */
#pragma once

#include "native_protocol/call.h"

/* Encodes the answer, or the error that occurs meanwhile. Returns -1 if not even an error could be
 * written. */
int npi_answer_encode(struct np_call *call) MUST_CHECK;
/* Returns 1 if the answer is held, and the loop sends and accounts it later, or 0 means sent, or -1
 * for no memory, close the connection. */
int npi_answer_deliver(struct np_call *call) MUST_CHECK;
