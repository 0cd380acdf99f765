/* Operations on whole files: dropping ranges, compacting everything, saving. */
#include "engine/local/rocksdb/kv_folder.h"
#include "engine/local/rocksdb/rocks.h"

uint64_t rocks_bytes(struct kv *kv, struct slice from, struct slice to) {
    return kv_trim_bytes(((struct rocks *)kv)->db, from, to);
}

/* The iterator ignores range deletions, which RocksDB would sort again after each new one, for
 * every table that is dropped. */
static int delete_each(struct kv *kv, struct kv_batch *b, struct slice from, struct slice to, struct err *e) {
    enum { AT_A_TIME = 1000 };
    const struct kv_iter_spec spec = {.tier = ENG_TIER_ANY, .undeleted = true, .lower = from, .upper = to};
    struct kv_iter *it = rocks_iter_new(kv, &spec, e);
    int got = it ? it->ops->iter_move(it, KV_SEEK, from, e) : -1;
    while (got > 0) {
        for (int n = 0; got > 0 && n < AT_A_TIME; n++) {
            rocks_batch_delete(b, it->key);
            got = it->ops->iter_move(it, KV_NEXT, from, e);
        }
        if (got >= 0 && kv_write_patiently(kv, b, e)) got = -1;
        rocks_batch_clear(b);
    }
    if (it) it->ops->iter_free(it);
    return got;
}

int rocks_drop_range(struct kv *kv, struct slice from, struct slice to, struct err *e) {
    struct rocks *r = (struct rocks *)kv;
    char *text = NULL;
    rocksdb_delete_file_in_range(r->db, rocks_chars(from), from.n, rocks_chars(to), to.n, &text);
    if (text) return rocks_failed(text, "the files of a table cannot be deleted", e);
    struct kv_batch *b = rocks_batch_new(kv);
    if (!b) return err_nomem(e);
    int rc;
    if (rocks_begins_short(r, from)) {
        rocks_batch_delete_range(b, from, to);
        rc = kv_write_patiently(kv, b, e);
    } else {
        rc = delete_each(kv, b, from, to, e);
    }
    rocks_batch_free(b);
    if (rc == 0) kv_trim_add(&r->trim, from, to);
    return rc;
}

int rocks_compact(struct kv *kv, struct err *e) {
    struct rocks *r = (struct rocks *)kv;
    if (rocks_flush(r, true, e)) return -1;
    rocksdb_compactoptions_t *co = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(co, 2); /* force: files of the last level too */
    rocksdb_compact_range_opt(r->db, co, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(co);
    return 0;
}

int rocks_save(struct kv *kv, const char *folder, struct err *e) {
    struct rocks *r = (struct rocks *)kv;
    char *text = NULL;
    if (r->memory) return err_set(e, ERR_INVALID, "States are saved in the data folder, and this server has none");
    rocksdb_checkpoint_t *c = rocksdb_checkpoint_object_create(r->db, &text);
    if (!text) rocksdb_checkpoint_create(c, folder, 0, &text);
    if (c) rocksdb_checkpoint_object_destroy(c);
    return text ? rocks_log_failed(r, text, "the state cannot be saved", e) : 0;
}
