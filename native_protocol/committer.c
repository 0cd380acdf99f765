#include "native_protocol/committer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct np_committer {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct np_deferred *queue, **tail; /* under lock */
    _Atomic unsigned n;            /* queued or being committed */
    bool stopping;                 /* under lock */
    bool started;
    pthread_t thread;
};

static void *work(void *arg) {
    struct np_committer *c = arg;
    for (;;) {
        pthread_mutex_lock(&c->lock);
        while (!c->queue && !c->stopping) pthread_cond_wait(&c->wake, &c->lock);
        struct np_deferred *d = c->queue;
        if (d) c->queue = d->next;
        if (!c->queue) c->tail = &c->queue;
        pthread_mutex_unlock(&c->lock);
        if (!d) return NULL;
        d->rc = eng_batch_commit(d->batch, &d->seq, &d->err);
        atomic_fetch_sub(&c->n, 1);
        npi_inbox_give(d->inbox, &d->task);
    }
}

struct np_committer *npi_committer_new(struct err *e) {
    struct np_committer *c = calloc(1, sizeof(*c));
    if (!c) return err_null(err_nomem(e));
    c->tail = &c->queue;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    if (!pthread_create(&c->thread, NULL, work, c)) {
        c->started = true;
        return c;
    }
    err_set(e, ERR_SERVER, "cannot start the thread of deferred commits");
    npi_committer_free(c);
    return NULL;
}

void npi_committer_stop(struct np_committer *c) {
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    if (c->started) pthread_join(c->thread, NULL);
    c->started = false;
}

void npi_committer_free(struct np_committer *c) {
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void npi_committer_submit(struct np_committer *c, struct np_deferred *d) {
    d->next = NULL;
    atomic_fetch_add(&c->n, 1);
    pthread_mutex_lock(&c->lock);
    *c->tail = d;
    c->tail = &d->next;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

bool npi_committer_busy(const struct np_committer *c) { return atomic_load_explicit(&c->n, memory_order_relaxed) > 0; }
