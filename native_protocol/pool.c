/* The blocking workers: threads that run what cql will not run on a loop (cold reads, DDL, LWT), each with a batch of its own. */
#include <pthread.h>
#include <stdlib.h>

#include "native_protocol/dispatch.h"
#include "native_protocol/loop.h"

enum { WORKERS = 8, QUEUE_MAX = 16384, QUEUE_BYTES_MAX = 256 << 20, STACK = 1 << 20 };

struct np_pool {
    const struct np_options *o;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct np_call *queue, **tail;
    unsigned n_queued, n_threads;
    size_t n_bytes; /* in the arenas of what is queued */
    bool stopping;
    pthread_t threads[];
};

static struct np_call *next_call(struct np_pool *p) {
    pthread_mutex_lock(&p->lock);
    while (!p->queue && !p->stopping) pthread_cond_wait(&p->wake, &p->lock);
    struct np_call *c = p->queue;
    if (c) {
        p->queue = c->next;
        if (!p->queue) p->tail = &p->queue;
        p->n_queued--;
        p->n_bytes -= c->arena.used;
    }
    pthread_mutex_unlock(&p->lock);
    return c;
}

static void run_call(struct np_call *c, struct eng_batch *batch) {
    if (c->outcome == CQL_AGAIN) npi_call_more(c, batch);
    else npi_call_run(c, batch, true);
    if (c->outcome == CQL_AGAIN) return;
    if (c->outcome == CQL_OFFLOAD) {
        c->outcome = CQL_FAILED;
        err_set(&c->err, ERR_SERVER, "The request could not run");
    }
    c->seq = c->r.commit_seq;
    uint64_t seq = 0;
    if (eng_batch_empty(batch)) return;
    if (eng_batch_commit(batch, &seq, &c->err)) c->outcome = CQL_FAILED;
    if (seq > c->seq) c->seq = seq;
}

/* To the back of the queue: others that wait are as worthy. */
static void put_back(struct np_pool *p, struct np_call *c) {
    c->next = NULL;
    pthread_mutex_lock(&p->lock);
    *p->tail = c;
    p->tail = &c->next;
    p->n_queued++;
    p->n_bytes += c->arena.used;
    pthread_mutex_unlock(&p->lock);
}

static void fail_call(struct np_call *c, const struct err *why) {
    if (c->outcome == CQL_AGAIN) np_reply_cancel(&c->reply);
    else np_reply_begin(&c->reply, &c->out, c->env.version, c->env.stream, NP_ERROR, false);
    c->err = *why;
    c->outcome = CQL_FAILED;
}

static void *work(void *arg) {
    struct np_pool *p = arg;
    struct eng_batch *batch = eng_batch_new(p->o->eng);
    for (struct np_call *c; (c = next_call(p));) {
        struct err e = {0};
        if (atomic_load(&c->conn->gone)) err_set(&e, ERR_SERVER, "The client is gone");
        else if (!batch) err_nomem(&e);
        if (e.set) fail_call(c, &e);
        else run_call(c, batch);
        if (c->outcome == CQL_AGAIN) put_back(p, c);
        else npi_loop_give_call(c->conn->loop, c);
    }
    if (batch) eng_batch_free(batch);
    return NULL;
}

struct np_pool *npi_pool_new(const struct np_options *o, struct err *e) {
    unsigned n = o->workers ? o->workers : WORKERS;
    struct np_pool *p = calloc(1, sizeof(*p) + n * sizeof(p->threads[0]));
    if (!p) return err_nomem(e), NULL;
    p->o = o;
    p->tail = &p->queue;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    while (p->n_threads < n && !pthread_create(&p->threads[p->n_threads], &attr, work, p)) p->n_threads++;
    pthread_attr_destroy(&attr);
    if (p->n_threads == n) return p;
    err_set(e, ERR_SERVER, "cannot start the blocking workers");
    npi_pool_stop(p);
    npi_pool_free(p);
    return NULL;
}

void npi_pool_stop(struct np_pool *p) {
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    while (p->n_threads) pthread_join(p->threads[--p->n_threads], NULL);
}

void npi_pool_free(struct np_pool *p) {
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

int npi_pool_submit(struct np_pool *p, struct np_call *c) {
    c->next = NULL;
    pthread_mutex_lock(&p->lock);
    bool full = p->n_queued >= QUEUE_MAX || p->n_bytes + c->arena.used > QUEUE_BYTES_MAX || p->stopping;
    if (!full) {
        *p->tail = c;
        p->tail = &c->next;
        p->n_queued++;
        p->n_bytes += c->arena.used;
        pthread_cond_signal(&p->wake);
    }
    pthread_mutex_unlock(&p->lock);
    return full ? -1 : 0;
}
