#include "server/fleet.h"

#include "base/log.h"
#include "base/random.h"
#include "server/fleet_state.h"

/* ---- limits ---- */

static int divide(struct fleet *f) {
    struct limit_demands all = {0};
    int64_t now_us = clock_machine_us(f->o.clock);
    int rc = 0;
    for (size_t i = 0; i < f->n_others; i++) {
        const struct other *o = f->others[i];
        bool lives = now_us - o->changed_us < FLEET_LEASE_US;
        for (size_t k = 0; lives && !rc && k < o->demands.n; k++) rc = limit_demands_add(&all, &o->demands.items[k]);
    }
    if (!rc) f->limits.divide(f->limits.arg, all.items, all.n);
    free(all.items);
    return rc;
}

/* ---- rounds ---- */

void fleet_share_limits(struct fleet *f, const struct fleet_limits *limits) { f->limits = *limits; }

/* Puts this server's demand, as bytes. */
static int put_demands(struct fleet *f, struct buf *out) {
    struct limit_demands own = {0};
    int rc = f->limits.demands ? f->limits.demands(f->limits.arg, &own) : 0;
    if (!rc && own.n) limit_demands_put(&own, out);
    free(own.items);
    return rc || buf_failed(out) ? -1 : 0;
}

int fleet_round(struct fleet *f, bool writes, struct err *e) {
    bool due = clock_machine_us(f->o.clock) - f->written_us >= FLEET_TABLES_US;
    struct buf demands;
    buf_init(&demands, 0);
    int rc = put_demands(f, &demands) ? err_nomem(e) : fleet_write(f, writes || due, buf_slice(&demands), e);
    buf_fini(&demands);
    if (rc || fleet_read_others(f, e)) return -1;
    if (f->limits.divide && divide(f)) return err_nomem(e);
    if (f->exists) ledger_share_check(f->o.ledger, f->exists, f->exists_arg);
    return 0;
}

static void *run(void *arg) {
    struct fleet *f = arg;
    for (bool ends = false; !ends;) {
        struct err e = {0};
        bool fails = fleet_round(f, false, &e) != 0;
        if (fails && !f->failing) log_warn("the shares of the ledgers on this store: %s; tried every second", e.text);
        f->failing = fails;
        pthread_mutex_lock(&f->lock);
        if (!f->ends) clock_cond_wait(&f->wakes, &f->lock, FLEET_ROUND_US);
        ends = f->ends;
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

static void fleet_free(struct fleet *f) {
    for (size_t i = 0; i < f->n_others; i++) fleet_other_free(f->others[i]);
    free(f->others);
    free(f->objects);
    buf_fini(&f->demands);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->wakes);
    free(f);
}

struct fleet *fleet_open(const struct fleet_options *o, struct err *e) {
    struct fleet *f = calloc(1, sizeof(*f));
    if (!f) return err_null(err_nomem(e));
    f->o = *o;
    f->head.demands = slice_of("", 0);
    buf_init(&f->demands, 0);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->wakes, NULL);
    f->is_new = !ledger_share_exists(o->ledger);
    if (random_bytes(&f->head.incarnation, sizeof(f->head.incarnation), e) || ledger_share_id(o->ledger, &f->id, e))
        goto free_fleet;
    /* The head first: from then on nobody else writes the share. */
    if (fleet_own(f, e) || fleet_recover(f, e) || fleet_read_others(f, e)) goto free_fleet;
    return f;
free_fleet:
    fleet_free(f);
    return NULL;
}

int fleet_start(struct fleet *f, bool (*exists)(void *arg, uint32_t object), void *arg, struct err *e) {
    f->exists = exists;
    f->exists_arg = arg;
    f->runs = pthread_create(&f->thread, NULL, run, f) == 0;
    return f->runs ? 0 : err_set(e, ERR_SERVER, "cannot start a thread");
}

void fleet_stop(struct fleet *f) {
    if (!f || !f->runs) return;
    pthread_mutex_lock(&f->lock);
    f->ends = true;
    pthread_cond_signal(&f->wakes);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    f->runs = false;
    f->exists = NULL;
}

void fleet_close(struct fleet *f) {
    struct err e = {0};
    if (!f) return;
    fleet_stop(f);
    if (fleet_write(f, true, slice_of("", 0), &e))
        log_warn("the last charges are not in this server's share: %s", e.text);
    fleet_free(f);
}

void fleet_abandon(struct fleet *f) {
    fleet_stop(f);
    fleet_free(f);
}
