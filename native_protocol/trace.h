/* The trace of a request: a session row and its events for system_traces, written when the request is finished. */
#pragma once

#include "metering/charge.h"
#include "native_protocol/call.h"

/* Makes the session id (a timeuuid, 16 bytes), which the response carries, and stores the session. The loop's thread. */
void npi_trace(struct np_call *call, const struct charge *charge, uint8_t id[16]);
