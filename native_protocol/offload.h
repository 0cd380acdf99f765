/* Moves calls from their loop to the workers and back.
 *
 * Life: cql answers CQL_OFFLOAD on the loop; the call's body is copied, and at the end of the
 * wake-up it goes to the workers, with all others that have to, as a work of its class, with the
 * deadline of that class. It runs there part by part, commits what it wrote, and comes back through
 * the loop's inbox to be finished; so does one that could not run, with an error.
 */
#pragma once

#include "native_protocol/call.h"
#include "native_protocol/workers.h"

/* The loop's thread. */
void npi_offload(struct np_call *call);

/* The connection has closed: its waiting calls are dropped. */
void npi_offload_abandoned(struct np_conn *c);

extern const struct np_work_ops npi_offload_ops;
