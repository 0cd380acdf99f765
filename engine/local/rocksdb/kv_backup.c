/* Backups of a store: RocksDB's backup engine, with verified checksums.
 *
 * A folder of backups has `tally.backups`, which marks it as one, and RocksDB's meta/, private/ and
 * shared_checksum/. The backups of a folder share table files, so a backup adds only the files that
 * are new since the one before. meta/<number> names the files of a backup, with the CRC-32C of each
 * at the time of its copy. A backup exists once its meta file does, which is written last. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "engine/backup.h"
#include "engine/local/rocksdb/kv_folder.h"
#include "engine/local/rocksdb/rocks.h"

static const char marker[] = "tally.backups", title[] = "tally-backups\nformat 1\n";

/* ---- the folder ---- */

static int find_one(void *arg, const char *name, struct err *e) {
    (void)name, (void)e;
    return *(bool *)arg = true;
}

/* Checks the kind of a folder. Returns 1 for a folder of backups, 0 if empty or missing, or -1
 * if it is something else. */
static int look_at_folder(const char *folder, struct err *e) {
    char path[PATH_MAX];
    struct stat st;
    bool others = false;
    if (kv_path(path, folder, marker, e)) return -1;
    if (!stat(path, &st)) return 1;
    if (kv_each_name(folder, find_one, &others, e) < 0) return -1;
    return others ? err_set(e, ERR_CONFIG, "%s holds something else than backups", folder) : 0;
}

/* Refuses a folder within a data folder, links resolved: a start removes unknown files from
 * there. A folder that does not exist yet is within if its parent is. */
static int check_outside(const char *folder, struct err *e) {
    char path[PATH_MAX], resolved[PATH_MAX], stamp[PATH_MAX];
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/') n--;
    if (snprintf(path, sizeof(path), "%.*s", (int)n, folder) >= (int)sizeof(path))
        return err_set(e, ERR_CONFIG, "the path %s is too long", folder);
    char *slash = strrchr(path, '/');
    bool found = realpath(path, resolved) != NULL;
    if (!found && errno == ENOENT) {
        if (slash) slash[slash == path] = 0;
        found = realpath(slash ? path : ".", resolved) != NULL;
    }
    if (!found) return kv_cannot("use", path, e);
    for (;; slash[slash == resolved] = 0) {
        if (kv_path(stamp, resolved, "tally.stamp", e)) return -1;
        if (!access(stamp, F_OK))
            return err_set(e, ERR_CONFIG, "%s is within the data folder %s; choose a folder outside it", folder,
                           resolved);
        slash = strrchr(resolved, '/');
        if (!resolved[1]) return 0;
    }
}

static int need_backups(const char *folder, struct err *e) {
    int got = look_at_folder(folder, e);
    return got ? (got > 0 ? 0 : -1) : err_set(e, ERR_CONFIG, "there are no backups in %s", folder);
}

enum { META_BYTES_MAX = 64 << 20 /* of a meta file: a line of some 60 bytes for each file of the backup */ };

struct numbers {
    const char *meta;
    uint32_t *at, max, n;
};

static int take_number(void *arg, const char *name, struct err *e) {
    struct numbers *l = arg;
    char path[PATH_MAX], *end;
    struct stat st;
    unsigned long number = strtoul(name, &end, 10);
    if (kv_path(path, l->meta, name, e)) return -1;
    if (lstat(path, &st)) return 0; /* a backup that is being made renames its file */
    if (!S_ISREG(st.st_mode)) return err_set(e, ERR_CONFIG, "%s is not a regular file", path);
    if (st.st_size > META_BYTES_MAX) return err_set(e, ERR_CONFIG, "%s has more than %d bytes", path, META_BYTES_MAX);
    if (!*end && number && number <= UINT32_MAX && l->n < l->max) l->at[l->n++] = (uint32_t)number;
    return 0;
}

/* Lists the numbers of the backups that meta/ names, in order, at most max of them. RocksDB reads
 * these files into memory when the folder is opened, and would wait forever for a FIFO. */
static int meta_numbers(const char *folder, uint32_t *numbers, uint32_t max, uint32_t *n, struct err *e) {
    char meta[PATH_MAX];
    struct numbers l = {.meta = meta, .at = numbers, .max = max};
    int rc = kv_path(meta, folder, "meta", e) || kv_each_name(meta, take_number, &l, e) ? -1 : 0;
    *n = l.n;
    return rc;
}

static int by_number(const void *a, const void *b) {
    const struct eng_backup *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static rocksdb_backup_engine_t *open_folder(const char *folder, struct err *e) {
    char *text = NULL;
    uint32_t n;
    if (meta_numbers(folder, NULL, 0, &n, e)) return NULL;
    rocksdb_env_t *env = rocksdb_create_default_env();
    rocksdb_backup_engine_options_t *o = rocksdb_backup_engine_options_create(folder);
    rocksdb_backup_engine_options_set_share_table_files(o, 1);
    rocksdb_backup_engine_options_set_sync(o, 1);
    rocksdb_backup_engine_t *b = rocksdb_backup_engine_open_opts(o, env, &text);
    rocksdb_backup_engine_options_destroy(o);
    rocksdb_env_destroy(env);
    if (text) rocks_failed(text, "cannot open the backups", e);
    return text ? NULL : b;
}

static void take_info(const rocksdb_backup_engine_info_t *info, int i, struct eng_backup *out) {
    *out = (struct eng_backup){.number = rocksdb_backup_engine_info_backup_id(info, i),
                               .made_s = rocksdb_backup_engine_info_timestamp(info, i),
                               .bytes = rocksdb_backup_engine_info_size(info, i),
                               .files = rocksdb_backup_engine_info_number_files(info, i)};
}

/* ---- making one ---- */

int kv_backup(struct kv *kv, const char *folder, uint32_t keep, struct eng_backup *out, struct err *e) {
    char *text = NULL;
    if (kv->memory)
        return err_set(e, ERR_CONFIG, "there is nothing to back up: this server keeps everything in memory");
    char path[PATH_MAX];
    if (check_outside(folder, e)) return -1;
    int got = look_at_folder(folder, e);
    if (got < 0 || kv_make_folder(folder, e) || kv_path(path, folder, marker, e)) return -1;
    if (!got && kv_write_synced(path, slice_str(title), e)) return -1;
    rocksdb_backup_engine_t *b = open_folder(folder, e);
    if (!b) return -1;
    rocksdb_backup_engine_create_new_backup_flush(b, kv->db, 1, &text);
    if (!text && keep) rocksdb_backup_engine_purge_old_backups(b, keep, &text);
    const rocksdb_backup_engine_info_t *info = text ? NULL : rocksdb_backup_engine_get_backup_info(b);
    if (info) {
        take_info(info, rocksdb_backup_engine_info_count(info) - 1, out);
        rocksdb_backup_engine_info_destroy(info);
    }
    rocksdb_backup_engine_close(b);
    return text ? rocks_log_failed(kv, text, "the backup is not made", e) : 0;
}

/* ---- listing and verifying ---- */

/* RocksDB leaves out a backup whose meta file it cannot read. This function adds such backups as
 * damaged: each of those listed before the folder was opened whose meta file is still there. */
int eng_backup_list(const char *folder, struct eng_backup *out, uint32_t max, uint32_t *n, struct err *e) {
    char name[32], path[PATH_MAX];
    struct stat st;
    uint32_t named, *numbers = calloc(max ? max : 1, sizeof(*numbers));
    if (!numbers) return err_nomem(e);
    int rc = need_backups(folder, e) || meta_numbers(folder, numbers, max, &named, e) ? -1 : 0;
    rocksdb_backup_engine_t *b = rc ? NULL : open_folder(folder, e);
    if (!b) {
        free(numbers);
        return -1;
    }
    const rocksdb_backup_engine_info_t *info = rocksdb_backup_engine_get_backup_info(b);
    uint32_t known = *n = (uint32_t)rocksdb_backup_engine_info_count(info);
    for (uint32_t i = 0; i < known && i < max; i++) take_info(info, (int)i, &out[i]);
    rocksdb_backup_engine_info_destroy(info);
    rocksdb_backup_engine_close(b);
    for (uint32_t i = 0; i < named && *n < max; i++) {
        bool listed = false;
        for (uint32_t k = 0; k < known && !listed; k++) listed = out[k].number == numbers[i];
        snprintf(name, sizeof(name), "meta/%u", numbers[i]);
        if (!listed && !kv_path(path, folder, name, e) && !lstat(path, &st))
            out[(*n)++] = (struct eng_backup){.number = numbers[i], .damaged = true};
    }
    qsort(out, *n < max ? *n : max, sizeof(*out), by_number);
    free(numbers);
    return 0;
}

static int sum_file(const char *path, uint32_t *sum, struct err *e) {
    enum { PIECE = 1 << 20 };
    uint8_t *piece = malloc(PIECE);
    const char *why = NULL;
    int fd = file_open_read(path, &why);
    struct stat st;
    ssize_t n = -1;
    *sum = 0;
    if (fd >= 0 && !fstat(fd, &st) && file_is_sparse(&st)) {
        close(fd);
        fd = -1;
        errno = 0;
        why = "it is sparse, as no file of a store is";
    }
    while (piece && fd >= 0 && (n = read(fd, piece, PIECE)) > 0) *sum = crc32c(*sum, slice_of(piece, (size_t)n));
    if (fd >= 0 && n < 0) why = strerror(errno);
    if (fd < 0 && errno == ENOENT) why = "it is missing";
    int rc = !piece ? err_nomem(e) : n == 0 ? 0 : err_set(e, ERR_SERVER, "%s is damaged: %s", path, why);
    if (fd >= 0) close(fd);
    free(piece);
    return rc;
}

/* A meta file has the time, the sequence, perhaps other lines, the number of files, and a line for
 * each: a name below the folder, "crc32" and the sum in decimal; other words may follow. */
static int verify_lines(const char *folder, FILE *f, struct err *e) {
    char line[PATH_MAX + 64], path[PATH_MAX], *end = NULL;
    long n = -1, seen = 0;
    for (int i = 0; n < 0 && fgets(line, sizeof(line), f); i++) {
        long value = strtol(line, &end, 10);
        if (i >= 2 && *end == '\n' && end != line) n = value;
    }
    for (; seen < n && fgets(line, sizeof(line), f); seen++) {
        char *rest, *name = strtok_r(line, " \n", &rest), *word = strtok_r(NULL, " \n", &rest),
                   *number = strtok_r(NULL, " \n", &rest);
        unsigned long want = number ? strtoul(number, &end, 10) : 0;
        uint32_t sum;
        if (!number || *end || strcmp(word, "crc32") || strstr(name, ".."))
            return err_set(e, ERR_SERVER, "it names its files in a way that is not known");
        if (kv_path(path, folder, name, e) || sum_file(path, &sum, e)) return -1;
        if (sum != want)
            return err_set(e, ERR_SERVER, "%s is damaged: its checksum is %u, and was %lu when it was copied", path,
                           sum, want);
    }
    return seen == n ? 0 : err_set(e, ERR_SERVER, "it is cut off");
}

int eng_backup_verify(const char *folder, uint32_t number, struct err *e) {
    char name[32], path[PATH_MAX], why[sizeof(e->text)];
    struct err inner = {0};
    uint32_t n;
    snprintf(name, sizeof(name), "meta/%u", number);
    if (need_backups(folder, e) || meta_numbers(folder, NULL, 0, &n, e) || kv_path(path, folder, name, e)) return -1;
    const char *reason;
    int fd = file_open_read(path, &reason);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd < 0 && errno == ENOENT) return err_set(e, ERR_CONFIG, "there is no backup %u in %s", number, folder);
    if (fd < 0) return err_set(e, ERR_CONFIG, "cannot read %s: %s", path, reason);
    if (!f) {
        close(fd);
        return err_nomem(e);
    }
    int rc = verify_lines(folder, f, &inner);
    fclose(f);
    if (!rc) return 0;
    snprintf(why, sizeof(why), "%s", inner.text);
    return err_set(e, ERR_SERVER, "backup %u is not whole: %s%s%s", number, strstr(why, " is damaged") ? "" : path,
                   strstr(why, " is damaged") ? "" : ": ", why);
}

/* ---- back again ---- */

int eng_backup_restore(const char *folder, uint32_t number, const char *data_dir, struct err *e) {
    char rows[PATH_MAX], *text = NULL;
    if (need_backups(folder, e) || check_outside(data_dir, e) || kv_path(rows, data_dir, "rows", e)) return -1;
    if (kv_make_folder(data_dir, e)) return -1;
    rocksdb_backup_engine_t *b = open_folder(folder, e);
    if (!b) return -1;
    rocksdb_restore_options_t *o = rocksdb_restore_options_create();
    rocksdb_backup_engine_restore_db_from_backup(b, rows, rows, o, number, &text);
    rocksdb_restore_options_destroy(o);
    rocksdb_backup_engine_close(b);
    return text ? rocks_failed(text, "the backup is not restored", e) : 0;
}
