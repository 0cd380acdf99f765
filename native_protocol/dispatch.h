/* From an envelope to its one response: the life of a call (call.h) on its loop and on the workers.
 *
 * The small messages are answered at once (login.h). A query request becomes a call.
 *
 * A call that starts over drops its plan and its answer so far, and waits in the queue of the
 * workers: because the loop cannot run it, until there is room for its answer, after a conflict with
 * another server's write, or for the delay of a fault (faults/faults.h). So no thread and no lock
 * waits. A fault acts before apply and after it; a call that is delayed after apply is applied on the
 * worker, and only its answer waits.
 *
 * The steps of one write are more code than a processor's instruction cache holds (32 KB). A loop
 * therefore plans up to NP_GROUP writes that have arrived together, and then takes them through the
 * other steps one after the other: the cache loads each half of the code once a group. A write joins
 * the group if it has read nothing and holds no lock. Its plan is then as good a little later, and
 * requests that are planned in between cannot see it in any case, as reads see committed writes
 * only. All other requests are finished at once.
 */
#pragma once

#include "native_protocol/call.h"
#include "native_protocol/workers.h"

/* The functions that a loop calls for its input. The loop's thread. */
extern const struct np_input_fns npi_dispatch_fns;
/* The functions that the workers call. */
extern const struct np_work_ops npi_dispatch_work;
