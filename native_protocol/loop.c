#include "native_protocol/loop.h"

void npi_inbox_init(struct np_inbox *in, void (*woken)(struct ev_loop *, ev_async *, int), void *arg) {
    pthread_mutex_init(&in->lock, NULL);
    in->first = NULL;
    in->tail = &in->first;
    ev_async_init(&in->wake, woken);
    in->wake.data = arg;
}

void npi_inbox_start(struct np_inbox *in, struct ev_loop *ev) {
    in->ev = ev;
    ev_async_start(ev, &in->wake);
}

void npi_inbox_give(struct np_inbox *in, struct np_task *x) {
    x->next = NULL;
    pthread_mutex_lock(&in->lock);
    *in->tail = x;
    in->tail = &x->next;
    pthread_mutex_unlock(&in->lock);
    npi_inbox_wake(in);
}

void npi_inbox_wake(struct np_inbox *in) { ev_async_send(in->ev, &in->wake); }

void npi_inbox_run(struct np_inbox *in, bool ended) {
    pthread_mutex_lock(&in->lock);
    struct np_task *x = in->first;
    in->first = NULL;
    in->tail = &in->first;
    pthread_mutex_unlock(&in->lock);
    for (struct np_task *next; x; x = next) {
        next = x->next;
        x->done(x, ended);
    }
}

void npi_inbox_fini(struct np_inbox *in) {
    npi_inbox_run(in, true);
    pthread_mutex_destroy(&in->lock);
}
