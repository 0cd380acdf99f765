#include "engine/rados/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/murmur3.h"

static int set_option(struct pool *p, const char *name, const char *value, struct err *e) {
    int rc = p->lib->conf_set(p->cluster, name, value);
    return rc < 0 ? err_set(e, ERR_CONFIG, "librados refuses %s = %s: %s", name, value, strerror(-rc)) : 0;
}

int pool_open(struct pool *p, const struct pool_options *o, struct err *e) {
    char seconds[16];
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
    if ((rc = p->lib->conf_read_file(p->cluster, o->conf)) < 0) {
        err_set(e, ERR_CONFIG, "cannot read Ceph's configuration %s: %s", o->conf, strerror(-rc));
        goto shutdown;
    }
    /* Without these an operation waits for ever, and a connection for 300 seconds. */
    snprintf(seconds, sizeof(seconds), "%u", p->timeout_s);
    if (set_option(p, "rados_osd_op_timeout", seconds, e) < 0) goto shutdown;
    if (set_option(p, "rados_mon_op_timeout", seconds, e) < 0) goto shutdown;
    if (set_option(p, "client_mount_timeout", seconds, e) < 0) goto shutdown;
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

void pool_close(struct pool *p) {
    int64_t until_us = clock_machine_us(&clock_real) + p->timeout_s * 1000000ll;
    pthread_mutex_lock(&p->lock);
    while (p->n_notifying && clock_machine_us(&clock_real) < until_us) clock_cond_wait(&p->ends, &p->lock, 1000000);
    bool ended = p->n_notifying == 0;
    pthread_mutex_unlock(&p->lock);
    if (ended) p->lib->ioctx_destroy(p->io); /* Q20 */
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

/* ---- the limit of operations on an object ---- */

enum { CHAINS = 256 };

/* An object that has operations in flight, or whose last operation has timed out. */
struct gated_object {
    struct gated_object *next;
    uint32_t in_flight, waiting;
    bool timed_out, retries; /* retries: the operation in flight is the one that is sent after a timeout */
    char name[];
};

struct pool_gate {
    pthread_mutex_t lock; /* of all fields */
    pthread_cond_t left;  /* an operation has ended */
    struct gated_object *chains[CHAINS];
    uint32_t n_retries; /* in flight */
};

struct pool_gate *pool_gate_new(void) {
    struct pool_gate *g = calloc(1, sizeof(*g));
    if (!g) return NULL;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->left, NULL);
    return g;
}

void pool_gate_free(struct pool_gate *g) {
    if (!g) return;
    for (size_t i = 0; i < CHAINS; i++)
        for (struct gated_object *x = g->chains[i], *next; x; x = next) {
            next = x->next;
            free(x);
        }
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->left);
    free(g);
}

/* With the lock. Returns the link that points to the object, or the NULL link at the end of its chain. */
static struct gated_object **find(struct pool_gate *g, const char *object) {
    struct gated_object **at = &g->chains[(uint64_t)murmur3_token(slice_str(object)) % CHAINS];
    while (*at && strcmp((*at)->name, object) != 0) at = &(*at)->next;
    return at;
}

/* With the lock. Frees an object that is no longer needed. */
static void free_if_idle(struct gated_object **at) {
    struct gated_object *x = *at;
    if (x->in_flight || x->waiting || x->timed_out) return;
    *at = x->next;
    free(x);
}

int pool_enter(struct pool_gate *g, const char *object) {
    int64_t until_us = clock_machine_us(&clock_real) + POOL_WAIT_US;
    int rc = 0;
    pthread_mutex_lock(&g->lock);
    struct gated_object **at = find(g, object), *x = *at;
    if (!x && (x = calloc(1, sizeof(*x) + strlen(object) + 1))) {
        memcpy(x->name, object, strlen(object));
        *at = x;
    }
    if (!x) rc = -ENOMEM;
    while (rc == 0 && x->in_flight >= (x->timed_out ? 1 : POOL_IN_FLIGHT)) {
        int64_t left_us = until_us - clock_machine_us(&clock_real);
        if (x->timed_out || left_us <= 0) {
            rc = -EBUSY;
            break;
        }
        x->waiting++;
        clock_cond_wait(&g->left, &g->lock, left_us);
        x->waiting--;
    }
    if (rc == 0 && x->timed_out && g->n_retries == POOL_RETRIES) rc = -EBUSY;
    if (rc == 0) {
        x->retries = x->timed_out;
        g->n_retries += x->retries;
        x->in_flight++;
    }
    assert(g->n_retries <= POOL_RETRIES && (!x || x->in_flight <= POOL_IN_FLIGHT)); /* Q25 */
    if (rc == -EBUSY) free_if_idle(find(g, object));
    pthread_mutex_unlock(&g->lock);
    return rc;
}

void pool_leave(struct pool_gate *g, const char *object, int rc) {
    pthread_mutex_lock(&g->lock);
    struct gated_object **at = find(g, object), *x = *at;
    x->in_flight--;
    g->n_retries -= x->retries;
    x->retries = false;
    x->timed_out = rc == -ETIMEDOUT;
    if (x->waiting) pthread_cond_broadcast(&g->left);
    free_if_idle(at);
    pthread_mutex_unlock(&g->lock);
}

/* ---- counts ---- */

const uint32_t eng_duration_bounds_us[ENG_DURATION_BOUNDS] = {
    500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000,
};

int64_t pool_began(struct pool_counts *c) {
    int64_t now_us = clock_machine_us(&clock_real), none = 0;
    atomic_fetch_add(&c->in_flight, 1);
    atomic_compare_exchange_strong(&c->silent_since_us, &none, now_us);
    return now_us;
}

void pool_ended(struct pool_counts *c, enum pool_use use, int64_t began_us, int rc) {
    struct pool_durations *d = &c->durations[use];
    int64_t us = clock_machine_us(&clock_real) - began_us;
    int i = 0;
    while (i < ENG_DURATION_BOUNDS && us > eng_duration_bounds_us[i]) i++;
    atomic_fetch_add(&d->n[i], 1);
    atomic_fetch_add(&d->sum_us, (uint64_t)us);
    atomic_fetch_sub(&c->in_flight, 1);
    if (rc == -ETIMEDOUT) atomic_fetch_add(&c->timeouts, 1);
    else atomic_store(&c->silent_since_us, 0);
    if (rc == -ECANCELED || rc == -EEXIST) atomic_fetch_add(&c->conflicts, 1);
    else if (rc < 0 && rc != -ENOENT && rc != -ETIMEDOUT) atomic_fetch_add(&c->failures, 1);
}

static uint64_t add_durations(const struct pool_durations *d, struct eng_durations *out) {
    uint64_t all = 0;
    for (int i = 0; i <= ENG_DURATION_BOUNDS; i++) all += out->n[i] = atomic_load(&d->n[i]);
    out->sum_us = atomic_load(&d->sum_us);
    return all;
}

void pool_figures(const struct pool_counts *c, struct eng_store_figures *out) {
    out->n[ENG_STORE_READS] = add_durations(&c->durations[POOL_READS], &out->reads);
    out->n[ENG_STORE_WRITES] = add_durations(&c->durations[POOL_WRITES], &out->writes);
    out->n[ENG_STORE_TIMEOUTS] = atomic_load(&c->timeouts);
    out->n[ENG_STORE_CONFLICTS] = atomic_load(&c->conflicts);
    out->n[ENG_STORE_FAILURES] = atomic_load(&c->failures);
    out->n[ENG_STORE_IN_FLIGHT] = atomic_load(&c->in_flight);
}

int64_t pool_silent_us(const struct pool_counts *c) {
    int64_t since_us = atomic_load(&c->silent_since_us);
    return since_us ? clock_machine_us(&clock_real) - since_us : 0;
}
