/* Copies a table from one engine's store to another's, for a checkpoint that is restored, or a
 * table under a new id.
 *
 * Marks and the horizon of timestamps are written first, and are on disk before the rows are loaded
 * (engine/local/rocksdb/kv.h, load_new), all or none of them. So invariants 1 and 4
 * (engine/local/marks.h) hold wherever the copy is interrupted.
 */
#include "engine/local/local.h"
#include "engine/rows/key.h"
#include "engine/rows/row_codec.h"

struct ingest {
    uint32_t table;
    struct kv_batch *marks;
    struct kv_load *rows;
    struct buf key;
    int64_t newest; /* timestamp of the rows */
};

/* Copies the key and replaces the table's id at offset at. */
static int rename_key(struct ingest *in, struct slice key, size_t at, struct err *e) {
    in->key.n = 0;
    buf_put_slice(&in->key, key);
    if (buf_failed(&in->key)) return err_nomem(e);
    store_u32(in->key.p + at, in->table);
    return 0;
}

static int take_row(void *arg, struct slice key, struct slice value, struct err *e) {
    struct ingest *in = arg;
    struct rowi_reader r;
    struct eng_cell c;
    int got = rowi_open(&r, value) ? -1 : 0;
    if (!got && r.head.live_ts > in->newest) in->newest = r.head.live_ts; /* ENG_NO_TS is the least */
    if (!got && r.head.del_ts > in->newest) in->newest = r.head.del_ts;
    while (got >= 0 && (got = rowi_next(&r, &c)) > 0)
        if (c.ts > in->newest) in->newest = c.ts;
    if (got < 0) return err_set(e, ERR_SERVER, "a stored row is damaged");
    if (rename_key(in, key, 0, e)) return -1;
    return kv_load_add(in->rows, buf_slice(&in->key), value, e);
}

static int take_mark(void *arg, struct slice key, struct slice value, struct err *e) {
    struct ingest *in = arg;
    if (rename_key(in, key, 4, e)) return -1;
    kv_batch_put(in->marks, buf_slice(&in->key), value);
    return 0;
}

int engi_ingest_at(struct local *own, uint32_t table, struct local *from, uint32_t from_table,
                   const struct kv_snapshot *at, struct err *e) {
    struct local_table *t = (struct local_table *)engi_table_pin(own->eng, table, e); /* invariant 8 */
    if (!t) return -1;
    struct ingest in = {.table = table, .newest = ENG_NO_TS, .marks = kv_batch_new(own->kv)};
    struct engi_keys marks, rows;
    struct engi_horizon_step ceiling = {0};
    engi_keys_of(&marks, ENGI_TABLE_MARKS, from_table);
    engi_keys_of(&rows, 0, from_table);
    buf_init(&in.key, 0);
    in.rows = kv_load_new(own->kv, e);
    int rc = !in.marks ? err_nomem(e) : in.rows ? engi_commit_check(own->eng, e) : -1;
    if (!rc) rc = kv_scan(from->kv, at, marks.from, marks.to, take_mark, &in, e);
    if (!rc) rc = kv_scan(from->kv, at, rows.from, rows.to, take_row, &in, e);
    engi_table_forget(t);
    if (!rc && in.newest != ENG_NO_TS) engi_horizon_record(&own->newest, in.marks, in.newest, &ceiling);
    if (!rc) rc = kv_write_patiently(own->kv, in.marks, e);
    if (!rc) engi_horizon_recorded(&own->newest, &ceiling);
    if (!rc) rc = engi_commit_wait(own->eng, engi_commit_next_seq(own->eng), e);
    engi_table_change_begin(t);
    if (!rc) rc = kv_load_finish(in.rows, e);
    engi_table_change_end(t);
    engi_changed_all(t);
    if (in.rows) kv_load_free(in.rows);
    if (in.marks) kv_batch_free(in.marks);
    buf_fini(&in.key);
    engi_table_unpin(own->eng, &t->front);
    return rc;
}

int eng_ingest(struct eng *eng, uint32_t table, struct eng *from, uint32_t from_table, struct err *e) {
    return engi_ingest_at(local_of(&eng->store), table, local_of(&from->store), from_table, NULL, e);
}
