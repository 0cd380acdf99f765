#include "engine/local/rocksdb/kv_load.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"

enum { FILE_BYTES = 16 << 20 /* size of a file, all of which a later compaction rewrites */ };

struct load {
    struct kv_load load;
    struct kv_load_spec spec;
    rocksdb_envoptions_t *env;
    rocksdb_sstfilewriter_t *writer; /* writer of the last file; NULL: the file is finished, or there is none */
    size_t bytes;                    /* in it */
    char **paths;
    size_t n_paths;
};

static int failed(char *text, struct err *e) {
    err_set(e, ERR_SERVER, "the store cannot be loaded: %s", text);
    rocksdb_free(text);
    return -1;
}

static int make_path(char path[PATH_MAX], const char *data_dir, const char *name, struct err *e) {
    int n = snprintf(path, PATH_MAX, "%s/loading%s%s", data_dir, *name ? "/" : "", name);
    return n < PATH_MAX ? 0 : err_set(e, ERR_CONFIG, "the path of the data folder is too long");
}

struct kv_load *kv_load_new(const struct kv_load_spec *spec, struct err *e) {
    char path[PATH_MAX];
    if (make_path(path, spec->data_dir, "", e)) return NULL;
    if (mkdir(path, 0700) && errno != EEXIST)
        return err_set(e, ERR_SERVER, "cannot make the folder %s: %s", path, strerror(errno)), NULL;
    struct load *l = calloc(1, sizeof(*l));
    if (!l) return err_nomem(e), NULL;
    l->load.ops = spec->ops;
    l->spec = *spec;
    l->env = rocksdb_envoptions_create();
    return &l->load;
}

static int open_file(struct load *l, struct err *e) {
    char path[PATH_MAX], name[64], *text = NULL;
    snprintf(name, sizeof(name), "%llu-%zu.sst", (unsigned long long)l->spec.number, l->n_paths);
    if (make_path(path, l->spec.data_dir, name, e)) return -1;
    char **paths = realloc(l->paths, (l->n_paths + 1) * sizeof(*paths));
    if (!paths) return err_nomem(e);
    l->paths = paths;
    if (!(paths[l->n_paths] = strdup(path))) return err_nomem(e);
    l->n_paths++;
    l->bytes = 0;
    l->writer = rocksdb_sstfilewriter_create(l->env, l->spec.options);
    rocksdb_sstfilewriter_open(l->writer, path, &text);
    return text ? failed(text, e) : 0;
}

static int finish_file(struct load *l, struct err *e) {
    char *text = NULL;
    if (!l->writer) return 0;
    rocksdb_sstfilewriter_finish(l->writer, &text);
    rocksdb_sstfilewriter_destroy(l->writer);
    l->writer = NULL;
    return text ? failed(text, e) : 0;
}

int kv_load_add(struct kv_load *load, struct slice key, struct slice value, struct err *e) {
    struct load *l = (struct load *)load;
    char *text = NULL;
    if (fault_hit(FAULT_KV_WRITE)) return err_set(e, ERR_SERVER, "the store cannot be loaded: injected fault");
    if (l->bytes >= FILE_BYTES && finish_file(l, e)) return -1;
    if (!l->writer && open_file(l, e)) return -1;
    rocksdb_sstfilewriter_put(l->writer, (const char *)key.p, key.n, (const char *)value.p, value.n, &text);
    l->bytes += key.n + value.n;
    return text ? failed(text, e) : 0;
}

int kv_load_finish(struct kv_load *load, struct err *e) {
    struct load *l = (struct load *)load;
    char *text = NULL;
    if (finish_file(l, e)) return -1;
    if (!l->n_paths) return 0;
    if (fault_hit(FAULT_KV_WRITE)) return err_set(e, ERR_SERVER, "the store cannot be loaded: injected fault");
    rocksdb_ingestexternalfileoptions_t *o = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_move_files(o, 1);
    rocksdb_ingest_external_file(l->spec.db, (const char *const *)l->paths, l->n_paths, o, &text);
    rocksdb_ingestexternalfileoptions_destroy(o);
    return text ? failed(text, e) : 0;
}

void kv_load_free(struct kv_load *load) {
    struct load *l = (struct load *)load;
    if (l->writer) rocksdb_sstfilewriter_destroy(l->writer);
    for (size_t i = 0; i < l->n_paths; i++) {
        unlink(l->paths[i]); /* the store has moved it already if the load succeeded */
        free(l->paths[i]);
    }
    free(l->paths);
    rocksdb_envoptions_destroy(l->env);
    free(l);
}

int kv_load_clean(const char *data_dir, struct err *e) {
    char path[PATH_MAX], file[PATH_MAX];
    if (make_path(path, data_dir, "", e)) return -1;
    DIR *dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? 0 : err_set(e, ERR_CONFIG, "cannot read the folder %s: %s", path, strerror(errno));
    int rc = 0;
    for (const struct dirent *d; !rc && (d = readdir(dir));) {
        if (d->d_name[0] == '.') continue;
        rc = make_path(file, data_dir, d->d_name, e);
        if (!rc && unlink(file)) rc = err_set(e, ERR_CONFIG, "cannot remove %s: %s", file, strerror(errno));
    }
    closedir(dir);
    if (!rc && rmdir(path)) rc = err_set(e, ERR_CONFIG, "cannot remove the folder %s: %s", path, strerror(errno));
    return rc;
}
