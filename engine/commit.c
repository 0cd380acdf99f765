/* The commit thread: syncs the log again and again while anybody waits, and publishes how far it got.
 *
 * Before it syncs it waits a moment for those whom it has just answered (engine/gather.h).
 * A sequence is given after the store took the write, so whatever is written when a sync begins is in the log it syncs.
 * After a sync that failed nothing is acknowledged and nothing written, until the store has put everything on disk another way.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "engine/store.h"

enum { PERIOD_US = 10000000, IDLE_US = 1000000 };

uint64_t engi_commit_next_seq(struct eng *eng) { return atomic_fetch_add(&eng->commit.written, 1) + 1; }

uint64_t eng_barrier_seq(struct eng *eng) { return engi_commit_next_seq(eng); }

static void publish(struct eng *eng, uint64_t seq, bool failed) {
    struct engi_commit *c = &eng->commit;
    pthread_mutex_lock(&c->lock);
    if (!failed) atomic_store_explicit(&c->durable, seq, memory_order_release);
    atomic_store(&c->failed, failed);
    pthread_cond_broadcast(&c->done);
    pthread_mutex_unlock(&c->lock);
    uint32_t n = atomic_load(&c->n_callbacks);
    for (uint32_t i = 0; i < n; i++) c->callbacks[i].cb(c->callbacks[i].arg);
}

/* False: there was nothing to sync. */
static bool sync_once(struct eng *eng) {
    struct engi_commit *c = &eng->commit;
    struct err e;
    err_clear(&e);
    uint64_t asked = atomic_load(&c->asked), seq = atomic_load(&c->written); /* in this order: who has asked has written */
    if (seq == atomic_load(&c->durable) || atomic_load(&c->failed)) return false;
    bool to_disk = eng->durability != ENG_NONE;
    int64_t begun_us = clock_machine_us(&clock_real);
    engi_gather_begin(&c->gather, asked);
    bool failed = eng->kv->ops->sync(eng->kv, to_disk, &e) != 0;
    int64_t now_us = clock_machine_us(&clock_real);
    engi_gather_end(&c->gather, atomic_load(&c->asked), now_us - begun_us, now_us);
    if (failed) log_error("%s: no write is acknowledged until the store has put everything on disk anew", e.text);
    engi_count(eng, ENG_STAT_SYNCS);
    publish(eng, seq, failed);
    if (!failed && to_disk) eng->kv->ops->synced(eng->kv);
    return true;
}

/* With the lock held. False: the time is over. */
static bool wait_until(struct engi_commit *c, int64_t us) {
    struct timespec until = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    return pthread_cond_timedwait(&c->work, &c->lock, &until) != ETIMEDOUT;
}

/* Waits, with the lock held, until there is something to sync, and for those who come back first. False: nothing came for a while. */
static bool wait_for_work(struct eng *eng) {
    struct engi_commit *c = &eng->commit;
    atomic_store(&c->enough, c->gather.enough);
    while (!c->stop && engi_gather_waits(&c->gather, atomic_load(&c->asked), clock_machine_us(&clock_real)))
        if (!wait_until(c, c->gather.until_us)) break;
    atomic_store(&c->enough, 0);
    int64_t until_us = clock_machine_us(&clock_real) + IDLE_US;
    while (!c->stop && (atomic_load(&c->failed) || atomic_load(&c->wanted) <= atomic_load(&c->durable)))
        if (!wait_until(c, until_us)) return false;
    return true;
}

static void heal(struct eng *eng) {
    struct err e = {0};
    uint64_t seq = atomic_load(&eng->commit.written);
    if (eng->kv->ops->heal(eng->kv, &e)) return;
    log_warn("everything is on disk again; writes are taken");
    publish(eng, seq, false);
}

/* Nobody waits: what was acknowledged early is synced when its period is over, and what is synced is noted outside of the log. */
static void idle(struct eng *eng, int64_t synced_us) {
    if (eng_failed(eng)) {
        heal(eng);
        return;
    }
    if (clock_machine_us(&clock_real) - synced_us < PERIOD_US && eng->durability != ENG_FSYNC) return;
    if (!sync_once(eng) && eng->durability != ENG_NONE) eng->kv->ops->settle(eng->kv);
}

static void *run(void *arg) {
    struct eng *eng = arg;
    struct engi_commit *c = &eng->commit;
    int64_t synced_us = clock_machine_us(&clock_real);
    pthread_mutex_lock(&c->lock);
    while (!c->stop) {
        bool asked = wait_for_work(eng);
        pthread_mutex_unlock(&c->lock);
        if (asked) sync_once(eng);
        else idle(eng, synced_us);
        if (asked || clock_machine_us(&clock_real) - synced_us >= PERIOD_US) synced_us = clock_machine_us(&clock_real);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

int engi_commit_start(struct eng *eng, struct err *e) {
    struct engi_commit *c = &eng->commit;
    pthread_condattr_t attr;
    c->stop = false;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->work, &attr);
    pthread_cond_init(&c->done, NULL);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&c->thread, NULL, run, eng)) return err_set(e, ERR_SERVER, "the commit thread cannot be started");
    c->running = true;
    return 0;
}

void engi_commit_stop(struct eng *eng) {
    struct engi_commit *c = &eng->commit;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    sync_once(eng);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->done);
    pthread_mutex_destroy(&c->lock);
}

uint64_t eng_durable_seq(const struct eng *eng) {
    const struct engi_commit *c = &eng->commit;
    return atomic_load_explicit(eng->durability == ENG_FSYNC ? &c->durable : &c->written, memory_order_acquire);
}

void eng_on_durable(struct eng *eng, eng_durable_cb cb, void *arg) {
    struct engi_commit *c = &eng->commit;
    uint32_t n = atomic_load(&c->n_callbacks);
    if (n == ENGI_CALLBACKS_MAX) return log_error("too many callbacks wait for the commit thread");
    c->callbacks[n].cb = cb;
    c->callbacks[n].arg = arg;
    atomic_store(&c->n_callbacks, n + 1);
}

static void want(struct engi_commit *c, uint64_t seq, uint32_t n) {
    uint64_t asked = atomic_fetch_add(&c->asked, n) + n, wanted = atomic_load(&c->wanted);
    while (wanted < seq && !atomic_compare_exchange_weak(&c->wanted, &wanted, seq)) {}
    uint64_t enough = atomic_load(&c->enough);
    bool first = wanted < seq, last = asked - n < enough; /* whoever wanted it first has woken the thread, or whoever is the last of those it waits for does */
    if (asked < enough || !(first || last)) return;
    pthread_mutex_lock(&c->lock); /* it sleeps, or has not looked yet */
    pthread_mutex_unlock(&c->lock);
    pthread_cond_signal(&c->work);
}

void eng_want_durable(struct eng *eng, uint64_t seq, uint32_t n) {
    if (eng->durability == ENG_FSYNC) want(&eng->commit, seq, n);
}

int engi_commit_check(const struct eng *eng, struct err *e) {
    return eng_failed(eng) ? err_set(e, ERR_SERVER, "the log could not be synced; no write is acknowledged until the rows are on disk anew") : 0;
}

int engi_commit_wait(struct eng *eng, uint64_t seq, struct err *e) {
    struct engi_commit *c = &eng->commit;
    want(c, seq, 1);
    pthread_mutex_lock(&c->lock);
    while (!atomic_load(&c->failed) && atomic_load(&c->durable) < seq) pthread_cond_wait(&c->done, &c->lock);
    pthread_mutex_unlock(&c->lock);
    return atomic_load(&c->durable) >= seq ? 0 : engi_commit_check(eng, e);
}

int eng_wait_durable(struct eng *eng, uint64_t seq, struct err *e) {
    return eng->durability == ENG_FSYNC ? engi_commit_wait(eng, seq, e) : engi_commit_check(eng, e);
}

bool eng_ready(struct eng *eng, char *why, size_t size) {
    enum { STALLED_US = 10000000 };
    int64_t since = atomic_load(&eng->waiting_since_us);
    snprintf(why, size, "storage failed: the log cannot be synced");
    if (eng_failed(eng)) return false;
    snprintf(why, size, "writes have been waiting for flushes and compactions for more than ten seconds");
    if (since && clock_machine_us(&clock_real) - since > STALLED_US) return false;
    pthread_rwlock_rdlock(&eng->whole);
    bool ailing = eng->kv->ops->ailing(eng->kv, why, size);
    pthread_rwlock_unlock(&eng->whole);
    return !ailing;
}

bool eng_failed(const struct eng *eng) { return atomic_load_explicit(&eng->commit.failed, memory_order_relaxed); }
