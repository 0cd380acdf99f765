/* A connection to a cluster and one of its pools. Any number of threads use it. Each operation
 * ends: after the timeout librados answers -ETIMEDOUT, and a write may then have happened or not. */
#pragma once

#include "engine/rados/librados.h"
#include "engine/rados/pool_counts.h"

struct pool_options {
    const char *conf;   /* path of ceph.conf */
    const char *pool;
    unsigned timeout_s; /* of one operation; 0: POOL_TIMEOUT_S */
};

enum { POOL_TIMEOUT_S = 10 };

struct pool {
    const struct librados *lib;
    void *cluster, *io;
    struct pool_counts *counts;
};

/* Connects. librados starts threads, so call it after a process has become a daemon. -1, ERR_CONFIG:
 * the library, the file, the cluster or the pool is not there. */
int pool_open(struct pool *p, const struct pool_options *o, struct err *e) MUST_CHECK;
void pool_close(struct pool *p);

/* Calls fn with the name of each object of the pool, until it returns less than 0. 0, fn's result or
 * another negative error number. */
typedef int (*pool_object_fn)(void *arg, const char *name);
int pool_each_object(const struct pool *p, pool_object_fn fn, void *arg) MUST_CHECK;

/* Fills e for a negative result of librados and returns -1. ERR_READ_TIMEOUT or ERR_WRITE_TIMEOUT
 * after -ETIMEDOUT, else ERR_SERVER. */
int pool_error(struct err *e, int rc, enum pool_use use, const char *object) COLD;
