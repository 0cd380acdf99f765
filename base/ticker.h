/* A thread that calls a function again and again: after the time that the last call returned, and at
 * once when it is woken. Times are machine time (clock.h).
 *
 * Life: ticker_init, ticker_start, ticker_wake as often as needed, ticker_stop, ticker_fini. A
 * stopped ticker may be started again.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define TICKER_WHEN_WOKEN INT64_MAX

/* Returns the number of microseconds until the next call; TICKER_WHEN_WOKEN for no limit. Called
 * without a lock. */
typedef int64_t (*ticker_fn)(void *arg);

struct ticker {
    ticker_fn fn;
    void *arg;
    pthread_mutex_t lock; /* protects woken; held only for a moment */
    pthread_cond_t cond;
    bool running, woken; /* running: used by the thread that starts and stops the ticker */
    atomic_bool stopping;
    int64_t wait_us; /* until the next call */
    pthread_t thread;
};

void ticker_init(struct ticker *t, ticker_fn fn, void *arg);
/* The ticker is not running. */
void ticker_fini(struct ticker *t);
/* Starts the thread; the first call follows after first_us, 0 for at once. Returns 0, or -1 with
 * ERR_SERVER if there is no thread. */
int ticker_start(struct ticker *t, int64_t first_us, struct err *e) MUST_CHECK;
/* Makes the next call follow at once: after the present one if a call is under way. A ticker that is
 * not running calls at once after its start. Any thread, also inside fn. */
void ticker_wake(struct ticker *t);
/* Waits until the present call has returned, and ends the thread. Does nothing if there is none. */
void ticker_stop(struct ticker *t);
/* True while ticker_stop waits: a long call should return. Any thread. */
static inline bool ticker_is_stopping(const struct ticker *t) { return atomic_load(&t->stopping); }
