/* A loop's inbox: what other threads hand to the loop. Any thread gives a task; the loop's thread
 * runs all of them at its next wake-up, in the order in which they were given.
 *
 * A task is the first member of its own struct, which belongs to the inbox from give until its
 * function is called. That function takes the struct back or frees it.
 */
#pragma once

#include <ev.h>
#include <pthread.h>
#include <stdbool.h>

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
/* Runs what is left, as ended. No other thread may use the inbox any more. */
void npi_inbox_fini(struct np_inbox *in);

/* Any thread. */
void npi_inbox_give(struct np_inbox *in, struct np_task *x);
void npi_inbox_wake(struct np_inbox *in);

/* The loop's thread. */
void npi_inbox_run(struct np_inbox *in, bool ended);
