/* Notices: messages to listeners about changes of the schema.
 *
 * Life of a notice: the thread that changes an object reserves it before the change is recorded, so
 * that nothing can fail afterwards. It queues the notice when the change is visible in the current
 * snapshot, and delivers the queue after it has released the catalogue's lock. A listener may wait
 * for the disk, or for a lock of its own: only statements with a later notice in the queue wait for
 * it.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "system_schema/catalog_state.h"

int notices_reserve(struct catalog *c, uint32_t n, struct err *e) {
    struct notices *q = &c->notices;
    while (q->n_spare < n) {
        struct notice *one = calloc(1, sizeof *one);
        if (!one) return err_nomem(e);
        one->next = q->spare;
        q->spare = one;
        q->n_spare++;
    }
    return 0;
}

uint64_t notice_queue(struct catalog *c, const struct schema_change *change) {
    struct notices *q = &c->notices;
    struct notice *n = q->spare;
    assert(n);
    q->spare = n->next;
    q->n_spare--;
    n->next = NULL;
    n->change = *change;
    if (q->last) q->last->next = n;
    else q->first = n;
    q->last = n;
    return ++q->queued;
}

void notices_deliver(struct catalog *c, uint64_t upto) {
    struct notices *q = &c->notices;
    pthread_mutex_lock(&c->lock);
    while (q->delivered < upto) {
        if (q->delivering) {
            pthread_cond_wait(&q->moved, &c->lock);
            continue;
        }
        /* The notice stays at the head of the queue while listeners are called, so that
         * notices_await_name finds it. */
        struct notice *n = q->first;
        q->delivering = true;
        pthread_mutex_unlock(&c->lock);
        for (uint32_t i = 0; i < q->n_listeners; i++) q->listeners[i].cb(q->listeners[i].arg, &n->change);
        pthread_mutex_lock(&c->lock);
        assert(q->delivering && q->first == n); /* N1 */
        q->delivering = false;
        q->first = n->next;
        if (!q->first) q->last = NULL;
        q->delivered++;
        free(n);
        pthread_cond_broadcast(&q->moved);
    }
    pthread_mutex_unlock(&c->lock);
}

bool notices_free_name(const struct catalog *c, const char *keyspace, const char *name) {
    for (const struct notice *n = c->notices.first; n; n = n->next) {
        const struct schema_change *gone = &n->change;
        if (gone->kind != CHANGE_GONE || strcmp(gone->keyspace, keyspace) != 0) continue;
        /* GONE of a keyspace frees all names in it. */
        if (gone->target == TARGET_KEYSPACE || (name && strcmp(gone->name, name) == 0)) return true;
    }
    return false;
}

bool notices_name_object(const struct catalog *c, uint32_t object) {
    const struct notice *n = c->notices.first;
    while (n && n->change.object != object) n = n->next;
    return n != NULL;
}

void notices_await_name(struct catalog *c, const char *keyspace, const char *name) {
    while (notices_free_name(c, keyspace, name)) pthread_cond_wait(&c->notices.moved, &c->lock);
}

void catalog_on_change(struct catalog *c, catalog_change_cb cb, void *arg) {
    struct notices *q = &c->notices;
    pthread_mutex_lock(&c->lock);
    while (q->delivering) pthread_cond_wait(&q->moved, &c->lock);
    assert(q->n_listeners < MAX_LISTENERS);
    q->listeners[q->n_listeners++] = (struct listener){cb, arg};
    pthread_mutex_unlock(&c->lock);
}

void catalog_off_change(struct catalog *c, catalog_change_cb cb, void *arg) {
    struct notices *q = &c->notices;
    uint32_t kept = 0;
    pthread_mutex_lock(&c->lock);
    while (q->delivering) pthread_cond_wait(&q->moved, &c->lock);
    for (uint32_t i = 0; i < q->n_listeners; i++)
        if (q->listeners[i].cb != cb || q->listeners[i].arg != arg) q->listeners[kept++] = q->listeners[i];
    q->n_listeners = kept;
    pthread_mutex_unlock(&c->lock);
}

static void free_all(struct notice *n) {
    for (struct notice *next; n; n = next) {
        next = n->next;
        free(n);
    }
}

void notices_init(struct notices *q) { pthread_cond_init(&q->moved, NULL); }

void notices_fini(struct notices *q) {
    free_all(q->first);
    free_all(q->spare);
    pthread_cond_destroy(&q->moved);
}
