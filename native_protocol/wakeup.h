/* The wake-ups of an event loop, from its start to its end.
 *
 * A wake-up: input callbacks run requests (conn.h); the writes and their answers go to the loop's
 * durability (durability.h). Before the loop sleeps again (ev_prepare) the writes are committed, and
 * every connection with output is flushed with one send. When a sequence number is reported durable
 * (ev_async), or the loop has synced itself, the answers that waited for it are sent.
 */
#pragma once

#include "native_protocol/loop.h"

int npi_loop_init(struct np_loop *l, const struct np_options *o, struct np_input_fns input, struct np_bounds *bounds,
                  struct err *e) MUST_CHECK;
/* The thread's function; arg is the loop. */
void *npi_loop_run(void *arg);
/* After the thread has ended (or never ran): connections, calls and the batch go. Other threads may
 * still wake the loop. */
void npi_loop_close(struct np_loop *l);
/* Frees the rest; no other thread may use the loop any more. */
void npi_loop_fini(struct np_loop *l);

/* Any thread: the loop stops accepting, answers the requests in flight and ends. */
void npi_loop_stop(struct np_loop *l);
/* A budget chose a connection of the loop (np_budget's notify; owner is the loop). Any thread. */
void npi_loop_evict(void *owner);

/* Runs every second: closes the connections that are out of time. Public for tests with a clock of
 * their own. The loop's thread. */
void npi_loop_tick(struct np_loop *l);
