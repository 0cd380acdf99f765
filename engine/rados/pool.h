/* A connection to a cluster and one of its pools, used by any number of threads. Each operation ends: after the
 * timeout librados returns -ETIMEDOUT, and a write may then have been applied or not.
 *
 * Q20. librados uses the handle of a pool when a notification ends, and holds no reference to it. So
 *      pool_close destroys the handle only when no notification is under way. It waits for them; the
 *      answers of the watchers, or their timeout, end them within a second or so. The handle is
 *      not destroyed if the cluster has not ended them within the timeout of an operation.
 * Q25. At most POOL_IN_FLIGHT operations of a store are in flight on one object. A further operation waits for up to
 *      POOL_WAIT_US and is then refused. After an operation on an object has timed out, the store sends one operation
 *      at a time to the object and refuses the others at once, until the object answers. At most POOL_RETRIES such
 *      operations are in flight on all objects together. So an object whose OSD hangs blocks few threads.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "engine/stats.h"
#include "engine/rados/librados.h"

struct pool_options {
    const char *conf;   /* path of ceph.conf */
    const char *pool;
    unsigned timeout_s; /* of one operation; 0 means POOL_TIMEOUT_S */
};

enum { POOL_TIMEOUT_S = 10, POOL_NOTIFY_MS = 1000 };
enum { POOL_IN_FLIGHT = 16, POOL_RETRIES = 16, POOL_WAIT_US = 1000000 };
enum pool_use { POOL_READS, POOL_WRITES };
enum { POOL_USES = POOL_WRITES + 1 };

/* Counts of the operations on a pool, and whether the cluster answers. */
struct pool_counts {
    struct pool_durations {
        _Atomic uint64_t n[ENG_DURATION_BOUNDS + 1];
        _Atomic uint64_t sum_us;
    } durations[POOL_USES];
    _Atomic uint64_t timeouts, conflicts, failures, in_flight;
    /* When the first operation since the latest answer began; 0 if none has begun since. */
    _Atomic int64_t silent_since_us;
};

struct pool_gate;

struct pool {
    const struct librados *lib;
    void *cluster, *io;
    struct pool_counts *counts;
    struct pool_gate *gate;
    unsigned timeout_s; /* of one operation */
    pthread_mutex_t lock; /* of the next two lines */
    pthread_cond_t ends;
    uint32_t n_notifying; /* notifications under way */
};

/* Connects. librados starts threads, so call it after a process has become a daemon. Returns -1 with ERR_CONFIG if
 * the library, the file, the cluster or the pool is missing. */
int pool_open(struct pool *p, const struct pool_options *o, struct err *e) MUST_CHECK;
void pool_close(struct pool *p);

/* Removes an object. Returns 0, -ENOENT if it does not exist, or another negative error number. */
int pool_remove(const struct pool *p, const char *object) MUST_CHECK;

/* Notifies the watchers of an object. Does not wait for their answers: the answer of a server that was
 * killed would take as long as POOL_NOTIFY_MS. */
void pool_notify(struct pool *p, const char *object);

/* Calls fn with the name of each object of the pool, until it returns less than 0. Returns 0, fn's result or
 * another negative error number. */
typedef int (*pool_object_fn)(void *arg, const char *name);
int pool_each_object(const struct pool *p, pool_object_fn fn, void *arg) MUST_CHECK;

/* Fills e for a negative result of librados and returns -1: ERR_READ_TIMEOUT or ERR_WRITE_TIMEOUT
 * after -ETIMEDOUT, ERR_OVERLOADED after -EBUSY (Q25), else ERR_SERVER. -EBADMSG means that the object contains
 * something that no server has written. */
int pool_error(struct err *e, int rc, enum pool_use use, const char *object) COLD;

/* ---- the limit of operations on an object ---- */

struct pool_gate *pool_gate_new(void) MUST_CHECK; /* NULL if memory is exhausted */
void pool_gate_free(struct pool_gate *g);
/* Call it before an operation on the object. Returns 0, -ENOMEM, or -EBUSY if the operation is refused. */
int pool_enter(struct pool_gate *g, const char *object) MUST_CHECK;
/* Call it after an operation for which pool_enter returned 0. rc: the operation's result. */
void pool_leave(struct pool_gate *g, const char *object, int rc);

/* ---- counts ---- */

/* Counts an operation that begins; returns the machine's time. */
int64_t pool_began(struct pool_counts *c) MUST_CHECK;
/* Counts the end of an operation. rc: the result of librados. */
void pool_ended(struct pool_counts *c, enum pool_use use, int64_t began_us, int rc);
void pool_figures(const struct pool_counts *c, struct eng_store_figures *out);
/* Returns for how long operations have been waiting without any answer, or 0 if the cluster answers. A
 * store that watches its named records begins an operation every second. */
int64_t pool_silent_us(const struct pool_counts *c);
