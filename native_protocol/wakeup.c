#include "native_protocol/wakeup.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "native_protocol/call.h"
#include "native_protocol/conn.h"
#include "native_protocol/durability.h"
#include "native_protocol/workers.h"

enum { ACCEPT_BURST = 64, STOP_US = 5000000 };

/* ---- one wake-up ---- */

static void flush_dirty(struct np_loop *l) {
    while (l->dirty) {
        struct np_conn *c = l->dirty;
        l->dirty = c->dirty_next;
        c->dirty = false;
        npi_conn_flush(c);
    }
}

static void fall_asleep(struct np_loop *l) {
    if (l->is_awake) pthread_mutex_unlock(&l->awake);
    l->is_awake = false;
}

static void on_prepare(struct ev_loop *ev, ev_prepare *w, int revents) {
    (void)revents;
    struct np_loop *l = w->data;
    assert(!l->group.n);
    l->handshakes = 0;
    npi_loop_publish(l);
    l->now_us = 0;
    npi_durability_commit(l->durability);
    flush_dirty(l);
    if (l->durability->unsynced) {
        npi_durability_sync(l->durability);
        npi_loop_publish(l);
        flush_dirty(l);
    }
    if (!TAILQ_EMPTY(&l->leaving)) np_workers_submit(l->workers, &l->leaving);
    fall_asleep(l);
    if (!l->stop.begun) return;
    bool all_answered = true;
    for (const struct np_conn *c = l->conns; c && all_answered; c = c->next)
        all_answered = !c->in_flight && !npi_conn_unsent(c);
    if (all_answered || clock_machine_us(l->o->clock) - l->stop.since_us > STOP_US) ev_break(ev, EVBREAK_ALL);
}

/* Runs after the sleep and before every other callback. */
static void on_check(struct ev_loop *ev, ev_check *w, int revents) {
    (void)ev, (void)revents;
    struct np_loop *l = w->data;
    if (l->is_awake) return;
    pthread_mutex_lock(&l->awake);
    l->is_awake = true;
}

static void on_wake(struct ev_loop *ev, ev_async *w, int revents) {
    (void)ev, (void)revents;
    struct np_loop *l = w->data;
    npi_inbox_run(&l->inbox, false);
    npi_durability_release(l->durability);
    if (atomic_exchange(&l->evicts, false))
        for (struct np_conn *c = l->conns, *next; c; c = next) {
            next = c->next;
            npi_conn_check_evicted(c);
        }
    if (l->audit_waits) {
        l->audit_waits = false; /* the flush of a paused connection checks whether to read again */
        for (struct np_conn *c = l->conns; c; c = c->next)
            if (c->paused) npi_conn_out(c);
    }
    if (atomic_load(&l->stop.requested) && !l->stop.begun) {
        l->stop.begun = true;
        l->stop.since_us = clock_machine_us(l->o->clock);
        for (int i = 0; i < NP_LISTENERS; i++) {
            ev_io_stop(l->ev, &l->listeners[i].io);
            /* closed, so that new clients are refused instead of waiting in the backlog */
            if (l->listeners[i].fd >= 0) close(l->listeners[i].fd);
            l->listeners[i].fd = -1;
        }
        ev_timer_stop(l->ev, &l->watchers.accept_again);
        for (struct np_conn *c = l->conns; c; c = c->next) npi_conn_stop_reading(c);
    }
}

void npi_loop_tick(struct np_loop *l) {
    l->tick_us = clock_machine_us(l->o->clock);
    atomic_store_explicit(&l->seen_us, l->tick_us, memory_order_relaxed);
    for (struct np_conn *c = l->conns, *next; c; c = next) {
        next = c->next;
        npi_conn_tick(c);
    }
}

static void on_tick(struct ev_loop *ev, ev_timer *w, int revents) {
    (void)ev, (void)revents;
    npi_loop_tick(w->data);
}

/* ---- accepting ---- */

static void on_accept_again(struct ev_loop *ev, ev_timer *w, int revents) {
    (void)revents;
    struct np_loop *l = w->data;
    for (int i = 0; i < NP_LISTENERS; i++)
        if (l->listeners[i].fd >= 0) ev_io_start(ev, &l->listeners[i].io);
    ev_timer_stop(ev, w);
}

static void on_acceptable(struct ev_loop *ev, ev_io *w, int revents) {
    (void)revents;
    struct np_listener *s = w->data;
    for (int i = 0; i < ACCEPT_BURST; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            npi_conn_new(s->loop, fd, s->tls);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* level-triggered: without a pause this would spin until a connection closes */
            log_warn("cannot accept a connection: %s", strerror(errno));
            for (int k = 0; k < NP_LISTENERS; k++) ev_io_stop(ev, &s->loop->listeners[k].io);
            ev_timer_again(ev, &s->loop->watchers.accept_again);
        }
        return;
    }
}

/* ---- other threads ---- */

void npi_loop_evict(void *owner) {
    struct np_loop *l = owner;
    atomic_store(&l->evicts, true);
    npi_loop_wake(l);
}

void npi_loop_stop(struct np_loop *l) {
    atomic_store(&l->stop.requested, true);
    npi_loop_wake(l);
}

/* ---- life ---- */

int npi_loop_init(struct np_loop *l, const struct np_options *o, struct np_input_fns input, struct np_bounds *bounds,
                  struct err *e) {
    l->o = o;
    l->input = input;
    l->bounds = bounds;
    l->tick_us = clock_machine_us(o->clock);
    atomic_store_explicit(&l->seen_us, l->tick_us, memory_order_relaxed);
    npi_inbox_init(&l->inbox, on_wake, l);
    pthread_mutex_init(&l->awake, NULL);
    TAILQ_INIT(&l->leaving);
    for (int i = 0; i < NP_LISTENERS; i++) l->listeners[i].fd = -1;
    buf_init(&l->scratch.segment, 0);
    buf_init(&l->scratch.body, 0);
    buf_init(&l->scratch.packed, 0);
    l->ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (!l->ev) return err_set(e, ERR_SERVER, "cannot create an event loop");
    l->scratch.window = malloc(NP_WINDOW);
    if (!l->scratch.window) return err_nomem(e);
    l->durability = npi_durability_new(l, e);
    if (!l->durability) return -1;
    ev_prepare_init(&l->watchers.prepare, on_prepare);
    ev_check_init(&l->watchers.check, on_check);
    ev_set_priority(&l->watchers.check, EV_MAXPRI);
    l->watchers.check.data = l;
    ev_timer_init(&l->watchers.tick, on_tick, 1., 1.);
    ev_timer_init(&l->watchers.accept_again, on_accept_again, 0., 0.1);
    l->watchers.prepare.data = l->watchers.tick.data = l->watchers.accept_again.data = l;
    ev_prepare_start(l->ev, &l->watchers.prepare);
    ev_check_start(l->ev, &l->watchers.check);
    npi_inbox_start(&l->inbox, l->ev);
    ev_timer_start(l->ev, &l->watchers.tick);
    return 0;
}

void *npi_loop_run(void *arg) {
    struct np_loop *l = arg;
    for (int i = 0; i < NP_LISTENERS; i++) {
        struct np_listener *s = &l->listeners[i];
        s->loop = l;
        ev_io_init(&s->io, on_acceptable, s->fd, EV_READ);
        s->io.data = s;
        if (s->fd >= 0) ev_io_start(l->ev, &s->io);
    }
    ev_run(l->ev, 0);
    fall_asleep(l);
    return NULL;
}

void npi_loop_close(struct np_loop *l) {
    npi_loop_publish(l);
    while (l->conns) npi_conn_close(l->conns);
    if (l->durability) npi_durability_close(l->durability);
    npi_inbox_run(&l->inbox, true);
    for (struct np_call *c = l->free_calls.first, *next; c; c = next) {
        next = c->next;
        npi_call_free(c);
    }
    l->free_calls.first = NULL;
    fall_asleep(l); /* for a loop that never ran on a thread, but was driven by a test */
}

void npi_loop_fini(struct np_loop *l) {
    if (l->durability) npi_durability_free(l->durability);
    npi_inbox_fini(&l->inbox);
    for (int i = 0; i < NP_LISTENERS; i++)
        if (l->listeners[i].fd >= 0) close(l->listeners[i].fd);
    npi_buf_pool_fini(&l->bufs);
    buf_fini(&l->scratch.segment);
    buf_fini(&l->scratch.body);
    buf_fini(&l->scratch.packed);
    free(l->scratch.window);
    if (l->ev) ev_loop_destroy(l->ev);
    pthread_mutex_destroy(&l->awake);
}
