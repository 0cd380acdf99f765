#include "engine/rados/pool_gate.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/murmur3.h"

enum { CHAINS = 256 };

/* An object that has operations in flight, or whose last operation has timed out. */
struct entry {
    struct entry *next;
    uint32_t in_flight, waiting;
    bool timed_out, retries; /* retries: the operation in flight is the one that is sent after a timeout */
    char name[];
};

struct pool_gate {
    pthread_mutex_t lock; /* of all fields */
    pthread_cond_t left;  /* an operation has ended */
    struct entry *chains[CHAINS];
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
        for (struct entry *x = g->chains[i], *next; x; x = next) {
            next = x->next;
            free(x);
        }
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->left);
    free(g);
}

/* With the lock. Returns the link that points to the object's entry, or the NULL link at the end of its chain. */
static struct entry **find(struct pool_gate *g, const char *object) {
    struct entry **at = &g->chains[(uint64_t)murmur3_token(slice_str(object)) % CHAINS];
    while (*at && strcmp((*at)->name, object) != 0) at = &(*at)->next;
    return at;
}

/* With the lock. Frees an entry that is no longer needed. */
static void free_if_idle(struct entry **at) {
    struct entry *x = *at;
    if (x->in_flight || x->waiting || x->timed_out) return;
    *at = x->next;
    free(x);
}

int pool_enter(struct pool_gate *g, const char *object) {
    int64_t until_us = clock_machine_us(&clock_real) + POOL_WAIT_US;
    int rc = 0;
    pthread_mutex_lock(&g->lock);
    struct entry **at = find(g, object), *x = *at;
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
    struct entry **at = find(g, object), *x = *at;
    x->in_flight--;
    g->n_retries -= x->retries;
    x->retries = false;
    x->timed_out = rc == -ETIMEDOUT;
    if (x->waiting) pthread_cond_broadcast(&g->left);
    free_if_idle(at);
    pthread_mutex_unlock(&g->lock);
}
