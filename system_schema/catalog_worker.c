/* The way of a change from its first status to its last: due after the DDL delay, then visible, then (when deleted) freed. */
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "system_schema/catalog_state.h"

static const int64_t retry_us = 1000000;

static uint64_t next_random(struct catalog *c) {
    uint64_t x = c->random += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static int64_t delay_us(struct catalog *c) {
    int64_t span = c->delay.max_ms - c->delay.min_ms;
    switch (c->delay.kind) {
    case DDL_NONE: return 0;
    case DDL_FIXED: return c->delay.min_ms * 1000;
    case DDL_RANGE: return (c->delay.min_ms + (int64_t)(next_random(c) % (uint64_t)(span + 1))) * 1000;
    case DDL_HELD: return -1;
    case DDL_REALISTIC: break;
    }
    /* Short waits are common and long ones rare: the cube of an even draw. */
    double u = (double)(next_random(c) >> 11) / 9007199254740992.0;
    return (c->delay.min_ms + (int64_t)(u * u * u * (double)span)) * 1000;
}

bool entry_is_pending(const struct entry *x) { return x->status != SCHEMA_ACTIVE && !x->gone; }

static bool keeps_shape(struct catalog *c, const struct entry *x) {
    const struct object_place at = entry_place(c, x);
    struct arena a;
    struct err e = {0};
    arena_init(&a, 16 * 1024, 0);
    const void *now = x->kind->decode(x->form, &at, &a, &e), *next = x->kind->decode(x->next, &at, &a, &e);
    bool same = now && next && x->kind->same_shape(now, next);
    arena_fini(&a);
    return same;
}

/* They point to their keyspace's definition. */
static void touch_objects(struct catalog *c, const struct entry *ks) {
    for (uint32_t i = 0; i < c->n_entries; i++)
        if (c->entries[i]->keyspace_id == ks->id) entry_touch(c, c->entries[i]);
}

/* To the final status, in memory. */
static void finish(struct catalog *c, struct entry *x) {
    x->due_us = INT64_MAX;
    if (x->status == SCHEMA_DELETING) {
        x->gone = true;
        entry_touch(c, x);
        return;
    }
    if (x->status == SCHEMA_UPDATING && x->next.n) {
        if (x->kind == &keyspace_kind) touch_objects(c, x);
        x->shape += !keeps_shape(c, x);
        free((void *)x->form.p);
        x->form = x->next;
        x->next = slice_of(NULL, 0);
        if (x->kind == &type_kind) type_touch_users(c, x);
    }
    entry_set_status(c, x, SCHEMA_ACTIVE);
}

void entry_begin(struct catalog *c, struct entry *x) {
    int64_t delay = delay_us(c);
    if (delay == 0) finish(c, x);
    else x->due_us = delay < 0 ? INT64_MAX : clock_mono_us(c->clock) + delay;
}

static void tell_engine(struct catalog *c, const struct entry *x) {
    if (x->shown) eng_table_set(c->eng, x->storage, x->shown->gc_grace_seconds);
}

static void move_on(struct catalog *c, struct entry *x) {
    struct err e = {0};
    enum schema_status from = x->status;
    struct entry before = *x;
    finish(c, x);
    if (x->status == SCHEMA_ACTIVE && entry_save(c, x, &e)) {
        /* Still done in memory; the record says it is under way, so a restart does it again. */
        log_error("catalog: %s of %s is not recorded: %s", schema_status_name(from), before.name, e.text);
        err_clear(&e);
    }
    if (catalog_publish(c, &e)) log_error("catalog: no snapshot: %s", e.text);
    else if (!x->gone) tell_engine(c, x);
    if (from == SCHEMA_CREATING) catalog_notify(c, CHANGE_CREATED, x);
    if (from == SCHEMA_UPDATING) catalog_notify(c, CHANGE_UPDATED, x);
    pthread_cond_broadcast(&c->moved);
}

/* Gone, told in a snapshot, and nothing lives in it any more: its data and its record can go. */
static bool is_garbage(const struct entry *x) { return x->gone && !x->freeing && !x->touched && x->n_objects == 0; }

/* Frees the data and the record of one deleted object; the lock is let go while the engine works. A keyspace goes after its
 * tables: its record is what makes a restart delete them. */
static bool free_one(struct catalog *c, int64_t now) {
    struct entry *x = c->busy;
    while (x && (!is_garbage(x) || (x->due_us != INT64_MAX && x->due_us > now))) x = x->busy_next;
    if (!x) return false;
    x->freeing = true;
    struct err e = {0};
    pthread_mutex_unlock(&c->lock);
    int rc = x->kind->has_rows ? eng_table_drop(c->eng, x->storage, &e) : 0;
    pthread_mutex_lock(&c->lock);
    x->freeing = false;
    if (rc == 0) rc = entry_erase(c, x, &e);
    if (rc) {
        log_error("catalog: %s is not freed yet: %s", x->name, e.text);
        x->due_us = now + retry_us;
        return true;
    }
    entry_remove(c, x);
    pthread_cond_broadcast(&c->moved);
    return true;
}

static int64_t next_due(const struct catalog *c) {
    int64_t next = INT64_MAX;
    for (const struct entry *x = c->busy; x; x = x->busy_next)
        if (x->due_us < next) next = x->due_us;
    return next;
}

/* One that is due moves on, if there is one. */
static bool move_one(struct catalog *c, int64_t now) {
    struct entry *x = c->busy;
    while (x && (!entry_is_pending(x) || x->due_us > now)) x = x->busy_next;
    if (x) move_on(c, x);
    return x;
}

/* A change that no snapshot could be made for is told as soon as one can be. */
static void publish_late(struct catalog *c) {
    struct err e = {0};
    if (c->touched && catalog_publish(c, &e)) log_error("catalog: no snapshot: %s", e.text);
}

int64_t catalog_step(struct catalog *c) {
    pthread_mutex_lock(&c->lock);
    int64_t now = clock_mono_us(c->clock);
    while (move_one(c, now)) continue;
    publish_late(c);
    while (!c->closing && free_one(c, now)) continue;
    int64_t next = next_due(c);
    pthread_mutex_unlock(&c->lock);
    return next;
}

static bool has_garbage(const struct catalog *c) {
    for (const struct entry *x = c->busy; x; x = x->busy_next)
        if (is_garbage(x) && x->due_us == INT64_MAX) return true;
    return false;
}

static void wait_until(struct catalog *c, int64_t due_us) {
    if (due_us == INT64_MAX) {
        pthread_cond_wait(&c->moved, &c->lock);
        return;
    }
    int64_t wait_us = due_us - clock_mono_us(c->clock); /* of the service's time; who moves it wakes */
    if (wait_us <= 0) return;
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += wait_us / 1000000;
    at.tv_nsec += (wait_us % 1000000) * 1000;
    if (at.tv_nsec >= 1000000000) at.tv_sec++, at.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&c->moved, &c->lock, &at);
}

static void *work(void *arg) {
    struct catalog *c = arg;
    pthread_mutex_lock(&c->lock);
    while (!c->closing) {
        pthread_mutex_unlock(&c->lock);
        (void)catalog_step(c);
        pthread_mutex_lock(&c->lock);
        if (!c->closing && !has_garbage(c)) wait_until(c, next_due(c));
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

int worker_start(struct catalog *c, struct err *e) {
    if (pthread_create(&c->worker, NULL, work, c)) return err_set(e, ERR_SERVER, "the catalogue's thread does not start");
    c->has_worker = true;
    return 0;
}

void worker_stop(struct catalog *c) {
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    pthread_cond_broadcast(&c->moved);
    pthread_mutex_unlock(&c->lock);
    if (c->has_worker) pthread_join(c->worker, NULL);
    c->has_worker = false;
}

void catalog_clock_moved(struct catalog *c) {
    pthread_mutex_lock(&c->lock);
    pthread_cond_broadcast(&c->moved);
    pthread_mutex_unlock(&c->lock);
}

void catalog_release_held(struct catalog *c) {
    pthread_mutex_lock(&c->lock);
    int64_t now = clock_mono_us(c->clock);
    for (struct entry *x = c->busy; x; x = x->busy_next)
        if (entry_is_pending(x)) x->due_us = now;
    pthread_cond_broadcast(&c->moved);
    pthread_mutex_unlock(&c->lock);
}
