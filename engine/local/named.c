/* Named records: the catalogue's, under table 0.
 *
 * Invariant 11: a conditional write takes place only if all its conditions hold at the moment when
 *              it does, whatever other threads and engines write. A store with several writers
 *              checks the conditions itself. In a store with one writer the lock named_lock makes
 *              the writes of named records one after the other.
 */
#include "engine/local/commit.h"
#include "engine/local/eng.h"
#include "engine/local/lock_order.h"
#include "engine/rows/key.h"

static int meta_add(struct eng *eng, struct kv_batch *b, const struct eng_meta_change *change, struct err *e) {
    const struct kv_ops *ops = eng->kv->ops;
    struct buf key;
    buf_init(&key, 0);
    engi_key_table(&key, ENGI_TABLE_META);
    buf_put_slice(&key, change->key);
    int rc = buf_failed(&key) ? -1 : 0;
    if (!rc && change->conditional) rc = ops->batch_expect(b, buf_slice(&key), change->expected);
    if (!rc) rc = change->deleted ? ops->batch_delete(b, buf_slice(&key))
                                  : ops->batch_put(b, buf_slice(&key), change->value);
    buf_fini(&key);
    return rc ? err_nomem(e) : 0;
}

int eng_meta_write(struct eng *eng, uint32_t n, const struct eng_meta_change *changes, struct err *e) {
    if (eng_is_remote(eng)) return eng->store.ops->meta_write(&eng->store, n, changes, e);
    const struct kv_ops *ops = eng->kv->ops;
    struct kv_batch *b = ops->batch_new(eng->kv);
    int rc = b ? engi_commit_check(eng, e) : err_nomem(e);
    for (uint32_t i = 0; i < n && !rc; i++) rc = meta_add(eng, b, &changes[i], e);
    if (!rc) {
        engi_mutex_lock(&eng->named_lock, ENGI_RANK_NAMED);
        rc = kv_write_patiently(eng->kv, b, e);
        engi_mutex_unlock(&eng->named_lock, ENGI_RANK_NAMED);
    }
    if (b) ops->batch_free(b);
    return rc ? rc : engi_commit_wait(eng, engi_commit_next_seq(eng), e);
}

int eng_meta_put(struct eng *eng, struct slice key, struct slice value, struct err *e) {
    return eng_meta_write(eng, 1, &(struct eng_meta_change){.key = key, .value = value}, e);
}

int eng_meta_delete(struct eng *eng, struct slice key, struct err *e) {
    return eng_meta_write(eng, 1, &(struct eng_meta_change){.key = key, .deleted = true}, e);
}

struct meta_scan {
    struct slice prefix;
    eng_meta_fn fn;
    void *arg;
};

static int meta_item(void *arg, struct slice key, struct slice value, struct err *e) {
    struct meta_scan *s = arg;
    struct slice name = slice_of(key.p + 4, key.n - 4);
    if (name.n < s->prefix.n || !slice_eq(slice_of(name.p, s->prefix.n), s->prefix)) return 1;
    return s->fn(s->arg, name, value, e);
}

int eng_meta_scan(struct eng *eng, struct slice prefix, eng_meta_fn fn, void *arg, struct err *e) {
    if (eng_is_remote(eng)) return eng->store.ops->meta_scan(&eng->store, prefix, fn, arg, e);
    struct meta_scan s = {.prefix = prefix, .fn = fn, .arg = arg};
    struct buf from;
    uint8_t to[4];
    buf_init(&from, 0);
    engi_key_table(&from, ENGI_TABLE_META);
    buf_put_slice(&from, prefix);
    store_u32(to, ENGI_TABLE_META + 1);
    err_clear(e);
    int rc = buf_failed(&from) ? err_nomem(e)
                               : engi_scan_keys(eng, NULL, buf_slice(&from), slice_of(to, 4), meta_item, &s, e);
    buf_fini(&from);
    return rc && !e->set ? 0 : rc; /* past the last name with the prefix is no error */
}

static void pass_notice(void *arg) {
    struct eng *eng = arg;
    engi_mutex_lock(&eng->notice_lock, ENGI_RANK_LEAF);
    for (size_t i = 0; i < ENG_WATCHERS_MAX; i++)
        if (eng->watchers[i].fn) eng->watchers[i].fn(eng->watchers[i].arg);
    engi_mutex_unlock(&eng->notice_lock, ENGI_RANK_LEAF);
}

static int watch_store(struct eng *eng, struct err *e) {
    uint8_t from[4], to[4];
    if (eng_is_remote(eng)) return eng->store.ops->meta_watch(&eng->store, pass_notice, eng, e);
    store_u32(from, ENGI_TABLE_META);
    store_u32(to, ENGI_TABLE_META + 1);
    return eng->kv->ops->watch(eng->kv, slice_of(from, 4), slice_of(to, 4), pass_notice, eng, e);
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
    return first ? watch_store(eng, e) : 0;
}

void eng_meta_unwatch(struct eng *eng, const void *arg) {
    engi_mutex_lock(&eng->notice_lock, ENGI_RANK_LEAF);
    for (size_t i = 0; i < ENG_WATCHERS_MAX; i++)
        if (!arg || eng->watchers[i].arg == arg) eng->watchers[i].fn = NULL;
    engi_mutex_unlock(&eng->notice_lock, ENGI_RANK_LEAF);
}
