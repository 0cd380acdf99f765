#include <errno.h>

#include "base/clock.h"
#include "base/random.h"
#include "engine/rados/fetch.h"
#include "engine/rados/named.h"

#define OBJECT "named"
#define GENERATION "\x01g"
enum { VALUE_MARK = '=' }; /* precedes each value, so that no stored value is empty (Q4) */
enum { GENERATION_BYTES = 16, CHUNK = 4 << 10, TRIES = 100 };

/* ---- writes ---- */

static struct slice stored_key(struct arena *a, struct slice name) {
    struct buf b;
    buf_init(&b, 0);
    omap_key_escape(&b, name);
    return arena_take(a, &b);
}

static struct slice stored_value(struct arena *a, struct slice value) {
    struct buf b;
    buf_init(&b, 0);
    buf_u8(&b, VALUE_MARK);
    buf_put_slice(&b, value);
    return arena_take(a, &b);
}

int named_write(struct rados *s, uint32_t n, const struct eng_meta_change *changes, struct err *e) {
    struct omap_write w = {.creates = true};
    struct arena a;
    uint8_t generation[GENERATION_BYTES];
    if (random_bytes(generation, sizeof(generation), e) < 0) return -1;
    arena_init(&a, CHUNK, 0);
    bool quiet = true;
    for (uint32_t i = 0; i < n; i++) {
        const struct eng_meta_change *c = &changes[i];
        struct slice key = stored_key(&a, c->key), value = stored_value(&a, c->value), expected = slice_of("", 0);
        if (c->conditional && c->expected) expected = stored_value(&a, *c->expected);
        if (!key.p || !value.p || !expected.p) {
            w.failed = true;
            continue;
        }
        if (c->conditional) omap_write_compare(&w, key, expected);
        if (c->deleted) omap_write_remove(&w, key);
        else omap_write_set(&w, key, value);
        quiet = quiet && c->quiet;
    }
    if (!quiet) omap_write_set(&w, slice_str(GENERATION), slice_of(generation, sizeof(generation)));
    int rc = omap_write_run(&w, &s->pool, OBJECT);
    omap_write_fini(&w);
    arena_fini(&a);
    if (rc == -ECANCELED) return ENG_CHANGED;
    if (rc < 0) return pool_error(e, rc, POOL_WRITES, OBJECT);
    if (!quiet) pool_notify(&s->pool, OBJECT); /* a watcher that gets no notice reads once a second */
    return 0;
}

/* ---- reads ---- */

/* Reads the page after `start`, and the generation. */
static int read_page(struct rados *s, const char *start, const char *prefix, struct arena *a, struct omap_pairs *pairs,
                     struct slice *generation, bool *more) {
    struct omap_read r = {.pool = &s->pool};
    struct omap_pairs own = {0};
    omap_read_add(&r, start, prefix, OMAP_READ_MAX);
    omap_read_add(&r, "", GENERATION, 1);
    int rc = omap_read_run(&r, OBJECT);
    if (rc == 0) rc = omap_read_take(&r, 0, a, pairs);
    if (rc == 0) rc = omap_read_take(&r, 1, a, &own);
    *more = rc == 0 && r.parts[0].more && pairs->n;
    *generation = own.n ? own.items[0].value : slice_of("", 0);
    omap_read_fini(&r);
    omap_pairs_fini(&own);
    return rc == -ENOENT ? 0 : rc;
}

/* Calls fn with each name and value. */
static int each_pair(const struct omap_pairs *pairs, eng_meta_fn fn, void *arg, struct err *e) {
    struct buf name;
    int rc = 0;
    buf_init(&name, 0);
    for (size_t i = 0; rc == 0 && i < pairs->n; i++) {
        const struct omap_pair *p = &pairs->items[i];
        buf_clear(&name, SIZE_MAX);
        /* Otherwise no condition could name the record as it was read. */
        if (omap_key_unescape(p->key, &name) < 0 || p->value.p[0] != VALUE_MARK)
            rc = err_set(e, ERR_SERVER, "the record %.*s in object %s of the Ceph pool is damaged", SLICE_FMT(p->key),
                         OBJECT);
        else rc = fn(arg, buf_slice(&name), slice_of(p->value.p + 1, p->value.n - 1), e);
    }
    buf_fini(&name);
    return rc;
}

int named_scan(struct rados *s, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) {
    struct arena a;
    struct omap_pairs pairs = {0};
    int rc = -EAGAIN;
    arena_init(&a, CHUNK, 0);
    for (int i = 0; rc == -EAGAIN && i < TRIES; i++) {
        struct slice first = {0}, generation;
        arena_reset(&a);
        pairs.n = 0;
        const char *escaped = (const char *)stored_key(&a, prefix).p;
        rc = escaped ? 0 : -ENOMEM;
        /* A scan with a prefix begins with the key that equals it; one of all names begins after the generation. */
        const char *start = prefix.n ? "" : "\x01\xff";
        for (bool more = true; rc == 0 && more;) {
            rc = read_page(s, start, escaped, &a, &pairs, &generation, &more);
            if (rc == 0 && first.p && !slice_eq(first, generation)) rc = -EAGAIN; /* the records have changed */
            if (!first.p) first = generation;
            if (more) start = (const char *)pairs.items[pairs.n - 1].key.p; /* the arena appends a NUL */
        }
    }
    if (rc < 0) rc = pool_error(e, rc == -EAGAIN ? -ETIMEDOUT : rc, POOL_READS, OBJECT);
    else rc = each_pair(&pairs, fn, arg, e);
    omap_pairs_fini(&pairs);
    arena_fini(&a);
    return rc;
}

/* ---- watching ---- */

struct named_watch {
    struct rados *s;
    eng_notice_fn fn;
    void *arg;
    uint64_t cookie;
    bool watches; /* the cluster will notify */
    pthread_t thread;
    pthread_mutex_t lock; /* of the next two lines */
    pthread_cond_t wakes;
    bool notified, broken, ends;
    uint8_t generation[GENERATION_BYTES];
};

/* Both run on a thread of librados, which must not wait for the cluster: they only wake the watch. */
static void on_notify(void *arg, uint64_t notify, uint64_t cookie, uint64_t notifier, void *data, size_t n) {
    struct named_watch *w = arg;
    (void)notifier, (void)data, (void)n;
    w->s->pool.lib->notify_ack(w->s->pool.io, OBJECT, notify, cookie, NULL, 0);
    pthread_mutex_lock(&w->lock);
    w->notified = true;
    pthread_cond_signal(&w->wakes);
    pthread_mutex_unlock(&w->lock);
}
static void on_failure(void *arg, uint64_t cookie, int rc) {
    struct named_watch *w = arg;
    (void)cookie, (void)rc;
    pthread_mutex_lock(&w->lock);
    w->broken = true;
    pthread_cond_signal(&w->wakes);
    pthread_mutex_unlock(&w->lock);
}

/* Whether the records have changed since the last call. */
static bool has_changed(struct named_watch *w) {
    struct arena a;
    struct omap_pairs none = {0};
    struct slice generation;
    bool more;
    arena_init(&a, CHUNK, 0);
    int rc = read_page(w->s, GENERATION, GENERATION, &a, &none, &generation, &more);
    bool changed =
        rc == 0 && generation.n == GENERATION_BYTES && memcmp(generation.p, w->generation, GENERATION_BYTES) != 0;
    if (changed) memcpy(w->generation, generation.p, GENERATION_BYTES);
    omap_pairs_fini(&none);
    arena_fini(&a);
    return changed;
}

static void watch_again(struct named_watch *w) {
    const struct librados *lib = w->s->pool.lib;
    if (w->watches) lib->unwatch2(w->s->pool.io, w->cookie);
    w->watches = lib->watch2(w->s->pool.io, OBJECT, &w->cookie, on_notify, on_failure, w) == 0;
}

static void *watch(void *arg) {
    struct named_watch *w = arg;
    for (;;) {
        pthread_mutex_lock(&w->lock);
        if (!w->notified && !w->broken && !w->ends) clock_cond_wait(&w->wakes, &w->lock, NAMED_LATE_S * 1000000ll);
        bool again = w->broken, ends = w->ends;
        w->notified = w->broken = false;
        pthread_mutex_unlock(&w->lock);
        if (ends) return NULL;
        if (again || !w->watches) watch_again(w);
        if (has_changed(w)) w->fn(w->arg);
    }
}

struct named_watch *named_watch_start(struct rados *s, eng_notice_fn fn, void *arg, struct err *e) {
    struct named_watch *w = calloc(1, sizeof(*w));
    if (!w) return err_null(err_nomem(e));
    *w = (struct named_watch){.s = s, .fn = fn, .arg = arg};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wakes, NULL);
    struct omap_write creation = {.creates = true};
    int rc = omap_write_run(&creation, &s->pool, OBJECT);
    omap_write_fini(&creation);
    if (rc < 0) {
        pool_error(e, rc, POOL_WRITES, OBJECT);
        goto free_watch;
    }
    watch_again(w);
    has_changed(w);
    if (pthread_create(&w->thread, NULL, watch, w) == 0) return w;
    err_set(e, ERR_SERVER, "cannot start a thread");
    if (w->watches) s->pool.lib->unwatch2(s->pool.io, w->cookie);
free_watch:
    free(w);
    return NULL;
}

void named_watch_stop(struct named_watch *w) {
    pthread_mutex_lock(&w->lock);
    w->ends = true;
    pthread_cond_signal(&w->wakes);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    if (w->watches) w->s->pool.lib->unwatch2(w->s->pool.io, w->cookie);
    w->s->pool.lib->watch_flush(w->s->pool.cluster); /* no callback runs any more */
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->wakes);
    free(w);
}
