/* A connection to a cluster and one of its pools. Any number of threads use it. Each operation
 * ends: after the timeout librados answers -ETIMEDOUT, and a write may then have happened or not.
 *
 * Q20. librados uses the handle of a pool when a notification ends, and holds no reference to it. So
 *      pool_close destroys the handle only when no notification is under way. It waits for them; the
 *      answers of the watchers, or their time, end them within a second or so. The handle stays
 *      undestroyed when the cluster has not ended them within the timeout of an operation.
 */
#pragma once

#include <pthread.h>

#include "engine/rados/librados.h"
#include "engine/rados/pool_counts.h"
#include "engine/rados/pool_gate.h"

struct pool_options {
    const char *conf;   /* path of ceph.conf */
    const char *pool;
    unsigned timeout_s; /* of one operation; 0 means POOL_TIMEOUT_S */
};

enum { POOL_TIMEOUT_S = 10, POOL_NOTIFY_MS = 1000 };

struct pool {
    const struct librados *lib;
    void *cluster, *io;
    struct pool_counts *counts;
    struct pool_gate *gate;
    unsigned timeout_s; /* of one operation */
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t ends;
    uint32_t n_notifying; /* notifications under way */
};

/* Connects. librados starts threads, so call it after a process has become a daemon. -1, ERR_CONFIG:
 * the library, the file, the cluster or the pool is not there. */
int pool_open(struct pool *p, const struct pool_options *o, struct err *e) MUST_CHECK;
void pool_close(struct pool *p);

/* Removes an object. 0, or a negative error number; -ENOENT: there is none. */
int pool_remove(const struct pool *p, const char *object) MUST_CHECK;

/* Notifies the watchers of an object. Does not wait for their answers: that of a server that was
 * killed would take as long as POOL_NOTIFY_MS. */
void pool_notify(struct pool *p, const char *object);

/* Calls fn with the name of each object of the pool, until it returns less than 0. 0, fn's result or
 * another negative error number. */
typedef int (*pool_object_fn)(void *arg, const char *name);
int pool_each_object(const struct pool *p, pool_object_fn fn, void *arg) MUST_CHECK;

/* Fills e for a negative result of librados and returns -1. ERR_READ_TIMEOUT or ERR_WRITE_TIMEOUT
 * after -ETIMEDOUT, ERR_OVERLOADED after -EBUSY (Q25), else ERR_SERVER. -EBADMSG: the object holds
 * what no server has written. */
int pool_error(struct err *e, int rc, enum pool_use use, const char *object) COLD;
