/* The state of one event loop, which its connections, its durability and the calls of their
 * requests share. wakeup.h runs it.
 *
 * Everything except the inbox and the atomic fields belongs to the loop's thread.
 */
#pragma once

#include <ev.h>
#include <pthread.h>
#include <stdbool.h>

#include "native_protocol/budget.h"
#include "native_protocol/blocks.h"
#include "native_protocol/frame.h"
#include "native_protocol/metric.h"
#include "native_protocol/options.h"
#include "native_protocol/peers.h"
#include "native_protocol/work_queue.h"

enum { NP_WINDOW = 256 << 10, NP_FREE_CALLS = 16, NP_LISTENERS = 2 * (1 + KEYSPACES_PEERS) };
/* Bytes of batches and their answers that a loop may have with the committer. */
enum { NP_DEFERRED_MAX = 64 << 20 };
/* Steps of TLS handshakes in one wake-up, so that the other clients wait for at most two of
 * them. */
enum { NP_HANDSHAKES_MAX = 2 };
enum { NP_UNTIMED = 32 };
/* Calls of a group (dispatch.h). More of them would not fit into a processor's data cache. */
enum { NP_GROUP = 8 };

/* A task that another thread passes to the loop. Any thread may give one; the loop's thread runs all tasks at
 * its next wake-up, in the order in which they were given. A task is the first member of a larger struct,
 * which belongs to the inbox from give until its function is called; the function frees or reuses it. */
struct np_task {
    struct np_task *next;
    /* The loop's thread; ended: the loop has ended, its connections are closed and nothing may be sent. */
    void (*done)(struct np_task *x, bool ended);
};

struct np_inbox {
    struct ev_loop *ev;
    ev_async wake;
    pthread_mutex_t lock;
    struct np_task *first, **tail; /* under lock */
};

/* woken is called on the thread of the event loop after npi_inbox_wake; arg is its watcher's data. */
void npi_inbox_init(struct np_inbox *in, void (*woken)(struct ev_loop *, ev_async *, int), void *arg);
/* Before any other thread uses the inbox. */
void npi_inbox_start(struct np_inbox *in, struct ev_loop *ev);
/* Runs the remaining tasks, as ended. No other thread may use the inbox any more. */
void npi_inbox_fini(struct np_inbox *in);

/* Any thread. */
void npi_inbox_give(struct np_inbox *in, struct np_task *x);
void npi_inbox_wake(struct np_inbox *in);

/* The loop's thread. */
void npi_inbox_run(struct np_inbox *in, bool ended);

struct np_call;
struct np_conn;
struct np_durability;
struct np_logins; /* native_protocol/login.h */

struct np_listener {
    int fd; /* -1 if none */
    struct np_tls *tls; /* NULL means plain */
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

struct np_loop;
struct np_workers;
struct np_committer;

/* The functions that a connection calls for its input. Passed in, so that connections do not depend
 * on calls. */
struct np_input_fns {
    /* Handles an envelope that has arrived. The request is answered now or later, or the connection
     * fails. */
    void (*on_envelope)(struct np_conn *c, const struct np_envelope *env);
    /* The memory that the bodies of the last envelopes point into is about to be reused. NULL means
     * those bodies are not used any more when on_envelope returns. */
    void (*on_end)(struct np_loop *l);
};

struct np_loop {
    const struct np_options *o;
    unsigned number; /* of the front's loops, and of its shard in the ledger */
    struct np_input_fns input;
    struct np_workers *workers; /* of all loops; set before the thread starts */
    struct np_committer *committer; /* the same; NULL means the store always takes a batch at once */
    struct np_logins *logins; /* the same; NULL if logins are not required */
    struct np_bounds *bounds;
    struct np_metrics metrics;
    pthread_t thread;
    bool started;
    struct ev_loop *ev;
    struct {
        ev_prepare prepare;
        ev_check check;
        ev_timer tick, accept_again;
    } watchers;
    pthread_mutex_t awake; /* held from a wake-up until its batch is committed: np_front_pause */
    bool is_awake;
    struct np_listener listeners[NP_LISTENERS];
    struct np_conn *conns, *dirty;
    /* Wall clock, as the requests of this wake-up share it: the beginning of the next one; 0 if
     * none has begun. npi_loop_time reads it at the end of a request, for queued reads (ledger.h)
     * of up to NP_UNTIMED at once, which all began at now_us. */
    int64_t now_us;
    unsigned n_untimed; /* queued reads since then */
    int64_t tick_us; /* machine time, of the last tick: good enough for time-outs, and costs nothing to ask */
    _Atomic int64_t seen_us; /* the same, for others to see that it ticks */
    _Atomic bool evicts; /* a budget chose connections of this loop */
    bool audit_waits; /* connections are paused until the audit log's queue has room */
    unsigned handshakes; /* steps of TLS handshakes in this wake-up */

    struct np_scratch scratch;
    struct np_buf_pool bufs;
    struct {
        struct np_call *first;
        unsigned n;
    } free_calls;
    struct {
        struct np_call *calls[NP_GROUP];
        unsigned n;
        bool is_finishing;
        bool is_timed; /* the clock was read for the group that is being finished: its requests end together */
    } group; /* planned writes, which are finished together (dispatch.h) */
    struct np_works leaving; /* calls of this wake-up that go to the workers */
    struct eng_batch *batch;          /* writes of this wake-up */
    struct np_durability *durability; /* of them, and the answers that wait for it */
    size_t deferred_bytes;            /* of batches and answers that are with the committer */

    struct np_inbox inbox;
    struct {
        _Atomic bool requested;
        bool begun;
        int64_t since_us;
    } stop;
};

/* Any thread. */
static inline void npi_loop_wake(struct np_loop *l) { npi_inbox_wake(&l->inbox); }

/* The loop's thread. */
/* Reads the clock at the end of a request, which is the beginning of the next one. */
static inline void npi_loop_time(struct np_loop *l) {
    int64_t begun_us = l->now_us;
    l->now_us = clock_wall_us(l->o->clock);
    if (l->n_untimed) np_metric_latency(&l->metrics, NP_KIND_SELECT, l->now_us - begun_us, l->n_untimed);
    l->n_untimed = 0;
    if (l->o->ledger) ledger_time_reads(l->o->ledger, l->number, l->now_us);
}
/* Makes the postings of the loop's requests visible to all readers of the ledger. Called before an
 * answer leaves, and before a call goes to another thread. */
static inline void npi_loop_publish(struct np_loop *l) {
    if (l->n_untimed) npi_loop_time(l);
    if (l->o->ledger) ledger_settle(l->o->ledger, l->number);
}
