/* Operations on whole files: dropping ranges, compacting everything, saving. */
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

static int delete_range(struct kv *kv, struct slice from, struct slice to, struct err *e) {
    struct kv_batch *b = kv_batch_new(kv);
    if (!b) return err_nomem(e);
    kv_batch_delete_range(b, from, to);
    int rc = kv_write_patiently(kv, b, e);
    kv_batch_free(b);
    return rc;
}

int kv_drop_range(struct kv *kv, struct slice from, struct slice to, struct err *e) {
    char *text = NULL;
    rocksdb_delete_file_in_range(kv->db, rocks_chars(from), from.n, rocks_chars(to), to.n, &text);
    if (text) return rocks_failed(text, "the files of a table cannot be deleted", e);
    int rc = rocks_begins_short(kv, from) ? delete_range(kv, from, to, e) : kv_delete_each(kv, from, to, e);
    if (rc == 0) kv_trim_add(&kv->trim, from, to);
    return rc;
}

int kv_compact(struct kv *kv, struct err *e) {
    if (rocks_flush(kv, true, e)) return -1;
    rocksdb_compactoptions_t *co = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(co, 2); /* force: files of the last level too */
    rocksdb_compact_range_opt(kv->db, co, NULL, 0, NULL, 0);
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
