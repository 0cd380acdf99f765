/* The one response of a call: encoded from its result or its error, and given to the connection.
 *
 * npi_answer_encode completes what np_reply_init began: the body that the rows' sink has not
 * written, charge, capacity, warnings, tracing id. npi_answer_deliver sends it, or has the loop
 * hold it until the write is durable. The loop's thread.
 */
#pragma once

#include "native_protocol/metric.h"
#include "native_protocol/call.h"

/* Encodes the answer, or the error that occurs meanwhile. Returns -1 if not even an error could be
 * written. */
int npi_answer_encode(struct np_call *call) MUST_CHECK;
/* Returns 0 if the answer is sent, 1 if it is held, and the loop sends and accounts it later, or -1 if
 * memory is exhausted and the connection must be closed. */
int npi_answer_deliver(struct np_call *call, const struct np_account *account) MUST_CHECK;
