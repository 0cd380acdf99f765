/* Operations on whole files: dropping ranges, compacting everything, saving, loading in bulk, and
 * reading a store that no server has open. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/local/rocksdb/kv_folder.h"
#include "engine/local/rocksdb/rocks.h"

uint64_t kv_bytes(struct kv *kv, struct slice from, struct slice to) {
    return kv_trim_bytes(kv->db, from, to);
}

/* The iterator ignores range deletions, which RocksDB would sort again after each new one, for
 * every table that is dropped. */
int kv_delete_each(struct kv *kv, struct slice from, struct slice to, struct err *e) {
    enum { AT_A_TIME = 1000 };
    const struct kv_iter_spec spec = {.tier = ENG_TIER_ANY, .undeleted = true, .lower = from, .upper = to};
    struct kv_batch *b = kv_batch_new(kv);
    if (!b) return err_nomem(e);
    struct kv_iter *it = kv_iter_new(kv, &spec, e);
    int got = it ? it->ops->iter_move(it, KV_SEEK, from, e) : -1;
    while (got > 0) {
        for (int n = 0; got > 0 && n < AT_A_TIME; n++) {
            kv_batch_delete(b, it->key);
            got = it->ops->iter_move(it, KV_NEXT, from, e);
        }
        if (got >= 0 && kv_write_patiently(kv, b, e)) got = -1;
        kv_batch_clear(b);
    }
    if (it) it->ops->iter_free(it);
    kv_batch_free(b);
    return got;
}

int kv_drop_range(struct kv *kv, struct slice from, struct slice to, struct err *e) {
    char *text = NULL;
    rocksdb_delete_file_in_range(kv->db, rocks_chars(from), from.n, rocks_chars(to), to.n, &text);
    if (text) return rocks_failed(text, "the files of a table cannot be deleted", e);
    struct kv_batch *b = rocks_begins_short(kv, from) ? kv_batch_new(kv) : NULL;
    if (b) kv_batch_delete_range(b, from, to);
    int rc = b ? kv_write_patiently(kv, b, e) : kv_delete_each(kv, from, to, e);
    if (b) kv_batch_free(b);
    if (rc == 0) kv_trim_add(&kv->trim, from, to);
    return rc;
}

int kv_compact(struct kv *kv, struct err *e) {
    if (rocks_flush(kv, true, e)) return -1;
    rocksdb_compactoptions_t *co = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(co, 2); /* force: files of the last level too */
    /* The first pass may move the only file of level 0 to the last level as it is. */
    for (int pass = 0; pass < 2; pass++) rocksdb_compact_range_opt(kv->db, co, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(co);
    return 0;
}

int kv_save(struct kv *kv, const char *folder, struct err *e) {
    char *text = NULL;
    if (kv->memory) return err_set(e, ERR_INVALID, "States are saved in the data folder, and this server has none");
    rocksdb_checkpoint_t *c = rocksdb_checkpoint_object_create(kv->db, &text);
    if (!text) rocksdb_checkpoint_create(c, folder, 0, &text);
    if (c) rocksdb_checkpoint_object_destroy(c);
    return text ? rocks_log_failed(kv, text, "the state cannot be saved", e) : 0;
}

/* ---- bulk loads ---- */

/* A bulk load: the pairs are written to table files outside the store, which then takes over all the
 * files at once, unchanged.
 *
 * The files are in the data folder's loading/; opening the store removes files that a crash has
 * left there. In memory the files of a load that failed stay until the store is closed. */
static const char cannot_load[] = "the store cannot be loaded";

enum { FILE_BYTES = 16 << 20 /* size of a file, all of which a later compaction rewrites */ };

struct kv_load {
    struct kv *into;
    bool in_memory;  /* the files are; the store may be closed before the load is freed */
    uint64_t number; /* different for every load since the store was opened */
    char folder[PATH_MAX];
    rocksdb_envoptions_t *env;
    rocksdb_sstfilewriter_t *writer; /* writer of the last file; NULL if the file is finished, or there is none */
    size_t bytes;                    /* in it */
    char **paths;
    size_t n_paths;
};

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
    return text ? rocks_failed(text, cannot_load, e) : 0;
}

int kv_load_add(struct kv_load *l, struct slice key, struct slice value, struct err *e) {
    char *text = NULL;
    if (rocks_injected(FAULT_KV_WRITE, cannot_load, e)) return -1;
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
        if (text) return rocks_failed(text, cannot_load, e);
    }
    rocksdb_sstfilewriter_put(l->writer, rocks_chars(key), key.n, rocks_chars(value), value.n, &text);
    l->bytes += key.n + value.n;
    return text ? rocks_failed(text, cannot_load, e) : 0;
}

int kv_load_finish(struct kv_load *l, struct err *e) {
    char *text = NULL;
    if (finish_file(l, e)) return -1;
    if (!l->n_paths) return 0;
    if (rocks_injected(FAULT_KV_WRITE, cannot_load, e)) return -1;
    rocksdb_ingestexternalfileoptions_t *o = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_move_files(o, 1);
    rocksdb_ingest_external_file(l->into->db, (const char *const *)l->paths, l->n_paths, o, &text);
    rocksdb_ingestexternalfileoptions_destroy(o);
    return text ? rocks_failed(text, cannot_load, e) : 0;
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

/* ---- reading through ---- */

/* Reads from the iterator's position to last (NULL: the end), or to the first unreadable block.
 * takes: passes the pairs on, rather than only reading the blocks. Returns false if damaged. */
static bool read_through(rocksdb_iterator_t *i, const struct slice *last, const struct kv_verify *v, bool takes) {
    char *text = NULL;
    for (; rocksdb_iter_valid(i); rocksdb_iter_next(i)) {
        struct slice key, value;
        key.p = (const uint8_t *)rocksdb_iter_key(i, &key.n);
        value.p = (const uint8_t *)rocksdb_iter_value(i, &value.n);
        if (last && slice_cmp(key, *last) > 0) return true;
        if (takes) v->take(v->arg, key, value);
    }
    rocksdb_iter_get_error(i, &text);
    if (!text) return true;
    v->damaged(v->arg, text);
    rocksdb_free(text);
    return false;
}

/* Opening the store has already read each file's index, filter and properties. */
int kv_verify(const struct kv_options *o, const char *folder, const struct kv_verify *v, struct err *e) {
    struct err why = {0};
    struct kv *kv = kv_view(o, folder, &why);
    if (!kv && why.no_memory) return err_nomem(e);
    if (!kv) {
        v->damaged(v->arg, why.text);
        return 0;
    }
    rocksdb_readoptions_t *read = rocks_read_options(ENG_TIER_ANY);
    rocksdb_readoptions_set_fill_cache(read, 0);
    rocksdb_readoptions_set_total_order_seek(read, 1);
    rocksdb_readoptions_set_ignore_range_deletions(read, 1); /* otherwise blocks that they cover are skipped */
    rocksdb_iterator_t *i = rocksdb_create_iterator(kv->db, read);
    rocksdb_iter_seek_to_first(i);
    bool whole = read_through(i, NULL, v, true);
    /* An iterator stops at the first damage, so each file is then read by seeking its own keys. */
    const rocksdb_livefiles_t *files = whole ? NULL : rocksdb_livefiles(kv->db);
    for (int f = 0, n = files ? rocksdb_livefiles_count(files) : 0; f < n; f++) {
        struct slice first, last;
        first.p = (const uint8_t *)rocksdb_livefiles_smallestkey(files, f, &first.n);
        last.p = (const uint8_t *)rocksdb_livefiles_largestkey(files, f, &last.n);
        rocksdb_iter_seek(i, rocks_chars(first), first.n);
        (void)read_through(i, &last, v, false);
    }
    if (files) rocksdb_livefiles_destroy(files);
    rocksdb_iter_destroy(i);
    rocksdb_readoptions_destroy(read);
    int rc = whole ? v->taken(v->arg, kv, e) : 0;
    kv_close(kv);
    return rc;
}
