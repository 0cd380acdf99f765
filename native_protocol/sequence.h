/* The steps of every query request, in this order: plan, size, admit, apply, durable, acknowledge,
 * account.
 *
 * The first four steps run on the thread that has the call, the loop's or a worker's; the rest on
 * the loop's. Nothing is written before apply, so a failed or refused request leaves nothing
 * behind. Outcome and units are counted once, when the outcome is known.
 */
#pragma once

#include "native_protocol/call.h"

/* On the loop: decodes a call and plans it. */
void npi_call_plan(struct np_call *call);
/* For a planned call: its consistency for the charge, and the charge itself. */
enum charge_consistency npi_call_consistency(const struct np_call *call);
void npi_call_size(struct np_call *call);
/* Takes a planned call through apply and sets its outcome. With OFFLOAD and AGAIN nothing was
 * applied. */
void npi_call_go_on(struct np_call *call);
/* Plans a call and takes it through apply, on a worker with its own batch; it may block. */
void npi_call_run(struct np_call *call, struct eng_batch *batch);
/* Runs the next part of a call whose outcome is CQL_AGAIN, on a worker with its own batch. */
void npi_call_more(struct np_call *call, struct eng_batch *batch);
/* Runs the remaining steps: the one exit of all calls except plain reads (plain_read.h). The loop's
 * thread. */
void npi_call_finish(struct np_call *call);
/* Releases a call that is answered and accounted. */
void npi_call_let_go(struct np_call *call);
