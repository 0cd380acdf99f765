#include "native_protocol/workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { QUEUE_MAX = 16384, STACK = 1 << 20 };
enum { SCAN_NICE = 10, CHECK_AT_MOST_EVERY_US = 10000, TOGETHER = 16 };

struct worker {
    struct np_workers *workers;
    enum cql_work_class class;
    struct eng_batch *batch;
    pthread_t thread;
    struct np_works done; /* finished works that are not given back yet; they count as running */
    unsigned n_done;
};

struct np_workers {
    struct np_workers_options o;
    pthread_mutex_t lock;
    pthread_cond_t wake[WORK_CLASSES], monitor_wake;
    /* threads that wait for a work, under lock; one that was woken counts until it runs */
    unsigned n_idle[WORK_CLASSES];
    struct np_queue queue;
    int64_t check_us; /* when the monitor checks the queue next */
    bool stopping, no_waiting;
    bool has_monitor;
    _Atomic unsigned running; /* parts */
    pthread_t monitor;
    unsigned n_threads;
    struct worker threads[];
};

static void end_all(struct np_workers *p, struct np_works *list, enum np_work_end why) {
    for (struct np_work *w; (w = TAILQ_FIRST(list));) {
        TAILQ_REMOVE(list, w, entry);
        p->o.ops->ended(w, why);
    }
}

/* ---- submitting ---- */

static void check_by(struct np_workers *p, int64_t at_us) {
    if (!at_us || at_us >= p->check_us) return;
    p->check_us = at_us;
    pthread_cond_signal(&p->monitor_wake);
}

/* Wakes one thread of each class; a thread that leaves works wakes another (take). While stopping,
 * all works are ended. */
void np_workers_submit(struct np_workers *p, struct np_works *list) {
    struct np_works out = TAILQ_HEAD_INITIALIZER(out);
    int64_t now_us = clock_machine_us(p->o.clock);
    unsigned classes = 0;
    pthread_mutex_lock(&p->lock);
    bool refused = p->stopping;
    for (struct np_work *w; !refused && (w = TAILQ_FIRST(list));) {
        TAILQ_REMOVE(list, w, entry);
        classes |= 1u << w->class;
        int64_t deadline_us = w->deadline_us;
        struct np_work *no_room = np_queue_put(&p->queue, w, now_us);
        if (no_room) TAILQ_INSERT_TAIL(&out, no_room, entry);
        check_by(p, deadline_us);
    }
    for (int i = 0; i < WORK_CLASSES; i++)
        if (classes >> i & 1 && p->n_idle[i]) pthread_cond_signal(&p->wake[i]);
    pthread_mutex_unlock(&p->lock);
    end_all(p, list, NP_WORK_STOPPING);
    end_all(p, &out, NP_WORK_NO_ROOM);
}

/* ---- a worker ---- */

static void deliver_done(struct worker *t) {
    if (!t->n_done) return;
    end_all(t->workers, &t->done, NP_WORK_DONE);
    atomic_fetch_sub(&t->workers->running, t->n_done);
    t->n_done = 0;
}

/* Returns NULL if no work waits, and the thread ends, or has finished works to deliver. */
static struct np_work *take(struct worker *t) {
    struct np_workers *p = t->workers;
    struct np_work *w;
    pthread_mutex_lock(&p->lock);
    while (!(w = np_queue_take(&p->queue, t->class)) && !p->stopping && !t->n_done) {
        p->n_idle[t->class]++;
        pthread_cond_wait(&p->wake[t->class], &p->lock);
        p->n_idle[t->class]--;
    }
    if (w) atomic_fetch_add(&p->running, 1);
    bool leaves_some = w && p->n_idle[t->class] && !TAILQ_EMPTY(&p->queue.turns[t->class]);
    pthread_mutex_unlock(&p->lock);
    if (leaves_some) pthread_cond_signal(&p->wake[t->class]);
    return w;
}

/* Runs a part of a work. A finished work is given back at once after a slow part, because the next
 * part may be slow, too; after quick ones several are given back together. */
static void run_part(struct worker *t, struct np_work *w) {
    struct np_workers *p = t->workers;
    int64_t now_us = clock_machine_us(p->o.clock);
    w->waited_us += now_us - w->since_us;
    bool stale = np_work_is_stale(w, now_us);
    enum np_work_part part = stale ? NP_PART_LAST : p->o.ops->run(w, t->batch);
    if (!stale && part == NP_PART_LAST) {
        TAILQ_INSERT_TAIL(&t->done, w, entry);
        t->n_done++;
        bool quick = p->o.quick_us && t->class == WORK_READ && clock_machine_us(p->o.clock) - now_us < p->o.quick_us;
        if (!quick || t->n_done >= TOGETHER) deliver_done(t);
        return;
    }
    if (stale) p->o.ops->ended(w, NP_WORK_STALE);
    else if (part == NP_PART_LATER) {
        pthread_mutex_lock(&p->lock);
        bool refused = p->no_waiting;
        if (!refused) {
            np_queue_delay(&p->queue, w, clock_machine_us(p->o.clock));
            check_by(p, w->not_before_us);
        }
        pthread_mutex_unlock(&p->lock);
        if (refused) p->o.ops->ended(w, NP_WORK_STOPPING);
    } else {
        if (w->class == WORK_READ) w->class = WORK_SCAN;
        struct np_works one = TAILQ_HEAD_INITIALIZER(one);
        TAILQ_INSERT_TAIL(&one, w, entry);
        np_workers_submit(p, &one);
    }
    atomic_fetch_sub(&p->running, 1);
}

static void *work(void *arg) {
    struct worker *t = arg;
    /* Linux: this sets the priority of this thread alone. Without the right to do so scans run at
     * normal priority. */
    if (t->class == WORK_SCAN) (void)!setpriority(PRIO_PROCESS, (id_t)gettid(), SCAN_NICE);
    for (;;) {
        struct np_work *w = take(t);
        if (!w && t->n_done) {
            deliver_done(t);
            w = take(t);
        }
        if (!w) break;
        run_part(t, w);
    }
    eng_batch_free(t->batch);
    return NULL;
}

/* ---- the monitor ---- */

int64_t np_workers_check(struct np_workers *p) {
    struct np_works stale = TAILQ_HEAD_INITIALIZER(stale);
    int64_t now_us = clock_machine_us(p->o.clock);
    pthread_mutex_lock(&p->lock);
    np_queue_stale(&p->queue, now_us, &stale);
    unsigned woken = np_queue_resume(&p->queue, now_us);
    for (int i = 0; i < WORK_CLASSES; i++)
        if (woken & 1u << i) pthread_cond_broadcast(&p->wake[i]);
    int64_t next_us = p->check_us = np_queue_next_moment(&p->queue);
    pthread_mutex_unlock(&p->lock);
    end_all(p, &stale, NP_WORK_STALE);
    return next_us;
}

static void sleep_until(struct np_workers *p, int64_t at_us) {
    int64_t wait_us = at_us - clock_machine_us(p->o.clock);
    if (at_us == INT64_MAX) pthread_cond_wait(&p->monitor_wake, &p->lock);
    else if (wait_us > 0) clock_cond_wait(&p->monitor_wake, &p->lock, wait_us);
}

static void *monitor(void *arg) {
    struct np_workers *p = arg;
    int64_t last_us = 0;
    pthread_mutex_lock(&p->lock);
    while (!p->stopping) {
        int64_t now_us = clock_machine_us(p->o.clock), at_us = p->check_us;
        /* each round walks the queue */
        if (at_us < last_us + CHECK_AT_MOST_EVERY_US) at_us = last_us + CHECK_AT_MOST_EVERY_US;
        if (at_us > now_us) {
            sleep_until(p, at_us);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        np_workers_check(p);
        pthread_mutex_lock(&p->lock);
        last_us = now_us;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void np_workers_wake_monitor(struct np_workers *p) {
    pthread_mutex_lock(&p->lock);
    check_by(p, 1);
    pthread_mutex_unlock(&p->lock);
}

/* ---- life ---- */

static int start(struct np_workers *p, const unsigned *threads) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    int rc = 0;
    for (int i = 0; i < WORK_CLASSES; i++)
        for (unsigned n = threads[i]; n && !rc; n--) {
            struct worker *t = &p->threads[p->n_threads];
            *t = (struct worker){.workers = p,
                                 .class = (enum cql_work_class)i,
                                 .batch = eng_batch_new(p->o.eng),
                                 .done = TAILQ_HEAD_INITIALIZER(t->done)};
            rc = !t->batch || pthread_create(&t->thread, &attr, work, t) ? -1 : 0;
            if (!rc) p->n_threads++;
            else if (t->batch) eng_batch_free(t->batch);
        }
    if (!rc) rc = pthread_create(&p->monitor, &attr, monitor, p);
    p->has_monitor = !rc;
    pthread_attr_destroy(&attr);
    return rc;
}

struct np_workers *np_workers_new(const struct np_workers_options *o, struct err *e) {
    /* Reads and updates mostly wait for a disk or a lock, so they get more threads than cores; a scan
     * uses the processor; DDL is delayed while it waits. */
    enum { DDL_THREADS = 2, MOST = 64 };
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned threads[WORK_CLASSES], n = 0, cores = online > 0 ? (unsigned)online : 1;
    for (int i = 0; i < WORK_CLASSES; i++) {
        unsigned usual = i == WORK_DDL ? DDL_THREADS : i == WORK_SCAN ? cores : 4 * cores;
        threads[i] = o->threads[i] ? o->threads[i] : usual < MOST ? usual : MOST;
        n += threads[i];
    }
    struct np_workers *p = calloc(1, sizeof(*p) + n * sizeof(p->threads[0]));
    if (!p) return err_null(err_nomem(e));
    p->o = *o;
    p->check_us = INT64_MAX;
    np_queue_init(&p->queue, o->queue_max ? o->queue_max : QUEUE_MAX,
                  o->queue_bytes_max ? o->queue_bytes_max : NP_QUEUE_BYTES);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->monitor_wake, NULL);
    for (int i = 0; i < WORK_CLASSES; i++) pthread_cond_init(&p->wake[i], NULL);
    if (!start(p, threads)) return p;
    err_set(e, ERR_SERVER, "cannot start the blocking workers");
    np_workers_stop(p);
    np_workers_free(p);
    return NULL;
}

bool np_workers_idle(struct np_workers *p) {
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
    pthread_cond_broadcast(&p->monitor_wake);
    pthread_mutex_unlock(&p->lock);
    end_all(p, &waiting, NP_WORK_STOPPING);
    while (p->n_threads) pthread_join(p->threads[--p->n_threads].thread, NULL);
    if (p->has_monitor) pthread_join(p->monitor, NULL);
    p->has_monitor = false;
}

void np_workers_free(struct np_workers *p) {
    pthread_cond_destroy(&p->monitor_wake);
    for (int i = 0; i < WORK_CLASSES; i++) pthread_cond_destroy(&p->wake[i]);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
