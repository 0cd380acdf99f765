/* Records a request whose outcome is known to the capture, when one is running
 * (metering/capture/recorder.h): its body, its outcome and its charge. */
#pragma once

#include "native_protocol/call.h"

struct np_options;

/* Whether a capture is running. */
bool npi_records(const struct np_options *o);
/* Called once for every query request, after npi_post and before its memory is freed. The loop's
 * thread. */
void npi_record(struct np_call *call);
/* Records a request that was refused before it became a call; body: uncompressed. */
void npi_record_refused(struct np_conn *c, const struct np_envelope *env, struct slice body, const struct err *e);
