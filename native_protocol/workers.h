/* The threads that run requests that may block a loop. Every class of work has threads of its own,
 * so that no class waits behind another.
 *
 * Life of a work: np_workers_submit puts it into the queue of its class (work_queue.h); a thread of
 * that class runs a part of it. An unfinished work goes to the back of the queue, so that the next
 * one gets its part first. ended is called once at its end, however it ends. A short read that
 * needs a second part continues as a scan.
 *
 * Waking a thread costs more than a short read whose blocks are in the operating system's cache. So
 * a loop submits many works at a time and wakes one thread of the class; a thread that leaves works
 * wakes another. A thread that has more to do gives finished works back together, while each part
 * is quick.
 *
 * A monitor thread watches the waiting works: it ends stale ones (past their deadline, or without
 * their client) even while every thread of their class is busy, and puts delayed works back into
 * their queues.
 *
 * np_workers_submit and np_workers_wake_monitor may be called on any thread, the rest on one. Scans
 * run at a lower priority than the loops and the other classes.
 */
#pragma once

#include "base/clock.h"
#include "native_protocol/work_queue.h"

enum np_work_end {
    NP_WORK_DONE,     /* it ran to its end */
    NP_WORK_STALE,    /* its deadline has passed, or its client is gone */
    NP_WORK_NO_ROOM,  /* too much waits, and its client has the most of it */
    NP_WORK_STOPPING, /* the server ends first */
};
/* How a part of a work ended. */
enum np_work_part { NP_PART_LAST, NP_PART_MORE, NP_PART_LATER /* not before its not_before_us */ };

struct np_work_ops {
    /* A part of the work, on a thread of its class, with that thread's own batch. */
    enum np_work_part (*run)(struct np_work *w, struct eng_batch *batch);
    /* The last call for the work; on any thread, also within np_workers_submit; must not call back.
     * For short reads it may come after parts of other works have run. */
    void (*ended)(struct np_work *w, enum np_work_end why);
};

struct np_workers_options {
    const struct np_work_ops *ops;
    struct eng *eng;
    struct clock *clock;
    unsigned threads[WORK_CLASSES]; /* 0 means by cores */
    unsigned queue_max;             /* works that wait; 0 for default */
    size_t queue_bytes_max;         /* 0 means NP_QUEUE_BYTES */
    /* a short read that took less is given back together with the next ones; 0 means every one at
     * once */
    unsigned quick_us;
};
enum { NP_QUEUE_BYTES = 256 << 20 };

struct np_workers;
struct np_workers *np_workers_new(const struct np_workers_options *o, struct err *e) MUST_CHECK;
/* Submits all works of the list, which is empty afterwards. */
void np_workers_submit(struct np_workers *p, struct np_works *list);
/* A client has disconnected: the monitor checks the queue now. */
void np_workers_wake_monitor(struct np_workers *p);
/* One round of the monitor: ends stale works, resumes delayed works. Returns the time of the next
 * round (INT64_MAX: none needed). Public for tests with a clock of their own. */
int64_t np_workers_check(struct np_workers *p);
/* Called before the server stops: no work is delayed any more, and delayed works end now. The
 * others run on. */
void np_workers_stop_waiting(struct np_workers *p);
/* No work waits, and at most one part runs. */
bool np_workers_idle(struct np_workers *p);
/* Ends the waiting works, lets running parts finish, joins the threads. */
void np_workers_stop(struct np_workers *p);
void np_workers_free(struct np_workers *p);
