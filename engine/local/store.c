/* The local store: its table of functions for the front (engine/store.h). */
#include "engine/local/commit.h"
#include "engine/local/eng.h"
#include "engine/front/lock_order.h"
#include "engine/local/read.h"
#include "engine/local/table.h"
#include "engine/local/write.h"
#include "engine/rows/key.h"
#include "engine/rows/named.h"

static struct eng *eng_of(const struct store *s) { return (struct eng *)s; }

/* ---- named records, tables ---- */

static int meta_write(struct store *s, uint32_t n, const struct eng_meta_change *changes, struct err *e) {
    struct eng *eng = eng_of(s);
    engi_mutex_lock(&eng->named_lock, ENGI_RANK_NAMED);
    int rc = engi_named_write(eng->kv, n, changes, e);
    engi_mutex_unlock(&eng->named_lock, ENGI_RANK_NAMED);
    return rc;
}

static int meta_scan(struct store *s, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) {
    return engi_named_scan(eng_of(s)->kv, prefix, fn, arg, e);
}

static int each_stored(struct store *s, eng_stored_fn fn, void *arg, struct err *e) {
    return engi_each_stored(eng_of(s)->kv, fn, arg, e);
}

/* The marks go after the rows that need them. */
static int drop(struct store *s, uint32_t id, struct err *e) {
    struct eng *eng = eng_of(s);
    struct engi_table *t = engi_table(eng, id);
    uint8_t ends[2][8];
    for (uint32_t i = 0; i < 2; i++) {
        store_u32(ends[i], ENGI_TABLE_MARKS);
        store_u32(ends[i] + 4, id + i);
    }
    engi_table_change_begin(t);
    int rc = engi_drop_rows(eng->kv, id, e);
    engi_table_change_end(t);
    if (!rc) rc = eng->kv->ops->drop_range(eng->kv, slice_of(ends[0], 8), slice_of(ends[1], 8), e);
    for (int i = 0; t && !rc && i < ENGI_MARK_WORDS; i++) {
        atomic_store(&t->marks.recorded[i], 0);
        atomic_store(&t->marks.set[i], 0);
    }
    return rc;
}

static void close_store(struct store *s) {
    struct eng *eng = eng_of(s);
    if (eng->retired) eng->retired->ops->close(eng->retired);
    if (eng->kv) eng->kv->ops->close(eng->kv);
}

/* ---- the log ---- */

static int sync_log(struct store *s, bool to_disk, struct err *e) {
    struct kv *kv = eng_of(s)->kv;
    return kv->ops->sync(kv, to_disk, e);
}

static int heal(struct store *s, struct err *e) {
    struct kv *kv = eng_of(s)->kv;
    return kv->ops->heal(kv, e);
}

static void synced(struct store *s) {
    struct kv *kv = eng_of(s)->kv;
    kv->ops->synced(kv);
}

static void settle(struct store *s) {
    struct kv *kv = eng_of(s)->kv;
    kv->ops->settle(kv);
}

static const struct store_log_ops local_log = {.sync = sync_log, .heal = heal, .synced = synced, .settle = settle};

/* ---- the rest of what it offers ---- */

/* The folder of rows may be replaced by that of a saved state meanwhile, which the lock excludes. */
static void hold_store(struct eng *eng) {
    engi_order_will_wait(ENGI_RANK_STORE, 0);
    pthread_rwlock_rdlock(&eng->whole);
    engi_order_holds(ENGI_RANK_STORE, 0);
}

static void leave_store(struct eng *eng) {
    pthread_rwlock_unlock(&eng->whole);
    engi_order_leaves(ENGI_RANK_STORE);
}

static bool ailing(struct store *s, char *why, size_t size) {
    struct eng *eng = eng_of(s);
    hold_store(eng);
    bool ails = eng->kv->ops->ailing(eng->kv, why, size);
    leave_store(eng);
    return ails;
}

static int backup(struct store *s, const char *folder, uint32_t keep, struct eng_backup *out, struct err *e) {
    struct eng *eng = eng_of(s);
    hold_store(eng);
    int rc = engi_commit_check(eng, e) || eng->kv->ops->backup(eng->kv, folder, keep, out, e) ? -1 : 0;
    leave_store(eng);
    return rc;
}

/* A compaction removes data from any table, so all tables count as changed when it ends. */
static int compact(struct store *s, struct err *e) {
    struct eng *eng = eng_of(s);
    int rc = eng->kv->ops->compact(eng->kv, e);
    struct engi_section section = engi_enter(&eng->epoch);
    for (uint32_t i = 0; i < ENGI_TABLE_PLACES; i++)
        for (struct engi_table *t = atomic_load(&eng->tables.places[i]); t; t = atomic_load(&t->next))
            engi_changed_all(t);
    engi_leave(&eng->epoch, section);
    return rc;
}

const struct store_ops engi_local_store = {
    .offers = STORE_ONE_WRITER | STORE_HISTORIES | STORE_STATES,
    .read = engi_read_row,
    .cursor_open = engi_read_cursor,
    .may_be_deleted = engi_read_may_be_deleted,
    .hint = engi_read_hint,
    .batch_new = engi_write_batch_new,
    .batch_free = engi_write_batch_free,
    .batch_add = engi_write_batch_add,
    .batch_done = engi_write_batch_done,
    .commit = engi_write_commit,
    .meta_write = meta_write,
    .meta_scan = meta_scan,
    .each_stored = each_stored,
    .drop = drop,
    .close = close_store,
    .log = &local_log,
    .ailing = ailing,
    .backup = backup,
    .compact = compact,
};
