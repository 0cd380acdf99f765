#include "base/ticker.h"

#include "base/clock.h"

void ticker_init(struct ticker *t, ticker_fn fn, void *arg) {
    *t = (struct ticker){.fn = fn, .arg = arg};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->cond, NULL);
}

void ticker_fini(struct ticker *t) {
    pthread_cond_destroy(&t->cond);
    pthread_mutex_destroy(&t->lock);
}

static void *run(void *arg) {
    struct ticker *t = arg;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        int64_t until_us = t->wait_us == TICKER_WHEN_WOKEN ? INT64_MAX : clock_machine_us(&clock_real) + t->wait_us;
        while (!t->stopping && !t->woken && (until_us == INT64_MAX || clock_machine_us(&clock_real) < until_us)) {
            if (until_us == INT64_MAX) pthread_cond_wait(&t->cond, &t->lock);
            else clock_cond_wait_until(&t->cond, &t->lock, until_us);
        }
        t->woken = false;
        bool stops = t->stopping;
        pthread_mutex_unlock(&t->lock);
        if (stops) return NULL;
        t->wait_us = t->fn(t->arg);
        pthread_mutex_lock(&t->lock);
    }
}

int ticker_start(struct ticker *t, int64_t first_us, struct err *e) {
    t->wait_us = first_us;
    t->running = pthread_create(&t->thread, NULL, run, t) == 0;
    return t->running ? 0 : err_set(e, ERR_SERVER, "cannot start a thread");
}

void ticker_wake(struct ticker *t) {
    pthread_mutex_lock(&t->lock);
    t->woken = true;
    pthread_cond_signal(&t->cond);
    pthread_mutex_unlock(&t->lock);
}

void ticker_stop(struct ticker *t) {
    if (!t->running) return;
    atomic_store(&t->stopping, true);
    ticker_wake(t);
    pthread_join(t->thread, NULL);
    t->running = t->woken = false;
    atomic_store(&t->stopping, false);
}
