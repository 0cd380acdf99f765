/* A table of one engine's store copied into another's: a checkpoint brought back, or a table under a new id. */
#include "engine/row_codec.h"
#include "engine/store.h"

enum { CHUNK = 1 << 20 };

struct ingest {
    struct eng *to;
    uint32_t table;
    struct kv_batch *batch;
    struct buf key;
    size_t bytes; /* in the batch */
    int64_t newest; /* timestamp in the batch */
};

static void raise(struct ingest *in, int64_t ts) {
    if (ts != ENG_NO_TS && ts > in->newest) in->newest = ts;
}

static int note_newest(struct ingest *in, struct slice value, struct err *e) {
    struct rowi_reader r;
    struct eng_cell c;
    int got = rowi_open(&r, value) ? -1 : 0;
    if (!got) {
        raise(in, r.head.live_ts);
        raise(in, r.head.del_ts);
        while ((got = rowi_next(&r, &c)) > 0) raise(in, c.ts);
    }
    return got < 0 ? err_set(e, ERR_SERVER, "a stored row is damaged") : 0;
}

/* Invariant 1 of engine/horizon.h: the horizon is in the store with what it covers. */
static int write_chunk(struct ingest *in, struct err *e) {
    struct eng *to = in->to;
    int64_t ceiling = INT64_MIN;
    if (!in->bytes) return 0;
    if (in->newest != ENG_NO_TS && engi_horizon_record(&to->newest, in->batch, in->newest, &ceiling)) return err_nomem(e);
    if (kv_write_patiently(to->kv, in->batch, e)) return -1;
    engi_horizon_recorded(&to->newest, ceiling);
    in->batch->ops->batch_clear(in->batch);
    in->bytes = 0;
    in->newest = ENG_NO_TS;
    return 0;
}

/* The key with the other table's id, which stands at `at` in it. */
static int put(struct ingest *in, struct slice key, size_t at, struct slice value, struct err *e) {
    in->key.n = 0;
    buf_put_slice(&in->key, key);
    if (buf_failed(&in->key)) return err_nomem(e);
    store_u32(in->key.p + at, in->table);
    if (in->batch->ops->batch_put(in->batch, buf_slice(&in->key), value)) return err_nomem(e);
    in->bytes += key.n + value.n;
    return in->bytes < CHUNK ? 0 : write_chunk(in, e);
}

static int take_row(void *arg, struct slice key, struct slice value, struct err *e) {
    return note_newest(arg, value, e) ? -1 : put(arg, key, 0, value, e);
}

static int take_mark(void *arg, struct slice key, struct slice value, struct err *e) { return put(arg, key, 4, value, e); }

/* [lead][table] up to [lead][table + 1]; without a lead for rows. */
static int copy(struct ingest *in, struct eng *from, bool marks, uint32_t table, struct err *e) {
    uint8_t ends[2][8];
    size_t skip = marks ? 0 : 4;
    for (uint32_t i = 0; i < 2; i++) {
        store_u32(ends[i], ENGI_TABLE_MARKS);
        store_u32(ends[i] + 4, table + i);
    }
    return engi_scan_keys(from, slice_of(ends[0] + skip, 8 - skip), slice_of(ends[1] + skip, 8 - skip), marks ? take_mark : take_row, in, e);
}

int eng_ingest(struct eng *eng, uint32_t table, struct eng *from, uint32_t from_table, struct err *e) {
    struct ingest in = {.to = eng, .table = table, .newest = ENG_NO_TS, .batch = eng->kv->ops->batch_new(eng->kv)};
    if (!in.batch) return err_nomem(e);
    buf_init(&in.key, 0);
    engi_table_forget(eng, table);
    int rc = engi_commit_check(eng, e);
    if (!rc) rc = copy(&in, from, true, from_table, e); /* invariant 4: marks go before what they stand for */
    if (!rc) rc = copy(&in, from, false, from_table, e);
    if (!rc) rc = write_chunk(&in, e);
    buf_fini(&in.key);
    in.batch->ops->batch_free(in.batch);
    return rc ? -1 : engi_commit_wait(eng, engi_commit_next_seq(eng), e);
}
