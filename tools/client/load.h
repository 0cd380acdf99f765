/* The load engine sends a driver's requests over many connections on one libev loop. In a closed
 * loop each answer triggers the next request; in an open loop the driver says when each request is
 * due. tally stress, tally replay and tally-bench are drivers.
 *
 * Life: load_open connects all connections, blocking. load_run sends until the time is over or the
 * driver has no more requests, then waits for the outstanding answers. load_close ends it.
 * load_client gives access to a connection between runs. One thread.
 */
#pragma once

#include "tools/client/client.h"
#include "tools/client/flight.h"

struct load;

struct load_answer {
    const struct wire_response *response;
    uint64_t now_ns, service_ns; /* since it was sent */
    uint64_t latency_ns;         /* since it was due */
};

/* The driver chooses and writes requests and receives answers. load_run's thread calls all of
 * these. */
struct load_driver {
    void *arg;
    /* When the next request is due, on load_now's clock. FLIGHT_NEVER: no request before the next
     * answer, or none at all. NULL means a closed loop. */
    uint64_t (*due)(void *arg);
    /* The number of the connection for the next request. NULL means any connection. */
    unsigned (*where)(void *arg);
    /* Chooses the next request and stores it in the slot's a, b and c. false: none (for now). */
    bool (*pick)(void *arg, struct flight_slot *s);
    /* Writes the request; every try writes the same bytes. */
    void (*put)(void *arg, const struct flight_slot *s, uint8_t version, uint16_t stream, struct buf *out);
    /* Takes an answer. Below 0: the request is done; else the nanoseconds until its next try. */
    int64_t (*answered)(void *arg, struct flight_slot *s, const struct load_answer *a);
    /* Called about every tick_s seconds; true ends the run. May be NULL. */
    bool (*tick)(void *arg);
    double tick_s;
};

enum { LOAD_IN_FLIGHT_MAX = 32768 };

/* in_flight: requests in flight on each connection. Connection i uses options i % n_options.
 * Returns NULL with e set. */
struct load *load_open(const struct client_options *const *options, unsigned n_options, unsigned connections,
                       unsigned in_flight, struct err *e) MUST_CHECK;
void load_close(struct load *l);
struct client *load_client(struct load *l, unsigned connection);

/* Runs for that many seconds; 0 if until the driver has no more requests. Returns -1 if a
 * connection failed. *took: seconds from the first request to the last answer. *unanswered:
 * requests without an answer 15 seconds after the end. Either may be NULL. */
int load_run(struct load *l, const struct load_driver *d, double seconds, double *took, uint64_t *unanswered,
             struct err *e) MUST_CHECK;
/* Requests that waited for another try when the last run ended; they have no final answer. */
uint64_t load_given_up(const struct load *l);
/* Ends the current run; safe to call from a signal handler. */
void load_stop(struct load *l);

/* The engine's clock, nanoseconds. */
uint64_t load_now(void);
