/* Where faults (faults/faults.h) meet requests: two steps of the sequence, around apply.
 *
 * A fault that delays has the call start over on a worker, which puts it aside until then, so that
 * no thread and no lock waits with it: delayed before, it is planned anew when its time has come;
 * delayed after, it is applied there, and its answer waits.
 */
#pragma once

#include "faults/faults.h"
#include "native_protocol/loop.h"

/* Whether any fault could hit it, or one has. */
static inline bool npi_fault_may(const struct np_call *call) {
    const struct faults *all = call->conn->loop->o->faults;
    return UNLIKELY(all != NULL) && (faults_count(all) || call->fault.rule);
}
/* Whether any is set at all. */
static inline bool npi_fault_any(const struct np_options *o) {
    return UNLIKELY(o->faults != NULL) && faults_count(o->faults);
}
/* A call that is planned and sized. True: it goes no further, and its outcome says why: FAILED, or
 * OFFLOAD to start over. Whichever thread has the call. */
bool npi_fault_before(struct np_call *call);
/* A call that is planned and sized. True: a fault lets only a part of it be applied; the rest is
 * dropped, and the call is to be sized again. */
bool npi_fault_cut(struct np_call *call);
/* The call is applied: what it did stands, whatever the fault answers. */
void npi_fault_after(struct np_call *call);
/* Whether it is to wait; on a worker. */
bool npi_fault_delays(struct np_call *call);
/* The connection is to be closed without an answer: what was begun of one is dropped. The loop's thread. */
bool npi_fault_hangs_up(struct np_call *call);
