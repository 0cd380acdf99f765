#include "native_protocol/work_queue.h"

#include <assert.h>

void np_work_client_init(struct np_work_client *c) {
    *c = (struct np_work_client){0};
    for (int i = 0; i < WORK_CLASSES; i++) {
        c->turns[i].client = c;
        TAILQ_INIT(&c->turns[i].works);
    }
}

void np_queue_init(struct np_queue *q, unsigned n_max, size_t bytes_max) {
    *q = (struct np_queue){.n_max = n_max, .bytes_max = bytes_max};
    for (int i = 0; i < WORK_CLASSES; i++) TAILQ_INIT(&q->turns[i]);
    TAILQ_INIT(&q->delayed);
    TAILQ_INIT(&q->clients);
}

/* ---- counts of the queue and of its clients ---- */

static void count_in(struct np_queue *q, struct np_work *w, int64_t now_us) {
    struct np_work_client *c = w->client;
    w->since_us = now_us;
    if (!c->n++) TAILQ_INSERT_TAIL(&q->clients, c, entry);
    c->bytes += w->bytes;
    q->n++;
    q->bytes += w->bytes;
}

static void count_out(struct np_queue *q, struct np_work *w) {
    struct np_work_client *c = w->client;
    assert(c->n && q->n && c->bytes >= w->bytes);
    if (!--c->n) TAILQ_REMOVE(&q->clients, c, entry);
    c->bytes -= w->bytes;
    q->n--;
    q->bytes -= w->bytes;
}

static void append(struct np_queue *q, struct np_work *w) {
    struct np_turn *t = &w->client->turns[w->class];
    if (TAILQ_EMPTY(&t->works)) TAILQ_INSERT_TAIL(&q->turns[w->class], t, entry);
    TAILQ_INSERT_TAIL(&t->works, w, entry);
}

static void unlink_work(struct np_queue *q, struct np_turn *t, struct np_work *w) {
    TAILQ_REMOVE(&t->works, w, entry);
    if (TAILQ_EMPTY(&t->works)) TAILQ_REMOVE(&q->turns[w->class], t, entry);
    count_out(q, w);
}

static void take_delayed(struct np_queue *q, struct np_work *w) {
    TAILQ_REMOVE(&q->delayed, w, entry);
    count_out(q, w);
}

/* ---- bounds ---- */

struct np_work *np_queue_put(struct np_queue *q, struct np_work *w, int64_t now_us) {
    static const enum cql_work_class order[WORK_CLASSES] = {WORK_SCAN, WORK_READ, WORK_UPDATE, WORK_DDL};
    append(q, w);
    count_in(q, w, now_us);
    bool by_bytes = q->bytes > q->bytes_max;
    if (q->n <= q->n_max && !by_bytes) return NULL;
    struct np_work_client *most = NULL, *c;
    TAILQ_FOREACH(c, &q->clients, entry)
        if (!most || (by_bytes ? c->bytes > most->bytes : c->n > most->n)) most = c;
    /* Removes the newest work of the client that has the most: a scan first, then the other
     * classes, and delayed works last. */
    struct np_work *out;
    for (int i = 0; i < WORK_CLASSES; i++) {
        struct np_turn *t = &most->turns[order[i]];
        if (!(out = TAILQ_LAST(&t->works, np_works))) continue;
        unlink_work(q, t, out);
        return out;
    }
    TAILQ_FOREACH_REVERSE(out, &q->delayed, np_works, entry) if (out->client == most) break;
    assert(out);
    take_delayed(q, out);
    return out;
}

/* ---- turns ---- */

struct np_work *np_queue_take(struct np_queue *q, enum cql_work_class class) {
    struct np_turn *t = TAILQ_FIRST(&q->turns[class]);
    if (!t) return NULL;
    struct np_work *w = TAILQ_FIRST(&t->works);
    unlink_work(q, t, w);
    if (TAILQ_EMPTY(&t->works)) return w;
    TAILQ_REMOVE(&q->turns[class], t, entry);
    TAILQ_INSERT_TAIL(&q->turns[class], t, entry);
    return w;
}

void np_queue_delay(struct np_queue *q, struct np_work *w, int64_t now_us) {
    TAILQ_INSERT_TAIL(&q->delayed, w, entry);
    count_in(q, w, now_us);
}

unsigned np_queue_resume(struct np_queue *q, int64_t now_us) {
    unsigned classes = 0;
    for (struct np_work *w = TAILQ_FIRST(&q->delayed), *next; w; w = next) {
        next = TAILQ_NEXT(w, entry);
        if (w->not_before_us > now_us) continue;
        TAILQ_REMOVE(&q->delayed, w, entry);
        append(q, w);
        classes |= 1u << w->class;
    }
    return classes;
}

/* ---- stale works ---- */

bool np_work_is_stale(const struct np_work *w, int64_t now_us) {
    return (w->deadline_us && w->deadline_us <= now_us) ||
           (w->cancelled && atomic_load_explicit(w->cancelled, memory_order_relaxed));
}

typedef bool (*wanted_fn)(const struct np_work *w, int64_t now_us);
static bool is_any(const struct np_work *w, int64_t now_us) { return (void)w, (void)now_us, true; }

static void take_delayed_out(struct np_queue *q, wanted_fn wanted, int64_t now_us, struct np_works *out) {
    for (struct np_work *w = TAILQ_FIRST(&q->delayed), *next; w; w = next) {
        next = TAILQ_NEXT(w, entry);
        if (!wanted(w, now_us)) continue;
        take_delayed(q, w);
        TAILQ_INSERT_TAIL(out, w, entry);
    }
}

static void take_turn_out(struct np_queue *q, struct np_turn *t, wanted_fn wanted, int64_t now_us,
                          struct np_works *out) {
    for (struct np_work *w = TAILQ_FIRST(&t->works), *next; w; w = next) {
        next = TAILQ_NEXT(w, entry);
        if (!wanted(w, now_us)) continue;
        unlink_work(q, t, w);
        TAILQ_INSERT_TAIL(out, w, entry);
    }
}

static void take_out(struct np_queue *q, wanted_fn wanted, int64_t now_us, struct np_works *out) {
    take_delayed_out(q, wanted, now_us, out);
    for (int i = 0; i < WORK_CLASSES; i++)
        for (struct np_turn *t = TAILQ_FIRST(&q->turns[i]), *next; t; t = next) {
            next = TAILQ_NEXT(t, entry);
            take_turn_out(q, t, wanted, now_us, out);
        }
}

void np_queue_stale(struct np_queue *q, int64_t now_us, struct np_works *out) {
    take_out(q, np_work_is_stale, now_us, out);
}

void np_queue_empty(struct np_queue *q, bool only_delayed, struct np_works *out) {
    if (only_delayed) take_delayed_out(q, is_any, 0, out);
    else take_out(q, is_any, 0, out);
}

static int64_t earlier(int64_t a, int64_t b) { return b && b < a ? b : a; }

int64_t np_queue_next_moment(const struct np_queue *q) {
    int64_t at = INT64_MAX;
    const struct np_turn *t;
    const struct np_work *w;
    TAILQ_FOREACH(w, &q->delayed, entry) at = earlier(earlier(at, w->not_before_us), w->deadline_us);
    for (int i = 0; i < WORK_CLASSES; i++)
        TAILQ_FOREACH(t, &q->turns[i], entry)
            TAILQ_FOREACH(w, &t->works, entry) at = earlier(at, w->deadline_us);
    return at;
}
