#include "engine/local/rocksdb/kv_state.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/local/rocksdb/kv_folder.h"

int kv_state_path(const char *data_dir, const char *name, char *path, struct err *e) {
    enum { NAME_MAX_CHARS = 48 };
    char states[PATH_MAX];
    size_t n = strlen(name);
    bool good = n > 0 && n <= NAME_MAX_CHARS;
    for (size_t i = 0; i < n && good; i++) good = isalnum((unsigned char)name[i]) || name[i] == '-' || name[i] == '_';
    if (!good) return err_invalid(e, "The name of a saved state is 1 to %d letters, digits, - and _", NAME_MAX_CHARS);
    return kv_path(states, data_dir, "states", e) || kv_make_folder(states, e) ? -1 : kv_path(path, states, name, e);
}

static const char note_name[] = "tally.of";

int kv_state_note(const char *folder, const char *of, struct err *e) {
    char path[PATH_MAX];
    if (!*of) return 0;
    return kv_path(path, folder, note_name, e) || kv_write_synced(path, slice_str(of), e) ? -1
                                                                                          : kv_sync_folder(folder, e);
}

int kv_state_read_note(const char *folder, char *of, size_t size, struct err *e) {
    char path[PATH_MAX];
    of[0] = 0;
    return kv_path(path, folder, note_name, e) || kv_read_text(path, of, size, e) < 0 ? -1 : 0;
}

static int copy_file(const char *from, const char *to, struct err *e) {
    int in = open(from, O_RDONLY | O_CLOEXEC),
        out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t n = out < 0 ? -1 : 1;
    while (n > 0) n = copy_file_range(in, NULL, out, NULL, 1 << 30, 0);
    int rc = n == 0 && !fsync(out) ? 0 : kv_cannot("copy to", to, e);
    if (in >= 0) close(in);
    if (out >= 0) close(out);
    return rc;
}

struct stage {
    const char *from, *to;
};

/* Links a table file, which RocksDB never changes, and copies any other, which RocksDB continues to
 * write. */
static int stage_one(void *arg, const char *name, struct err *e) {
    const struct stage *s = arg;
    char source[PATH_MAX], target[PATH_MAX];
    size_t n = strlen(name);
    if (kv_path(source, s->from, name, e) || kv_path(target, s->to, name, e)) return -1;
    if (n > 4 && !strcmp(name + n - 4, ".sst")) return link(source, target) ? kv_cannot("link", target, e) : 0;
    return copy_file(source, target, e);
}

int kv_state_stage(const char *data_dir, const char *from, char rows[32], struct err *e) {
    char to[PATH_MAX];
    int made = -1;
    for (unsigned i = 1; made && i < 1000000; i++) {
        snprintf(rows, 32, "rows.%u", i);
        if (kv_path(to, data_dir, rows, e)) return -1;
        made = mkdir(to, 0700);
        if (made && errno != EEXIST) break;
    }
    if (made) return kv_cannot("make the folder", to, e);
    struct stage s = {from, to};
    return kv_each_name(from, stage_one, &s, e) || kv_sync_folder(to, e) || kv_sync_folder(data_dir, e) ? -1 : 0;
}

struct clean {
    const char *data_dir, *rows; /* rows: the folder that stays; NULL: clean the states */
};

static int clean_one(void *arg, const char *name, struct err *e) {
    const struct clean *c = arg;
    char path[PATH_MAX];
    bool stale = c->rows ? !strncmp(name, "rows", 4) && (!name[4] || name[4] == '.') && strcmp(name, c->rows)
                         : strchr(name, '.') != NULL;
    if (!stale) return 0;
    return kv_path(path, c->data_dir, name, e) || kv_remove_folder(path, e) ? -1 : 0;
}

int kv_state_clean(const char *data_dir, const char *rows, struct err *e) {
    char states[PATH_MAX];
    struct clean of_rows = {data_dir, rows}, of_states = {states, NULL};
    if (kv_path(states, data_dir, "states", e) || kv_each_name(data_dir, clean_one, &of_rows, e)) return -1;
    return kv_each_name(states, clean_one, &of_states, e);
}
