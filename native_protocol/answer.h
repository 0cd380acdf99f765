/* The one response of a call: encoded from its result or its error, and given to the connection.
 *
 * npi_answer_encode completes what np_reply_begin began: the body that the rows' sink has not
 * written, charge, capacity, warnings, tracing id. npi_answer_deliver sends it, or has the loop
 * hold it until the write is durable. The loop's thread.
 */
#pragma once

#include "native_protocol/call.h"

/* Of rows in the connection's output to which nothing but their charge is added (plain_read.h): all of it. */
void npi_answer_plain(struct np_call *call);
/* -1: not even an error could be written. An error on the way becomes the call's. */
int npi_answer_encode(struct np_call *call) MUST_CHECK;
/* 1: held, the loop sends and accounts it; 0: sent; -1: no memory, the connection is to be closed. */
int npi_answer_deliver(struct np_call *call) MUST_CHECK;
