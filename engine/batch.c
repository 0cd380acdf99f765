/* A batch of deltas: encoded as they come, written at once. */
#include <stdlib.h>

#include "engine/store.h"

enum { FOLD_BYTES_MAX = 65536 };

struct mark { uint32_t table; uint8_t bucket; };

struct eng_batch {
    struct eng *eng;
    struct kv_batch *kv;
    struct buf key, value;
    struct arena arena; /* bounds of one range delete */
    size_t n_ops;
    struct engi_fold_set stripes; /* of the rows written */
    struct buf folds;             /* [u32 n][key] of rows to fold after the commit; past its limit some wait for next time */
    struct mark *marks; /* buckets whose first tombstone is in this batch: recorded once it is written */
    size_t n_marks, cap_marks;
    struct { size_t n_ops, n_marks; } *savepoints;
    size_t n_savepoints, cap_savepoints;
};

struct eng_batch *eng_batch_new(struct eng *eng) {
    struct eng_batch *b = calloc(1, sizeof(*b));
    if (!b) return NULL;
    b->eng = eng;
    b->kv = eng->kv->ops->batch_new(eng->kv);
    if (!b->kv) return free(b), NULL;
    buf_init(&b->key, 0);
    buf_init(&b->value, 0);
    buf_init(&b->folds, FOLD_BYTES_MAX);
    arena_init(&b->arena, 1024, 0);
    return b;
}

void eng_batch_free(struct eng_batch *b) {
    if (!b) return;
    b->kv->ops->batch_free(b->kv);
    buf_fini(&b->key);
    buf_fini(&b->value);
    buf_fini(&b->folds);
    arena_fini(&b->arena);
    free(b->marks);
    free(b->savepoints);
    free(b);
}

static void clear(struct eng_batch *b) {
    b->kv->ops->batch_clear(b->kv);
    buf_clear(&b->folds, 4096);
    b->stripes = (struct engi_fold_set){0};
    b->n_ops = b->n_marks = b->n_savepoints = 0;
}

/* Remembers the oldest timestamp that the table was ever written with, for purging. */
static void note_ts(struct eng *eng, uint32_t table, int64_t ts) {
    struct engi_table *t = engi_table(eng, table);
    int64_t min = t && ts != ENG_NO_TS ? atomic_load_explicit(&t->min_ts, memory_order_relaxed) : INT64_MIN;
    while (ts < min && !atomic_compare_exchange_weak(&t->min_ts, &min, ts)) {}
}

static int64_t min_ts(const struct eng_row *r) {
    int64_t min = r->live_ts != ENG_NO_TS ? r->live_ts : INT64_MAX;
    if (r->del_ts != ENG_NO_TS && r->del_ts < min) min = r->del_ts;
    for (uint32_t i = 0; i < r->n_cells; i++)
        if (r->cells[i].ts < min) min = r->cells[i].ts;
    return min;
}

/* Writes key and the encoded row as a merge operand. */
static int add(struct eng_batch *b, const struct eng_row *row, struct op_cost *cost, struct err *e) {
    b->value.n = 0;
    eng_row_encode(row, &b->value);
    if (buf_failed(&b->key) || buf_failed(&b->value)) {
        b->key.failed = b->value.failed = false;
        return err_nomem(e);
    }
    if (b->kv->ops->batch_merge(b->kv, buf_slice(&b->key), buf_slice(&b->value))) return err_nomem(e);
    b->n_ops++;
    if (engi_fold_count(&b->eng->fold, buf_slice(&b->key), &b->stripes) && b->folds.n + b->key.n + 4 <= FOLD_BYTES_MAX) {
        buf_u32(&b->folds, (uint32_t)b->key.n);
        buf_put_slice(&b->folds, buf_slice(&b->key));
    }
    if (cost) cost->bytes_written += b->key.n + b->value.n;
    return 0;
}

int eng_batch_row(struct eng_batch *b, const struct eng_part *part, const struct eng_row *delta, struct op_cost *cost,
                  struct err *e) {
    if (part->key.n > UINT16_MAX) return err_invalid(e, "Key length of %zu is longer than maximum of 65535", part->key.n);
    note_ts(b->eng, part->table, min_ts(delta));
    b->key.n = 0;
    engi_key_row(&b->key, part, delta->kind, delta->ck);
    return add(b, delta, cost, e);
}

/* Puts the persistent mark of the partition's bucket, unless it is there. The mark in memory is set before anybody can
 * see the tombstone. */
static int mark_deleted(struct eng_batch *b, const struct eng_part *part, struct err *e) {
    struct engi_table *t = engi_table(b->eng, part->table);
    uint8_t bucket = engi_bucket(part->token), key[9];
    uint64_t bit = 1ull << (bucket % 64);
    if (!t) return 0;
    atomic_fetch_or_explicit(&t->deleted[bucket / 64], bit, memory_order_release);
    if (atomic_load(&t->recorded[bucket / 64]) & bit) return 0;
    if (b->n_marks == b->cap_marks) {
        size_t cap = b->cap_marks ? b->cap_marks * 2 : 8;
        struct mark *grown = realloc(b->marks, cap * sizeof(*grown));
        if (!grown) return err_nomem(e);
        b->marks = grown;
        b->cap_marks = cap;
    }
    store_u32(key, ENGI_TABLE_MARKS);
    store_u32(key + 4, part->table);
    key[8] = bucket;
    if (b->kv->ops->batch_put(b->kv, slice_of(key, 9), slice_of("", 0))) return err_nomem(e);
    b->marks[b->n_marks++] = (struct mark){.table = part->table, .bucket = bucket};
    return 0;
}

/* The key is in b->key. */
static int add_tombstone(struct eng_batch *b, const struct eng_part *part, int64_t ts, int64_t now, struct op_cost *cost,
                         struct err *e) {
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_of("", 0));
    row.del_ts = ts;
    row.del_at = now;
    if (part->key.n > UINT16_MAX) return err_invalid(e, "Key length of %zu is longer than maximum of 65535", part->key.n);
    note_ts(b->eng, part->table, ts);
    return mark_deleted(b, part, e) ? -1 : add(b, &row, cost, e);
}

int eng_batch_delete_range(struct eng_batch *b, const struct eng_part *part, const struct eng_slice *range, int64_t ts, int64_t now,
                           struct op_cost *cost, struct err *e) {
    struct engi_interval interval;
    arena_reset(&b->arena);
    if (engi_interval_of(range, &b->arena, &interval)) return err_nomem(e);
    if (!interval.no_end && slice_cmp(interval.from, interval.to) >= 0) return 0; /* no row is in it */
    b->key.n = 0;
    engi_key_range(&b->key, part, &interval);
    return add_tombstone(b, part, ts, now, cost, e);
}

int eng_batch_delete_partition(struct eng_batch *b, const struct eng_part *part, int64_t ts, int64_t now, struct op_cost *cost,
                               struct err *e) {
    b->key.n = 0;
    engi_key_kind(&b->key, part, ENGI_PARTITION_DELETION);
    return add_tombstone(b, part, ts, now, cost, e);
}

void eng_batch_mark(struct eng_batch *b) {
    if (b->n_savepoints == b->cap_savepoints) {
        size_t cap = b->cap_savepoints ? b->cap_savepoints * 2 : 8;
        void *grown = realloc(b->savepoints, cap * sizeof(*b->savepoints));
        if (!grown) abort(); /* a request that cannot be taken back must not be written */
        b->savepoints = grown;
        b->cap_savepoints = cap;
    }
    b->savepoints[b->n_savepoints].n_ops = b->n_ops;
    b->savepoints[b->n_savepoints++].n_marks = b->n_marks;
    b->kv->ops->batch_mark(b->kv);
}

void eng_batch_rollback(struct eng_batch *b) {
    if (!b->n_savepoints) return;
    b->n_ops = b->savepoints[--b->n_savepoints].n_ops;
    b->n_marks = b->savepoints[b->n_savepoints].n_marks;
    b->kv->ops->batch_rollback(b->kv);
}

void eng_batch_keep(struct eng_batch *b) {
    if (!b->n_savepoints) return;
    b->n_savepoints--;
    b->kv->ops->batch_keep(b->kv);
}

bool eng_batch_empty(const struct eng_batch *b) { return b->n_ops == 0; }

static void fold_rows(struct eng_batch *b) {
    struct rd r = rd_of(buf_slice(&b->folds));
    while (rd_left(&r) && !buf_failed(&b->folds)) engi_fold_row(b->eng, rd_bytes(&r, rd_u32(&r)));
}

int eng_batch_commit(struct eng_batch *b, uint64_t *seq, struct err *e) {
    struct eng *eng = b->eng;
    int rc = engi_commit_check(eng, e);
    engi_fold_enter(&eng->fold, &b->stripes);
    if (!rc) rc = eng->kv->ops->write(eng->kv, b->kv, e);
    engi_fold_leave(&eng->fold, &b->stripes);
    for (size_t i = 0; !rc && i < b->n_marks; i++) {
        struct engi_table *t = engi_table(eng, b->marks[i].table);
        atomic_fetch_or(&t->recorded[b->marks[i].bucket / 64], 1ull << (b->marks[i].bucket % 64));
    }
    if (!rc) *seq = engi_commit_written(eng);
    if (!rc) fold_rows(b);
    clear(b);
    return rc;
}
