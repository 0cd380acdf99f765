#include "native_protocol/workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE_MAX = 16384, STACK = 1 << 20 };
enum { SCAN_NICE = 10, KEEP_AT_MOST_EVERY_US = 10000 };

struct worker {
    struct np_workers *workers;
    enum cql_work_class class;
    struct eng_batch *batch;
    pthread_t thread;
};

struct np_workers {
    struct np_workers_options o;
    pthread_mutex_t lock;
    pthread_cond_t wake[WORK_CLASSES], keep;
    struct np_queue queue;
    int64_t look_us; /* when the keeper looks next */
    bool stopping, no_waiting;
    bool has_keeper;
    _Atomic unsigned running; /* parts */
    pthread_t keeper;
    unsigned n_threads;
    struct worker threads[];
};

static void end_all(struct np_workers *p, struct np_works *list, enum np_work_end why) {
    for (struct np_work *w; (w = TAILQ_FIRST(list));) {
        TAILQ_REMOVE(list, w, entry);
        p->o.ops->ended(w, why);
    }
}

/* ---- into the queue ---- */

static void look_by(struct np_workers *p, int64_t at_us) {
    if (!at_us || at_us >= p->look_us) return;
    p->look_us = at_us;
    pthread_cond_signal(&p->keep);
}

/* Whoever has no room is ended, and while stopping everybody. */
static void put(struct np_workers *p, struct np_work *w, bool aside) {
    int64_t now_us = clock_machine_us(p->o.clock);
    struct np_work *out = w;
    pthread_mutex_lock(&p->lock);
    bool refused = p->stopping || (aside && p->no_waiting);
    if (!refused && aside) {
        out = NULL;
        np_queue_put_aside(&p->queue, w, now_us);
        look_by(p, w->not_before_us);
    } else if (!refused) {
        enum cql_work_class class = w->class;
        int64_t deadline_us = w->deadline_us;
        out = np_queue_put(&p->queue, w, now_us);
        pthread_cond_signal(&p->wake[class]);
        look_by(p, deadline_us);
    }
    pthread_mutex_unlock(&p->lock);
    if (out) p->o.ops->ended(out, refused ? NP_WORK_STOPPING : NP_WORK_NO_ROOM);
}

void np_workers_submit(struct np_workers *p, struct np_work *w) { put(p, w, false); }

/* ---- a worker ---- */

static struct np_work *next_work(struct np_workers *p, enum cql_work_class class) {
    struct np_work *w;
    pthread_mutex_lock(&p->lock);
    while (!(w = np_queue_take(&p->queue, class)) && !p->stopping) pthread_cond_wait(&p->wake[class], &p->lock);
    if (w) atomic_fetch_add(&p->running, 1);
    pthread_mutex_unlock(&p->lock);
    return w;
}

static void run_part(struct np_workers *p, struct np_work *w, struct eng_batch *batch) {
    int64_t now_us = clock_machine_us(p->o.clock);
    w->waited_us += now_us - w->since_us;
    if (np_work_is_stale(w, now_us)) {
        p->o.ops->ended(w, NP_WORK_STALE);
        return;
    }
    switch (p->o.ops->run(w, batch)) {
    case NP_PART_LAST: p->o.ops->ended(w, NP_WORK_DONE); return;
    case NP_PART_MORE:
        if (w->class == WORK_READ) w->class = WORK_SCAN;
        put(p, w, false);
        return;
    case NP_PART_LATER: put(p, w, true); return;
    }
}

static void *work(void *arg) {
    struct worker *t = arg;
    struct np_workers *p = t->workers;
    /* Linux: of this thread alone. Without the right to it scans are as important as the rest. */
    if (t->class == WORK_SCAN) (void)!setpriority(PRIO_PROCESS, (id_t)gettid(), SCAN_NICE);
    for (struct np_work *w; (w = next_work(p, t->class));) {
        run_part(p, w, t->batch);
        atomic_fetch_sub(&p->running, 1);
    }
    eng_batch_free(t->batch);
    return NULL;
}

/* ---- the keeper ---- */

int64_t np_workers_keep(struct np_workers *p) {
    struct np_works stale = TAILQ_HEAD_INITIALIZER(stale);
    int64_t now_us = clock_machine_us(p->o.clock);
    pthread_mutex_lock(&p->lock);
    np_queue_stale(&p->queue, now_us, &stale);
    unsigned woken = np_queue_resume(&p->queue, now_us);
    for (int i = 0; i < WORK_CLASSES; i++)
        if (woken & 1u << i) pthread_cond_broadcast(&p->wake[i]);
    int64_t next_us = p->look_us = np_queue_next_moment(&p->queue);
    pthread_mutex_unlock(&p->lock);
    end_all(p, &stale, NP_WORK_STALE);
    return next_us;
}

static void sleep_until(struct np_workers *p, int64_t at_us) {
    struct timespec at;
    if (at_us == INT64_MAX) {
        pthread_cond_wait(&p->keep, &p->lock);
        return;
    }
    int64_t wait_us = at_us - clock_machine_us(p->o.clock);
    if (wait_us <= 0) return;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += wait_us / 1000000;
    at.tv_nsec += wait_us % 1000000 * 1000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&p->keep, &p->lock, &at);
}

static void *keep(void *arg) {
    struct np_workers *p = arg;
    int64_t last_us = 0;
    pthread_mutex_lock(&p->lock);
    while (!p->stopping) {
        int64_t now_us = clock_machine_us(p->o.clock), at_us = p->look_us;
        if (at_us < last_us + KEEP_AT_MOST_EVERY_US) at_us = last_us + KEEP_AT_MOST_EVERY_US; /* a walk through the queue each time */
        if (at_us > now_us) {
            sleep_until(p, at_us);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        np_workers_keep(p);
        pthread_mutex_lock(&p->lock);
        last_us = now_us;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void np_workers_look(struct np_workers *p) {
    pthread_mutex_lock(&p->lock);
    look_by(p, 1);
    pthread_mutex_unlock(&p->lock);
}

/* ---- life ---- */

/* Reads and updates wait, for a disk or a lock, more than they work; a scan works; DDL is put aside while it waits. */
static unsigned threads_of(const struct np_workers_options *o, enum cql_work_class class) {
    enum { DDL_THREADS = 2, MOST = 64 };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = cores > 0 ? (unsigned)cores : 1;
    if (o->threads[class]) return o->threads[class];
    if (class == WORK_DDL) return DDL_THREADS;
    if (class != WORK_SCAN) n *= 4;
    return n < MOST ? n : MOST;
}

static void init_conditions(struct np_workers *p) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->keep, &attr);
    pthread_condattr_destroy(&attr);
    for (int i = 0; i < WORK_CLASSES; i++) pthread_cond_init(&p->wake[i], NULL);
}

static int start_class(struct np_workers *p, enum cql_work_class class, unsigned n, const pthread_attr_t *attr) {
    for (; n; n--) {
        struct worker *t = &p->threads[p->n_threads];
        *t = (struct worker){.workers = p, .class = class, .batch = eng_batch_new(p->o.eng)};
        if (!t->batch) return -1;
        if (pthread_create(&t->thread, attr, work, t)) {
            eng_batch_free(t->batch);
            return -1;
        }
        p->n_threads++;
    }
    return 0;
}

static int start(struct np_workers *p, const unsigned *threads) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    int rc = 0;
    for (int i = 0; i < WORK_CLASSES && !rc; i++) rc = start_class(p, (enum cql_work_class)i, threads[i], &attr);
    if (!rc) rc = pthread_create(&p->keeper, &attr, keep, p);
    p->has_keeper = !rc;
    pthread_attr_destroy(&attr);
    return rc;
}

struct np_workers *np_workers_new(const struct np_workers_options *o, struct err *e) {
    unsigned threads[WORK_CLASSES], n = 0;
    for (int i = 0; i < WORK_CLASSES; i++) n += threads[i] = threads_of(o, (enum cql_work_class)i);
    struct np_workers *p = calloc(1, sizeof(*p) + n * sizeof(p->threads[0]));
    if (!p) return err_nomem(e), NULL;
    p->o = *o;
    p->look_us = INT64_MAX;
    np_queue_init(&p->queue, o->queue_max ? o->queue_max : QUEUE_MAX, o->queue_bytes_max ? o->queue_bytes_max : NP_QUEUE_BYTES);
    pthread_mutex_init(&p->lock, NULL);
    init_conditions(p);
    if (!start(p, threads)) return p;
    err_set(e, ERR_SERVER, "cannot start the blocking workers");
    np_workers_stop(p);
    np_workers_free(p);
    return NULL;
}

bool np_workers_alone(struct np_workers *p) {
    pthread_mutex_lock(&p->lock);
    bool alone = p->queue.n == 0 && atomic_load(&p->running) <= 1;
    pthread_mutex_unlock(&p->lock);
    return alone;
}

void np_workers_stop_waiting(struct np_workers *p) {
    struct np_works waiting = TAILQ_HEAD_INITIALIZER(waiting);
    pthread_mutex_lock(&p->lock);
    p->no_waiting = true;
    np_queue_empty(&p->queue, true, &waiting);
    pthread_mutex_unlock(&p->lock);
    end_all(p, &waiting, NP_WORK_STOPPING);
}

void np_workers_stop(struct np_workers *p) {
    struct np_works waiting = TAILQ_HEAD_INITIALIZER(waiting);
    pthread_mutex_lock(&p->lock);
    p->stopping = p->no_waiting = true;
    np_queue_empty(&p->queue, false, &waiting);
    for (int i = 0; i < WORK_CLASSES; i++) pthread_cond_broadcast(&p->wake[i]);
    pthread_cond_broadcast(&p->keep);
    pthread_mutex_unlock(&p->lock);
    end_all(p, &waiting, NP_WORK_STOPPING);
    while (p->n_threads) pthread_join(p->threads[--p->n_threads].thread, NULL);
    if (p->has_keeper) pthread_join(p->keeper, NULL);
    p->has_keeper = false;
}

void np_workers_free(struct np_workers *p) {
    pthread_cond_destroy(&p->keep);
    for (int i = 0; i < WORK_CLASSES; i++) pthread_cond_destroy(&p->wake[i]);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
