/* Reads a store that no server has open from its first block to its last one. */
#include "engine/local/rocksdb/rocks.h"

/* Reads from the iterator's position to last (NULL: the end), or to the first unreadable block.
 * takes: passes the pairs on, rather than only reading the blocks. False: damaged. */
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
