#include <stdlib.h>

#include "base/clock.h"
#include "engine/rados/jobs.h"

enum { JOBS_MAX = 1024 /* further folds are left to later readers */ };

static int queue_job(struct rados *s, struct shard *sh, struct slice key) {
    struct rados_job *job = malloc(sizeof(*job) + key.n), *other;
    size_t n = 0;
    if (!job) return -1;
    *job = (struct rados_job){.shard = sh, .n = key.n};
    if (key.n) memcpy(job->key, key.p, key.n);
    pthread_mutex_lock(&s->lock);
    for (other = s->jobs; other; other = other->next, n++)
        if (!sh && !other->shard && slice_eq(slice_of(other->key, other->n), key)) break;
    bool queued = !other && (sh || n < JOBS_MAX);
    if (queued) {
        *s->last_job = job;
        s->last_job = &job->next;
        pthread_cond_signal(&s->more);
    }
    pthread_mutex_unlock(&s->lock);
    if (!queued) free(job);
    return queued ? 0 : -1;
}

void jobs_add_split(struct rados *s, struct shard *sh) {
    if (atomic_exchange(&sh->will_split, true)) return;
    if (queue_job(s, sh, slice_of("", 0)) < 0) atomic_store(&sh->will_split, false);
}

void jobs_add_fold(struct rados *s, struct slice record_key) {
    if (queue_job(s, NULL, record_key) < 0) return; /* a later reader asks again */
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
