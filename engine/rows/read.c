/* Reads of one row, alone or with its partition's static row. */
#include "engine/rows/purge.h"
#include "engine/rows/key.h"
#include "engine/rows/partition.h"

enum { KEY_ON_STACK = 512 };

/* Prepares a read of the row; its key is on the stack if it fits. 0, -1. */
static int prepare(struct store_read *r, uint8_t *stack, const struct eng_part *part, enum eng_row_kind kind,
                   struct slice ck, struct arena *a, struct err *e) {
    size_t n = engi_key_row_size(part, kind, ck);
    if (part->key.n > UINT16_MAX)
        return err_invalid(e, "Key length of %zu is longer than maximum of 65535", part->key.n);
    uint8_t *p = n <= KEY_ON_STACK ? stack : arena_alloc(a, n);
    if (!p) return err_nomem(e);
    engi_key_row_write(p, part, kind, ck);
    *r = (struct store_read){.part = part, .key = slice_of(p, n), .n_prefix = ENGI_KEY_PREFIX_MIN + part->key.n,
                             .arena = a};
    engi_read_begin(r);
    return 0;
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* Returns 1 if it is visible, 0 if not, or -1 on error */
static int resolve(const struct store_value *v, const struct engi_dropped *dropped, size_t n_key, int64_t del_ts,
                   int64_t now, struct eng_row *row, struct op_cost *cost, struct err *e) {
    if (eng_row_decode(v->bytes, v->cells, row, e)) return -1;
    row->newest_ts = later(later(row->live_ts, row->del_ts), del_ts);
    uint32_t n = row->plain && row->n_cells ? 1 : row->n_cells; /* plain cells all have the same timestamp */
    for (uint32_t i = 0; i < n; i++) row->newest_ts = later(row->newest_ts, row->cells[i].ts);
    if (cost) cost->bytes_read += n_key + v->bytes.n;
    engi_dropped_hide(dropped, row, now == ENG_AS_STORED);
    if (now == ENG_AS_STORED) {
        if (del_ts > row->del_ts) row->del_at = ENG_COVERED;
        row->del_ts = later(row->del_ts, del_ts);
        return 1;
    }
    int visible = eng_row_resolve(row, del_ts, now, cost ? &cost->tombstones : NULL);
    if (cost) cost->rows_read += (uint64_t)visible;
    return visible;
}

/* Fills in the part of a row that depends only on the deletions. A range deletion that the
 * partition's deletion covers does not count as a marker. */
static void take_deletions(const struct store_read *r, struct eng_row *row) {
    row->newest_ts = r->covered_ts;
    row->n_markers = (uint8_t)((r->partition_ts != ENG_NO_TS) + (r->covered_ts > r->partition_ts));
}

static void count(const struct store_read *r, int rc, struct op_cost *cost) {
    if (!cost || rc == KV_INCOMPLETE) return; /* the retry in the blocking tier counts */
    cost->tombstones += r->n_covering;
    cost->partitions++;
}

/* Reads the row. The ballot that the partition had then is the condition of a write that depends on it. */
static int read_row(struct store *s, const struct store_view *view, enum eng_tier tier, struct store_read *r,
                    struct err *e) {
    int rc = UNLIKELY(view->gone) ? 0 : s->ops->read(s, view, tier, r, e);
    if (rc == 0 && tier == ENG_TIER_CACHE && r->row.bytes.n + r->statics.bytes.n > ENG_CACHE_BYTES_MAX)
        return KV_INCOMPLETE;
    if (!(s->ops->offers & STORE_ONE_WRITER) && rc == 0 && !view->gone)
        s->front->ballot_read(s, slice_of(r->key.p, r->n_prefix), r->ballot);
    return rc;
}

int eng_row_get(struct eng *eng, enum eng_tier tier, const struct eng_part *part, enum eng_row_kind kind,
                struct slice ck, int64_t now, struct arena *a, struct eng_row *row, struct op_cost *cost,
                struct err *e) {
    uint8_t stack[KEY_ON_STACK];
    struct store *s = store_of(eng);
    struct store_view view;
    struct store_read r;
    eng_row_init(row, kind, ck);
    if (prepare(&r, stack, part, kind, ck, a, e)) return -1;
    s->front->begin(s, part->table, &view);
    int got = read_row(s, &view, tier, &r, e);
    take_deletions(&r, row);
    if (!got && r.row.bytes.p) got = resolve(&r.row, view.dropped, r.key.n, r.covered_ts, now, row, cost, e);
    s->front->end(s, &view);
    count(&r, got, cost);
    return got;
}

int engi_ballot_fetch(struct store *s, const struct eng_part *part, uint64_t *ballot, struct err *e) {
    uint8_t stack[KEY_ON_STACK];
    struct store_view view;
    struct store_read r;
    struct arena a;
    arena_init(&a, 1024, 0);
    int rc = prepare(&r, stack, part, ENG_STATIC, slice_of("", 0), &a, e);
    if (!rc) {
        s->front->begin(s, part->table, &view);
        rc = s->ops->read(s, &view, ENG_TIER_ANY, &r, e);
        s->front->end(s, &view);
        *ballot = r.ballot;
    }
    arena_fini(&a);
    return rc;
}

/* ---- a row with its static row ---- */

static int resolve_pair(const struct store_read *r, const struct engi_dropped *dropped, int64_t now,
                        struct eng_pair *out, struct op_cost *cost, struct err *e) {
    take_deletions(r, &out->row);
    out->statics.newest_ts = r->partition_ts;
    if (r->statics.bytes.p) {
        int got = resolve(&r->statics, dropped, r->n_statics_key, r->partition_ts, now, &out->statics, cost, e);
        if (got < 0) return got;
        out->has_statics = got;
    }
    if (!r->row.bytes.p) return 0;
    int got = resolve(&r->row, dropped, r->key.n, r->covered_ts, now, &out->row, cost, e);
    out->has_row = got > 0;
    if (got) return got < 0 ? got : 0;
    /* The row may be invisible only because it has expired. */
    if (eng_row_decode(r->row.bytes, r->row.cells, &out->row, e)) return -1;
    engi_dropped_hide(dropped, &out->row, false);
    out->expired = eng_row_resolve(&out->row, r->covered_ts, ENG_NEVER_EXPIRES, NULL);
    return 0;
}

int eng_pair_get(struct eng *eng, enum eng_tier tier, const struct eng_part *part, struct slice ck, int64_t now,
                 struct arena *a, struct eng_pair *out, struct op_cost *cost, struct err *e) {
    uint8_t stack[KEY_ON_STACK];
    struct store *s = store_of(eng);
    struct store_view view;
    struct store_read r;
    *out = (struct eng_pair){.has_row = false};
    eng_row_init(&out->row, ENG_ROW, ck);
    eng_row_init(&out->statics, ENG_STATIC, slice_of("", 0));
    if (prepare(&r, stack, part, ENG_ROW, ck, a, e)) return -1;
    r.with_statics = true;
    s->front->begin(s, part->table, &view);
    int rc = read_row(s, &view, tier, &r, e);
    if (!rc) rc = resolve_pair(&r, view.dropped, now, out, cost, e);
    s->front->end(s, &view);
    count(&r, rc, cost);
    return rc;
}
