#include <stdlib.h>

#include "base/clock.h"
#include "engine/rados/jobs.h"

enum { JOBS_MAX = 1024 /* further folds are left to later readers */ };

/* With the lock. */
static void queue_job(struct rados *s, struct rados_job *job) {
    *s->last_job = job;
    s->last_job = &job->next;
    pthread_cond_signal(&s->more);
}

/* Without memory for the job it is left out; the next write to the shard asks for the split again. */
void jobs_add_split(struct rados *s, struct shard *sh) {
    if (atomic_exchange(&sh->will_split, true)) return;
    struct rados_job *job = malloc(sizeof(*job));
    if (!job) {
        atomic_store(&sh->will_split, false);
        return;
    }
    *job = (struct rados_job){.kind = RADOS_SPLIT, .shard = sh};
    pthread_mutex_lock(&s->lock);
    queue_job(s, job);
    pthread_mutex_unlock(&s->lock);
}

/* A fold that is left out is asked for again by a later reader. */
void jobs_add_fold(struct rados *s, struct slice record_key) {
    struct rados_job *job = malloc(sizeof(*job) + record_key.n), *other;
    size_t n = 0;
    if (!job) return;
    *job = (struct rados_job){.kind = RADOS_FOLD, .n = record_key.n};
    memcpy(job->key, record_key.p, record_key.n);
    pthread_mutex_lock(&s->lock);
    for (other = s->jobs; other; other = other->next, n++)
        if (other->kind == RADOS_FOLD && slice_eq(slice_of(other->key, other->n), record_key)) break;
    bool queued = !other && n < JOBS_MAX;
    if (queued) queue_job(s, job);
    pthread_mutex_unlock(&s->lock);
    if (!queued) free(job);
}

/* Without memory for the job the batches are applied when they are older. */
void jobs_add_replay(struct rados *s, uint32_t died) {
    struct rados_job *job = malloc(sizeof(*job)), *other;
    if (!job) return;
    *job = (struct rados_job){.kind = RADOS_REPLAY, .died = died};
    pthread_mutex_lock(&s->lock);
    for (other = s->jobs; other && (other->kind != RADOS_REPLAY || other->died != died);) other = other->next;
    if (!other) queue_job(s, job);
    pthread_mutex_unlock(&s->lock);
    if (other) free(job);
}

/* Without memory for the job the table stays in memory until the store is closed. */
void jobs_add_forget(struct rados *s, uint32_t table) {
    struct rados_job *job = malloc(sizeof(*job));
    if (!job) return;
    *job = (struct rados_job){.kind = RADOS_FORGET, .table = table};
    pthread_mutex_lock(&s->lock);
    queue_job(s, job);
    pthread_mutex_unlock(&s->lock);
}

bool jobs_take(struct rados *s, int64_t patience_us, struct rados_job **job) {
    pthread_mutex_lock(&s->lock);
    if (!s->jobs && !s->ends) clock_cond_wait(&s->more, &s->lock, patience_us);
    bool ends = s->ends;
    *job = ends ? NULL : s->jobs;
    if (*job && !(s->jobs = (*job)->next)) s->last_job = &s->jobs;
    pthread_mutex_unlock(&s->lock);
    return !ends;
}

void jobs_init(struct rados *s) {
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->more, NULL);
    s->last_job = &s->jobs;
}

void jobs_end(struct rados *s) {
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    pthread_cond_signal(&s->more);
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
