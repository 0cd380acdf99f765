/* The threads that run what may not run on a loop: some for every class of work, so that none waits
 * behind another's.
 *
 * Life of a work: np_workers_submit puts it into the queue of its class (work_queue.h); a thread of
 * that class runs a part of it; wanted again, it goes to the back of the queue, so that the next
 * one gets its part first; at its end, whatever that is, ended is called once. What is called short
 * and turns out long goes on as a scan.
 *
 * To wake a thread costs more than a short read whose blocks the operating system has. So works
 * come many at a time, and one thread of the class is woken; when it leaves some it wakes another.
 * And a thread that has more to do gives back what it has done together, while each part is quick.
 *
 * A keeper thread looks after those that wait: it ends what is stale (its deadline has passed, its
 * client is gone), though every thread of its class may be busy, and puts back what was put aside
 * for a while.
 *
 * Submit and look on any thread, the rest on one. Scans run at a lower priority than the loops and
 * the other classes.
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
/* What a part leaves behind. */
enum np_work_part { NP_PART_LAST, NP_PART_MORE, NP_PART_LATER /* not before its not_before_us */ };

struct np_work_ops {
    /* A part of the work, on a thread of its class, with that thread's own batch. */
    enum np_work_part (*run)(struct np_work *w, struct eng_batch *batch);
    /* The last that is done with the work; on any thread, also within np_workers_submit; must not
     * call back. Of short reads perhaps after other parts have run. */
    void (*ended)(struct np_work *w, enum np_work_end why);
};

struct np_workers_options {
    const struct np_work_ops *ops;
    struct eng *eng;
    struct clock *clock;
    unsigned threads[WORK_CLASSES]; /* 0: by cores */
    unsigned queue_max;             /* works that wait; 0: default */
    size_t queue_bytes_max;         /* 0: NP_QUEUE_BYTES */
    /* a short read that took less waits for the next ones to be given back; 0: none does */
    unsigned quick_us;
};
enum { NP_QUEUE_BYTES = 256 << 20 };

struct np_workers;
struct np_workers *np_workers_new(const struct np_workers_options *o, struct err *e) MUST_CHECK;
/* All of the list, which is empty then. */
void np_workers_submit(struct np_workers *p, struct np_works *list);
/* Some work's client has gone: the keeper looks now. */
void np_workers_look(struct np_workers *p);
/* What the keeper does each time: ends what is stale, puts back what was put aside; when to look
 * again (INT64_MAX: no reason to). Public for tests with a clock of their own. */
int64_t np_workers_keep(struct np_workers *p);
/* The server is going to stop: nothing is put aside any more, and what is ends now. The rest runs on. */
void np_workers_stop_waiting(struct np_workers *p);
/* Nothing waits, and no part runs but one. */
bool np_workers_alone(struct np_workers *p);
/* Ends what waits, lets the parts that run finish, joins the threads. */
void np_workers_stop(struct np_workers *p);
void np_workers_free(struct np_workers *p);
