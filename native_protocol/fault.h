/* Applies faults (native_protocol/faults/faults.h) to requests, in two steps of the sequence: before apply and
 * after it.
 *
 * A delayed call starts over on a worker, whose queue delays it until its time, so that no thread and
 * no lock waits. A call that is delayed before apply is then planned again; a call that is delayed
 * after apply is applied on the worker, and only its answer waits.
 */
#pragma once

#include "native_protocol/faults/faults.h"
#include "native_protocol/conn.h"
#include "native_protocol/loop.h"

/* Whether a fault could hit the call, or one has. */
static inline bool npi_fault_may(const struct np_call *call) {
    const struct faults *all = call->conn->loop->o->faults;
    return UNLIKELY(all != NULL) && (faults_count(all) || call->fault.rule);
}
/* Applies the fault to a call that is planned and sized. Returns true if the call stops here with
 * the outcome FAILED, or OFFLOAD to start over. The thread that has the call. */
bool npi_fault_before(struct np_call *call);
/* Drops a part of the writes of a planned and sized call if its fault applies only a part. Returns
 * true if the caller must size the call again. */
bool npi_fault_cut(struct np_call *call);
/* Applies the fault to a call after apply: its writes remain, whatever the fault answers. */
void npi_fault_after(struct np_call *call);
/* Whether the call must still wait. On a worker. */
bool npi_fault_delays(struct np_call *call);
/* Returns true if the fault closes the connection without an answer, and a begun answer was
 * dropped. The loop's thread. */
bool npi_fault_hangs_up(struct np_call *call);
