/* The load engine: requests of a driver over many connections on one libev loop, closed (an answer
 * is followed at once by the next request) or open (requests are due at times of their own). tally
 * stress, tally replay and tally-bench are drivers.
 *
 * Life: load_open connects all, blocking; load_run sends until the time is over or the driver has
 * nothing left, and then waits for what is under way; load_close. load_client is the first
 * connection, for questions between runs. One thread.
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

/* What is sent, and what becomes of the answers. All are called on load_run's thread. */
struct load_driver {
    void *arg;
    /* When the next request is due (load_now); FLIGHT_NEVER: nothing until another answer has come,
     * or at all. NULL: a closed loop. */
    uint64_t (*due)(void *arg);
    /* Over which connection the next request goes. NULL: any. */
    unsigned (*where)(void *arg);
    /* Decides what the next request is, and keeps it in a, b, c of the slot. false: there is none (for now). */
    bool (*pick)(void *arg, struct flight_slot *s);
    /* Writes it; the same again for every try. */
    void (*put)(void *arg, const struct flight_slot *s, uint8_t version, uint16_t stream, struct buf *out);
    /* An answer. Below 0: it is done; else it is tried again after so many nanoseconds. */
    int64_t (*answered)(void *arg, struct flight_slot *s, const struct load_answer *a);
    /* About every tick_s seconds; true ends the run. May be NULL. */
    bool (*tick)(void *arg);
    double tick_s;
};

enum { LOAD_IN_FLIGHT_MAX = 32768 };

/* NULL with e. in_flight: of each connection; connection i gets options i % n_options. */
struct load *load_open(const struct client_options *const *options, unsigned n_options, unsigned connections,
                       unsigned in_flight, struct err *e) MUST_CHECK;
void load_close(struct load *l);
struct client *load_client(struct load *l, unsigned connection);

/* For so long; 0: until the driver has nothing left. -1: a connection failed. *took: seconds from
 * the first request to the last answer; *unanswered: requests that had no answer long after the
 * end. Either may be NULL. */
int load_run(struct load *l, const struct load_driver *d, double seconds, double *took, uint64_t *unanswered,
             struct err *e) MUST_CHECK;
/* Of the last run: requests that waited for their next try when it ended, and so have no last answer either. */
uint64_t load_given_up(const struct load *l);
/* Ends the run that is under way; also from a signal handler. */
void load_stop(struct load *l);

/* The engine's clock, nanoseconds. */
uint64_t load_now(void);
