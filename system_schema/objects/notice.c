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

#include "system_schema/objects/objects.h"

int notices_reserve(struct objects *o, uint32_t n, struct err *e) {
    struct notices *q = &o->notices;
    while (q->n_spare < n) {
        struct notice *one = calloc(1, sizeof *one);
        if (!one) return err_nomem(e);
        one->next = q->spare;
        q->spare = one;
        q->n_spare++;
    }
    return 0;
}

uint64_t notice_queue(struct objects *o, const struct schema_change *change) {
    struct notices *q = &o->notices;
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

void object_describe(struct objects *o, enum schema_change_kind kind, const struct catalog_object *x,
                     struct schema_change *out) {
    *out = (struct schema_change){.kind = kind, .target = x->kind->target, .object = x->id};
    strncpy(out->keyspace, object_context(o, x).keyspace, sizeof out->keyspace - 1);
    if (x->kind->in_keyspace) strncpy(out->name, x->name, sizeof out->name - 1);
}

uint64_t object_notify(struct objects *o, enum schema_change_kind kind, const struct catalog_object *x) {
    struct schema_change change;
    object_describe(o, kind, x, &change);
    return notice_queue(o, &change);
}

void notices_deliver(struct objects *o, uint64_t upto) {
    struct notices *q = &o->notices;
    pthread_mutex_lock(&o->lock);
    while (q->delivered < upto) {
        if (q->delivering) {
            pthread_cond_wait(&q->moved, &o->lock);
            continue;
        }
        /* The notice stays at the head of the queue while listeners are called, so that
         * notices_await_name finds it. */
        struct notice *n = q->first;
        q->delivering = true;
        pthread_mutex_unlock(&o->lock);
        for (const struct catalog_listener *l = q->listeners; l; l = l->next) l->changed(l->arg, &n->change);
        pthread_mutex_lock(&o->lock);
        assert(q->delivering && q->first == n); /* N1 */
        q->delivering = false;
        q->first = n->next;
        if (!q->first) q->last = NULL;
        q->delivered++;
        free(n);
        pthread_cond_broadcast(&q->moved);
    }
    pthread_mutex_unlock(&o->lock);
}

bool notices_free_name(const struct objects *o, const char *keyspace, const char *name) {
    for (const struct notice *n = o->notices.first; n; n = n->next) {
        const struct schema_change *gone = &n->change;
        if (gone->kind != CHANGE_GONE || strcmp(gone->keyspace, keyspace) != 0) continue;
        /* GONE of a keyspace frees all names in it. */
        if (gone->target == TARGET_KEYSPACE || (name && strcmp(gone->name, name) == 0)) return true;
    }
    return false;
}

bool notices_name_object(const struct objects *o, uint32_t object) {
    const struct notice *n = o->notices.first;
    while (n && n->change.object != object) n = n->next;
    return n != NULL;
}

void notices_await_name(struct objects *o, const char *keyspace, const char *name) {
    while (notices_free_name(o, keyspace, name)) pthread_cond_wait(&o->notices.moved, &o->lock);
}

/* The place of the listener in the list, or the list's end, once nothing is being delivered. The
 * lock is held. */
static struct catalog_listener **place_of(struct objects *o, const struct catalog_listener *l) {
    while (o->notices.delivering) pthread_cond_wait(&o->notices.moved, &o->lock);
    struct catalog_listener **at = &o->notices.listeners;
    while (*at && *at != l) at = &(*at)->next;
    return at;
}

void catalog_on_change(struct catalog *c, struct catalog_listener *l) {
    struct objects *o = c->objects;
    pthread_mutex_lock(&o->lock);
    l->next = NULL;
    *place_of(o, l) = l;
    pthread_mutex_unlock(&o->lock);
}

void catalog_off_change(struct catalog *c, struct catalog_listener *l) {
    struct objects *o = c->objects;
    pthread_mutex_lock(&o->lock);
    struct catalog_listener **at = place_of(o, l);
    if (*at) *at = l->next;
    pthread_mutex_unlock(&o->lock);
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
