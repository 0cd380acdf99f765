#include "engine/rows/batch.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/rows/key.h"

enum { BYTES_KEPT = 1 << 20 };

int engi_array_grow(void **array, size_t n, size_t *cap, size_t size) {
    if (LIKELY(n < *cap)) return 0;
    size_t more = *cap ? *cap * 2 : 8;
    void *grown = realloc(*array, more * size);
    if (!grown) return -1;
    *array = grown;
    *cap = more;
    return 0;
}

struct eng_batch *eng_batch_new(struct eng *eng) {
    struct store *s = store_of(eng);
    struct eng_batch *b = s->ops->batch_new(s);
    if (!b) return NULL;
    *b = (struct eng_batch){.store = s};
    buf_init(&b->key, 0);
    buf_init(&b->value, 0);
    buf_init(&b->bytes, 0);
    arena_init(&b->arena, 1024, 0);
    return b;
}

/* ---- pins ---- */

/* Invariant 8. Searches the newest pins first, because changes of one table follow each other. */
static void *pin(struct eng_batch *b, uint32_t table, struct err *e) {
    for (size_t i = b->n_pinned; i-- > 0;)
        if (LIKELY(b->pins[i].id == table)) return b->pins[i].table;
    if (engi_array_grow((void **)&b->pins, b->n_pinned, &b->cap_pinned, sizeof(*b->pins))) return err_nomem(e), NULL;
    void *t = b->store->front->pin(b->store, table, e);
    if (t) b->pins[b->n_pinned++] = (struct engi_pin){.id = table, .table = t};
    return t;
}

static void unpin_all(struct eng_batch *b) {
    while (b->n_pinned) b->store->front->unpin(b->store, b->pins[--b->n_pinned].table);
}

void eng_batch_free(struct eng_batch *b) {
    if (!b) return;
    unpin_all(b);
    b->store->ops->batch_done(b);
    buf_fini(&b->key);
    buf_fini(&b->value);
    buf_fini(&b->bytes);
    arena_fini(&b->arena);
    free(b->changes);
    free(b->pins);
    b->store->ops->batch_free(b);
}

/* ---- adding ---- */

static void span(struct store_change *c, int64_t ts) {
    if (ts == ENG_NO_TS) return;
    if (ts < c->oldest) c->oldest = ts;
    if (ts > c->newest) c->newest = ts;
}

static void describe(const struct eng_row *row, struct store_change *c) {
    *c = (struct store_change){.oldest = INT64_MAX, .newest = ENG_NO_TS, .covers_below = row->covers_below};
    span(c, row->live_ts);
    span(c, row->del_ts);
    for (uint32_t i = 0; i < row->n_cells; i++) span(c, row->cells[i].ts);
    uint8_t flags = 0;
    for (uint32_t i = 0; i < row->n_cells; i++) flags |= row->cells[i].flags;
    if (row->del_ts != ENG_NO_TS) c->deletes |= STORE_DELETES_ROW;
    if (flags & (ENG_CELL_TOMBSTONE | ENG_CELL_COMPLEX_DELETION | ENG_CELL_EXPIRING) ||
        row->live_expiry != ENG_NO_EXPIRY)
        c->deletes |= STORE_DELETES_CELLS;
    if (row->n_cells) c->columns = row->cells[row->n_cells - 1].column + 1;
}

/* Adds the row under the key that is in b->key. many: it is a deletion of the partition or of a
 * range. */
static int add(struct eng_batch *b, uint32_t table, const struct eng_row *row, bool many, bool is_range,
               struct op_cost *cost, struct err *e) {
    struct store_change c;
    void *t = pin(b, table, e);
    if (!t) return -1;
    describe(row, &c);
    if (many) c.deletes = STORE_DELETES_MANY;
    c.is_range = is_range;
    b->value.n = 0;
    eng_row_encode(row, &b->value);
    c.at = b->bytes.n;
    buf_put_slice(&b->bytes, buf_slice(&b->key));
    buf_put_slice(&b->bytes, buf_slice(&b->value));
    bool failed = buf_failed(&b->key) || buf_failed(&b->value) || buf_failed(&b->bytes);
    if (!failed) failed = engi_array_grow((void **)&b->changes, b->n, &b->cap, sizeof(c));
    if (failed) err_nomem(e);
    if (!failed) {
        c.n_key = (uint32_t)b->key.n;
        c.n_value = (uint32_t)b->value.n;
        c.group = b->group;
        c.table = t;
        b->changes[b->n] = c;
        failed = b->store->ops->batch_add(b, e);
    }
    if (UNLIKELY(failed)) {
        b->key.failed = b->value.failed = b->bytes.failed = false;
        b->bytes.n = c.at;
        return -1;
    }
    b->n++;
    if (cost) cost->bytes_written += b->key.n + b->value.n;
    return 0;
}

int eng_batch_row(struct eng_batch *b, const struct eng_part *part, const struct eng_row *delta, struct op_cost *cost,
                  struct err *e) {
    if (part->key.n > UINT16_MAX)
        return err_invalid(e, "Key length of %zu is longer than maximum of 65535", part->key.n);
    b->key.n = 0;
    engi_key_row(&b->key, part, delta->kind, delta->ck);
    return add(b, part->table, delta, false, false, cost, e);
}

/* Adds a deletion of the partition or of a range; the key is in b->key. */
static int add_tombstone(struct eng_batch *b, bool is_range, const struct eng_part *part, int64_t ts, int64_t now,
                         struct op_cost *cost, struct err *e) {
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_of("", 0));
    row.del_ts = ts;
    row.del_at = now;
    if (part->key.n > UINT16_MAX)
        return err_invalid(e, "Key length of %zu is longer than maximum of 65535", part->key.n);
    return add(b, part->table, &row, true, is_range, cost, e);
}

int eng_batch_delete_range(struct eng_batch *b, const struct eng_part *part, const struct eng_slice *range, int64_t ts,
                           int64_t now, struct op_cost *cost, struct err *e) {
    struct engi_interval interval;
    arena_reset(&b->arena);
    if (engi_interval_of(range, &b->arena, &interval)) return err_nomem(e);
    if (!interval.no_end && slice_cmp(interval.from, interval.to) >= 0) return 0; /* no row is in it */
    b->key.n = 0;
    engi_key_prefix(&b->key, part);
    struct slice prefix = arena_dup(&b->arena, buf_slice(&b->key)); /* the key is built behind itself */
    if (!prefix.p) return err_nomem(e);
    b->key.n = 0;
    engi_key_loose(&b->key, prefix, &interval, ts);
    return add_tombstone(b, true, part, ts, now, cost, e);
}

int eng_batch_delete_partition(struct eng_batch *b, const struct eng_part *part, int64_t ts, int64_t now,
                               struct op_cost *cost, struct err *e) {
    b->key.n = 0;
    engi_key_kind(&b->key, part, ENGI_PARTITION_DELETION);
    return add_tombstone(b, false, part, ts, now, cost, e);
}

int engi_batch_replay(struct eng_batch *b, uint32_t table, struct slice rest, struct slice delta, struct err *e) {
    struct eng_row row;
    arena_reset(&b->arena);
    b->key.n = 0;
    engi_key_table(&b->key, table);
    buf_put_slice(&b->key, rest);
    size_t n = buf_failed(&b->key) ? 0 : engi_prefix_len(buf_slice(&b->key));
    if (!n || b->key.n <= n) return err_set(e, ERR_SERVER, "a record of a table's history is damaged");
    enum engi_kind kind = b->key.p[n];
    bool is_range = kind == ENGI_RANGE_TOMBSTONE;
    eng_row_init(&row, kind == ENGI_STATIC ? ENG_STATIC : ENG_ROW, slice_of("", 0));
    if (eng_row_decode(delta, &b->arena, &row, e)) return -1;
    return add(b, table, &row, is_range || kind == ENGI_PARTITION_DELETION, is_range, NULL, e);
}

/* ---- savepoints ---- */

void eng_batch_savepoint(struct eng_batch *b) {
    assert(b->n_savepoints < ENG_SAVEPOINTS_MAX);
    if (!b->n_savepoints) b->group++;
    b->savepoints[b->n_savepoints].n = b->n;
    b->savepoints[b->n_savepoints++].n_bytes = b->bytes.n;
}

void eng_batch_rollback(struct eng_batch *b) {
    assert(b->n_savepoints);
    b->n = b->savepoints[--b->n_savepoints].n;
    b->bytes.n = b->savepoints[b->n_savepoints].n_bytes;
    if (!b->n_savepoints) b->group++;
    if (!b->n) unpin_all(b); /* a batch that stays empty is not committed */
}

void eng_batch_release(struct eng_batch *b) {
    assert(b->n_savepoints);
    if (!--b->n_savepoints) b->group++;
}

bool eng_batch_empty(const struct eng_batch *b) { return b->n == 0; }
size_t eng_batch_bytes(const struct eng_batch *b) { return b->bytes.n + b->n * sizeof(*b->changes); }

/* ---- the end ---- */

void eng_batch_drop(struct eng_batch *b) {
    buf_clear(&b->bytes, BYTES_KEPT);
    b->n = 0;
    unpin_all(b);
    b->store->ops->batch_done(b);
}

/* Makes the writes to partitions that this thread has locked conditional on their ballots:
 * invariant 12. */
static void set_conditions(struct eng_batch *b) {
    for (size_t i = 0; i < b->n; i++) {
        struct store_change *c = &b->changes[i];
        struct slice key = engi_change_key(b, c);
        c->conditional = b->store->front->ballot(b->store, slice_of(key.p, engi_prefix_len(key)), &c->ballot);
    }
}

static int contended(struct err *e) {
    err_set(e, ERR_WRITE_TIMEOUT,
            "CAS operation timed out: another server has written under the same lock; nothing was written");
    e->detail = (struct err_detail){.required = 1, .contentions = 1, .write_type = "CAS"};
    return -1;
}

static int commit(struct eng_batch *b, bool patience, uint64_t *seq, struct err *e) {
    struct store *s = b->store;
    assert(b->n_savepoints == 0);
    if (UNLIKELY(!(s->ops->offers & STORE_ONE_WRITER))) set_conditions(b);
    int rc = s->ops->commit(b, patience, e);
    if (rc == ENG_BUSY || rc == ENG_MET) return rc;
    if (rc == KV_CHANGED) rc = contended(e);
    if (!rc) *seq = s->front->written(s);
    eng_batch_drop(b);
    return rc;
}

int eng_batch_commit(struct eng_batch *b, uint64_t *seq, struct err *e) { return commit(b, true, seq, e); }
int eng_batch_try_commit(struct eng_batch *b, uint64_t *seq, struct err *e) { return commit(b, false, seq, e); }
