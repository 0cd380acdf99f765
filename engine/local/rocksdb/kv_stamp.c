#include "engine/local/rocksdb/kv_stamp.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "engine/local/rocksdb/kv_folder.h"

enum {
    STAMP_MAX = 1 << 20, /* bytes that are read: 20,000 logs, where RocksDB needs one for each memtable */
    LINE_MAX_BYTES = 64,
};

static const char stamp_title[] = "tally-data";

void kv_stamp_fini(struct kv_stamp *s) {
    free(s->logs);
    s->logs = NULL;
    s->n_logs = s->cap_logs = 0;
}

/* ---- reading a stamp ---- */

static int damaged(const char *path, struct err *e) {
    return err_set(e, ERR_CONFIG,
                   "%s is damaged: it describes what the store next to it must contain. Restore the data folder from "
                   "a copy; "
                   "or, when only this "
                   "file was hurt, remove it: the store is then taken as it is found",
                   path);
}

static bool take_line(char **text, const char *key, char **rest) {
    size_t n = strlen(key);
    char *end = strchr(*text, '\n');
    if (strncmp(*text, key, n) || (*text)[n] != ' ' || !end) return false;
    *end = 0;
    *rest = *text + n + 1;
    *text = end + 1;
    return true;
}

static bool two_numbers(const char *s, uint64_t *a, uint64_t *b) {
    int end = 0;
    return sscanf(s, "%" SCNu64 " %" SCNu64 "%n", a, b, &end) == 2 && !s[end];
}

static bool read_fields(char *text, struct kv_stamp *s) {
    char *rest;
    if (!take_line(&text, "store", &rest) || strlen(rest) >= sizeof(s->store)) return false;
    memcpy(s->store, rest, strlen(rest) + 1);
    bool named = take_line(&text, "rows", &rest);
    if (named && (strncmp(rest, "rows.", 5) || strchr(rest, '/') || strlen(rest) >= sizeof(s->rows))) return false;
    snprintf(s->rows, sizeof(s->rows), "%s", named ? rest : "rows");
    if (!take_line(&text, "manifest", &rest) || !two_numbers(rest, &s->manifest, &s->manifest_bytes)) return false;
    struct kv_stamp_log log;
    while (take_line(&text, "log", &rest))
        if (!two_numbers(rest, &log.number, &log.bytes) ||
            array_room(&s->logs, s->n_logs, &s->cap_logs, sizeof(log)))
            return false;
        else s->logs[s->n_logs++] = log;
    return take_line(&text, "sum", &rest) && !*text;
}

static int parse(const char *path, char *text, struct kv_stamp *stamp, struct err *e) {
    char *at = text, *rest;
    size_t title = sizeof(stamp_title) - 1;
    if (strncmp(text, stamp_title, title) || text[title] != '\n') return damaged(path, e);
    const char *sum = strstr(text, "\nsum ");
    char expected[16];
    snprintf(expected, sizeof(expected), "%08x\n", sum ? crc32c(0, slice_of(text, (size_t)(sum + 1 - text))) : 0);
    bool fits = sum && !strcmp(sum + 5, expected);
    at += title + 1;
    if (!take_line(&at, "format", &rest)) return damaged(path, e);
    char *end;
    unsigned long format = strtoul(rest, &end, 10);
    if (*end || !format) return damaged(path, e);
    if (format > KV_FORMAT)
        return err_set(e, ERR_CONFIG,
                       "%s says that the data folder has format %lu; this tallyd reads formats up to %d. Start the "
                       "newer tallyd that wrote it",
                       path, format, KV_FORMAT);
    return fits && read_fields(at, stamp) ? 1 : damaged(path, e);
}

int kv_stamp_read(const char *path, struct kv_stamp *stamp, struct err *e) {
    char *text = malloc(STAMP_MAX);
    *stamp = (struct kv_stamp){0};
    if (!text) return err_nomem(e);
    int got = kv_read_text(path, text, STAMP_MAX, e);
    if (got > 0) got = parse(path, text, stamp, e);
    free(text);
    return got;
}

uint64_t kv_stamp_log_bytes(const struct kv_stamp *stamp, uint64_t number) {
    for (uint32_t i = 0; stamp && i < stamp->n_logs; i++)
        if (stamp->logs[i].number == number) return stamp->logs[i].bytes;
    return 0;
}

/* ---- writing one ---- */

int kv_stamp_write(const char *path, const struct kv_stamp *s, struct err *e) {
    char fresh[PATH_MAX];
    size_t size = (s->n_logs + 8) * LINE_MAX_BYTES;
    bool named = *s->rows && strcmp(s->rows, "rows");
    if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
        return err_set(e, ERR_CONFIG, "the path %s is too long", path);
    char *text = malloc(size);
    if (!text) return err_nomem(e);
    size_t n = (size_t)snprintf(text, size, "%s\nformat %d\nstore %s\n%s%s%smanifest %" PRIu64 " %" PRIu64 "\n",
                                stamp_title, KV_FORMAT, s->store, named ? "rows " : "", named ? s->rows : "",
                                named ? "\n" : "", s->manifest, s->manifest_bytes);
    for (uint32_t i = 0; i < s->n_logs; i++)
        n += (size_t)snprintf(text + n, size - n, "log %" PRIu64 " %" PRIu64 "\n", s->logs[i].number,
                              s->logs[i].bytes);
    n += (size_t)snprintf(text + n, size - n, "sum %08x\n", crc32c(0, slice_of(text, n)));
    int rc = kv_write_synced(fresh, slice_of(text, n), e);
    free(text);
    if (rc) return -1;
    if (rename(fresh, path)) return kv_cannot("replace", path, e);
    *strrchr(fresh, '/') = 0;
    return kv_sync_folder(fresh, e);
}

/* ---- what there is ---- */

static int file_bytes(const char *folder, const char *name, uint64_t *bytes, struct err *e) {
    char path[PATH_MAX];
    struct stat st;
    if (kv_path(path, folder, name, e)) return -1;
    if (stat(path, &st)) return errno == ENOENT ? 0 : kv_cannot("look at", path, e);
    *bytes = (uint64_t)st.st_size;
    if (!file_is_sparse(&st)) return 1;
    return err_set(e, ERR_CONFIG,
                   "%s is sparse: of its %" PRIu64 " bytes %" PRIu64
                   " at most were ever written. Restore the data folder from a copy",
                   path, *bytes, (uint64_t)st.st_blocks * 512);
}

int kv_stamp_manifest(const char *folder, uint64_t *number, uint64_t *bytes, struct err *e) {
    char path[PATH_MAX], text[64];
    if (kv_path(path, folder, "CURRENT", e)) return -1;
    int got = kv_read_text(path, text, sizeof(text), e);
    if (got <= 0) return got;
    text[strcspn(text, "\n")] = 0;
    if (sscanf(text, "MANIFEST-%" SCNu64, number) != 1)
        return err_set(e, ERR_CONFIG, "%s is damaged: it names no MANIFEST", path);
    got = file_bytes(folder, text, bytes, e);
    if (got == 0) return err_set(e, ERR_CONFIG, "%s/%s is missing, which CURRENT names", folder, text);
    return got;
}

static int by_number(const void *a, const void *b) {
    uint64_t x = ((const struct kv_stamp_log *)a)->number, y = ((const struct kv_stamp_log *)b)->number;
    return x < y ? -1 : x > y;
}

struct logs {
    const char *folder;
    uint64_t first;
    struct kv_stamp *s;
};

static int take_log(void *arg, const char *name, struct err *e) {
    struct logs *l = arg;
    struct kv_stamp_log log = {0};
    int end = 0;
    if (sscanf(name, "%" SCNu64 ".log%n", &log.number, &end) != 1 || !end || name[end] || log.number < l->first)
        return 0;
    int got = file_bytes(l->folder, name, &log.bytes, e);
    if (got <= 0) return got;
    if (array_room(&l->s->logs, l->s->n_logs, &l->s->cap_logs, sizeof(log))) return err_nomem(e);
    l->s->logs[l->s->n_logs++] = log;
    return 0;
}

int kv_stamp_take(const char *folder, uint64_t first, struct kv_stamp *s, struct err *e) {
    char path[PATH_MAX], id[256] = "";
    *s = (struct kv_stamp){0};
    if (kv_path(path, folder, "IDENTITY", e) || kv_read_text(path, id, sizeof(id), e) < 0) return -1;
    id[strcspn(id, "\n")] = 0;
    snprintf(s->store, sizeof(s->store), "%.*s", KV_STORE_ID_MAX - 1, id);
    /* the MANIFEST first: RocksDB may delete a log at any time, but only after the MANIFEST has
     * grown */
    if (kv_stamp_manifest(folder, &s->manifest, &s->manifest_bytes, e) < 0) return -1;
    if (kv_each_name(folder, take_log, &(struct logs){folder, first, s}, e)) {
        kv_stamp_fini(s);
        return -1;
    }
    if (s->n_logs) qsort(s->logs, s->n_logs, sizeof(s->logs[0]), by_number);
    return 0;
}
