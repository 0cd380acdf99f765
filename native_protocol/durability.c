#include "native_protocol/durability.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/array.h"
#include "native_protocol/conn.h"
#include "native_protocol/loop.h"
#include "system_schema/system_tables/trace_store.h"

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

static struct np_held *held_take(struct np_durability *d) {
    struct np_held *h = d->unused;
    if (!h) return calloc(1, sizeof(*h));
    d->unused = NULL;
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
    if (array_room(&h->acks, h->n_acks, &h->cap_acks, sizeof(*h->acks))) return -1;
    h->acks[h->n_acks++] = (struct np_ack){
        .conn = c, .at = h->bytes.n - n, .n = n, .stream = env->stream, .version = env->version, .account = *account};
    npi_conn_ref(c);
    c->in_flight++;
    np_metric_add(&c->loop->metrics, NP_METRIC_IN_FLIGHT, 1);
    return 0;
}

int npi_hold(struct np_durability *d, struct np_conn *c, struct buf *from, size_t n, const struct np_envelope *env,
             const struct np_account *account) {
    if (!d->now) {
        d->now = held_take(d);
        if (!d->now) return -1;
        npi_buf_pool_take(&d->loop->bufs, &d->now->bytes);
    }
    struct np_held *h = d->now;
    size_t start = h->bytes.n;
    buf_put(&h->bytes, from->p + from->n - n, n);
    if (buf_failed(&h->bytes) || held_add(h, c, n, env, account)) {
        h->bytes.n = start;
        h->bytes.failed = false;
        return -1;
    }
    from->n -= n;
    if (eng_batch_bytes(d->loop->batch) > NP_BATCH_BYTES_MAX) npi_durability_commit(d);
    return 0;
}

static void held_insert(struct np_durability *d, struct np_held *h) {
    h->next = NULL;
    if (!d->held) d->held = d->tail = h;
    else if (d->tail->seq <= h->seq) d->tail = d->tail->next = h;
    else {
        struct np_held **at = &d->held;
        while ((*at)->seq <= h->seq) at = &(*at)->next;
        h->next = *at;
        *at = h;
    }
}

/* Sends and accounts the outcome, which is known now; it is accounted even when the connection has
 * closed. */
static void ack_send(struct np_held *h, struct np_ack *a, const struct err *e, int64_t now_us) {
    struct np_conn *c = a->conn;
    if (c->state == NP_CONN_CLOSED) np_reply_drop(&h->rest);
    else if (e) npi_send_error(c, a->version, a->stream, e);
    else if (h->rest.share) {
        assert(h->n_acks == 1); /* the block has only this answer */
        npi_conn_append(c, &h->bytes, &h->rest);
    }
    else buf_put(npi_conn_out(c), h->bytes.p + a->at, a->n);
    np_account(&c->loop->metrics, &a->account, e);
    np_metric_latency(&c->loop->metrics, a->account.kind, now_us - a->account.begun_us, 1);
    const struct np_options *o = c->loop->o;
    if (!e && a->account.trace)
        trace_store_more(o->traces, a->account.trace, clock_machine_us(o->clock), "The log is on disk: acknowledged",
                         "event-loop");
    if (e && o->ledger)
        ledger_reverse(o->ledger, c->loop->number, now_us, &a->account.posting, &c->account);
    if (e && o->write_failed.fn) o->write_failed.fn(o->write_failed.arg, &a->account.posting, a->account.took);
    ledger_posting_fini(&a->account.posting);
    npi_conn_answered(c);
    npi_conn_unref(c);
}

/* Sends the answers of the block; with e set, the error in their place. */
static void held_release(struct np_durability *d, struct np_held *h, const struct err *e) {
    int64_t now_us = clock_wall_us(d->loop->o->clock);
    for (size_t i = 0; i < h->n_acks; i++) ack_send(h, &h->acks[i], e, now_us);
    enum { ACKS_KEPT = 4096 };
    if (d->unused || h->cap_acks > ACKS_KEPT) {
        held_free(h);
        return;
    }
    np_reply_drop(&h->rest);
    h->rest = (struct np_reply){0};
    npi_buf_pool_give(&d->loop->bufs, &h->bytes);
    h->n_acks = 0;
    d->unused = h;
}

void npi_durability_release(struct np_durability *d) {
    struct err e = {0};
    while (d->held) {
        uint64_t seq = eng_durable_seq(d->loop->o->eng);
        if (d->held->seq > seq && eng_failed(d->loop->o->eng)) {
            err_set(&e, ERR_SERVER, "The storage failed to sync; no write is acknowledged any more");
        } else if (d->held->seq > seq) {
            atomic_store(&d->waits, true);
            /* else it became durable before the flag was set, and no thread wakes this loop for
             * it */
            if (!eng_failed(d->loop->o->eng) && d->held->seq > eng_durable_seq(d->loop->o->eng)) return;
            continue;
        }
        struct np_held *h = d->held;
        d->held = h->next;
        if (!d->held) d->tail = NULL;
        held_release(d, h, e.set ? &e : NULL);
    }
}

static void want_durable(struct np_durability *d, uint64_t seq, size_t n) {
    atomic_store(&d->waits, true);
    eng_want_durable(d->loop->o->eng, seq, (uint32_t)n);
    /* another loop's sync may have made it durable before the flag was set */
    if (eng_failed(d->loop->o->eng) || eng_durable_seq(d->loop->o->eng) >= seq) npi_loop_wake(d->loop);
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
        if (!c->in_flight && l->tick_us - c->received_us < QUIET_US) return false;
        writes += c->in_flight;
        if (writes > OWN_WRITES_MAX) return false;
    }
    return true;
}

/* Another thread syncs, or no answer waits: the loop does not wait for more writes any longer. */
static void sync_requested(struct np_durability *d) {
    d->unsynced = false;
    ev_idle_stop(d->loop->ev, &d->quiet);
}

/* Runs before the loop sleeps: syncs the gathered writes, or waits for more of them. */
void npi_durability_sync(struct np_durability *d) {
    npi_durability_release(d); /* sends what is synced already; it sets waits, so a later sync wakes the loop */
    if (!d->held) {
        sync_requested(d);
        return;
    }
    if (eng_gathers(d->loop->o->eng)) {
        ev_idle_start(d->loop->ev, &d->quiet);
        return;
    }
    sync_requested(d);
    atomic_store(&d->waits, false);
    if (!all_wait(d->loop) || !eng_sync_here(d->loop->o->eng)) eng_wake_sync(d->loop->o->eng);
    npi_durability_release(d);
}

static void on_quiet(struct ev_loop *ev, ev_idle *w, int revents) {
    (void)ev, (void)revents;
    struct np_durability *d = w->data;
    sync_requested(d);
    eng_wake_sync(d->loop->o->eng);
    npi_durability_release(d);
}

void npi_durability_moved(struct np_durability *d) {
    if (atomic_exchange(&d->waits, false)) npi_loop_wake(d->loop);
}

int npi_hold_call(struct np_durability *d, struct np_call *call, const struct np_account *account) {
    struct np_held *h = held_take(d);
    if (!h) return -1;
    h->bytes = call->out;
    if (held_add(h, call->conn, h->bytes.n, &call->env, account)) {
        h->bytes = (struct buf){0};
        held_free(h);
        return -1;
    }
    buf_init(&call->out, 0);
    np_reply_move(&h->rest, &call->reply);
    h->seq = call->r.answer.commit_seq;
    held_insert(d, h);
    want_durable(d, h->seq, 1);
    return 0;
}

/* The batch is committed, or has failed. */
static void committed(struct np_durability *d, struct np_held *h, int rc, uint64_t seq, const struct err *e) {
    np_metric_add(&d->loop->metrics, NP_METRIC_COMMITS, 1);
    if (!h) { /* no answer waits for this commit, but other requests read its rows already */
        if (!rc) eng_want_durable(d->loop->o->eng, seq, 0);
        return;
    }
    if (rc) {
        held_release(d, h, e);
        return;
    }
    h->seq = seq;
    held_insert(d, h);
    if (eng_durable_seq(d->loop->o->eng) >= seq) npi_durability_release(d);
    else if (h->n_acks > OWN_WRITES_MAX) want_durable(d, seq, h->n_acks);
    else { /* while further writes are expected, neither this loop nor the commit thread syncs these few */
        eng_register_durable(d->loop->o->eng, seq, (uint32_t)h->n_acks);
        d->unsynced = true;
    }
}

static void rows_are_free(void *arg) { npi_loop_wake(arg); }

static struct eng_batch *batch_new(struct np_loop *l) {
    struct eng_batch *b = eng_batch_new(l->o->eng);
    if (b) eng_batch_on_rows_free(b, rows_are_free, l);
    return b;
}

static void drop_held(struct np_held *h) {
    for (struct np_held *next; h; h = next) {
        next = h->next;
        for (size_t i = 0; i < h->n_acks; i++) {
            ledger_posting_fini(&h->acks[i].account.posting);
            npi_conn_unref(h->acks[i].conn);
        }
        held_free(h);
    }
}

/* A batch that is with the committer, and its answers. */
struct deferred_batch {
    struct np_deferred commit; /* first */
    struct np_durability *durability;
    struct np_held *held;
    size_t bytes; /* of the batch and the answers */
};

/* The batch has come back: its answers wait until it is durable. */
static void deferred_done(struct np_task *x, bool ended) {
    struct deferred_batch *b = (struct deferred_batch *)x;
    b->durability->loop->deferred_bytes -= b->bytes;
    if (ended) drop_held(b->held);
    else committed(b->durability, b->held, b->commit.rc, b->commit.seq, &b->commit.err);
    eng_batch_free(b->commit.batch);
    free(b);
}

/* Hands the batch to the committer, which waits for the store; the loop continues with a new
 * batch. */
static int defer_commit(struct np_durability *d, struct np_held *h, struct err *e) {
    assert(d->loop->committer);
    struct deferred_batch *b = calloc(1, sizeof(*b));
    struct eng_batch *fresh = b ? batch_new(d->loop) : NULL;
    if (!fresh) {
        free(b);
        eng_batch_drop(d->loop->batch);
        return err_nomem(e);
    }
    b->commit = (struct np_deferred){.task.done = deferred_done, .inbox = &d->loop->inbox, .batch = d->loop->batch};
    b->durability = d;
    b->held = h;
    b->bytes = eng_batch_bytes(d->loop->batch) + (h ? h->bytes.n : 0);
    d->loop->batch = fresh;
    d->loop->deferred_bytes += b->bytes;
    npi_committer_submit(d->loop->committer, &b->commit);
    return 0;
}

void npi_durability_commit(struct np_durability *d) {
    struct np_held *h = d->now;
    struct err e = {0};
    uint64_t seq = 0;
    if (!h && eng_batch_empty(d->loop->batch)) return;
    bool behind = d->loop->committer && npi_committer_busy(d->loop->committer);
    int rc = behind ? ENG_BUSY : eng_batch_try_commit(d->loop->batch, &seq, &e);
    if (rc == ENG_ROWS_HELD) return; /* the rest is committed at a later wake-up (rows_are_free) */
    d->now = NULL;
    if (rc != ENG_BUSY) committed(d, h, rc, seq, &e);
    else if (defer_commit(d, h, &e)) committed(d, h, -1, 0, &e);
}

/* ---- life ---- */

struct np_durability *npi_durability_new(struct np_loop *l, struct err *e) {
    struct np_durability *d = calloc(1, sizeof(*d));
    if (d) {
        d->loop = l;
        ev_idle_init(&d->quiet, on_quiet);
        d->quiet.data = d;
        l->batch = batch_new(l);
    }
    if (d && l->batch) return d;
    free(d);
    return err_null(err_nomem(e));
}

void npi_durability_close(struct np_durability *d) {
    drop_held(d->held);
    drop_held(d->now);
    d->held = d->now = NULL;
    if (d->loop->batch) eng_batch_free(d->loop->batch);
    d->loop->batch = NULL;
}

void npi_durability_free(struct np_durability *d) {
    held_free(d->unused);
    free(d);
}
