/* A request whose outcome is known goes to the capture, when one is running (capture/recorder.h):
 * as it came, what came of it and what it was charged. */
#pragma once

#include "native_protocol/call.h"

struct np_options;

/* Whether one is running. */
bool npi_records(const struct np_options *o);
/* Once for every query request, after npi_post and before its memory goes. The loop's thread. */
void npi_record(struct np_call *call);
/* One that was refused before it became a call; body: plain. */
void npi_record_refused(struct np_conn *c, const struct np_envelope *env, struct slice body, const struct err *e);
