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
#include "engine/front/lock_order.h"
#include "engine/local/cache.h"
#include "engine/local/history.h"
#include "engine/local/local.h"
#include "engine/local/rocksdb/kv_folder.h"
#include "engine/state.h"

/* Sets path to the folder of a state. there: fails if there is no such state. */
static int folder_of(const struct eng *eng, const char *name, bool there, char path[PATH_MAX], struct err *e) {
    const struct local *own = local_if(eng);
    if (!own) return err_invalid(e, "States cannot be saved on a Ceph cluster (--store rados)");
    if (!own->kv_options.data_dir)
        return err_invalid(e, "States are saved in the data folder, and this server has none");
    if (kv_state_path(own->kv_options.data_dir, name, path, e)) return -1;
    return there && access(path, F_OK) ? err_invalid(e, "There is no saved state '%s'", name) : 0;
}

/* Saves to a temporary name first, so that a state under its own name is whole. */
int eng_state_save(struct eng *eng, const char *name, const char *of, struct err *e) {
    char path[PATH_MAX], fresh[PATH_MAX], old[PATH_MAX];
    if (folder_of(eng, name, false, path, e)) return -1;
    if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= PATH_MAX ||
        snprintf(old, sizeof(old), "%s.old", path) >= PATH_MAX)
        return err_set(e, ERR_CONFIG, "the path of the data folder is too long");
    if (kv_remove_folder(fresh, e) || kv_remove_folder(old, e) || kv_save(local_of(&eng->store)->kv, fresh, e) ||
        kv_state_note(fresh, of, e))
        return -1;
    if (rename(path, old) && errno != ENOENT)
        return err_set(e, ERR_SERVER, "cannot rename %s: %s", path, strerror(errno));
    if (rename(fresh, path)) return err_set(e, ERR_SERVER, "cannot rename %s: %s", fresh, strerror(errno));
    return kv_remove_folder(old, e);
}

int eng_state_remove(struct eng *eng, const char *name, struct err *e) {
    char path[PATH_MAX];
    return folder_of(eng, name, false, path, e) ? -1 : kv_remove_folder(path, e);
}

int eng_state_of(const struct eng *eng, const char *name, char of[ENG_STATE_OF_MAX], struct err *e) {
    char path[PATH_MAX];
    return folder_of(eng, name, true, path, e) || kv_state_read_note(path, of, ENG_STATE_OF_MAX, e) ? -1 : 0;
}

struct eng *eng_state_open(const struct eng *eng, const char *name, struct err *e) {
    char path[PATH_MAX];
    if (folder_of(eng, name, true, path, e)) return NULL;
    struct kv_options o = local_of(&eng->store)->kv_options;
    o.block_cache_bytes = (size_t)8 << 20;
    struct eng *state = calloc(1, sizeof(*state));
    struct local *of = calloc(1, sizeof(*of));
    if (state && of) {
        state->store = (struct store){.ops = &local_store_ops, .front = &engi_front, .own = of};
        *of = (struct local){.eng = state, .kv = kv_view(&o, path, e)};
        if (of->kv) return state;
    } else {
        err_nomem(e);
    }
    free(of);
    free(state);
    return NULL;
}

void eng_state_close(struct eng *state) {
    struct local *of = local_of(&state->store);
    kv_close(of->kv);
    free(of);
    free(state);
}

int eng_state_each(struct eng *eng, int (*fn)(void *arg, const char *name, const char *of, int64_t saved_s), void *arg,
                   struct err *e) {
    struct local *own = local_if(eng);
    char states[PATH_MAX], path[PATH_MAX], of[ENG_STATE_OF_MAX];
    struct stat st;
    if (!own || !own->kv_options.data_dir) return 0;
    if (kv_path(states, own->kv_options.data_dir, "states", e)) return -1;
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
    struct local *own = local_if(eng);
    struct kv *kv = own ? own->retired : NULL;
    for (int i = 0; kv && i < TRIES && kv_iterators(kv); i++) usleep(EACH_US);
    if (!kv || kv_iterators(kv)) return;
    kv_close(kv);
    own->retired = NULL;
}

/* Ends the process on a failure after which neither store can be used; the disk still has one of
 * the two. */
static void must(int rc, const struct err *e) {
    if (rc) log_fatal("the store that was put back cannot be used: %s", e->text);
}

int eng_state_put_back(struct eng *eng, const char *name, struct err *e) {
    struct local *own = local_of(&eng->store);
    struct err why = {0};
    char from[PATH_MAX], rows[32];
    if (folder_of(eng, name, true, from, e)) return -1;
    eng_state_settle(eng);
    if (own->retired) return err_set(e, ERR_OVERLOADED, "A read of the state before is still going on; try again");
    engi_order_will_wait(ENGI_RANK_STORE, 0);
    pthread_rwlock_wrlock(&own->whole);
    engi_order_holds(ENGI_RANK_STORE, 0);
    engi_reclaim_stop(eng);
    engi_commit_stop(eng);
    struct kv_options o = own->kv_options;
    o.rows = rows;
    struct kv *fresh = kv_state_stage(o.data_dir, from, rows, e) ? NULL : kv_open(&o, e);
    if (fresh) {
        kv_retire(own->kv);
        own->retired = own->kv;
        own->kv = fresh;
        /* Everything in memory about the old store is discarded, except the write clock, so that
         * this server's timestamps keep growing. */
        engi_cache_clear(own->cache);
        engi_tables_forget(eng);
        engi_histories_forget(&own->histories);
        engi_horizon_fini(&own->newest);
        engi_horizon_fini(&own->assigned);
        engi_horizon_init(&own->newest, ENGI_HORIZON_NEWEST, ENGI_HORIZON_STEP);
        engi_horizon_init(&own->assigned, ENGI_HORIZON_CLOCK, ENGI_CLOCK_STEP);
        must(engi_load_marks(own, &why), &why);
    }
    must(engi_commit_start(eng, &why), &why);
    must(engi_reclaim_start(eng, &why), &why);
    pthread_rwlock_unlock(&own->whole);
    engi_order_leaves(ENGI_RANK_STORE);
    return fresh ? 0 : -1;
}
