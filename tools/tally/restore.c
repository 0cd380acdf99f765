/* tally restore: verifies a backup and makes a data folder of it. A single rename makes the
 * complete folder visible. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "engine/backup.h"
#include "tools/tally/subcommand.h"

struct restore {
    const char *from, *data_dir;
    uint32_t number; /* 0 for the newest */
    bool list, json;
};

enum { BACKUPS_MAX = 4096 };

static struct eng_backup *all_backups(const struct restore *r, uint32_t *n, struct err *e) {
    struct eng_backup *all = calloc(BACKUPS_MAX, sizeof(*all));
    if (!all) return err_nomem(e), NULL;
    int rc = eng_backup_list(r->from, all, BACKUPS_MAX, n, e);
    if (!rc && *n > BACKUPS_MAX) *n = BACKUPS_MAX;
    if (!rc && !*n) rc = err_set(e, ERR_CONFIG, "there are no backups in %s", r->from);
    if (!rc) return all;
    free(all);
    return NULL;
}

static int verify(const struct restore *r, const struct eng_backup *b, struct err *e) {
    if (eng_backup_verify(r->from, b->number, e)) return -1;
    if (!b->damaged) return 0;
    return err_set(e, ERR_SERVER, "backup %u is not whole: %s/meta/%u is damaged", b->number, r->from, b->number);
}

/* ---- the list ---- */

static int list(const struct restore *r) {
    struct err e = {0};
    struct buf json;
    uint32_t n;
    struct eng_backup *all = all_backups(r, &n, &e);
    int rc = EXIT_DONE;
    if (!all) return say_no(r->json, "restore", &e);
    buf_init(&json, 0);
    for (const struct eng_backup *b = all; b < all + n; b++) {
        struct err why = {0};
        char at[32];
        struct tm tm;
        time_t t = b->made_s;
        strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
        if (verify(r, b, &why)) rc = EXIT_NO;
        if (!r->json)
            printf("%6u  %s  %6u files  %12llu bytes  %s\n", b->number, at, b->files, (unsigned long long)b->bytes,
                   why.set ? why.text : "whole");
        json_open(&json, NULL, '{');
        json_count(&json, "backup", b->number);
        json_count(&json, "made", (uint64_t)b->made_s);
        json_count(&json, "files", b->files);
        json_count(&json, "bytes", b->bytes);
        json_flag(&json, "whole", !why.set);
        if (why.set) json_text(&json, "error", why.text);
        buf_u8(&json, '}');
    }
    if (r->json) printf("{\"ok\":true,\"backups\":[%.*s]}\n", SLICE_FMT(buf_slice(&json)));
    buf_fini(&json);
    free(all);
    return rc;
}

/* ---- restoring ---- */

static int sync_folder(const char *path, struct err *e) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd >= 0 && !fsync(fd) ? 0 : err_set(e, ERR_CONFIG, "cannot sync the folder %s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return rc;
}

static int restore(const struct restore *r, const struct eng_backup *b, struct err *e) {
    char fresh[PATH_MAX], data_dir[PATH_MAX];
    size_t n = strlen(r->data_dir);
    while (n > 1 && r->data_dir[n - 1] == '/') n--;
    if (snprintf(data_dir, sizeof(data_dir), "%.*s", (int)n, r->data_dir) >= (int)sizeof(data_dir) ||
        snprintf(fresh, sizeof(fresh), "%s.restoring", data_dir) >= (int)sizeof(fresh))
        return err_set(e, ERR_CONFIG, "the path %s is too long", r->data_dir);
    if (verify(r, b, e)) return -1;
    /* the target must be absent; an empty folder is removed */
    struct stat st;
    bool there = !stat(data_dir, &st);
    if (!there && errno != ENOENT)
        return err_set(e, ERR_CONFIG, "cannot use %s: %s", data_dir, strerror(errno));
    if (there && rmdir(data_dir))
        return err_set(e, ERR_CONFIG, "%s is there already and not an empty folder: restore into another one",
                       data_dir);
    if (!access(fresh, F_OK))
        return err_set(e, ERR_CONFIG, "%s is there: a restore was broken off, or runs. Remove it when none does",
                       fresh);
    if (eng_backup_restore(r->from, b->number, fresh, e)) return -1;
    /* check that the store opens, which also writes the stamp of the folder (engine/local/rocksdb/kv_stamp.h) */
    const struct eng_options o = {.data_dir = fresh, .durability = ENG_FSYNC, .clock = &clock_real};
    struct eng *eng = eng_open(&o, e);
    if (!eng) return -1;
    eng_close(eng);
    if (sync_folder(fresh, e)) return -1;
    char parent[PATH_MAX];
    if (rename(fresh, data_dir))
        return err_set(e, ERR_CONFIG, "cannot rename %s to %s: %s", fresh, data_dir, strerror(errno));
    snprintf(parent, sizeof(parent), "%s", data_dir);
    char *slash = strrchr(parent, '/');
    if (slash) slash[slash == parent] = 0;
    return sync_folder(slash ? parent : ".", e);
}

int tally_restore(int argc, char **argv) {
    struct restore r = {0};
    const struct flag flags[] = {
        FLAG_TEXT("from", "DIR", r.from, "the folder of backups"),
        FLAG_NUMBER("backup", "N", r.number, "number of the backup (the newest)"),
        FLAG_TEXT("data-dir", "DIR", r.data_dir, "the data folder to create; it must not exist, or be empty"),
        FLAG_ON("list", r.list, "list the backups, and verify each file of each"),
        FLAG_ON("json", r.json, "print the result as JSON"),
    };
    int rc = flags_read("restore", argc, argv, flags, ARRAY_LEN(flags));
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!r.from || (!r.data_dir && !r.list)) {
        fprintf(stderr,
                "tally restore: --from and --data-dir say from where and into what; see tally restore --help\n");
        return EXIT_USAGE;
    }
    umask(077);
    if (r.list) return list(&r);
    struct err e = {0};
    uint32_t n, i = 0;
    struct eng_backup *all = all_backups(&r, &n, &e), chosen = {.number = r.number};
    if (!all) return say_no(r.json, "restore", &e);
    if (!r.number) chosen = all[n - 1];
    while (i < n && all[i].number != chosen.number) i++;
    if (i < n) chosen = all[i];
    free(all);
    if (restore(&r, &chosen, &e)) return say_no(r.json, "restore", &e);
    if (r.json) printf("{\"ok\":true,\"backup\":%u}\n", chosen.number);
    else printf("%s holds what backup %u did; start tallyd --data-dir on it\n", r.data_dir, chosen.number);
    return EXIT_DONE;
}
