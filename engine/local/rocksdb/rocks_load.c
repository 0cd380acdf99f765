/* A bulk load: the pairs are written to table files beside the store, which then takes over all the
 * files at once, unchanged.
 *
 * The files are in the data folder's loading/; opening the store removes files that a crash has
 * left there. In memory the files of a load that failed stay until the store is closed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "engine/local/rocksdb/kv_folder.h"
#include "engine/local/rocksdb/rocks.h"

enum { FILE_BYTES = 16 << 20 /* size of a file, all of which a later compaction rewrites */ };

struct kv_load {
    struct kv *into;
    bool in_memory;  /* the files are; the store may be closed before the load is freed */
    uint64_t number; /* different for every load since the store was opened */
    char folder[PATH_MAX];
    rocksdb_envoptions_t *env;
    rocksdb_sstfilewriter_t *writer; /* writer of the last file; NULL: the file is finished, or there is none */
    size_t bytes;                    /* in it */
    char **paths;
    size_t n_paths;
};

static const char what[] = "the store cannot be loaded";

struct kv_load *kv_load_new(struct kv *kv, struct err *e) {
    struct kv_load *l = calloc(1, sizeof(*l));
    if (!l) return err_nomem(e), NULL;
    l->into = kv;
    l->number = atomic_fetch_add(&l->into->loads, 1);
    l->env = rocksdb_envoptions_create();
    l->in_memory = l->into->memory != NULL;
    if (l->in_memory) return l;
    if (!kv_path(l->folder, l->into->o.data_dir, ROCKS_LOADING, e) && !kv_make_folder(l->folder, e)) return l;
    kv_load_free(l);
    return NULL;
}

static int finish_file(struct kv_load *l, struct err *e) {
    char *text = NULL;
    if (!l->writer) return 0;
    rocksdb_sstfilewriter_finish(l->writer, &text);
    rocksdb_sstfilewriter_destroy(l->writer);
    l->writer = NULL;
    return text ? rocks_failed(text, what, e) : 0;
}

int kv_load_add(struct kv_load *l, struct slice key, struct slice value, struct err *e) {
    char *text = NULL;
    if (rocks_injected(FAULT_KV_WRITE, what, e)) return -1;
    if (l->bytes >= FILE_BYTES && finish_file(l, e)) return -1;
    if (!l->writer) {
        char path[PATH_MAX], name[64];
        snprintf(name, sizeof(name), "%llu-%zu.sst", (unsigned long long)l->number, l->n_paths);
        if (kv_path(path, l->folder, name, e)) return -1;
        char **paths = realloc(l->paths, (l->n_paths + 1) * sizeof(*paths));
        if (!paths) return err_nomem(e);
        l->paths = paths;
        if (!(paths[l->n_paths] = strdup(path))) return err_nomem(e);
        l->n_paths++;
        l->bytes = 0;
        l->writer = rocksdb_sstfilewriter_create(l->env, l->into->options);
        rocksdb_sstfilewriter_open(l->writer, path, &text);
        if (text) return rocks_failed(text, what, e);
    }
    rocksdb_sstfilewriter_put(l->writer, rocks_chars(key), key.n, rocks_chars(value), value.n, &text);
    l->bytes += key.n + value.n;
    return text ? rocks_failed(text, what, e) : 0;
}

int kv_load_finish(struct kv_load *l, struct err *e) {
    char *text = NULL;
    if (finish_file(l, e)) return -1;
    if (!l->n_paths) return 0;
    if (rocks_injected(FAULT_KV_WRITE, what, e)) return -1;
    rocksdb_ingestexternalfileoptions_t *o = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_move_files(o, 1);
    rocksdb_ingest_external_file(l->into->db, (const char *const *)l->paths, l->n_paths, o, &text);
    rocksdb_ingestexternalfileoptions_destroy(o);
    return text ? rocks_failed(text, what, e) : 0;
}

void kv_load_free(struct kv_load *l) {
    if (l->writer) rocksdb_sstfilewriter_destroy(l->writer);
    for (size_t i = 0; i < l->n_paths; i++) {
        if (!l->in_memory) unlink(l->paths[i]); /* the store has moved it already if the load succeeded */
        free(l->paths[i]);
    }
    free(l->paths);
    rocksdb_envoptions_destroy(l->env);
    free(l);
}
