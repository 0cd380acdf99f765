#include "engine/local/local.h"
#include "engine/local/rocksdb/kv_check.h"
#include "engine/local/rocksdb/kv_folder.h"
#include "engine/local/rocksdb/kv_named.h"
#include "engine/rows/tombstone.h"
#include "engine/verify.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void tell(struct eng_verify *v, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void tell(struct eng_verify *v, const char *fmt, ...) {
    char words[ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    v->found(v->arg, words);
}

/* ---- records ---- */

struct look {
    struct eng_verify *v;
    const char *folder;
    struct arena arena; /* of one record */
};

static void take(void *arg, struct slice key, struct slice value) {
    struct look *l = arg;
    struct err e = {0};
    char name[2 * 48 + 1] = "";
    int rc = 0;
    uint32_t table = key.n >= ENGI_KEY_TOKEN ? load_u32(key.p) : UINT32_MAX;
    arena_reset(&l->arena);
    if (table == ENGI_TABLE_META) {
        l->v->records++;
        rc = l->v->named(l->v->arg, slice_of(key.p + ENGI_KEY_TOKEN, key.n - ENGI_KEY_TOKEN), value, &e);
    } else if (table >= ENGI_TABLE_FIRST) {
        l->v->rows++;
        rc = engi_check_record(key, value, &l->arena, &e);
    }
    if (!rc) return;
    for (size_t i = 0; i < key.n && i < 48; i++) snprintf(name + 2 * i, 3, "%02x", key.p[i]);
    tell(l->v, "%s: the record with the key 0x%s%s: %s", l->folder, name, key.n > 48 ? "..." : "", e.text);
}

static void take_damage(void *arg, const char *words) { tell(((struct look *)arg)->v, "%s", words); }

static int check_id(void *arg, uint32_t id, struct err *e) {
    struct look *l = arg;
    (void)e;
    if (!l->v->has(l->v->arg, id))
        tell(l->v, "%s: rows of id %u, which no object of the catalogue has; a server frees them after its start",
             l->folder, id);
    return 0;
}

static int take_store(void *arg, struct kv *kv, struct err *e) { return engi_each_stored(kv, check_id, arg, e); }

/* ---- a store ---- */

static int look_through(struct eng_verify *v, const char *folder, const struct kv_stamp *stamp, struct err *e) {
    struct look l = {.v = v, .folder = folder};
    struct kv_options o = {.damage = KV_DAMAGE_LOOK,
                           .block_cache_bytes = 8 << 20,
                           .merge = eng_row_merge,
                           .prefix_len = engi_prefix_len};
    struct err why = {0};
    uint64_t log_bytes;
    int found = kv_check(folder, stamp, KV_DAMAGE_LOOK, &log_bytes, &why);
    if (found < 0) tell(v, "%s", why.text);
    else if (!found) tell(v, "%s holds no store: its file CURRENT is missing", folder);
    const struct kv_verify all = {.take = take, .damaged = take_damage, .taken = take_store, .arg = &l};
    arena_init(&l.arena, 64 << 10, 0);
    v->next_store(v->arg);
    int rc = found && found != KV_CHECK_UNREAD ? kv_verify(&o, folder, &all, e) : 0;
    arena_fini(&l.arena);
    return rc;
}

static int look_through_all(struct eng_verify *v, struct kv_stamp *stamp, struct err *e) {
    char path[PATH_MAX], rows[PATH_MAX], states[PATH_MAX];
    struct stat st;
    struct err why = {0};
    if (kv_path(path, v->data_dir, "tally.stamp", e) || kv_path(states, v->data_dir, "states", e)) return -1;
    int stamped = kv_stamp_read(path, stamp, &why);
    if (stamped < 0) tell(v, "%s", why.text);
    else if (!stamped) tell(v, "%s is missing: the folder was never a server's, or has lost it", path);
    if (kv_path(rows, v->data_dir, stamped > 0 ? stamp->rows : "rows", e)) return -1;
    if (stat(rows, &st)) {
        tell(v, "%s is missing: the rows were in it", rows);
        return 0;
    }
    int rc = look_through(v, rows, stamped > 0 ? stamp : NULL, e);
    DIR *dir = opendir(states);
    for (const struct dirent *d; dir && !rc && (d = readdir(dir));)
        if (!strchr(d->d_name, '.') && !(rc = kv_path(path, states, d->d_name, e))) rc = look_through(v, path, NULL, e);
    if (dir) closedir(dir);
    return rc;
}

int eng_verify(struct eng_verify *v, struct err *e) {
    struct kv_stamp stamp = {0};
    struct stat st;
    if (stat(v->data_dir, &st) || !S_ISDIR(st.st_mode)) return err_set(e, ERR_CONFIG, "%s is no folder", v->data_dir);
    int rc = look_through_all(v, &stamp, e);
    kv_stamp_fini(&stamp);
    return rc;
}
