/* The trace of a request: a session row and its events for system_traces, written when the request is finished. */
#pragma once

#include "metering/charge.h"
#include "native_protocol/call.h"

/* Records a step of a traced call. The thread that has the call. */
void npi_trace_record(struct np_call *call, enum np_trace_step step, int64_t number);
static inline void npi_trace_step(struct np_call *call, enum np_trace_step step, int64_t number) {
    if (UNLIKELY(call->started_us != 0)) npi_trace_record(call, step, number);
}
/* Makes the session id (a timeuuid, 16 bytes), which the response carries, and stores the session.
 * Returns -1 if no session was stored. The loop's thread. */
int npi_trace(struct np_call *call, uint8_t id[16]) MUST_CHECK;
