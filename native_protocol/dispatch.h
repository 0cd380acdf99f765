/* From an envelope to its one response.
 *
 * npi_dispatch finds the opcode's handler. The small messages are answered at once. Query requests
 * become a call, which takes the steps of sequence.h on the loop, and on a worker when cql asks for
 * that.
 */
#pragma once

#include "native_protocol/call.h"
#include "native_protocol/conn.h"

/* The loops' on_envelope: env's body points into memory that may go when this returns. The loop's thread. */
void npi_dispatch(struct np_conn *c, const struct np_envelope *env);
