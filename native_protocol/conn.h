/* A client connection: bytes to envelopes, responses to bytes, and its state.
 *
 *   NEW --STARTUP--> [AUTH --login-->] READY --error that ends it--> CLOSING --sent, or time out--> CLOSED
 *
 * A connection lives on one loop and one thread. Its references are counted: the loop's (until
 * CLOSED), and one for each request that waits for durability or runs on a worker, because these
 * may outlive the socket. An idle connection owns no buffer: input goes through the loop's window,
 * output through buffers that the loop lends while there are bytes to send.
 *
 * Back-pressure: reading stops while NP_IN_FLIGHT_MAX requests are unanswered, NP_OFFLOADED_MAX (or
 * as the options say) are with workers, or more than NP_OUT_HIGH bytes are unsent, and resumes at half of the bound. A
 * client that asks for THROW_ON_OVERLOAD gets an error instead of the pause. While a connection has
 * more than NP_OUT_MAX unsent bytes, its requests get an error.
 *
 * A request that has begun to arrive must be complete in time (request_us of the options), and the
 * peer must take the answers in time (send_us); otherwise the connection is closed. All unfinished
 * requests of the server share one budget, all unread answers another. When a budget is used up,
 * the connection that holds the most of it is closed (budget.h).
 */
#pragma once

#include <ev.h>
#include <stdatomic.h>

#include "base/ip_address.h"
#include "native_protocol/frame.h"
#include "native_protocol/output.h"
#include "native_protocol/peers.h"
#include "native_protocol/work_queue.h"
#include "cql/cql.h"
#include "metering/ledger/ledger.h"
#include "metering/limits/limiter.h"

struct np_loop;
struct np_startup;

enum np_conn_state { NP_CONN_NEW, NP_CONN_AUTH, NP_CONN_READY, NP_CONN_CLOSING, NP_CONN_CLOSED };
enum { NP_IN_FLIGHT_MAX = 4096, NP_OFFLOADED_MAX = 16, NP_CLOSE_US = 2000000 };
enum { NP_OUT_HIGH = 1 << 20, NP_OUT_MAX = 32 << 20 };

struct np_conn {
    struct np_loop *loop;
    struct np_conn *next, *prev; /* all of the loop */
    struct np_conn *dirty_next;
    bool dirty; /* in the loop's list of connections to flush */
    bool paused;
    enum np_conn_state state;
    int64_t state_us; /* machine time, when it came into the state */
    uint32_t refs, in_flight;
    uint32_t offloaded; /* of those in flight, on workers or on their way back */
    struct np_transport transport;
    ev_io read_io, write_io;

    uint8_t version;  /* of STARTUP; 0 before */
    enum np_compression compression;
    bool throw_on_overload, capacity_full;
    unsigned events; /* registered */
    struct cql_client client; /* open until the connection closes */
    struct cql_session session;
    struct limit_connection limit; /* for the admission, under its lock */
    struct ledger_connection account; /* in the ledger as long as the connection is there */
    char *role; /* that has logged in; session.role */
    struct {    /* a login in progress (login.h) */
        bool pending, challenged;
        char nonce[32];
    } login;
    struct ip_address peer; /* the client's */
    struct np_peer *address_entry;

    struct { /* bytes of an unfinished request */
        struct buf kept;  /* an incomplete envelope or segment */
        struct buf large; /* v5: an envelope that arrives in several segments */
        uint64_t skip;    /* bytes of an oversized body still to be passed over */
        struct np_share share; /* kept and large, of the server's budget */
        int64_t begun_us; /* when it began to arrive, as of the loop's tick; 0 if there is none */
    } in;
    int64_t received_us; /* when bytes last arrived, as of the loop's tick */
    int64_t taken_us; /* when the peer last took bytes or they began to wait, likewise; 0 if none wait */
    size_t queued;    /* sent bytes that the peer had not taken at the last tick */
    struct np_output output;
    _Atomic bool gone; /* closed; workers skip the calls of a closed connection */
    struct np_work_client work; /* its waiting works; under the lock of the workers' queue */
};

/* Takes over fd. Returns NULL if memory is exhausted, or there are too many connections; fd is closed. */
struct np_conn *npi_conn_new(struct np_loop *loop, int fd, struct np_tls *tls);
void npi_conn_ref(struct np_conn *c);
void npi_conn_unref(struct np_conn *c);
/* Enters the values of STARTUP into the ledger's list of connections. */
void npi_conn_introduce(struct np_conn *c, const struct np_startup *s);
void npi_conn_set_state(struct np_conn *c, enum np_conn_state state);
/* From AUTH to READY, as this role. Returns -1 if memory is exhausted. */
int npi_conn_log_in(struct np_conn *c, const char *role) MUST_CHECK;
/* Closes the socket at once, and drops the loop's reference. */
void npi_conn_close(struct np_conn *c);
/* Ends a reply that was begun in npi_conn_out. */
void npi_conn_reply(struct np_conn *c, struct np_reply *r);
/* Sends an error response without accounting it; the connection must be open. */
void npi_send_error(struct np_conn *c, uint8_t version, int16_t stream, const struct err *e);
/* Sends and accounts an error response to a request that did not become a call. */
void npi_answer_error(struct np_conn *c, const struct np_envelope *env, const struct err *e);
/* Answers an error on the stream, then closes once it is sent. */
void npi_conn_end(struct np_conn *c, uint8_t version, int16_t stream, const struct err *e);

/* The buffer to append responses to; flushed at the end of the wake-up. */
struct buf *npi_conn_out(struct np_conn *c);
void npi_conn_flush(struct np_conn *c);
/* Appends an answer that was encoded elsewhere: front, then the reply's blocks. Both are empty
 * afterwards. */
void npi_conn_append(struct np_conn *c, struct buf *front, struct np_reply *reply);
/* A request is answered: decrements in_flight; reading may resume. */
void npi_conn_answered(struct np_conn *c);
static inline size_t npi_conn_unsent(const struct np_conn *c) { return np_output_unsent(&c->output); }
static inline bool npi_conn_framed(const struct np_conn *c) { return c->output.framed; }
void npi_conn_stop_reading(struct np_conn *c);
/* Runs every second: closes the connection if it is out of time. c may be off the loop's list
 * afterwards. */
void npi_conn_tick(struct np_conn *c);
/* Closes it if a budget chose it. */
void npi_conn_check_evicted(struct np_conn *c);
