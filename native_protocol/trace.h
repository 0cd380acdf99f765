/* The trace of a request: a session row and its events for system_traces, written when the request is finished. */
#pragma once

#include "metering/charge.h"
#include "native_protocol/call.h"

/* The trace of a call that begins, in its arena; NULL if memory is exhausted. */
struct np_trace *npi_trace_new(struct np_call *call);
/* Records a step of a traced call. The thread that has the call. */
void npi_trace_record(struct np_call *call, enum np_trace_step step, int64_t number);
static inline void npi_trace_step(struct np_call *call, enum np_trace_step step, int64_t number) {
    if (UNLIKELY(call->trace != NULL)) npi_trace_record(call, step, number);
}
/* Makes the session id (a timeuuid, 16 bytes) for the response, and stores the session. Returns -1 if
 * no session was stored. The loop's thread. */
int npi_trace(struct np_call *call, uint8_t id[16]) MUST_CHECK;
