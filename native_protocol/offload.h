/* Calls on the workers.
 *
 * Life: cql returns CQL_OFFLOAD on the loop; dispatch copies the call's body and queues the call,
 * and at the end of the wake-up all such calls are submitted to the workers, each as a work of its
 * class, with the deadline of that class. A call runs there part by part, commits its writes, and
 * returns through the loop's inbox to be finished. A call that could not run returns in the same
 * way, with an error.
 */
#pragma once

#include "native_protocol/call.h"
#include "native_protocol/workers.h"

extern const struct np_work_ops npi_offload_ops;
