/* The recovery worker does the long-running work on histories: it writes the rows of restored
 * tables, begins histories of tables that hold rows, rolls histories up as the window moves, and
 * frees histories that can no longer be restored from. It also frees rows that belong to no
 * object (recovery/stray.c). It releases the catalogue's lock while the engine works. */
#include "base/log.h"
#include "engine/history.h"
#include "system_schema/recovery/recovery.h"

enum { ROLLS_PER_WINDOW = 64, PAUSE_MS_MAX = 60000, RETRY_MS = 1000 };

static void say(const struct history *h, const char *what, const struct err *e) {
    log_error("%s of %s.%s: %s", what, h->keyspace, h->name, e->text);
}

/* ---- restoring ---- */

/* Every job returns 1: done; 0 if nothing to do; -1 if failed, try again later. */
static int restore_one(struct recovery *r) {
    struct objects *o = r->objects;
    struct catalog_object *x = o->busy;
    while (x && !(x->change && x->change->waits)) x = x->busy_next;
    if (!x) return 0;
    struct history *h = r->histories;
    while (h && h->id != x->restored_from) h = h->next;
    struct err e = {0};
    if (h) {
        uint32_t id = x->id, storage = x->storage;
        int64_t at_us = x->restored_at_us;
        h->users++;
        pthread_mutex_unlock(&o->lock);
        int rc = eng_history_restore(o->eng, h->id, at_us, storage, &e);
        pthread_mutex_lock(&o->lock);
        h->users--;
        if (rc && e.code != ERR_INVALID) {
            say(h, "a table is not restored yet from the history", &e);
            return -1;
        }
        x = object_by_id(o, id); /* the records may have been read again */
        if (!x || !x->change || !x->change->waits) return 1;
        if (rc) change_fail_with(x->change, e.text); /* the moment is now outside the window */
    } else {
        change_fail_with(x->change, "what it is restored from is gone");
    }
    x->change->waits = false;
    objects_moved(o);
    return 1;
}

/* ---- beginning ---- */

static int begin_one(struct recovery *r) {
    struct objects *o = r->objects;
    struct history *h = r->histories;
    struct err e = {0};
    while (h && (h->begun || h->unwanted)) h = h->next;
    struct catalog_object *x = h ? object_by_id(o, h->table) : NULL;
    if (!h) return 0;
    if (!x || recovery_record(r, h, &e)) return -1;
    uint32_t storage = x->storage;
    h->users++;
    pthread_mutex_unlock(&o->lock);
    int rc = eng_history_begin(o->eng, storage, h->id, true, 0, &e);
    pthread_mutex_lock(&o->lock);
    h->users--;
    x = h->table ? object_by_id(o, h->table) : NULL;
    if (!x || h->unwanted) {
        eng_history_end(o->eng, storage); /* the table or its property is gone meanwhile */
        return 1;
    }
    if (!rc) rc = recovery_begun(r, h, x, &e);
    if (rc) say(h, "the history has not begun yet", &e);
    return rc ? -1 : 1;
}

/* ---- as the window moves ---- */

static bool is_over(struct recovery *r, const struct history *h) {
    return h->unwanted || (h->gone_us != INT64_MAX && h->gone_us < clock_wall_us(r->objects->clock) - r->window_us);
}

static int free_one(struct recovery *r) {
    struct objects *o = r->objects;
    struct history **at = &r->histories;
    struct err e = {0};
    while (*at && (!is_over(r, *at) || (*at)->users)) at = &(*at)->next;
    struct history *h = *at;
    if (!h) return 0;
    h->unwanted = true;
    h->users++;
    pthread_mutex_unlock(&o->lock);
    int rc = eng_history_drop(o->eng, h->id, &e);
    pthread_mutex_lock(&o->lock);
    h->users--;
    if (!rc) rc = recovery_erase(r, h, &e);
    if (rc) say(h, "the history is not freed yet", &e);
    return rc ? -1 : 1;
}

/* The moment up to which the history is to be rolled up; INT64_MIN: not yet. It follows the
 * window in steps, so that little is rolled up twice. */
static int64_t floor_of(struct recovery *r, const struct history *h) {
    int64_t floor = clock_wall_us(r->objects->clock) - r->window_us, step = r->window_us / ROLLS_PER_WINDOW;
    return h->begun && !is_over(r, h) && floor - eng_history_since(r->objects->eng, h->id) >= step ? floor : INT64_MIN;
}

static int roll_one(struct recovery *r) {
    struct objects *o = r->objects;
    struct history *h = r->histories;
    struct err e = {0};
    while (h && floor_of(r, h) == INT64_MIN) h = h->next;
    if (!h) return 0;
    int64_t floor = floor_of(r, h);
    h->users++;
    pthread_mutex_unlock(&o->lock);
    int rc = eng_history_roll(o->eng, h->id, floor, &e);
    pthread_mutex_lock(&o->lock);
    h->users--;
    if (rc) say(h, "the history is not rolled up", &e);
    else recovery_rolled(r, h, floor);
    return rc ? -1 : 1;
}

/* ---- the thread ---- */

int64_t recovery_work(void *arg) {
    static int (*const jobs[])(struct recovery *r) = {restore_one, begin_one, free_one, roll_one, strays_free_one};
    struct recovery *r = arg;
    int done = 0;
    bool failed = false;
    pthread_mutex_lock(&r->objects->lock);
    for (size_t i = 0; i < ARRAY_LEN(jobs) && done <= 0 && !ticker_is_stopping(&r->worker); i++) {
        done = jobs[i](r);
        failed = failed || done < 0;
    }
    pthread_mutex_unlock(&r->objects->lock);
    if (done > 0) return 0;
    /* Until it is time to roll histories up, in machine time; a moved clock wakes the worker. A job that
     * failed is tried again soon. */
    int64_t ms = r->window_us / ROLLS_PER_WINDOW / 1000;
    if (failed || ms < RETRY_MS) ms = RETRY_MS;
    return (ms > PAUSE_MS_MAX ? PAUSE_MS_MAX : ms) * 1000;
}
