/* One event loop: its connections, and the requests that they send.
 *
 * A wake-up: input callbacks run requests; the writes and their answers go to the loop's durability
 * (durability.h). Before the loop sleeps again (ev_prepare) the writes are committed, and every
 * connection with output is flushed with one send. When a sequence number is reported durable
 * (ev_async), or the loop has synced itself, the answers that waited for it are sent. Everything
 * except the inbox (inbox.h) and the atomic fields belongs to the loop's thread.
 */
#pragma once

#include <ev.h>
#include <pthread.h>

#include "native_protocol/call.h"
#include "native_protocol/conn.h"
#include "native_protocol/durability.h"
#include "native_protocol/inbox.h"
#include "native_protocol/metric.h"
#include "native_protocol/options.h"
#include "native_protocol/work_queue.h"

enum { NP_WINDOW = 256 << 10, NP_SPARE_CALLS = 16, NP_LISTENERS = 2 * (1 + KEYSPACES_PEERS) };
/* Steps of TLS handshakes in one wake-up, so that the other clients wait for at most two of
 * them. */
enum { NP_HANDSHAKES_MAX = 2 };

struct np_logins; /* native_protocol/login.h */

struct np_listener {
    int fd; /* -1: none */
    struct np_tls *tls; /* NULL: plain */
    ev_io io;
    struct np_loop *loop;
};

/* The bounds on clients, which all loops share. */
struct np_bounds {
    struct np_peers peers;
    struct np_budget unfinished; /* bytes of requests that have not arrived as a whole */
    struct np_budget unread;     /* bytes of answers that were not sent yet */
    struct arena_pool work;      /* memory of requests that run or wait for workers */
};

/* Memory that one step uses at a time. */
struct np_scratch {
    uint8_t *window;    /* NP_WINDOW bytes that are read from a socket */
    struct buf segment; /* unpacked */
    struct buf body;    /* unpacked */
    struct buf packed;  /* a body that is being compressed */
};

struct np_workers;
struct np_committer;

/* The handlers of arriving requests, passed in, so that the loop and its connections do not depend
 * on dispatch. The loop's thread. */
struct np_loop_ops {
    /* An envelope has arrived; its body points into memory that may go when this returns. Answered
     * now or later, or the connection fails. */
    void (*envelope)(struct np_conn *c, const struct np_envelope *env);
    /* The output is about to be sent: accounts the answered requests. */
    void (*settle)(struct np_loop *l);
    /* A call has returned from a worker: sends its response and gives the call back to the loop. */
    void (*finish)(struct np_call *call);
    /* The connection has closed while calls of it are with workers. */
    void (*abandoned)(struct np_conn *c);
    /* Instead of finish, when the loop ends: drops the references that running it took. */
    void (*forget)(struct np_call *call);
};

struct np_loop {
    const struct np_options *o;
    unsigned number; /* of the front's loops, and of its shard in the ledger */
    const struct np_loop_ops *ops;
    struct np_workers *workers; /* of all loops; set before the thread starts */
    struct np_committer *committer; /* the same; NULL: the store always takes a batch at once */
    struct np_logins *logins; /* the same; NULL: logins are not required */
    struct np_bounds *bounds;
    struct np_metrics metrics;
    pthread_t thread;
    bool started;
    struct ev_loop *ev;
    ev_prepare prepare;
    ev_check check;
    pthread_mutex_t awake; /* held from a wake-up until its batch is committed: np_front_pause */
    bool is_awake;
    ev_timer tick, accept_again;
    struct np_listener listeners[NP_LISTENERS];
    struct np_conn *conns, *dirty;
    /* wall clock: the end of the last request of this wake-up, or the beginning of its first one,
     * which is taken as the beginning of the next one; 0: none has begun */
    int64_t now_us;
    int64_t tick_us; /* machine time, of the last tick: good enough for time-outs, and costs nothing to ask */
    _Atomic int64_t seen_us; /* the same, for others to see that it ticks */
    _Atomic bool evicts; /* a budget chose connections of this loop */
    unsigned handshakes; /* steps of TLS handshakes in this wake-up */

    struct np_scratch scratch;
    struct np_spare spare;
    struct np_call *calls;
    unsigned n_calls;
    struct np_works leaving; /* calls of this wake-up that go to the workers */
    struct np_plain plain;

    struct np_durability durability;

    struct np_inbox inbox;
    _Atomic bool stop_asked;
    bool stopping;
    int64_t stop_us;
};

int npi_loop_init(struct np_loop *l, const struct np_options *o, const struct np_loop_ops *ops,
                  struct np_bounds *bounds, struct err *e) MUST_CHECK;
/* After the thread has ended (or never ran): connections, calls and the batch go. Other threads may
 * still wake the loop. */
void npi_loop_close(struct np_loop *l);
/* Frees the rest; no other thread may use the loop any more. */
void npi_loop_fini(struct np_loop *l);
/* The thread's function; arg is the loop. */
void *npi_loop_run(void *arg);

/* Any thread. */
void npi_loop_give_call(struct np_loop *l, struct np_call *c);
void npi_loop_give_event(struct np_loop *l, const struct schema_change *change);
void npi_loop_wake(struct np_loop *l);
/* The durable sequence has moved, or a sync failed. */
void npi_loop_durable(struct np_loop *l);
void npi_loop_stop(struct np_loop *l);
/* A budget chose a connection of the loop (np_budget's tell; owner is the loop). */
void npi_loop_evict(void *owner);

/* The loop's thread. */
/* Makes the postings of the loop's requests visible to all readers of the ledger. Called before an
 * answer leaves, and before a call goes to another thread. */
static inline void npi_loop_settle(const struct np_loop *l) {
    if (l->o->ledger) ledger_settle(l->o->ledger, l->number);
}
/* Runs every second: closes the connections that are out of time. Public for tests with a clock of
 * their own. */
void npi_loop_tick(struct np_loop *l);
struct np_call *npi_call_take(struct np_loop *l);
void npi_call_give(struct np_loop *l, struct np_call *c);
