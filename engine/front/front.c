/* An engine as a whole, the same for every store: its begin and end, and what it offers to its
 * store (struct store_front of engine/store.h): views and pins of tables, ballots of locked
 * partitions, sequences. */
#include <stdlib.h>

#include "engine/front/eng.h"
#include "engine/front/lock_order.h"
#include "engine/front/stripe.h"
#include "engine/front/table.h"

static struct eng *eng_of(struct store *s) { return (struct eng *)s; }

static void begin(struct store *s, uint32_t table, struct store_view *view) {
    struct eng *eng = eng_of(s);
    struct engi_section section = engi_enter(&eng->epoch);
    struct engi_table *t = engi_table(eng, table);
    view->section = (uint64_t)section.stripe << 32 | section.phase;
    view->table = t;
    view->dropped = engi_dropped_of(t);
    view->gone = UNLIKELY(!t) && engi_table_was_freed(eng, table);
}

static void end(struct store *s, const struct store_view *view) {
    struct engi_section section = {.stripe = (uint32_t)(view->section >> 32), .phase = (uint32_t)view->section};
    engi_leave(&eng_of(s)->epoch, section);
}

static void *pin(struct store *s, uint32_t table, struct err *e) { return engi_table_pin(eng_of(s), table, e); }
static void unpin(struct store *s, void *table) { engi_table_unpin(eng_of(s), table); }
static uint64_t written(struct store *s) { return engi_commit_next_seq(eng_of(s)); }

const struct store_front engi_front = {
    .begin = begin,
    .end = end,
    .pin = pin,
    .unpin = unpin,
    .ballot = engi_ballot,
    .ballot_read = engi_ballot_read,
    .ballot_moved = engi_ballot_moved,
    .written = written,
};

/* ---- begin and end ---- */

struct eng *engi_new(const struct eng_options *o, struct err *e) {
    struct eng *eng = calloc(1, sizeof(*eng));
    if (!eng) return err_nomem(e), NULL;
    eng->store.front = &engi_front;
    eng->durability = o->durability;
    eng->clock = o->clock ? o->clock : &clock_real;
    for (int i = 0; i < ENGI_STRIPES; i++) {
        pthread_mutex_init(&eng->stripes[i].lock, NULL);
        pthread_cond_init(&eng->stripes[i].left, NULL);
    }
    engi_epoch_init(&eng->epoch);
    pthread_mutex_init(&eng->tables.lock, NULL);
    engi_reclaim_init(&eng->reclaim, o->reclaim_rows_per_second);
    pthread_mutex_init(&eng->expiry_lock, NULL);
    pthread_mutex_init(&eng->notice_lock, NULL);
    return eng;
}

int engi_start(struct eng *eng, struct err *e) {
    return engi_commit_start(eng, e) || engi_reclaim_start(eng, e) ? -1 : 0;
}

void eng_close(struct eng *eng) {
    engi_reclaim_stop(eng);
    if (eng->commit.running) engi_commit_stop(eng);
    if (eng->store.ops) eng->store.ops->close(&eng->store);
    eng->store.ops = NULL;
    engi_reclaim_fini(&eng->reclaim);
    pthread_mutex_destroy(&eng->expiry_lock);
    pthread_mutex_destroy(&eng->notice_lock);
    engi_tables_forget(eng); /* no section is open */
    pthread_mutex_destroy(&eng->tables.lock);
    engi_epoch_fini(&eng->epoch);
    for (int i = 0; i < ENGI_STRIPES; i++) {
        pthread_mutex_destroy(&eng->stripes[i].lock);
        pthread_cond_destroy(&eng->stripes[i].left);
    }
    free(eng);
}

/* ---- properties of its store ---- */

uint64_t eng_stat(const struct eng *eng, enum eng_stat stat) {
    uint64_t n = atomic_load_explicit(&eng->stats[stat], memory_order_relaxed);
    if (stat == ENG_STAT_TABLES) n += atomic_load_explicit(&eng->tables.n, memory_order_relaxed);
    return eng->store.ops->stat ? n + eng->store.ops->stat(&eng->store, stat) : n;
}

bool eng_store_figures(const struct eng *eng, struct eng_store_figures *out) {
    if (!eng->store.ops->figures) return false;
    eng->store.ops->figures(&eng->store, out);
    return true;
}

bool eng_one_writer(const struct eng *eng) { return eng->store.ops->offers & STORE_ONE_WRITER; }
bool eng_is_remote(const struct eng *eng) { return eng->store.ops->offers & STORE_REMOTE; }

int eng_backup_make(struct eng *eng, const char *folder, uint32_t keep, struct eng_backup *out, struct err *e) {
    if (!eng->store.ops->backup) return err_invalid(e, "Backups of a Ceph cluster are made with Ceph's own means");
    return eng->store.ops->backup(&eng->store, folder, keep, out, e);
}

int eng_compact(struct eng *eng, struct err *e) {
    return eng->store.ops->compact ? eng->store.ops->compact(&eng->store, e) : 0;
}

/* ---- named records: the catalogue's ---- */

int eng_meta_write(struct eng *eng, uint32_t n, const struct eng_meta_change *changes, struct err *e) {
    int rc = engi_commit_check(eng, e) ? -1 : eng->store.ops->meta_write(&eng->store, n, changes, e);
    return rc ? rc : engi_commit_wait(eng, engi_commit_next_seq(eng), e);
}

int eng_meta_put(struct eng *eng, struct slice key, struct slice value, struct err *e) {
    return eng_meta_write(eng, 1, &(struct eng_meta_change){.key = key, .value = value}, e);
}

int eng_meta_delete(struct eng *eng, struct slice key, struct err *e) {
    return eng_meta_write(eng, 1, &(struct eng_meta_change){.key = key, .deleted = true}, e);
}

int eng_meta_scan(struct eng *eng, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) {
    return eng->store.ops->meta_scan(&eng->store, prefix, fn, arg, e);
}

static void pass_notice(void *arg) {
    struct eng *eng = arg;
    engi_mutex_lock(&eng->notice_lock, ENGI_RANK_LEAF);
    for (size_t i = 0; i < ENG_WATCHERS_MAX; i++)
        if (eng->watchers[i].fn) eng->watchers[i].fn(eng->watchers[i].arg);
    engi_mutex_unlock(&eng->notice_lock, ENGI_RANK_LEAF);
}

int eng_meta_watch(struct eng *eng, eng_notice_fn fn, void *arg, struct err *e) {
    engi_mutex_lock(&eng->notice_lock, ENGI_RANK_LEAF);
    size_t i = 0;
    while (i < ENG_WATCHERS_MAX && eng->watchers[i].fn) i++;
    bool fits = i < ENG_WATCHERS_MAX, first = fits && !eng->watches;
    if (fits) {
        eng->watchers[i].fn = fn;
        eng->watchers[i].arg = arg;
        eng->watches = true;
    }
    engi_mutex_unlock(&eng->notice_lock, ENGI_RANK_LEAF);
    if (!fits) return err_set(e, ERR_SERVER, "the store has too many watchers");
    int (*watch)(struct store *, eng_notice_fn, void *, struct err *) = eng->store.ops->meta_watch;
    return first && watch ? watch(&eng->store, pass_notice, eng, e) : 0; /* one writer has no other's changes */
}

void eng_meta_unwatch(struct eng *eng, const void *arg) {
    engi_mutex_lock(&eng->notice_lock, ENGI_RANK_LEAF);
    for (size_t i = 0; i < ENG_WATCHERS_MAX; i++)
        if (!arg || eng->watchers[i].arg == arg) eng->watchers[i].fn = NULL;
    engi_mutex_unlock(&eng->notice_lock, ENGI_RANK_LEAF);
}
