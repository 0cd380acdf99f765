/* The front of the server: listeners, one event loop per thread, blocking workers, on one database.
 *
 * Life: np_front_start binds, starts the threads and returns; np_front_stop stops accepting, lets
 * the requests in flight finish (bounded) and joins every thread; np_front_free is called after the
 * engine and the catalogue are closed, because their threads call back into the front until then.
 * Start, stop and free are called on one thread; the rest on any.
 */
#pragma once

#include "membership/membership.h"
#include "native_protocol/metric.h"
#include "native_protocol/options.h"

struct np_front;

/* The event loops that a front with this option threads has. */
unsigned np_front_loops(unsigned threads);
/* On -1, the caller stops and frees *out, unless it is NULL. */
int np_front_start(const struct np_options *o, struct np_front **out, struct err *e) MUST_CHECK;
void np_front_stop(struct np_front *f);
void np_front_free(struct np_front *f);
/* Reserves a port before the front listens: no other program gets it while the returned descriptor
 * is open, and options.reserved_port lets the front use it. *port 0 becomes a free port. Returns -1
 * with ERR_CONFIG if another program has the port. The caller closes the descriptor. */
int np_port_reserve(const char *address, uint16_t *port, struct err *e) MUST_CHECK;
/* Called by a worker that runs a statement: waits until no other request runs, and holds all back
 * until np_front_resume. Connections stay open. -1, ERR_OVERLOADED: other requests run too long. */
int np_front_pause(struct np_front *f, struct err *e) MUST_CHECK;
void np_front_resume(struct np_front *f);
/* Tells the clients that registered for such events of another server on the store. Any thread. */
void np_front_tell_member(struct np_front *f, enum member_event event, const struct member *m);
/* The bound ports. */
uint16_t np_front_port(const struct np_front *f);     /* 0 if none */
uint16_t np_front_tls_port(const struct np_front *f); /* 0 if none */
/* Checks a login of another port, as np_logins_check does. The server has roles. */
int np_front_login(struct np_front *f, const struct ip_address *client, const char *name, const char *password,
                   struct err *e) MUST_CHECK;
/* The time since the last tick of the loop that ticked longest ago. Each ticks once a second. Any thread. */
int64_t np_front_tick_age_us(const struct np_front *f);
/* Whether every loop has ticked within the last ten seconds. Any thread. */
bool np_front_alive(const struct np_front *f);

/* Sums over all loops. */
uint64_t np_front_count(const struct np_front *f, enum np_metric id);
uint64_t np_front_requests(const struct np_front *f, uint8_t opcode, enum np_outcome o);
struct np_latencies np_front_latencies(const struct np_front *f, enum np_kind kind);
