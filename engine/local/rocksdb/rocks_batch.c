/* Batches, and writing them. */
#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "engine/local/rocksdb/kv_log.h"
#include "engine/local/rocksdb/rocks.h"

struct kv_batch {
    rocksdb_writebatch_t *b;
    const struct kv *of;
    struct buf conditions; /* [u8 present][u32 n][key][u32 n][value]... */
};

struct kv_batch *kv_batch_new(struct kv *kv) {
    struct kv_batch *b = calloc(1, sizeof(*b));
    if (!b) return NULL;
    b->b = rocksdb_writebatch_create();
    b->of = kv;
    buf_init(&b->conditions, 0);
    return b;
}

void kv_batch_free(struct kv_batch *b) {
    rocksdb_writebatch_destroy(b->b);
    buf_fini(&b->conditions);
    free(b);
}

void kv_batch_put(struct kv_batch *b, struct slice key, struct slice value) {
    rocksdb_writebatch_put(b->b, rocks_chars(key), key.n, rocks_chars(value), value.n);
}

void kv_batch_merge(struct kv_batch *b, struct slice key, struct slice operand) {
    rocksdb_writebatch_merge(b->b, rocks_chars(key), key.n, rocks_chars(operand), operand.n);
}

void kv_batch_delete(struct kv_batch *b, struct slice key) {
    rocksdb_writebatch_delete(b->b, rocks_chars(key), key.n);
}

/* Whether a range delete may begin at this key. A memtable keeps an insert hint for each value of
 * the first near_len bytes. RocksDB shares the hints between rows and range deletes, which are two
 * lists (MemTable::Add, 7.8.3): a hint into one list is invalid in the other, and its use ends the
 * process. A range that begins with a key shorter than near_len uses no hint. */
bool rocks_begins_short(const struct kv *kv, struct slice from) {
    return !kv->o.near_len || from.n < kv->o.near_len;
}

void kv_batch_delete_range(struct kv_batch *b, struct slice from, struct slice to) {
    assert(rocks_begins_short(b->of, from));
    rocksdb_writebatch_delete_range(b->b, rocks_chars(from), from.n, rocks_chars(to), to.n);
}

int kv_batch_expect(struct kv_batch *b, struct slice key, const struct slice *value) {
    struct buf *c = &b->conditions;
    buf_u8(c, value != NULL);
    buf_u32(c, (uint32_t)key.n);
    buf_put_slice(c, key);
    buf_u32(c, value ? (uint32_t)value->n : 0);
    if (value) buf_put_slice(c, *value);
    return buf_failed(c) ? -1 : 0;
}

void kv_batch_clear(struct kv_batch *b) {
    rocksdb_writebatch_clear(b->b);
    buf_clear(&b->conditions, 4096);
}

/* Whether a write may be tried again after KV_BUSY. */
static bool has_room(struct kv *kv) { return !rocks_property(kv->db, "rocksdb.is-write-stopped", 0); }

int kv_wait_for_room(struct kv *kv, struct err *e) {
    enum { WAIT_US = 60000000, STEP_NS = 2000000 };
    int64_t until = clock_machine_us(&clock_real) + WAIT_US;
    do {
        nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
        if (has_room(kv)) return 0;
    } while (clock_machine_us(&clock_real) < until);
    return err_set(e, ERR_OVERLOADED, "the store has been flushing and compacting for a minute; no write is taken");
}

/* The one writer excludes its other writes to these keys, so they do not change between this check
 * and the write. */
static int check_conditions(struct kv *kv, struct kv_batch *b, struct err *e) {
    struct rd r = rd_of(buf_slice(&b->conditions));
    bool hold = true;
    while (hold && rd_left(&r)) {
        bool present = rd_u8(&r);
        struct slice key = rd_bytes(&r, rd_u32(&r)), value = rd_bytes(&r, rd_u32(&r));
        struct kv_value now;
        int got = kv_get(kv, ENG_TIER_ANY, key, &now, e);
        if (got < 0) return -1;
        hold = (got == 1) == present && (!present || slice_eq(now.bytes, value));
        if (got == 1) kv_release(now.handle);
    }
    return hold ? 0 : KV_CHANGED;
}

/* Returns true if the store wants writes slowed down, and nothing was written. */
static bool is_busy(struct kv *kv, struct kv_batch *b, bool patience, char **text) {
    rocksdb_write(kv->db, kv->write[patience], b->b, text);
    if (!*text) return false;
    if (!strstr(*text, "Result incomplete")) {
        atomic_store(&kv->log_suspect, true);
        return false;
    }
    rocksdb_free(*text);
    *text = NULL;
    return true;
}

/* A write that has to wait does so without the lock, so that it does not delay syncs. It alone can
 * still meet a log that fails at that moment. */
int kv_write(struct kv *kv, struct kv_batch *b, bool patience, struct err *e) {
    char *text = NULL;
    uint8_t note[KV_LOG_NOTE];
    if (rocks_injected(FAULT_KV_WRITE, "the store cannot be written", e)) return -1;
    if (fault_hit(FAULT_KV_BUSY) || (patience && !has_room(kv))) return KV_BUSY;
    int met = check_conditions(kv, b, e);
    if (met) return met;
    kv_log_note(note, atomic_load_explicit(&kv->synced, memory_order_relaxed));
    rocksdb_writebatch_put_log_data(b->b, (const char *)note, sizeof(note));
    rocks_count_nothing();
    pthread_rwlock_rdlock(&kv->log_lock);
    bool busy = is_busy(kv, b, false, &text);
    pthread_rwlock_unlock(&kv->log_lock);
    if (busy && (!patience || is_busy(kv, b, true, &text))) return KV_BUSY;
    if (UNLIKELY((text != NULL) != atomic_load_explicit(&kv->write_failed, memory_order_relaxed)))
        atomic_store(&kv->write_failed, text != NULL);
    return text ? rocks_failed(text, "the store cannot be written", e) : 0;
}

int kv_write_patiently(struct kv *kv, struct kv_batch *b, struct err *e) {
    int rc;
    while ((rc = kv_write(kv, b, true, e)) == KV_BUSY)
        if (kv_wait_for_room(kv, e)) return -1;
    return rc;
}

int rocks_write_nothing(struct kv *kv, bool deletion, struct err *e) {
    struct kv_batch *b = kv_batch_new(kv);
    if (!b) return err_nomem(e);
    if (deletion) kv_batch_delete(b, slice_of("", 1));
    int rc = kv_write(kv, b, false, e);
    kv_batch_free(b);
    return rc;
}
