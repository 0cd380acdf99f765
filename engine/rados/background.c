#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/rados/background.h"
#include "engine/rados/batchlog.h"
#include "engine/rados/jobs.h"
#include "engine/rados/move.h"
#include "engine/rados/read.h"
#include "engine/rados/table.h"

enum {
    REPLAY_EVERY_US = BATCHLOG_EVERY_S * 1000000,
    REPLAY_AGE_US = BATCHLOG_AGE_S * 1000000, /* longer than the store that logged a batch takes to write it */
};

static void run_split(struct rados *s, struct shard *sh) {
    int rc = move_relieve(s, sh);
    if (rc < 0) log_warn("the split of %s has failed and is tried again later: %s", sh->name, strerror(-rc));
    atomic_store(&sh->stays_whole, !atomic_load(&sh->split));
    atomic_store(&sh->will_split, false);
}

/* died: the incarnation of a server; 0 if none */
static void replay(struct rados *s, uint32_t died) {
    struct err e = {0};
    size_t n;
    if (batchlog_replay(s, died, REPLAY_AGE_US, &n, &e) < 0) log_warn("the log of batches was not applied: %s", e.text);
    else if (n && died) log_info("%zu batches were applied that a server has left that died", n);
    else if (n) log_info("%zu batches were applied that have stayed in the log", n);
}

static void run_job(struct rados *s, struct rados_job *job) {
    struct err e = {0};
    switch (job->kind) {
    case RADOS_SPLIT: run_split(s, job->shard); break;
    case RADOS_FOLD:
        if (read_fold(s, slice_of(job->key, job->n), &e) < 0)
            log_warn("a row's operands were not folded: %s", e.text);
        break;
    case RADOS_FORGET: table_forget(s, job->table); break;
    case RADOS_REPLAY: replay(s, job->died); break;
    }
    jobs_done(s, job);
}

static void *work(void *arg) {
    struct rados *s = arg;
    for (struct rados_job *job; jobs_take(s, REPLAY_EVERY_US, &job);) {
        if (job) run_job(s, job);
        int64_t now_us = clock_machine_us(&clock_real), due_us = atomic_load(&s->replay_due_us);
        if (now_us >= due_us && atomic_compare_exchange_strong(&s->replay_due_us, &due_us, now_us + REPLAY_EVERY_US))
            jobs_add_replay(s, 0);
    }
    return NULL;
}

int background_start(struct rados *s, struct err *e) {
    jobs_init(s);
    atomic_store(&s->replay_due_us, clock_machine_us(&clock_real) + REPLAY_EVERY_US);
    for (; s->n_threads < RADOS_THREADS; s->n_threads++)
        if (pthread_create(&s->threads[s->n_threads], NULL, work, s)) break;
    if (s->n_threads == RADOS_THREADS) return 0;
    background_stop(s);
    return err_set(e, ERR_SERVER, "cannot start a thread");
}

void background_stop(struct rados *s) {
    jobs_end(s);
    for (uint32_t i = 0; i < s->n_threads; i++) pthread_join(s->threads[i], NULL);
    jobs_fini(s);
}
