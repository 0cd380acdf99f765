#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/rados/pool.h"

static int set_option(struct pool *p, const char *name, const char *value, struct err *e) {
    int rc = p->lib->conf_set(p->cluster, name, value);
    return rc < 0 ? err_set(e, ERR_CONFIG, "librados refuses %s = %s: %s", name, value, strerror(-rc)) : 0;
}

static int configure(struct pool *p, const struct pool_options *o, struct err *e) {
    char seconds[16];
    snprintf(seconds, sizeof(seconds), "%u", p->timeout_s);
    int rc = p->lib->conf_read_file(p->cluster, o->conf);
    if (rc < 0) return err_set(e, ERR_CONFIG, "cannot read Ceph's configuration %s: %s", o->conf, strerror(-rc));
    /* Without these an operation waits for ever, and a connection for 300 seconds. */
    if (set_option(p, "rados_osd_op_timeout", seconds, e) < 0) return -1;
    if (set_option(p, "rados_mon_op_timeout", seconds, e) < 0) return -1;
    return set_option(p, "client_mount_timeout", seconds, e);
}

int pool_open(struct pool *p, const struct pool_options *o, struct err *e) {
    int rc;
    *p = (struct pool){.lib = librados_load(e),
                       .timeout_s = o->timeout_s ? o->timeout_s : POOL_TIMEOUT_S,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .ends = PTHREAD_COND_INITIALIZER};
    if (!p->lib) return -1;
    p->counts = calloc(1, sizeof(*p->counts));
    p->gate = pool_gate_new();
    if (!p->counts || !p->gate) {
        err_nomem(e);
        goto free_counts;
    }
    if ((rc = p->lib->create(&p->cluster, NULL)) < 0) {
        err_set(e, ERR_CONFIG, "librados: %s", strerror(-rc));
        goto free_counts;
    }
    if (configure(p, o, e) < 0) goto shutdown;
    if ((rc = p->lib->connect(p->cluster)) < 0) {
        err_set(e, ERR_CONFIG, "cannot connect to the Ceph cluster of %s: %s", o->conf, strerror(-rc));
        goto shutdown;
    }
    if ((rc = p->lib->ioctx_create(p->cluster, o->pool, &p->io)) < 0) {
        err_set(e, ERR_CONFIG, "cannot open pool '%s' of the Ceph cluster: %s", o->pool, strerror(-rc));
        goto shutdown;
    }
    return 0;
shutdown:
    p->lib->shutdown(p->cluster);
free_counts:
    free(p->counts);
    pool_gate_free(p->gate);
    return -1;
}

int pool_remove(const struct pool *p, const char *object) {
    int rc = pool_enter(p->gate, object);
    if (rc < 0) return rc;
    rc = p->lib->remove(p->io, object);
    pool_leave(p->gate, object, rc);
    return rc;
}

/* A thread of librados. */
static void notified(void *completion, void *arg) {
    struct pool *p = arg;
    (void)completion;
    pthread_mutex_lock(&p->lock);
    p->n_notifying--;
    pthread_cond_signal(&p->ends);
    pthread_mutex_unlock(&p->lock);
}

void pool_notify(struct pool *p, const char *object) {
    void *completion;
    if (p->lib->aio_create_completion2(p, notified, &completion) < 0) return;
    pthread_mutex_lock(&p->lock);
    p->n_notifying++;
    pthread_mutex_unlock(&p->lock);
    int rc = p->lib->aio_notify(p->io, object, completion, "", 0, POOL_NOTIFY_MS, NULL, NULL);
    if (rc < 0) notified(completion, p);
    p->lib->aio_release(completion);
}

/* Whether all notifications have ended. */
static bool wait_for_notifications(struct pool *p) {
    int64_t until_us = clock_machine_us(&clock_real) + p->timeout_s * 1000000ll;
    pthread_mutex_lock(&p->lock);
    while (p->n_notifying && clock_machine_us(&clock_real) < until_us) clock_cond_wait(&p->ends, &p->lock, 1000000);
    bool ended = p->n_notifying == 0;
    pthread_mutex_unlock(&p->lock);
    return ended;
}

void pool_close(struct pool *p) {
    if (wait_for_notifications(p)) p->lib->ioctx_destroy(p->io); /* Q20 */
    p->lib->shutdown(p->cluster); /* ends the threads of librados */
    free(p->counts);
    pool_gate_free(p->gate);
}

int pool_each_object(const struct pool *p, pool_object_fn fn, void *arg) {
    const char *name;
    void *list;
    int rc = p->lib->nobjects_list_open(p->io, &list);
    if (rc < 0) return rc;
    while ((rc = p->lib->nobjects_list_next(list, &name, NULL, NULL)) == 0)
        if ((rc = fn(arg, name)) < 0) break;
    p->lib->nobjects_list_close(list);
    return rc == -ENOENT ? 0 : rc;
}

int pool_error(struct err *e, int rc, enum pool_use use, const char *object) {
    const char *what = use == POOL_READS ? "read" : "write";
    if (rc == -ETIMEDOUT)
        return err_set(e, use == POOL_READS ? ERR_READ_TIMEOUT : ERR_WRITE_TIMEOUT,
                       "the Ceph cluster did not answer a %s in time (object %s)", what, object);
    if (rc == -EBUSY)
        return err_set(e, ERR_OVERLOADED,
                       "the Ceph cluster does not answer operations on object %s; this %s was not sent", object, what);
    if (rc == -ENOMEM) return err_nomem(e);
    if (rc == -EBADMSG)
        return err_set(e, ERR_SERVER, "object %s of the Ceph pool is damaged, or a piece of it; tally verify names the "
                       "records", object);
    return err_set(e, ERR_SERVER, "Ceph refused a %s of object %s: %s", what, object, strerror(-rc));
}
