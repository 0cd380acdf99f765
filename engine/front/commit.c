/* The commit thread: syncs the log repeatedly while requests wait for durability, and publishes the
 * sequence up to which writes are durable.
 *
 * Before a sync the thread waits a moment for the clients that the last sync answered
 * (engine/front/gather.h). A loop whose clients all wait for a sync has no other work and syncs
 * itself (eng_sync_here), which saves waking the commit thread and being woken by it. The lock turn
 * lets one thread sync at a time. A commit takes its sequence after the store took the write, so
 * every write that has a sequence when a sync begins is in the log it syncs. After a failed sync no
 * write is acknowledged or taken until the store has put everything on disk another way.
 */
#include <stdio.h>

#include "base/log.h"
#include "engine/front/eng.h"
#include "engine/front/lock_order.h"

enum { PERIOD_US = 10000000, IDLE_US = 1000000 };

uint64_t engi_commit_next_seq(struct eng *eng) { return atomic_fetch_add(&eng->commit.written, 1) + 1; }

uint64_t eng_barrier_seq(struct eng *eng) { return engi_commit_next_seq(eng); }

static void publish(struct eng *eng, uint64_t seq, bool failed) {
    struct engi_commit *c = &eng->commit;
    engi_mutex_lock(&c->lock, ENGI_RANK_LEAF);
    if (!failed) atomic_store_explicit(&c->durable, seq, memory_order_release);
    atomic_store(&c->failed, failed);
    pthread_cond_broadcast(&c->done);
    engi_mutex_unlock(&c->lock, ENGI_RANK_LEAF);
    uint32_t n = atomic_load(&c->n_callbacks);
    for (uint32_t i = 0; i < n; i++) c->callbacks[i].cb(c->callbacks[i].arg);
}

/* Syncs the log. Called with turn held. Returns false if there was nothing to sync. */
static bool sync_once(struct eng *eng) {
    struct engi_commit *c = &eng->commit;
    struct err e;
    err_clear(&e);
    /* in this order: each request counted in asked has its write counted in written */
    uint64_t asked = atomic_load(&c->asked), seq = atomic_load(&c->written);
    if (seq == atomic_load(&c->durable) || atomic_load(&c->failed)) return false;
    int64_t begun_us = clock_machine_us(&clock_real);
    engi_mutex_lock(&c->lock, ENGI_RANK_LEAF);
    engi_gather_begin(&c->gather, asked);
    engi_mutex_unlock(&c->lock, ENGI_RANK_LEAF);
    bool failed = eng->store.ops->log->sync(&eng->store, eng->durability != ENG_NONE, &e) != 0;
    int64_t now_us = clock_machine_us(&clock_real);
    engi_mutex_lock(&c->lock, ENGI_RANK_LEAF);
    engi_gather_end(&c->gather, atomic_load(&c->asked), now_us - begun_us, now_us);
    engi_mutex_unlock(&c->lock, ENGI_RANK_LEAF);
    if (failed) log_error("%s: no write is acknowledged until the store has written everything to disk again", e.text);
    engi_count(eng, ENG_STAT_SYNCS);
    publish(eng, seq, failed);
    return true;
}

/* Lets the store record outside of the log how far the log is synced, which takes further
 * syncs. */
static void note_synced(struct eng *eng) {
    eng->commit.synced_here = false;
    if (!eng_failed(eng) && eng->durability != ENG_NONE) eng->store.ops->log->synced(&eng->store);
}

/* Waits for further requests of the clients that the last sync answered. Called with the lock
 * held. */
static void gather(struct engi_commit *c) {
    atomic_store(&c->enough, c->gather.enough);
    while (!c->stop && engi_gather_waits(&c->gather, atomic_load(&c->asked), clock_machine_us(&clock_real)))
        if (!clock_cond_wait_until(&c->work, &c->lock, c->gather.until_us)) break;
    atomic_store(&c->enough, 0);
}

/* Waits, with the lock held, until there is something to sync, and then for further requests.
 * synced: this thread made the last sync. Otherwise a loop syncs, and wakes this thread when it
 * stops doing so. Returns false when no request came for IDLE_US. */
static bool wait_for_work(struct engi_commit *c, bool synced) {
    if (synced) gather(c);
    int64_t until_us = clock_machine_us(&clock_real) + IDLE_US;
    while (!c->stop && (atomic_load(&c->failed) || atomic_load(&c->wanted) <= atomic_load(&c->durable)))
        if (!clock_cond_wait_until(&c->work, &c->lock, until_us)) return false;
    gather(c); /* after a sync that a loop made meanwhile */
    return true;
}

/* Why writes are still refused, in the log. */
static void tell(struct eng *eng, const struct err *e) {
    enum { TELL_US = 10000000 };
    int64_t now_us = clock_machine_us(&clock_real);
    if (now_us - eng->commit.told_us < TELL_US) return;
    eng->commit.told_us = now_us;
    log_warn("writes are still refused: %s", e->text);
}

static void heal(struct eng *eng) {
    struct err e = {0};
    uint64_t seq = atomic_load(&eng->commit.written);
    if (eng->store.ops->log->heal(&eng->store, &e)) {
        tell(eng, &e);
        return;
    }
    log_warn("everything is on disk again; writes are taken");
    publish(eng, seq, false);
}

/* No request waits: syncs writes that were acknowledged before their sync, when their period is
 * over, and has the store record outside of the log how much is synced. */
static void idle(struct eng *eng, int64_t synced_us) {
    if (eng_failed(eng)) {
        heal(eng);
        return;
    }
    if (clock_machine_us(&clock_real) - synced_us < PERIOD_US && eng->durability != ENG_FSYNC) return;
    if (sync_once(eng) || eng->commit.synced_here) note_synced(eng);
    else if (eng->durability != ENG_NONE) eng->store.ops->log->settle(&eng->store);
}

static void *run(void *arg) {
    struct eng *eng = arg;
    struct engi_commit *c = &eng->commit;
    int64_t synced_us = clock_machine_us(&clock_real);
    bool synced = false;
    engi_mutex_lock(&c->lock, ENGI_RANK_LEAF);
    while (!c->stop) {
        bool asked = wait_for_work(c, synced);
        engi_mutex_unlock(&c->lock, ENGI_RANK_LEAF);
        engi_mutex_lock(&c->turn, ENGI_RANK_SYNC);
        synced = asked && sync_once(eng);
        if (synced) note_synced(eng);
        else if (!asked) idle(eng, synced_us);
        engi_mutex_unlock(&c->turn, ENGI_RANK_SYNC);
        if (asked || clock_machine_us(&clock_real) - synced_us >= PERIOD_US) synced_us = clock_machine_us(&clock_real);
        engi_mutex_lock(&c->lock, ENGI_RANK_LEAF);
    }
    engi_mutex_unlock(&c->lock, ENGI_RANK_LEAF);
    return NULL;
}

int engi_commit_start(struct eng *eng, struct err *e) {
    struct engi_commit *c = &eng->commit;
    c->stop = false;
    pthread_mutex_init(&c->turn, NULL);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->work, NULL);
    pthread_cond_init(&c->done, NULL);
    if (!eng->store.ops->log) {
        eng->durability = ENG_NONE; /* no commit has anything to wait for */
        return 0;
    }
    if (pthread_create(&c->thread, NULL, run, eng))
        return err_set(e, ERR_SERVER, "the commit thread cannot be started");
    c->running = true;
    return 0;
}

void engi_commit_stop(struct eng *eng) {
    struct engi_commit *c = &eng->commit;
    engi_mutex_lock(&c->lock, ENGI_RANK_LEAF);
    c->stop = true;
    pthread_cond_signal(&c->work);
    engi_mutex_unlock(&c->lock, ENGI_RANK_LEAF);
    pthread_join(c->thread, NULL);
    if (sync_once(eng)) note_synced(eng);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->done);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->turn);
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

/* Returns true if no earlier request wanted this sequence or a newer one. */
static bool ask(struct engi_commit *c, uint64_t seq, uint32_t n, uint64_t *asked) {
    uint64_t wanted = atomic_load(&c->wanted);
    *asked = atomic_fetch_add(&c->asked, n) + n;
    while (wanted < seq && !atomic_compare_exchange_weak(&c->wanted, &wanted, seq)) {}
    return wanted < seq;
}

static void wake(struct engi_commit *c) {
    /* with the lock held, the thread either sleeps or has not checked for work yet */
    engi_mutex_lock(&c->lock, ENGI_RANK_LEAF);
    engi_mutex_unlock(&c->lock, ENGI_RANK_LEAF);
    pthread_cond_signal(&c->work);
}

static void want(struct engi_commit *c, uint64_t seq, uint32_t n) {
    uint64_t asked;
    bool first = ask(c, seq, n, &asked);
    uint64_t enough = atomic_load(&c->enough);
    /* the thread is woken by the first request for a sequence, or by the last one that it waits
     * for */
    bool last = asked - n < enough;
    if (asked >= enough && (first || last)) wake(c);
}

void eng_want_durable(struct eng *eng, uint64_t seq, uint32_t n) {
    if (eng->durability == ENG_FSYNC) want(&eng->commit, seq, n);
}

void eng_register_durable(struct eng *eng, uint64_t seq, uint32_t n) {
    uint64_t asked;
    if (eng->durability == ENG_FSYNC) (void)ask(&eng->commit, seq, n, &asked);
}

bool eng_gathers(struct eng *eng) {
    struct engi_commit *c = &eng->commit;
    engi_mutex_lock(&c->lock, ENGI_RANK_LEAF);
    bool waits = engi_gather_waits(&c->gather, atomic_load(&c->asked), clock_machine_us(&clock_real));
    engi_mutex_unlock(&c->lock, ENGI_RANK_LEAF);
    return waits;
}

static int64_t sync_us(struct engi_commit *c) {
    engi_mutex_lock(&c->lock, ENGI_RANK_LEAF);
    int64_t us = c->gather.sync_us;
    engi_mutex_unlock(&c->lock, ENGI_RANK_LEAF);
    return us;
}

/* Waking the commit thread and being woken by it takes some 60 us, which is negligible next to a
 * sync of a slow disk. */
bool eng_sync_here(struct eng *eng) {
    enum { SHORT_US = 500 };
    struct engi_commit *c = &eng->commit;
    int64_t us = sync_us(c);
    if (eng->durability != ENG_FSYNC || !us || us > SHORT_US || !engi_mutex_try(&c->turn, ENGI_RANK_SYNC)) return false;
    bool synced = sync_once(eng);
    if (synced) {
        c->synced_here = true;
        engi_count(eng, ENG_STAT_SYNCS_HERE);
    }
    engi_mutex_unlock(&c->turn, ENGI_RANK_SYNC);
    return synced;
}

void eng_wake_sync(struct eng *eng) {
    struct engi_commit *c = &eng->commit;
    if (atomic_load(&c->asked) >= atomic_load(&c->enough)) wake(c);
}

int engi_commit_check(const struct eng *eng, struct err *e) {
    return eng_failed(eng)
               ? err_set(e, ERR_SERVER,
                         "the log could not be synced; no write is acknowledged until the rows are on disk again")
               : 0;
}

int engi_commit_wait(struct eng *eng, uint64_t seq, struct err *e) {
    struct engi_commit *c = &eng->commit;
    if (!eng->store.ops->log) return 0;
    engi_order_will_wait(ENGI_RANK_SYNC, 0);
    want(c, seq, 1);
    engi_mutex_lock(&c->lock, ENGI_RANK_LEAF);
    while (!atomic_load(&c->failed) && atomic_load(&c->durable) < seq) pthread_cond_wait(&c->done, &c->lock);
    engi_mutex_unlock(&c->lock, ENGI_RANK_LEAF);
    return atomic_load(&c->durable) >= seq ? 0 : engi_commit_check(eng, e);
}

int eng_wait_durable(struct eng *eng, uint64_t seq, struct err *e) {
    return eng->durability == ENG_FSYNC ? engi_commit_wait(eng, seq, e) : engi_commit_check(eng, e);
}

void eng_peer_died(struct eng *eng, uint32_t incarnation) {
    if (eng->store.ops->peer_died) eng->store.ops->peer_died(&eng->store, incarnation);
}

bool eng_ready(struct eng *eng, char *why, size_t size) {
    snprintf(why, size, "storage failed: the log cannot be synced");
    if (eng_failed(eng)) return false;
    return !eng->store.ops->ailing || !eng->store.ops->ailing(&eng->store, why, size);
}

bool eng_failed(const struct eng *eng) { return atomic_load_explicit(&eng->commit.failed, memory_order_relaxed); }
