/* What happens to every query request, in this order: plan, size, admit, apply, durable,
 * acknowledge, account.
 *
 * The first four run where the call is, on the loop or on a worker; the rest on the loop. Nothing
 * is written before apply, so what fails or is refused leaves nothing behind; outcome and units are
 * counted once, when the outcome is known.
 */
#pragma once

#include "native_protocol/call.h"

/* On the loop: decodes a call and plans it. */
void npi_call_plan(struct np_call *call);
/* Of one that is planned: as what it is charged, and what. */
enum charge_consistency npi_call_consistency(const struct np_call *call);
void npi_call_size(struct np_call *call);
/* And takes it as far as apply. Its outcome says where it stands: with OFFLOAD and AGAIN nothing was applied. */
void npi_call_go_on(struct np_call *call);
/* Both, blocking on a worker with its own batch. */
void npi_call_run(struct np_call *call, struct eng_batch *batch);
/* The next part of a call whose outcome is CQL_AGAIN; a worker, with its own batch. */
void npi_call_more(struct np_call *call, struct eng_batch *batch);
/* The rest, and the one exit but for reads that are plain (plain_read.h). The loop's thread. */
void npi_call_finish(struct np_call *call);
/* It is answered and accounted: what it holds is given back. */
void npi_call_let_go(struct np_call *call);
