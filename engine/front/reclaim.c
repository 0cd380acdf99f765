/* Reclaiming: a thread has the store remove dead data that is old enough, table by table. The store
 * knows what that is and how to find it (struct store_reclaim of engine/store.h); this file keeps
 * the pace and the turns.
 *
 * The thread keeps to a pace in rows a second, and the store holds no lock or guard while it waits.
 * It visits a table once in an eighth of the table's gc_grace. In its next round it visits the
 * parts of a table where reads had to pass many rows that a deletion covers (STORE_MANY_COVERED),
 * so that later reads need not pass them again.
 *
 * In a round each table has a turn of TURN_KEYS keys, and a little more until its pass can be
 * interrupted. A pass over a large table so takes many rounds, and other tables do not wait for its
 * end.
 */

#include <stdlib.h>

#include "base/log.h"
#include "engine/front/lock_order.h"
#include "engine/front/table.h"
#include "engine/rows/key.h"

enum { KEYS_PER_PAUSE = 256, TURN_KEYS = 65536, ROUND_SECONDS = 10, PASS_SECONDS_MIN = 60 };

/* Results in addition to 0 and -1. STOPPED: the engine closes. GONE: the table is being freed. */
enum { STOPPED = 2, GONE = 3 };

/* The parts of a table that a pass visits. WHAT_IS_DUE: at the pace. WHAT_WAS_PASSED: where reads
 * passed many dead rows. */
enum reach { EVERYTHING, WHAT_IS_DUE, WHAT_WAS_PASSED };

struct pass {
    struct eng *eng;
    struct engi_table *t; /* pinned: invariant 8 */
    bool paced;
    uint32_t since_pause, visited; /* keys */
};

/* ---- the pace ---- */

/* STOPPED: the engine closes. */
static int pause_for(struct eng *eng, int64_t us) {
    struct engi_reclaim *r = &eng->reclaim;
    int64_t until_us = clock_machine_us(&clock_real) + us;
    engi_mutex_lock(&r->lock, ENGI_RANK_LEAF);
    while (!r->stop && clock_cond_wait_until(&r->wake, &r->lock, until_us)) {}
    engi_mutex_unlock(&r->lock, ENGI_RANK_LEAF);
    return r->stop ? STOPPED : 0;
}

static int visited(void *arg) {
    struct pass *p = arg;
    if (engi_is_closed(p->t)) return GONE;
    p->visited++;
    if (++p->since_pause < KEYS_PER_PAUSE) return 0;
    p->since_pause = 0;
    if (atomic_load(&p->eng->reclaim.stop)) return STOPPED;
    uint32_t rate = p->eng->reclaim.rows_per_second;
    return p->paced && rate ? pause_for(p->eng, (int64_t)KEYS_PER_PAUSE * 1000000 / rate) : 0;
}

static bool turn_over(void *arg) { return ((const struct pass *)arg)->visited >= TURN_KEYS; }

/* ---- rows that expired ---- */

void eng_on_expiry(struct eng *eng, eng_expiry_fn fn, void *arg) {
    engi_mutex_lock(&eng->expiry_lock, ENGI_RANK_LEAF);
    eng->expiry = fn;
    eng->expiry_arg = arg;
    engi_mutex_unlock(&eng->expiry_lock, ENGI_RANK_LEAF);
}

void engi_tell_expiry(struct eng *eng, struct slice key, struct slice value, int64_t covered_ts) {
    size_t n = engi_prefix_len(key);
    struct err e = {0};
    struct arena a;
    if (!n || key.n <= n) return;
    struct eng_expiry x = {.part = engi_prefix_part(slice_of(key.p, n))};
    arena_init(&a, 1024, 0);
    eng_row_init(&x.row, key.p[n] == ENGI_STATIC ? ENG_STATIC : ENG_ROW, slice_of(key.p + n + 1, key.n - n - 1));
    engi_mutex_lock(&eng->expiry_lock, ENGI_RANK_LEAF);
    if (eng->expiry && !eng_row_decode(value, &a, &x.row, &e)) {
        if (covered_ts > x.row.del_ts) {
            x.row.del_ts = covered_ts;
            x.row.del_at = ENG_COVERED;
        }
        eng->expiry(eng->expiry_arg, &x);
    }
    engi_mutex_unlock(&eng->expiry_lock, ENGI_RANK_LEAF);
    arena_fini(&a);
}

/* ---- tables ---- */

static void dropped(void *arg, struct slice key, struct slice value, int64_t covered_ts, bool expired) {
    const struct pass *p = arg;
    engi_count(p->eng, ENG_STAT_RECLAIMED);
    if (expired) engi_tell_expiry(p->eng, key, value, covered_ts);
}

static int64_t period_of(const struct engi_table *t) {
    int64_t period = atomic_load(&t->gc_grace) / 8;
    return period < PASS_SECONDS_MIN ? PASS_SECONDS_MIN : period;
}

/* Whether it is time for a pass over the whole table. The wall clock may have stepped back. */
static bool is_due(const struct engi_table *t, int64_t now) {
    int64_t at = atomic_load(&t->reclaimed_at);
    return now - at >= period_of(t) || now < at;
}

/* Runs the pass over one table that the engine has in memory, unless it is being freed. 0, -1,
 * STOPPED, or STORE_MORE: the pass continues in the next round. */
static int run_table(struct eng *eng, uint32_t id, enum reach reach, struct err *e) {
    struct err gone = {0};
    struct engi_table *t = engi_table_pin(eng, id, &gone);
    if (!t) return 0;
    bool paced = reach == WHAT_IS_DUE;
    int64_t now = clock_wall_us(eng->clock) / 1000000;
    bool whole = reach == EVERYTHING || (paced && is_due(t, now));
    uint64_t beginning = 0;
    struct pass p = {.eng = eng, .t = t, .paced = paced};
    const struct store_reclaim r = {.table = id,
                                    .front = t,
                                    .whole = whole,
                                    .now_seconds = now,
                                    .before_seconds = now - atomic_load(&t->gc_grace),
                                    .period_seconds = paced ? period_of(t) : 0,
                                    .visited = visited,
                                    .turn_over = paced ? turn_over : NULL,
                                    .position = paced ? &t->reclaim_position : &beginning,
                                    .dropped = dropped,
                                    .arg = &p};
    int rc = eng->store.ops->reclaim(&eng->store, &r, e);
    if (whole && rc != STORE_MORE) {
        atomic_store(&t->reclaimed_at, now);
        t->reclaim_position = 0;
    }
    engi_table_unpin(eng, t);
    if (rc == -1 && paced && !eng_one_writer(eng)) { /* the other tables have their turn nevertheless */
        log_warn("the dead rows of table %u stay until the next pass: %s", id, e->text);
        err_clear(e);
        rc = 0;
    }
    return rc == GONE ? 0 : rc;
}

/* A round. STORE_MORE: not every table's pass has ended. */
static int run_tables(struct eng *eng, enum reach reach, struct err *e) {
    const struct store_ops *ops = eng->store.ops;
    int rc = engi_commit_check(eng, e);
    uint32_t n;
    engi_epoch_step(&eng->epoch);
    if (!ops->reclaim) return rc;
    uint32_t *ids = engi_table_ids(eng, &n);
    if (!ids) return err_nomem(e);
    engi_mutex_lock(&eng->reclaim.pass, ENGI_RANK_PASS);
    bool more = false;
    for (uint32_t i = 0; i < n && !rc; i++) {
        rc = run_table(eng, ids[i], reach, e);
        more = more || rc == STORE_MORE;
        if (rc == STORE_MORE) rc = 0;
    }
    if (ops->reclaimed) ops->reclaimed(&eng->store);
    engi_mutex_unlock(&eng->reclaim.pass, ENGI_RANK_PASS);
    free(ids);
    return rc ? rc : more ? STORE_MORE : 0;
}

static int run_now(struct eng *eng, enum reach reach, struct err *e) {
    int rc = run_tables(eng, reach, e);
    return rc == STOPPED ? err_set(e, ERR_SERVER, "the engine closes") : rc;
}

int eng_reclaim(struct eng *eng, struct err *e) { return run_now(eng, EVERYTHING, e); }

int eng_reclaim_due(struct eng *eng, struct err *e) { return run_now(eng, WHAT_IS_DUE, e); }

int eng_reclaim_passed(struct eng *eng, struct err *e) { return run_now(eng, WHAT_WAS_PASSED, e); }

static void *run(void *arg) {
    struct eng *eng = arg;
    int rc = 0;
    while (!pause_for(eng, rc == STORE_MORE ? 0 : (int64_t)ROUND_SECONDS * 1000000)) {
        struct err e;
        err_clear(&e);
        rc = run_tables(eng, WHAT_IS_DUE, &e);
        if (rc < 0) log_warn("reclaiming has stopped for now: %s", e.text);
    }
    return NULL;
}

void engi_reclaim_init(struct engi_reclaim *r, uint32_t rows_per_second) {
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->pass, NULL);
    pthread_cond_init(&r->wake, NULL);
    r->rows_per_second = rows_per_second;
}

void engi_reclaim_fini(struct engi_reclaim *r) {
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->pass);
    pthread_cond_destroy(&r->wake);
}

int engi_reclaim_start(struct eng *eng, struct err *e) {
    struct engi_reclaim *r = &eng->reclaim;
    atomic_store(&r->stop, false);
    if (!r->rows_per_second) return 0;
    if (pthread_create(&r->thread, NULL, run, eng))
        return err_set(e, ERR_SERVER, "the thread that reclaims cannot be started");
    r->running = true;
    return 0;
}

void engi_reclaim_stop(struct eng *eng) {
    struct engi_reclaim *r = &eng->reclaim;
    engi_mutex_lock(&r->lock, ENGI_RANK_LEAF);
    r->stop = true;
    pthread_cond_signal(&r->wake);
    engi_mutex_unlock(&r->lock, ENGI_RANK_LEAF);
    if (r->running) pthread_join(r->thread, NULL);
    r->running = false;
}
