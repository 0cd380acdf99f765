#include "engine/rados/jobs.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"

enum { JOBS_MAX = 1024 /* further folds are left to later readers */ };

/* Queues a job, which may be NULL if memory is exhausted, unless the same fold or replay is queued already or too many
 * jobs are. Returns false if it was not queued; then it is freed. */
static bool add(struct rados *s, struct rados_job *job) {
    struct rados_job *other;
    size_t n = 0;
    if (!job) return false;
    pthread_mutex_lock(&s->lock);
    for (other = s->jobs; other; other = other->next, n++) {
        if (other->kind != job->kind) continue;
        if (job->kind == RADOS_REPLAY && other->died == job->died) break;
        if (job->kind == RADOS_FOLD && slice_eq(slice_of(other->key, other->n), slice_of(job->key, job->n))) break;
    }
    bool queued = !other && (job->kind != RADOS_FOLD || n < JOBS_MAX);
    if (queued) {
        *s->last_job = job;
        s->last_job = &job->next;
        pthread_cond_signal(&s->more);
    }
    pthread_mutex_unlock(&s->lock);
    if (!queued) free(job);
    return queued;
}

/* Without memory for the job, the next write to the shard requests the split again. */
void jobs_add_split(struct rados *s, struct shard *sh) {
    if (atomic_exchange(&sh->will_split, true)) return;
    struct rados_job *job = malloc(sizeof(*job));
    if (job) *job = (struct rados_job){.kind = RADOS_SPLIT, .shard = sh};
    if (!add(s, job)) atomic_store(&sh->will_split, false);
}

/* A later reader requests a fold that is left out. */
void jobs_add_fold(struct rados *s, struct slice record_key) {
    struct rados_job *job = malloc(sizeof(*job) + record_key.n);
    struct shard *sh = shard_map_find(&s->shards, load_u32(record_key.p), shard_position(record_key));
    if (!job || !sh) {
        free(job);
        return;
    }
    *job = (struct rados_job){.kind = RADOS_FOLD, .shard = sh, .n = record_key.n};
    memcpy(job->key, record_key.p, record_key.n);
    add(s, job);
}

/* Without memory for the job, the batches are applied when they are older. */
void jobs_add_replay(struct rados *s, uint32_t died) {
    struct rados_job *job = malloc(sizeof(*job));
    if (job) *job = (struct rados_job){.kind = RADOS_REPLAY, .died = died};
    add(s, job);
}

/* Without memory for the job, the table stays in memory until the store is closed. */
void jobs_add_forget(struct rados *s, uint32_t table) {
    struct rados_job *job = malloc(sizeof(*job));
    if (job) *job = (struct rados_job){.kind = RADOS_FORGET, .table = table};
    add(s, job);
}

/* With the lock. Keeps Q27. */
static bool may_run(const struct rados *s, const struct rados_job *job) {
    if (job->kind == RADOS_FORGET) return !s->running && job == s->jobs;
    for (const struct rados_job *x = s->running; x; x = x->next)
        if (x->kind == RADOS_FORGET || (job->shard ? x->shard == job->shard : x->kind == job->kind)) return false;
    return true;
}

/* With the lock. Returns the first job that may run, now in the list of running jobs, or NULL if there is none. */
static struct rados_job *start_job(struct rados *s) {
    struct rados_job **at = &s->jobs, *job;
    while ((job = *at) && !may_run(s, job)) {
        if (job->kind == RADOS_FORGET) return NULL;
        at = &job->next;
    }
    if (!job) return NULL;
    if (!(*at = job->next)) s->last_job = at;
    job->next = s->running;
    s->running = job;
    return job;
}

bool jobs_take(struct rados *s, int64_t timeout_us, struct rados_job **job) {
    pthread_mutex_lock(&s->lock);
    *job = s->ends ? NULL : start_job(s);
    if (!*job && !s->ends) {
        clock_cond_wait(&s->more, &s->lock, timeout_us);
        *job = s->ends ? NULL : start_job(s);
    }
    bool ends = s->ends;
    pthread_mutex_unlock(&s->lock);
    return !ends;
}

void jobs_done(struct rados *s, struct rados_job *job) {
    struct rados_job **at = &s->running;
    pthread_mutex_lock(&s->lock);
    while (*at != job) at = &(*at)->next;
    *at = job->next;
    for (const struct rados_job *x = s->running; x; x = x->next)
        assert(job->kind != RADOS_FORGET && (!job->shard || x->shard != job->shard)); /* Q27 */
    pthread_cond_broadcast(&s->more);
    pthread_mutex_unlock(&s->lock);
    free(job);
}

void jobs_init(struct rados *s) {
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->more, NULL);
    s->last_job = &s->jobs;
}

void jobs_end(struct rados *s) {
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    pthread_cond_broadcast(&s->more);
    pthread_mutex_unlock(&s->lock);
}

void jobs_fini(struct rados *s) {
    for (struct rados_job *job = s->jobs, *next; job; job = next) {
        next = job->next;
        free(job);
    }
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->more);
}
