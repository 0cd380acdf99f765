/* Reads that arrive together, a stage at a time.
 *
 * A hot read runs through more code than the processor's first cache holds. So those of one prepared statement that a connection has sent in a row are
 * planned as they come, and what is left of the sequence is done for all of them, one step after the other: the code of a stage is fetched once for all.
 *
 * Life: npi_stage_may says of an envelope whether it is such a read. Once planned it waits (npi_stage_put) when it is plain, its answer sealed and without what
 * the plan took of memory. npi_stage_end sizes, admits, applies, answers and posts all that wait, in the order in which they came. A client sees of it that
 * those that were answered together end at one moment.
 *
 *   S1  calls are of one connection and one prepared statement, of a table that is stored; no fault, limit or trace looks at them
 *   S2  their answers stand in order in the connection's open output, whole but for their charge
 *   S3  none waits when another request of the loop is planned, when the output is sent, or when the memory of the input goes
 *
 * The loop's thread.
 */
#pragma once

#include "native_protocol/call.h"

struct np_conn;
struct np_loop;

/* Whether it is a read of this kind, by its envelope, and like those that wait. */
bool npi_stage_may(const struct np_conn *c, const struct np_envelope *env);
/* A call of such an envelope, planned in the stage's arena. False: it is not plain and goes on alone, behind those that wait; what it was planned in stays until
 * npi_stage_clear. */
bool npi_stage_put(struct np_call *call);
void npi_stage_clear(struct np_stage *s);
/* The rest of the sequence for all that wait. */
void npi_stage_end(struct np_stage *s);
static inline void npi_stage_finish(struct np_stage *s) {
    if (s->n) npi_stage_end(s);
}
