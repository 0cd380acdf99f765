#include "native_protocol/loop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "native_protocol/committer.h"
#include "native_protocol/workers.h"

enum { ACCEPT_BURST = 64, STOP_US = 5000000 };

/* ---- spare calls ---- */

struct np_call *npi_call_take(struct np_loop *l) {
    struct np_call *c = l->calls;
    if (c) {
        l->calls = c->next;
        l->n_calls--;
        return c;
    }
    c = calloc(1, sizeof(*c));
    if (!c) return NULL;
    c->share.pool = &l->bounds->work;
    arena_init_in(&c->arena, &c->share, NP_CALL_ARENA_CHUNK, NP_CALL_ARENA_MAX);
    buf_init(&c->out, 0);
    return c;
}

static void call_free(struct np_call *c) {
    arena_fini(&c->arena);
    buf_fini(&c->out);
    free(c);
}

void npi_call_give(struct np_loop *l, struct np_call *c) {
    c->conn = NULL;
    c->offloaded = c->crowded_out = false;
    c->share.crowded = false;
    c->n_parts = 0;
    c->seq = 0;
    np_reply_drop(&c->reply);
    npi_spare_give(&l->spare, &c->out);
    if (l->n_calls >= NP_SPARE_CALLS) {
        call_free(c);
        return;
    }
    arena_reset(&c->arena);
    c->next = l->calls;
    l->calls = c;
    l->n_calls++;
}

/* ---- answers that wait for durability ---- */

static struct np_held *held_take(struct np_loop *l) {
    struct np_held *h = l->held_spare;
    if (!h) return calloc(1, sizeof(*h));
    l->held_spare = NULL;
    h->next = NULL;
    return h;
}

static void held_free(struct np_held *h) {
    if (!h) return;
    np_reply_drop(&h->rest);
    buf_fini(&h->bytes);
    free(h->acks);
    free(h);
}

static int held_add(struct np_held *h, struct np_conn *c, size_t n, const struct np_envelope *env,
                    const struct np_account *account) {
    if (h->n_acks == h->cap_acks) {
        size_t cap = h->cap_acks ? h->cap_acks * 2 : 64;
        struct np_ack *acks = realloc(h->acks, cap * sizeof(*acks));
        if (!acks) return -1;
        h->acks = acks;
        h->cap_acks = cap;
    }
    h->acks[h->n_acks++] = (struct np_ack){
        .conn = c, .at = h->bytes.n - n, .n = n, .stream = env->stream, .version = env->version, .account = *account};
    npi_conn_ref(c);
    c->in_flight++;
    np_metric_add(&c->loop->metrics, NP_METRIC_IN_FLIGHT, 1);
    return 0;
}

static void commit(struct np_loop *l);

int npi_hold(struct np_loop *l, struct np_conn *c, struct buf *from, size_t n, const struct np_envelope *env,
             const struct np_account *account) {
    if (!l->held_now) {
        l->held_now = held_take(l);
        if (!l->held_now) return -1;
        npi_spare_take(&l->spare, &l->held_now->bytes);
    }
    struct np_held *h = l->held_now;
    size_t start = h->bytes.n;
    buf_put(&h->bytes, from->p + from->n - n, n);
    if (buf_failed(&h->bytes) || held_add(h, c, n, env, account)) {
        h->bytes.n = start;
        h->bytes.failed = false;
        return -1;
    }
    from->n -= n;
    if (eng_batch_bytes(l->batch) > NP_BATCH_BYTES_MAX) commit(l);
    return 0;
}

static void held_insert(struct np_loop *l, struct np_held *h) {
    h->next = NULL;
    if (!l->held) l->held = l->held_tail = h;
    else if (l->held_tail->seq <= h->seq) l->held_tail = l->held_tail->next = h;
    else {
        struct np_held **at = &l->held;
        while ((*at)->seq <= h->seq) at = &(*at)->next;
        h->next = *at;
        *at = h;
    }
}

/* Sends and accounts the outcome, which is known now; it is accounted even when the connection has
 * closed. */
static void ack_send(struct np_held *h, struct np_ack *a, const struct err *e) {
    struct np_conn *c = a->conn;
    if (c->state == NP_CONN_CLOSED) np_reply_drop(&h->rest);
    else if (e) npi_send_error(c, a->version, a->stream, e);
    else if (h->rest.share) {
        assert(h->n_acks == 1); /* the block has only this answer */
        npi_conn_append(c, &h->bytes, &h->rest);
    }
    else buf_put(npi_conn_out(c), h->bytes.p + a->at, a->n);
    np_account(&c->loop->metrics, &a->account, e);
    const struct np_options *o = c->loop->o;
    if (!e && a->account.trace)
        catalog_trace_more(o->catalog, a->account.trace, clock_machine_us(o->clock), "The log is on disk: acknowledged",
                           "event-loop");
    if (e && o->ledger)
        ledger_take_back(o->ledger, c->loop->number, clock_wall_us(o->clock), &a->account.claim, &c->account,
                         c->state != NP_CONN_CLOSED);
    if (e && o->write_failed.fn) o->write_failed.fn(o->write_failed.arg, &a->account.claim, a->account.took);
    ledger_claim_fini(&a->account.claim);
    npi_conn_answered(c);
    npi_conn_unref(c);
}

/* Sends the answers of the block; with e set, the error in their place. */
static void held_release(struct np_loop *l, struct np_held *h, const struct err *e) {
    for (size_t i = 0; i < h->n_acks; i++) ack_send(h, &h->acks[i], e);
    enum { ACKS_KEPT = 4096 };
    if (l->held_spare || h->cap_acks > ACKS_KEPT) {
        held_free(h);
        return;
    }
    np_reply_drop(&h->rest);
    h->rest = (struct np_reply){0};
    npi_spare_give(&l->spare, &h->bytes);
    h->n_acks = 0;
    l->held_spare = h;
}

static void release_durable(struct np_loop *l) {
    struct err e = {0};
    while (l->held) {
        uint64_t seq = eng_durable_seq(l->o->eng);
        if (l->held->seq > seq && eng_failed(l->o->eng)) {
            err_set(&e, ERR_SERVER, "The storage failed to sync; no write is acknowledged any more");
        } else if (l->held->seq > seq) {
            atomic_store(&l->waits, true);
            /* else it became durable before the flag was set, and no thread wakes this loop for
             * it */
            if (!eng_failed(l->o->eng) && l->held->seq > eng_durable_seq(l->o->eng)) return;
            continue;
        }
        struct np_held *h = l->held;
        l->held = h->next;
        if (!l->held) l->held_tail = NULL;
        held_release(l, h, e.set ? &e : NULL);
    }
}

static void want_durable(struct np_loop *l, uint64_t seq, size_t n) {
    atomic_store(&l->waits, true);
    eng_want_durable(l->o->eng, seq, (uint32_t)n);
    /* another loop's sync may have made it durable before the flag was set */
    if (eng_failed(l->o->eng) || eng_durable_seq(l->o->eng) >= seq) npi_loop_wake(l);
}

/* ---- a sync by the loop ---- */

enum { OWN_WRITES_MAX = 16 };

/* Whether every connection that sent bytes lately waits for a sync. Then no client waits for the
 * loop while it syncs. */
static bool all_wait(const struct np_loop *l) {
    enum { CONNS_MAX = 64, QUIET_US = 2000000 };
    unsigned conns = 0, writes = 0;
    if (!TAILQ_EMPTY(&l->leaving)) return false;
    for (const struct np_conn *c = l->conns; c; c = c->next) {
        if (++conns > CONNS_MAX || c->offloaded) return false;
        if (!c->in_flight && l->tick_us - c->heard_us < QUIET_US) return false;
        writes += c->in_flight;
        if (writes > OWN_WRITES_MAX) return false;
    }
    return true;
}

static void owe_nothing(struct np_loop *l) {
    l->owes = false;
    ev_idle_stop(l->ev, &l->quiet);
}

/* Runs before the loop sleeps: syncs the gathered writes, or waits for more of them. */
static void pay(struct np_loop *l) {
    release_durable(l); /* sends what is synced already; it sets waits, so a later sync wakes the loop */
    if (!l->held) {
        owe_nothing(l);
        return;
    }
    if (eng_gathers(l->o->eng)) {
        ev_idle_start(l->ev, &l->quiet);
        return;
    }
    owe_nothing(l);
    atomic_store(&l->waits, false);
    if (!all_wait(l) || !eng_sync_here(l->o->eng)) eng_wake_sync(l->o->eng);
    release_durable(l);
}

static void on_quiet(struct ev_loop *ev, ev_idle *w, int revents) {
    (void)ev, (void)revents;
    struct np_loop *l = w->data;
    owe_nothing(l);
    eng_wake_sync(l->o->eng);
    release_durable(l);
}

void npi_loop_durable(struct np_loop *l) {
    if (atomic_exchange(&l->waits, false)) npi_loop_wake(l);
}

int npi_hold_call(struct np_loop *l, struct np_call *call) {
    struct np_held *h = held_take(l);
    if (!h) return -1;
    h->bytes = call->out;
    if (held_add(h, call->conn, h->bytes.n, &call->env, &call->account)) {
        h->bytes = (struct buf){0};
        held_free(h);
        return -1;
    }
    buf_init(&call->out, 0);
    np_reply_move(&h->rest, &call->reply);
    h->seq = call->seq;
    held_insert(l, h);
    want_durable(l, h->seq, 1);
    return 0;
}

/* The batch is committed, or has failed. */
static void committed(struct np_loop *l, struct np_held *h, int rc, uint64_t seq, const struct err *e) {
    np_metric_add(&l->metrics, NP_METRIC_COMMITS, 1);
    if (!h) { /* no answer waits for this commit, but other requests read its rows already */
        if (!rc) eng_want_durable(l->o->eng, seq, 0);
        return;
    }
    if (rc) {
        held_release(l, h, e);
        return;
    }
    h->seq = seq;
    held_insert(l, h);
    if (eng_durable_seq(l->o->eng) >= seq) release_durable(l);
    else if (h->n_acks > OWN_WRITES_MAX) want_durable(l, seq, h->n_acks);
    else { /* while further writes are expected, neither this loop nor the commit thread syncs these few */
        eng_ask_durable(l->o->eng, seq, (uint32_t)h->n_acks);
        l->owes = true;
    }
}

static void rows_are_free(void *arg) { npi_loop_wake(arg); }

static struct eng_batch *batch_new(struct np_loop *l) {
    struct eng_batch *b = eng_batch_new(l->o->eng);
    if (b) eng_batch_on_met(b, rows_are_free, l);
    return b;
}

/* Hands the batch to the committer, which waits for the store; the loop continues with a new
 * batch. */
static int commit_late(struct np_loop *l, struct np_held *h, struct err *e) {
    assert(l->committer);
    struct np_late *late = calloc(1, sizeof(*late));
    struct eng_batch *fresh = late ? batch_new(l) : NULL;
    if (!fresh) {
        free(late);
        eng_batch_drop(l->batch);
        return err_nomem(e);
    }
    late->loop = l;
    late->batch = l->batch;
    late->held = h;
    late->bytes = eng_batch_bytes(l->batch) + (h ? h->bytes.n : 0);
    l->batch = fresh;
    l->late_bytes += late->bytes;
    npi_committer_submit(l->committer, late);
    return 0;
}

static void commit(struct np_loop *l) {
    struct np_held *h = l->held_now;
    struct err e = {0};
    uint64_t seq = 0;
    if (!h && eng_batch_empty(l->batch)) return;
    bool late = l->committer && npi_committer_busy(l->committer);
    int rc = late ? ENG_BUSY : eng_batch_try_commit(l->batch, &seq, &e);
    if (rc == ENG_MET) return; /* the rest is committed at a later wake-up (rows_are_free) */
    l->held_now = NULL;
    if (rc != ENG_BUSY) committed(l, h, rc, seq, &e);
    else if (commit_late(l, h, &e)) committed(l, h, -1, 0, &e);
}

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
    l->now_us = 0;
    l->handshakes = 0;
    npi_loop_settle(l);
    commit(l);
    flush_dirty(l);
    if (l->owes) {
        pay(l);
        npi_loop_settle(l);
        flush_dirty(l);
    }
    if (!TAILQ_EMPTY(&l->leaving)) np_workers_submit(l->workers, &l->leaving);
    fall_asleep(l);
    if (!l->stopping) return;
    bool all_answered = true;
    for (const struct np_conn *c = l->conns; c && all_answered; c = c->next)
        all_answered = !c->in_flight && !npi_conn_unsent(c);
    if (all_answered || clock_machine_us(l->o->clock) - l->stop_us > STOP_US) ev_break(ev, EVBREAK_ALL);
}

/* Runs after the sleep and before every other callback. */
static void on_check(struct ev_loop *ev, ev_check *w, int revents) {
    (void)ev, (void)revents;
    struct np_loop *l = w->data;
    if (l->is_awake) return;
    pthread_mutex_lock(&l->awake);
    l->is_awake = true;
}

static void begin_stop(struct np_loop *l) {
    l->stopping = true;
    l->stop_us = clock_machine_us(l->o->clock);
    for (int i = 0; i < NP_LISTENERS; i++) {
        ev_io_stop(l->ev, &l->listeners[i].io);
        /* closed, so that new clients are refused instead of waiting in the backlog */
        if (l->listeners[i].fd >= 0) close(l->listeners[i].fd);
        l->listeners[i].fd = -1;
    }
    ev_timer_stop(l->ev, &l->accept_again);
    for (struct np_conn *c = l->conns; c; c = c->next) npi_conn_stop_reading(c);
}

static void run_errands(struct np_errand *x) {
    for (struct np_errand *next; x; x = next) {
        next = x->next;
        x->done(x);
    }
}

static void on_wake(struct ev_loop *ev, ev_async *w, int revents) {
    (void)ev, (void)revents;
    struct np_loop *l = w->data;
    pthread_mutex_lock(&l->inbox_lock);
    struct np_call *calls = l->inbox_calls;
    struct np_event_note *events = l->inbox_events;
    struct np_late *lates = l->inbox_late;
    struct np_errand *errands = l->inbox_errands;
    l->inbox_calls = NULL;
    l->inbox_calls_tail = &l->inbox_calls;
    l->inbox_events = NULL;
    l->inbox_events_tail = &l->inbox_events;
    l->inbox_late = NULL;
    l->inbox_late_tail = &l->inbox_late;
    l->inbox_errands = NULL;
    l->inbox_errands_tail = &l->inbox_errands;
    bool stop = l->stop_asked;
    pthread_mutex_unlock(&l->inbox_lock);
    while (calls) {
        struct np_call *c = calls;
        calls = c->next;
        l->ops->finish(c);
    }
    while (lates) {
        struct np_late *late = lates;
        lates = late->next;
        l->late_bytes -= late->bytes;
        committed(l, late->held, late->rc, late->seq, &late->err);
        eng_batch_free(late->batch);
        free(late);
    }
    run_errands(errands);
    while (events) {
        struct np_event_note *n = events;
        events = n->next;
        for (struct np_conn *c = l->conns; c; c = c->next)
            if (c->state == NP_CONN_READY && c->events & NP_EVENT_SCHEMA && npi_conn_unsent(c) < NP_OUT_MAX)
                np_event_schema(npi_conn_out(c), c->version, &n->change);
        free(n);
    }
    release_durable(l);
    if (atomic_exchange(&l->evicts, false))
        for (struct np_conn *c = l->conns, *next; c; c = next) {
            next = c->next;
            npi_conn_check_evicted(c);
        }
    if (stop && !l->stopping) begin_stop(l);
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
            ev_timer_again(ev, &s->loop->accept_again);
        }
        return;
    }
}

/* ---- other threads ---- */

void npi_loop_wake(struct np_loop *l) { ev_async_send(l->ev, &l->wake); }

void npi_loop_give_call(struct np_loop *l, struct np_call *c) {
    np_reply_made(&c->reply);
    c->next = NULL;
    pthread_mutex_lock(&l->inbox_lock);
    *l->inbox_calls_tail = c;
    l->inbox_calls_tail = &c->next;
    pthread_mutex_unlock(&l->inbox_lock);
    npi_loop_wake(l);
}

void npi_loop_give_late(struct np_loop *l, struct np_late *late) {
    late->next = NULL;
    pthread_mutex_lock(&l->inbox_lock);
    *l->inbox_late_tail = late;
    l->inbox_late_tail = &late->next;
    pthread_mutex_unlock(&l->inbox_lock);
    npi_loop_wake(l);
}

void npi_loop_give_errand(struct np_loop *l, struct np_errand *x) {
    x->next = NULL;
    pthread_mutex_lock(&l->inbox_lock);
    *l->inbox_errands_tail = x;
    l->inbox_errands_tail = &x->next;
    pthread_mutex_unlock(&l->inbox_lock);
    npi_loop_wake(l);
}

void npi_loop_give_event(struct np_loop *l, const struct schema_change *change) {
    struct np_event_note *n = malloc(sizeof(*n));
    if (!n) return;
    *n = (struct np_event_note){.change = *change};
    pthread_mutex_lock(&l->inbox_lock);
    *l->inbox_events_tail = n;
    l->inbox_events_tail = &n->next;
    pthread_mutex_unlock(&l->inbox_lock);
    npi_loop_wake(l);
}

void npi_loop_evict(void *owner) {
    struct np_loop *l = owner;
    atomic_store(&l->evicts, true);
    npi_loop_wake(l);
}

void npi_loop_stop(struct np_loop *l) {
    pthread_mutex_lock(&l->inbox_lock);
    l->stop_asked = true;
    pthread_mutex_unlock(&l->inbox_lock);
    npi_loop_wake(l);
}

/* ---- life ---- */

int npi_loop_init(struct np_loop *l, const struct np_options *o, const struct np_loop_ops *ops,
                  struct np_bounds *bounds, struct err *e) {
    l->o = o;
    l->ops = ops;
    l->bounds = bounds;
    l->tick_us = clock_machine_us(o->clock);
    atomic_store_explicit(&l->seen_us, l->tick_us, memory_order_relaxed);
    pthread_mutex_init(&l->inbox_lock, NULL);
    pthread_mutex_init(&l->awake, NULL);
    TAILQ_INIT(&l->leaving);
    l->inbox_calls_tail = &l->inbox_calls;
    l->inbox_events_tail = &l->inbox_events;
    l->inbox_late_tail = &l->inbox_late;
    l->inbox_errands_tail = &l->inbox_errands;
    for (int i = 0; i < NP_LISTENERS; i++) l->listeners[i].fd = -1;
    buf_init(&l->segment, 0);
    buf_init(&l->body, 0);
    buf_init(&l->packed, 0);
    l->ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (!l->ev) return err_set(e, ERR_SERVER, "cannot create an event loop");
    l->window = malloc(NP_WINDOW);
    l->batch = batch_new(l);
    if (!l->window || !l->batch) return err_nomem(e);
    ev_prepare_init(&l->prepare, on_prepare);
    ev_check_init(&l->check, on_check);
    ev_set_priority(&l->check, EV_MAXPRI);
    l->check.data = l;
    ev_async_init(&l->wake, on_wake);
    ev_idle_init(&l->quiet, on_quiet);
    ev_timer_init(&l->tick, on_tick, 1., 1.);
    ev_timer_init(&l->accept_again, on_accept_again, 0., 0.1);
    l->prepare.data = l->wake.data = l->tick.data = l->accept_again.data = l->quiet.data = l;
    ev_prepare_start(l->ev, &l->prepare);
    ev_check_start(l->ev, &l->check);
    ev_async_start(l->ev, &l->wake);
    ev_timer_start(l->ev, &l->tick);
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

static void drop_held(struct np_held *h) {
    for (struct np_held *next; h; h = next) {
        next = h->next;
        for (size_t i = 0; i < h->n_acks; i++) {
            ledger_claim_fini(&h->acks[i].account.claim);
            npi_conn_unref(h->acks[i].conn);
        }
        held_free(h);
    }
}

void npi_loop_close(struct np_loop *l) {
    npi_loop_settle(l);
    while (l->conns) npi_conn_close(l->conns);
    drop_held(l->held);
    drop_held(l->held_now);
    for (struct np_late *late = l->inbox_late, *next; late; late = next) {
        next = late->next;
        drop_held(late->held);
        eng_batch_free(late->batch);
        free(late);
    }
    run_errands(l->inbox_errands);
    for (struct np_call *c = l->inbox_calls, *next; c; c = next) {
        next = c->next;
        l->ops->forget(c);
        np_reply_drop(&c->reply);
        npi_conn_unref(c->conn);
        call_free(c);
    }
    for (struct np_call *c = l->calls, *next; c; c = next) {
        next = c->next;
        call_free(c);
    }
    if (l->batch) eng_batch_free(l->batch);
    l->held = l->held_now = NULL;
    l->inbox_late = NULL;
    l->inbox_errands = NULL;
    l->inbox_calls = l->calls = NULL;
    l->batch = NULL;
    fall_asleep(l); /* for a loop that never ran on a thread, but was driven by a test */
}

void npi_loop_fini(struct np_loop *l) {
    held_free(l->held_spare);
    for (struct np_event_note *n = l->inbox_events, *next; n; n = next) {
        next = n->next;
        free(n);
    }
    for (int i = 0; i < NP_LISTENERS; i++)
        if (l->listeners[i].fd >= 0) close(l->listeners[i].fd);
    npi_spare_fini(&l->spare);
    buf_fini(&l->segment);
    buf_fini(&l->body);
    buf_fini(&l->packed);
    free(l->window);
    if (l->ev) ev_loop_destroy(l->ev);
    pthread_mutex_destroy(&l->inbox_lock);
    pthread_mutex_destroy(&l->awake);
}
