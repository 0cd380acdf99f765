#include "engine/rows/batch.h"

#include <assert.h>
#include <stdlib.h>

#include "base/random.h"
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
    if (b->store->ops->batch_done) b->store->ops->batch_done(b);
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
    uint8_t flags = 0;
    *c = (struct store_change){.oldest = INT64_MAX, .newest = ENG_NO_TS, .covers_below = row->covers_below};
    span(c, row->live_ts);
    span(c, row->del_ts);
    int64_t before = ENG_NO_TS;
    for (uint32_t i = 0; i < row->n_cells; i++) {
        if (UNLIKELY(row->cells[i].ts != before)) span(c, row->cells[i].ts);
        before = row->cells[i].ts;
        flags |= row->cells[i].flags;
    }
    if (row->del_ts != ENG_NO_TS) c->deletes |= STORE_DELETES_ROW;
    if (flags & (ENG_CELL_TOMBSTONE | ENG_CELL_COMPLEX_DELETION | ENG_CELL_EXPIRING) ||
        row->live_expiry != ENG_NO_EXPIRY)
        c->deletes |= STORE_DELETES_CELLS;
    if (row->n_cells) c->columns = row->cells[row->n_cells - 1].column + 1;
}

/* Adds the row under the key that the caller has written to b->bytes, from at on. many: it is a
 * deletion of the partition or of a range. */
static int add(struct eng_batch *b, size_t at, uint32_t table, const struct eng_row *row, bool many, bool is_range,
               struct op_cost *cost, struct err *e) {
    size_t n_key = b->bytes.n - at;
    void *t = pin(b, table, e);
    bool failed = !t;
    if (t) {
        eng_row_encode(row, &b->bytes);
        failed = buf_failed(&b->bytes) || engi_array_grow((void **)&b->changes, b->n, &b->cap, sizeof(*b->changes));
        if (failed) err_nomem(e);
    }
    if (!failed) {
        struct store_change *c = &b->changes[b->n];
        describe(row, c);
        if (many) c->deletes = STORE_DELETES_MANY;
        c->is_range = is_range;
        c->at = at;
        c->n_key = (uint32_t)n_key;
        c->n_value = (uint32_t)(b->bytes.n - at - n_key);
        c->group = b->group;
        c->table = t;
        failed = b->store->ops->batch_add && b->store->ops->batch_add(b, e);
    }
    if (UNLIKELY(failed)) {
        b->bytes.failed = false;
        b->bytes.n = at;
        return -1;
    }
    b->n++;
    if (cost) cost->bytes_written += b->bytes.n - at;
    return 0;
}

static int check_length(const struct eng_part *part, struct err *e) {
    if (LIKELY(part->key.n <= UINT16_MAX)) return 0;
    return err_invalid(e, "Key length of %zu is longer than maximum of 65535", part->key.n);
}

int eng_batch_row(struct eng_batch *b, const struct eng_part *part, const struct eng_row *delta, struct op_cost *cost,
                  struct err *e) {
    size_t at = b->bytes.n;
    if (check_length(part, e)) return -1;
    engi_key_row(&b->bytes, part, delta->kind, delta->ck);
    return add(b, at, part->table, delta, false, false, cost, e);
}

/* Adds a deletion of the partition or of a range; the key is in b->bytes, from at on. */
static int add_tombstone(struct eng_batch *b, size_t at, bool is_range, const struct eng_part *part, int64_t ts,
                         int64_t now, struct op_cost *cost, struct err *e) {
    struct eng_row row;
    eng_row_init(&row, ENG_ROW, slice_of("", 0));
    row.del_ts = ts;
    row.del_at = now;
    return add(b, at, part->table, &row, true, is_range, cost, e);
}

int eng_batch_delete_range(struct eng_batch *b, const struct eng_part *part, const struct eng_slice *range, int64_t ts,
                           int64_t now, struct op_cost *cost, struct err *e) {
    struct engi_interval interval;
    size_t at = b->bytes.n;
    arena_reset(&b->arena);
    if (check_length(part, e)) return -1;
    if (engi_interval_of(range, &b->arena, &interval)) return err_nomem(e);
    if (!interval.no_end && slice_cmp(interval.from, interval.to) >= 0) return 0; /* no row is in it */
    b->value.n = 0;
    engi_key_prefix(&b->value, part);
    engi_key_loose(&b->bytes, buf_slice(&b->value), &interval, ts);
    b->bytes.failed = b->bytes.failed || b->value.failed;
    b->value.failed = false;
    return add_tombstone(b, at, true, part, ts, now, cost, e);
}

int eng_batch_delete_partition(struct eng_batch *b, const struct eng_part *part, int64_t ts, int64_t now,
                               struct op_cost *cost, struct err *e) {
    size_t at = b->bytes.n;
    if (check_length(part, e)) return -1;
    engi_key_kind(&b->bytes, part, ENGI_PARTITION_DELETION);
    return add_tombstone(b, at, false, part, ts, now, cost, e);
}

int engi_batch_replay(struct eng_batch *b, uint32_t table, struct slice rest, struct slice delta, struct err *e) {
    struct eng_row row;
    size_t at = b->bytes.n;
    arena_reset(&b->arena);
    engi_key_table(&b->bytes, table);
    buf_put_slice(&b->bytes, rest);
    struct slice key = buf_failed(&b->bytes) ? slice_of("", 0) : slice_of(b->bytes.p + at, b->bytes.n - at);
    size_t n = engi_prefix_len(key);
    bool damaged = !n || key.n <= n;
    enum engi_kind kind = damaged ? ENGI_ROW : key.p[n];
    bool is_range = kind == ENGI_RANGE_TOMBSTONE;
    eng_row_init(&row, kind == ENGI_STATIC ? ENG_STATIC : ENG_ROW, slice_of("", 0));
    if (damaged) err_set(e, ERR_SERVER, "a record of a table's history is damaged");
    if (damaged || eng_row_decode(delta, &b->arena, &row, e)) {
        b->bytes.failed = false;
        b->bytes.n = at;
        return -1;
    }
    return add(b, at, table, &row, is_range || kind == ENGI_PARTITION_DELETION, is_range, NULL, e);
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
    if (b->store->ops->batch_done) b->store->ops->batch_done(b);
}

/* Makes the writes to partitions that this thread has locked conditional on their ballots:
 * invariant 12. */
static int set_conditions(struct eng_batch *b, struct err *e) {
    for (size_t i = 0; i < b->n; i++) {
        struct store_change *c = &b->changes[i];
        struct slice key = engi_change_key(b, c);
        c->conditional = b->store->front->ballot(b->store, slice_of(key.p, engi_prefix_len(key)), &c->ballot);
        c->next_ballot = c->ballot + 1;
        if (!c->conditional || c->ballot) continue;
        if (random_bytes(&c->next_ballot, sizeof(c->next_ballot), e)) return -1;
        c->next_ballot = c->next_ballot >> 1 | 1; /* neither none nor UINT64_MAX, and with room to count */
    }
    return 0;
}

static void contended(const struct eng_batch *b, struct err *e) {
    for (size_t i = 0; i < b->n; i++)
        if (b->changes[i].written) {
            err_set(e, ERR_WRITE_TIMEOUT,
                    "Another server has written to some of the batch's partitions at the same time; the others were "
                    "written");
            return;
        }
    err_set(e, ERR_WRITE_TIMEOUT,
            "CAS operation timed out: another server has written under the same lock; nothing was written");
    e->detail = (struct err_detail){.required = 1, .contentions = 1, .write_type = "CAS"};
}

/* Sets written[i] of the parts that a commit has written although it met a conflict. */
static void take_written(const struct eng_batch *b, const struct eng_part *const *parts, uint32_t n, bool *written) {
    for (size_t i = 0; i < b->n; i++) {
        if (!b->changes[i].written) continue;
        struct slice key = engi_change_key(b, &b->changes[i]);
        struct eng_part part = engi_prefix_part(slice_of(key.p, engi_prefix_len(key)));
        for (uint32_t k = 0; k < n; k++)
            if (parts[k]->table == part.table && slice_eq(parts[k]->key, part.key)) written[k] = true;
    }
}

/* The batch is still there after ENG_BUSY and ENG_ROWS_HELD, and after KV_CHANGED. */
static int commit(struct eng_batch *b, bool patience, uint64_t *seq, struct err *e) {
    struct store *s = b->store;
    assert(b->n_savepoints == 0);
    int rc = UNLIKELY(!(s->ops->offers & STORE_ONE_WRITER)) ? set_conditions(b, e) : 0;
    if (!rc) rc = s->ops->commit(b, patience, e);
    if (rc == ENG_BUSY || rc == ENG_ROWS_HELD) return rc;
    if (rc == KV_CHANGED) {
        contended(b, e);
        return rc;
    }
    if (!rc) *seq = s->front->written(s);
    eng_batch_drop(b);
    return rc;
}

static int try_commit(struct eng_batch *b, bool patience, uint64_t *seq, struct err *e) {
    int rc = commit(b, patience, seq, e);
    if (rc != KV_CHANGED) return rc;
    eng_batch_drop(b);
    return -1;
}

int eng_batch_commit(struct eng_batch *b, uint64_t *seq, struct err *e) { return try_commit(b, true, seq, e); }
int eng_batch_try_commit(struct eng_batch *b, uint64_t *seq, struct err *e) { return try_commit(b, false, seq, e); }

int eng_batch_commit_locked(struct eng_batch *b, const struct eng_part *const *parts, uint32_t n, bool *written,
                            uint64_t *seq, struct err *e) {
    int rc = commit(b, true, seq, e);
    if (rc != KV_CHANGED) return rc;
    take_written(b, parts, n, written);
    eng_batch_drop(b);
    return ENG_CHANGED;
}
