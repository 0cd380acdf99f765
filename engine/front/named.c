/* Named records: the catalogue's. */
#include "engine/front/eng.h"
#include "engine/front/lock_order.h"

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
