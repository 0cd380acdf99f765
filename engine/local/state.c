/* Saved states. Putting one back replaces kv by another store, and discards all proofs about the
 * store before. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/local/cache.h"
#include "engine/local/commit.h"
#include "engine/local/eng.h"
#include "engine/local/history.h"
#include "engine/front/lock_order.h"
#include "engine/local/reclaim.h"
#include "engine/local/rocksdb/kv_folder.h"
#include "engine/local/rocksdb/kv_state.h"
#include "engine/local/table.h"

static int check_folder(const struct eng *eng, struct err *e) {
    if (!(eng->store.ops->offers & STORE_STATES))
        return err_invalid(e, "States cannot be saved on a Ceph cluster (--store rados)");
    return eng->kv_options.data_dir ? 0
                                    : err_invalid(e, "States are saved in the data folder, and this server has none");
}

/* Saves to a temporary name first, so that a state under its own name is whole. */
int eng_state_save(struct eng *eng, const char *name, const char *of, struct err *e) {
    char path[PATH_MAX], fresh[PATH_MAX], old[PATH_MAX];
    if (check_folder(eng, e) || kv_state_check_name(name, e) || kv_state_path(eng->kv_options.data_dir, name, path, e))
        return -1;
    if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= PATH_MAX ||
        snprintf(old, sizeof(old), "%s.old", path) >= PATH_MAX)
        return err_set(e, ERR_CONFIG, "the path of the data folder is too long");
    if (kv_remove_folder(fresh, e) || kv_remove_folder(old, e) || eng->kv->ops->save(eng->kv, fresh, e) ||
        kv_state_note(fresh, of, e))
        return -1;
    if (rename(path, old) && errno != ENOENT)
        return err_set(e, ERR_SERVER, "cannot rename %s: %s", path, strerror(errno));
    if (rename(fresh, path)) return err_set(e, ERR_SERVER, "cannot rename %s: %s", fresh, strerror(errno));
    return kv_remove_folder(old, e);
}

int eng_state_remove(struct eng *eng, const char *name, struct err *e) {
    char path[PATH_MAX];
    if (check_folder(eng, e) || kv_state_check_name(name, e) || kv_state_path(eng->kv_options.data_dir, name, path, e))
        return -1;
    return kv_remove_folder(path, e);
}

static int folder_of(const struct eng *eng, const char *name, char path[PATH_MAX], struct err *e) {
    if (check_folder(eng, e) || kv_state_check_name(name, e) || kv_state_path(eng->kv_options.data_dir, name, path, e))
        return -1;
    return access(path, F_OK) ? err_invalid(e, "There is no saved state '%s'", name) : 0;
}

int eng_state_of(const struct eng *eng, const char *name, char of[ENG_STATE_OF_MAX], struct err *e) {
    char path[PATH_MAX];
    return folder_of(eng, name, path, e) || kv_state_read_note(path, of, ENG_STATE_OF_MAX, e) ? -1 : 0;
}

struct eng *eng_state_open(const struct eng *eng, const char *name, struct err *e) {
    char path[PATH_MAX];
    struct kv_options o = eng->kv_options;
    o.block_cache_bytes = (size_t)8 << 20;
    if (folder_of(eng, name, path, e)) return NULL;
    struct eng *state = calloc(1, sizeof(*state));
    if (!state) return err_null(err_nomem(e));
    state->store = (struct store){.ops = &engi_local_store, .front = &engi_front};
    if ((state->kv = kv_rocksdb_view(&o, path, e))) return state;
    free(state);
    return NULL;
}

void eng_state_close(struct eng *state) {
    state->kv->ops->close(state->kv);
    free(state);
}

int eng_state_each(struct eng *eng, int (*fn)(void *arg, const char *name, const char *of, int64_t saved_s), void *arg,
                   struct err *e) {
    char states[PATH_MAX], path[PATH_MAX], of[ENG_STATE_OF_MAX];
    struct stat st;
    if (!eng->kv_options.data_dir) return 0;
    if (snprintf(states, sizeof(states), "%s/states", eng->kv_options.data_dir) >= PATH_MAX)
        return err_set(e, ERR_CONFIG, "the path of the data folder is too long");
    DIR *dir = opendir(states);
    int rc = 0;
    for (const struct dirent *d; dir && !rc && (d = readdir(dir));)
        if (!strchr(d->d_name, '.') && snprintf(path, sizeof(path), "%s/%s", states, d->d_name) < PATH_MAX &&
            !stat(path, &st))
            rc = kv_state_read_note(path, of, sizeof(of), e) ? -1 : fn(arg, d->d_name, of, st.st_mtime);
    if (dir) closedir(dir);
    return rc;
}

/* Pending answers may still hold iterators of the old store. */
void eng_state_settle(struct eng *eng) {
    enum { TRIES = 100, EACH_US = 1000 };
    for (int i = 0; eng->retired && i < TRIES && eng->retired->ops->iterators(eng->retired); i++) usleep(EACH_US);
    if (!eng->retired || eng->retired->ops->iterators(eng->retired)) return;
    eng->retired->ops->close(eng->retired);
    eng->retired = NULL;
}

/* Discards all state in memory about the old store. The write clock's counters stay, so that this
 * server's timestamps keep growing. */
static void forget(struct eng *eng) {
    engi_cache_clear(eng->cache);
    engi_tables_forget(eng);
    engi_histories_forget(&eng->histories);
    engi_horizon_init(&eng->newest, ENGI_HORIZON_NEWEST, ENGI_HORIZON_STEP);
    engi_horizon_init(&eng->write_clock.horizon, ENGI_HORIZON_CLOCK, ENGI_CLOCK_STEP);
}

static struct kv *open_state(struct eng *eng, const char *name, struct err *e) {
    char rows[32];
    if (kv_state_stage(eng->kv_options.data_dir, name, rows, e)) return NULL;
    struct kv_options o = eng->kv_options;
    o.rows = rows;
    return kv_rocksdb_open(&o, e);
}

/* Ends the process on a failure after which neither store can be used; the disk still has one of
 * the two. */
static void must(int rc, const struct err *e) {
    if (rc) log_fatal("the store that was put back cannot be used: %s", e->text);
}

static int swap(struct eng *eng, const char *name, struct err *e) {
    struct err why = {0};
    engi_reclaim_stop(eng);
    engi_commit_stop(eng);
    struct kv *fresh = open_state(eng, name, e);
    if (fresh) {
        eng->kv->ops->retire(eng->kv);
        eng->retired = eng->kv;
        eng->kv = fresh;
        forget(eng);
        must(engi_load_marks(eng, &why), &why);
    }
    must(engi_commit_start(eng, &why), &why);
    must(engi_reclaim_start(eng, &why), &why);
    return fresh ? 0 : -1;
}

int eng_state_put_back(struct eng *eng, const char *name, struct err *e) {
    if (check_folder(eng, e)) return -1;
    eng_state_settle(eng);
    if (eng->retired) return err_set(e, ERR_OVERLOADED, "A read of the state before is still going on; try again");
    engi_order_will_wait(ENGI_RANK_STORE, 0);
    pthread_rwlock_wrlock(&eng->whole);
    engi_order_holds(ENGI_RANK_STORE, 0);
    int rc = swap(eng, name, e);
    pthread_rwlock_unlock(&eng->whole);
    engi_order_leaves(ENGI_RANK_STORE);
    return rc;
}
