/* tally verify: checks the files of a data folder that no server uses, and the records in them; or
 * the objects of a pool of a Ceph cluster while servers use it. It changes nothing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/role.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/engine.h"
#include "engine/verify.h"
#include "metering/capture/format.h"
#include "metering/ledger/journal.h"
#include "system_schema/objects/record.h"
#include "system_schema/ddl/ddl_rule.h"
#include "system_schema/recovery/named_ids.h"
#include "tools/tally/subcommand.h"
#include "tools/tally/table.h"

enum { FOUND_MAX = 1000 };

struct verify_run {
    const char *data_dir;
    struct eng_rados rados; /* pool NULL: a data folder */
    bool json;
    struct arena arena;
    struct named_ids ids; /* of one store */
    uint32_t n_found;
    char *found[FOUND_MAX];
    struct table table;
    struct buf files; /* as JSON */
    uint64_t n_files, bytes;
};

static void found(void *arg, const char *words) {
    struct verify_run *v = arg;
    for (uint32_t i = 0; i < v->n_found; i++)
        if (!strcmp(v->found[i], words)) return;
    char *copy = v->n_found < FOUND_MAX ? strdup(words) : NULL;
    if (copy) v->found[v->n_found++] = copy;
}

/* ---- named records ---- */

static bool is_named(struct slice name, const char *prefix) {
    return name.n >= strlen(prefix) && !memcmp(name.p, prefix, strlen(prefix));
}

static int named(void *arg, struct slice name, struct slice value, struct err *e) {
    static const char rules[] = "catalog/ddl_rule/";
    static const struct object_kind *const kinds[] = {
#define KIND(name) &name##_kind,
#include "system_schema/objects/object_kind.def"
#undef KIND
    };
    struct verify_run *v = arg;
    struct ddl_rule rule;
    struct role role;
    named_ids_take(&v->ids, name, value);
    if (is_named(name, rules)) return ddl_rule_decode(value, &rule, e);
    if (is_named(name, "catalog/") && name.n == RECORD_KEY_SIZE && name.p[9] == '/') {
        const struct form_context at = {.keyspace = "", .name = ""};
        struct record r;
        if (record_decode(name, value, &r, e)) return -1;
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
            if (kinds[i]->tag == r.tag)
                return form_check(kinds[i], &at, r.form, e) || (r.next.n && form_check(kinds[i], &at, r.next, e)) ? -1
                                                                                                                  : 0;
        return err_set(e, ERR_SERVER, "this tally does not know its kind");
    }
    if (!is_named(name, "role/")) return 0;
    arena_reset(&v->arena);
    return role_decode("", value, &v->arena, &role, e);
}

static void next_store(void *arg) { named_ids_fini(&((struct verify_run *)arg)->ids); }
static bool has(void *arg, uint32_t id) { return named_ids_has(&((struct verify_run *)arg)->ids, id); }

/* ---- files next to the store ---- */

/* Reads a whole file. false: it cannot be read, which is recorded. */
static bool read_file(struct verify_run *v, const char *path, struct buf *out) {
    struct err e = {0};
    buf_init(out, 0);
    if (!file_append_to(path, SIZE_MAX - 1, out, &e)) return true;
    found(v, e.text);
    buf_fini(out);
    return false;
}

static void found_at(struct verify_run *v, const char *path, uint64_t at, const char *why) {
    char words[PATH_MAX + ERR_TEXT_MAX + 64];
    snprintf(words, sizeof(words), "%s is damaged at byte %llu: %s", path, (unsigned long long)at, why);
    found(v, words);
}

static void check_ledger(struct verify_run *v, const char *path) {
    struct buf all;
    struct stats b = {0};
    uint32_t latest = 0;
    if (!read_file(v, path, &all)) return;
    int64_t sound = journal_take(&b, buf_slice(&all), &latest);
    if (sound >= 0 && (size_t)sound < all.n)
        found_at(v, path, (uint64_t)sound, "the bytes from there on are left out when a server starts");
    stats_fini(&b);
    buf_fini(&all);
}

static void check_capture(struct verify_run *v, const char *path) {
    struct buf bytes;
    struct capture_header h;
    struct capture_record r;
    struct err e = {0};
    if (!read_file(v, path, &bytes)) return;
    struct slice all = buf_slice(&bytes);
    uint64_t at = capture_get_header(all, &h, &e) ? 0 : CAPTURE_HEADER;
    while (!e.set && at < all.n) {
        ssize_t n = capture_get_record(all, at, &h, &r, &e);
        if (n > 0) at += (uint64_t)n;
    }
    if (e.set) found_at(v, path, at, e.text);
    buf_fini(&bytes);
}

/* ---- the files ---- */

/* beside: checks the files that are not the store's; otherwise lists all files. */
static void walk(struct verify_run *v, const char *folder, bool beside) {
    struct dirent **all;
    char path[PATH_MAX];
    struct stat st;
    int n = scandir(folder, &all, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = all[i]->d_name;
        size_t n_name = strlen(name);
        bool capture = n_name >= 5 && !strcmp(name + n_name - 5, ".tcap");
        bool usable = strcmp(name, ".") && strcmp(name, "..") &&
                      snprintf(path, sizeof(path), "%s/%s", folder, name) < PATH_MAX && !lstat(path, &st);
        if (usable && S_ISDIR(st.st_mode)) walk(v, path, beside);
        else if (usable && S_ISREG(st.st_mode) && beside && !strcmp(name, "ledger.tally")) check_ledger(v, path);
        else if (usable && S_ISREG(st.st_mode) && beside && capture) check_capture(v, path);
        else if (usable && S_ISREG(st.st_mode) && !beside) {
            /* the file is damaged if a recorded finding has its path as a whole name */
            const char *shown = path + strlen(v->data_dir) + 1;
            bool damaged = false;
            for (uint32_t k = 0; k < v->n_found; k++)
                for (const char *at = v->found[k]; (at = strstr(at, path)); at += strlen(path))
                    if (!at[strlen(path)] || strchr(" :,;\n", at[strlen(path)])) damaged = true;
            table_row(&v->table, "%s\t%llu\t%s", shown, (unsigned long long)st.st_size, damaged ? "damaged" : "sound");
            json_open(&v->files, NULL, '{');
            json_text(&v->files, "file", shown);
            json_count(&v->files, "bytes", (uint64_t)st.st_size);
            json_flag(&v->files, "sound", !damaged);
            buf_u8(&v->files, '}');
            v->n_files++;
            v->bytes += (uint64_t)st.st_size;
        }
        free(all[i]);
    }
    if (n >= 0) free(all);
}

/* ---- the whole ---- */

static void print(struct verify_run *v, const struct eng_verify *x) {
    if (!v->json) {
        table_print(&v->table);
        for (uint32_t i = 0; i < v->n_found; i++) printf("%s\n", v->found[i]);
        printf("%llu files, %llu bytes, %llu records of the catalogue, %llu of rows: %s\n",
               (unsigned long long)v->n_files, (unsigned long long)v->bytes, (unsigned long long)x->records,
               (unsigned long long)x->rows, v->n_found ? "damaged" : "sound");
        return;
    }
    struct buf out;
    buf_init(&out, 0);
    for (uint32_t i = 0; i < v->n_found; i++) json_text(&out, NULL, v->found[i]);
    printf("{\"ok\":%s,\"files\":[%.*s],\"records\":%llu,\"rows\":%llu,\"damage\":[%.*s]}\n",
           v->n_found ? "false" : "true", SLICE_FMT(buf_slice(&v->files)), (unsigned long long)x->records,
           (unsigned long long)x->rows, SLICE_FMT(buf_slice(&out)));
    buf_fini(&out);
}

static int run_rados(struct verify_run *v, struct eng_verify *x) {
    struct err e = {0};
    struct buf out;
    if (eng_verify_rados(x, &v->rados, &e)) return say_wrong(v->json, "verify", &e);
    buf_init(&out, 0);
    for (uint32_t i = 0; i < v->n_found; i++) {
        if (v->json) json_text(&out, NULL, v->found[i]);
        else buf_printf(&out, "%s\n", v->found[i]);
    }
    if (v->json)
        printf("{\"ok\":%s,\"objects\":%llu,\"busy\":%llu,\"records\":%llu,\"rows\":%llu,\"damage\":[%.*s]}\n",
               v->n_found ? "false" : "true", (unsigned long long)x->objects, (unsigned long long)x->busy,
               (unsigned long long)x->records, (unsigned long long)x->rows, SLICE_FMT(buf_slice(&out)));
    else
        printf("%.*s%llu objects (%llu too busy to compare their counters), %llu records of the catalogue, "
               "%llu operands of rows: %s\n",
               SLICE_FMT(buf_slice(&out)), (unsigned long long)x->objects, (unsigned long long)x->busy,
               (unsigned long long)x->records, (unsigned long long)x->rows, v->n_found ? "damaged" : "sound");
    buf_fini(&out);
    return v->n_found ? EXIT_NO : EXIT_DONE;
}

static int run(struct verify_run *v, struct eng_verify *x) {
    static const struct table_column columns[] = {{"file", false}, {"bytes", true}, {"state", false}};
    char path[PATH_MAX];
    struct err e = {0};
    /* A server holds the folder's lock while it uses the folder. A backup has no lock file. */
    int lock = -1;
    if (snprintf(path, sizeof(path), "%s/tallyd.lock", v->data_dir) >= (int)sizeof(path))
        err_set(&e, ERR_CONFIG, "the path of the data folder is too long");
    else if ((lock = open(path, O_RDONLY | O_CLOEXEC)) >= 0 && flock(lock, LOCK_SH | LOCK_NB))
        err_set(&e, ERR_CONFIG,
                "a server uses the data folder %s; stop it first, or make a backup (tally backup), which is verified",
                v->data_dir);
    table_init(&v->table, columns, ARRAY_LEN(columns));
    buf_init(&v->files, 0);
    int rc = e.set || eng_verify(x, &e) ? say_wrong(v->json, "verify", &e) : EXIT_DONE;
    if (rc == EXIT_DONE) {
        walk(v, v->data_dir, true);
        walk(v, v->data_dir, false);
        print(v, x);
        rc = v->n_found ? EXIT_NO : EXIT_DONE;
    }
    table_fini(&v->table);
    buf_fini(&v->files);
    if (lock >= 0) close(lock);
    return rc;
}

int tally_verify(int argc, char **argv) {
    struct verify_run *v = calloc(1, sizeof(*v));
    char folder[PATH_MAX];
    if (!v) return EXIT_NO;
    v->rados.conf = "/etc/ceph/ceph.conf";
    const struct flag flags[] = {
        FLAG_TEXT("data-dir", "DIR", v->data_dir, "the data folder of a server that is stopped"),
        FLAG_TEXT("rados-pool", "POOL", v->rados.pool, "instead: the pool of servers on a Ceph cluster, which may run"),
        FLAG_TEXT("rados-conf", "FILE", v->rados.conf, "the cluster's configuration; default: /etc/ceph/ceph.conf"),
        FLAG_ON("json", v->json, "print the result as JSON"),
    };
    int rc = flags_read("verify", argc, argv, flags, ARRAY_LEN(flags));
    if (!rc && v->data_dir && v->rados.pool) {
        fprintf(stderr, "tally verify: either --data-dir or --rados-pool; see tally verify --help\n");
        rc = EXIT_USAGE;
    } else if (!rc && !v->rados.pool && (!v->data_dir || !realpath(v->data_dir, folder))) {
        fprintf(stderr, "tally verify: --data-dir names a data folder%s; see tally verify --help\n",
                v->data_dir ? ", and there is no such folder" : "");
        rc = EXIT_USAGE;
    }
    if (!rc) {
        v->data_dir = folder;
        arena_init(&v->arena, 64 << 10, 0);
        struct eng_verify x = {
            .data_dir = folder, .found = found, .named = named, .next_store = next_store, .has = has, .arg = v};
        rc = v->rados.pool ? run_rados(v, &x) : run(v, &x);
        named_ids_fini(&v->ids);
        arena_fini(&v->arena);
    } else if (rc < 0) {
        rc = EXIT_DONE;
    }
    for (uint32_t i = 0; i < v->n_found; i++) free(v->found[i]);
    free(v);
    return rc;
}
