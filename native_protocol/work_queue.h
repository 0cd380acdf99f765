/* Queues of the works that wait for a worker: one for every class of work, shared fairly by the
 * clients.
 *
 * Life of a work: it is put, taken by a worker of its class, and perhaps put again for its next
 * part, or delayed until a given time. Within a class the clients take turns, however many works
 * each has; a client's own works run in the order they were put. So a client with a thousand scans
 * delays another client's single scan by one part, not by a thousand.
 *
 * The queue is bounded in works and in bytes. When a bound is exceeded, np_queue_put removes and
 * returns the newest work of the client that has the most; this need not be the work just put.
 *
 * A work in a queue may become stale: its deadline passes, or its client disconnects.
 * np_queue_stale removes those. The queue has no lock and no clock; its owner (workers.c) has both.
 */
#pragma once

#include <stdatomic.h>
#include <sys/queue.h>

#include "cql/cql.h"

struct np_work {
    TAILQ_ENTRY(np_work) entry;
    struct np_work_client *client;
    enum cql_work_class class;
    size_t bytes;                  /* that it holds while it waits; set before each put */
    int64_t deadline_us;           /* 0 if none */
    int64_t not_before_us;         /* delayed until then */
    int64_t since_us, waited_us;   /* when it was put; how long it has waited in all, before its parts */
    const _Atomic bool *cancelled; /* true: its client is gone */
};
TAILQ_HEAD(np_works, np_work);

/* A client's turn in one class, with its waiting works. */
struct np_turn {
    TAILQ_ENTRY(np_turn) entry;
    struct np_work_client *client;
    struct np_works works;
};
TAILQ_HEAD(np_turns, np_turn);

/* In the connection. */
struct np_work_client {
    TAILQ_ENTRY(np_work_client) entry;
    unsigned n; /* in the queue, of all classes */
    size_t bytes;
    struct np_turn turns[WORK_CLASSES];
};
TAILQ_HEAD(np_work_clients, np_work_client);

struct np_queue {
    struct np_turns turns[WORK_CLASSES]; /* clients with waiting work, whose turn is next first */
    struct np_works delayed;
    struct np_work_clients clients; /* with any work here */
    unsigned n, n_max;
    size_t bytes, bytes_max;
};

void np_work_client_init(struct np_work_client *c);
void np_queue_init(struct np_queue *q, unsigned n_max, size_t bytes_max);
/* Returns NULL, or the work that has no room, which is no longer in the queue. */
struct np_work *np_queue_put(struct np_queue *q, struct np_work *w, int64_t now_us) MUST_CHECK;
/* Queues a work that is delayed until its not_before_us. It counts like the others, and loses its room only to
 * a later np_queue_put. */
void np_queue_delay(struct np_queue *q, struct np_work *w, int64_t now_us);
/* Takes the next work of the class; NULL if none waits. */
struct np_work *np_queue_take(struct np_queue *q, enum cql_work_class class);
/* Moves the works whose time has come from delayed to their queues. Returns a bit per class that got
 * some. */
unsigned np_queue_resume(struct np_queue *q, int64_t now_us);
/* Its deadline has passed, or its client is gone. */
bool np_work_is_stale(const struct np_work *w, int64_t now_us);
/* Moves all stale works to the end of out. */
void np_queue_stale(struct np_queue *q, int64_t now_us, struct np_works *out);
/* Moves all works, or only the delayed ones, to the end of out. */
void np_queue_empty(struct np_queue *q, bool only_delayed, struct np_works *out);
/* The earliest time at which a deadline passes or a delayed work resumes; INT64_MAX: none. Walks the
 * queue. */
int64_t np_queue_next_moment(const struct np_queue *q);
