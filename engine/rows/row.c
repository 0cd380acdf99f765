/* Encoding, decoding, reconciling and resolving of rows over the cell reader and writer of
 * row_codec.c. */
#include "engine/row.h"

#include <stdlib.h>

#include "base/stop_check.h"
#include "engine/rows/row_codec.h"

static int cmp_i64(int64_t a, int64_t b) { return (a > b) - (a < b); }

int rowi_cell_order(const struct eng_cell *a, const struct eng_cell *b) {
    if (a->column != b->column) return a->column < b->column ? -1 : 1;
    bool ca = a->flags & ENG_CELL_COMPLEX_DELETION, cb = b->flags & ENG_CELL_COMPLEX_DELETION;
    if (ca || cb) return cb - ca;
    int c = slice_cmp(a->path, b->path);
    return c ? c : (a->flags & ENG_CELL_HAS_PATH) - (b->flags & ENG_CELL_HAS_PATH);
}

/* 2: tombstone, 1: expiring, 0: live for ever; the higher wins when the timestamps are equal. */
static int mortality(const struct eng_cell *c) {
    return rowi_is_deletion(c) ? 2 : c->flags & ENG_CELL_EXPIRING ? 1 : 0;
}

int rowi_cell_rank(const struct eng_cell *a, const struct eng_cell *b) {
    int c = cmp_i64(a->ts, b->ts);
    if (!c) c = mortality(a) - mortality(b);
    if (!c && mortality(a)) c = cmp_i64(a->expiry, b->expiry);
    if (!c) c = slice_cmp(a->value, b->value);
    if (!c) c = cmp_i64(a->ttl, b->ttl);
    return c;
}

/* Cassandra's LivenessInfo.supersedes, with the TTL as a last resort so that the order is total. */
static bool live_supersedes(const struct rowi_head *a, const struct rowi_head *b) {
    if (a->live_ts != b->live_ts) return a->live_ts > b->live_ts;
    bool ea = a->live_expiry != ENG_NO_EXPIRY, eb = b->live_expiry != ENG_NO_EXPIRY;
    if (ea != eb) return ea;
    if (a->live_expiry != b->live_expiry) return a->live_expiry > b->live_expiry;
    return a->live_ttl > b->live_ttl;
}

static struct rowi_head merge_heads(const struct rowi_head *a, const struct rowi_head *b) {
    struct rowi_head h = live_supersedes(b, a) ? *b : *a;
    bool del_b = b->del_ts != a->del_ts ? b->del_ts > a->del_ts : b->del_at > a->del_at;
    h.del_ts = del_b ? b->del_ts : a->del_ts;
    h.del_at = del_b ? b->del_at : a->del_at;
    if (h.live_ts <= h.del_ts) {
        h.live_ts = ENG_NO_TS;
        h.live_ttl = 0;
        h.live_expiry = ENG_NO_EXPIRY;
    }
    h.key_image = a->key_image; /* a key stays as it was first written, here as there */
    h.n_cells = a->n_cells + b->n_cells;
    return h;
}

bool rowi_shadowed(struct rowi_shadow *s, const struct eng_cell *c) {
    if (c->ts <= s->row_ts) return true;
    if (c->flags & ENG_CELL_COMPLEX_DELETION) {
        s->column = c->column;
        s->column_ts = c->ts;
        return false;
    }
    return s->column_ts != ENG_NO_TS && c->column == s->column && c->ts <= s->column_ts;
}

int eng_row_merge(struct slice a, struct slice b, struct buf *out) {
    struct rowi_reader ra, rb;
    if (rowi_open(&ra, a) || rowi_open(&rb, b)) return -1;
    struct rowi_head head = merge_heads(&ra.head, &rb.head);
    struct rowi_shadow shadow = {.row_ts = head.del_ts, .column_ts = ENG_NO_TS};
    struct rowi_writer w;
    rowi_begin(&w, out, &head);
    struct eng_cell ca, cb;
    int ga = rowi_next(&ra, &ca), gb = rowi_next(&rb, &cb);
    for (uint32_t n = 1; ga > 0 || gb > 0; n++) {
        if (UNLIKELY(n % STOP_CHECK_CELLS == 0) && stop_check_run()) return -1;
        if (ga < 0 || gb < 0) return -1;
        int order = ga == 0 ? 1 : gb == 0 ? -1 : rowi_cell_order(&ca, &cb);
        const struct eng_cell *c = order < 0 || (order == 0 && rowi_cell_rank(&ca, &cb) >= 0) ? &ca : &cb;
        if (c->column < w.column) return -1;
        if (!rowi_shadowed(&shadow, c)) rowi_put(&w, c);
        if (order <= 0) ga = rowi_next(&ra, &ca);
        if (order >= 0) gb = rowi_next(&rb, &cb);
    }
    if (ga < 0 || gb < 0) return -1;
    rowi_end(&w);
    return buf_failed(out) ? -1 : 0;
}

static struct rowi_head head_of(const struct eng_row *r) {
    return (struct rowi_head){.live_ts = r->live_ts,
                              .live_ttl = r->live_ttl,
                              .live_expiry = r->live_expiry,
                              .del_ts = r->del_ts,
                              .del_at = r->del_at,
                              .key_image = r->key_image,
                              .n_cells = r->n_cells};
}

int eng_row_lay(const struct eng_row *a, const struct eng_row *b, struct arena *arena, struct eng_row *out) {
    struct rowi_head ha = head_of(a), hb = head_of(b), head = merge_heads(&ha, &hb);
    struct rowi_shadow shadow = {.row_ts = head.del_ts, .column_ts = ENG_NO_TS};
    struct eng_cell *cells = NULL;
    if (head.n_cells && !(cells = arena_alloc(arena, (size_t)head.n_cells * sizeof(*cells)))) return -1;
    const struct eng_cell *ca = a->cells, *cb = b->cells, *end_a = ca + a->n_cells, *end_b = cb + b->n_cells;
    uint32_t n = 0;
    while (ca < end_a || cb < end_b) {
        int order = ca == end_a ? 1 : cb == end_b ? -1 : rowi_cell_order(ca, cb);
        const struct eng_cell *c = order < 0 || (order == 0 && rowi_cell_rank(ca, cb) >= 0) ? ca : cb;
        if (!rowi_shadowed(&shadow, c)) cells[n++] = *c;
        ca += order <= 0;
        cb += order >= 0;
    }
    *out = (struct eng_row){.kind = a->kind,
                            .ck = a->ck,
                            .key_image = head.key_image,
                            .live_ts = head.live_ts,
                            .live_ttl = head.live_ttl,
                            .live_expiry = head.live_expiry,
                            .del_ts = head.del_ts,
                            .del_at = head.del_at,
                            .newest_ts = ENG_NO_TS,
                            .n_cells = n,
                            .cells = cells};
    return 0;
}

void eng_row_encode(const struct eng_row *r, struct buf *out) {
    struct rowi_head head = head_of(r);
    struct rowi_writer w;
    rowi_begin(&w, out, &head);
    rowi_put_all(&w, r->cells, r->n_cells);
    rowi_end(&w);
}

int eng_row_decode(struct slice bytes, struct arena *a, struct eng_row *r, struct err *e) {
    struct rowi_reader rd;
    if (rowi_open(&rd, bytes)) return err_set(e, ERR_SERVER, "a stored row is damaged");
    r->key_image = rd.head.key_image;
    r->live_ts = rd.head.live_ts;
    r->live_ttl = rd.head.live_ttl;
    r->live_expiry = rd.head.live_expiry;
    r->del_ts = rd.head.del_ts;
    r->del_at = rd.head.del_at;
    r->covers_below = 0;
    r->n_expired = r->n_deletions = 0;
    r->marker_expired = false;
    r->laid_out = false;
    r->n_cells = r->n_stored = rd.head.n_cells;
    r->cells = NULL;
    if (r->n_cells && !(r->cells = arena_alloc(a, (size_t)r->n_cells * sizeof(*r->cells)))) return err_nomem(e);
    int got = 1;
    uint32_t n = rowi_plain(&rd, r->cells);
    r->plain = n == r->n_cells;
    for (uint32_t i = n; i < r->n_cells && got > 0;) {
        uint32_t left = r->n_cells - i, end = i + (left < STOP_CHECK_CELLS ? left : STOP_CHECK_CELLS);
        for (; i < end && got > 0; i++) got = rowi_next(&rd, &r->cells[i]);
        if (UNLIKELY(i < r->n_cells) && got > 0 && stop_check_run()) return -1;
    }
    if (got < 0 || rd_left(&rd.r)) return err_set(e, ERR_SERVER, "a stored row is damaged");
    return 0;
}

static int by_place_then_rank(const void *a, const void *b) {
    int c = rowi_cell_order(a, b);
    return c ? c : -rowi_cell_rank(a, b);
}

void eng_row_sort(struct eng_row *r) {
    uint32_t n = 0;
    bool sorted = true;
    for (uint32_t i = 1; i < r->n_cells && sorted; i++) sorted = rowi_cell_order(&r->cells[i - 1], &r->cells[i]) < 0;
    if (sorted) return;
    qsort(r->cells, r->n_cells, sizeof(*r->cells), by_place_then_rank);
    for (uint32_t i = 0; i < r->n_cells; i++)
        if (!n || rowi_cell_order(&r->cells[n - 1], &r->cells[i])) r->cells[n++] = r->cells[i];
    r->n_cells = n;
}

static void swap(struct eng_cell *a, struct eng_cell *b) {
    struct eng_cell c = *a;
    *a = *b;
    *b = c;
}

/* Drops the cells that are not visible at now. Live cells keep their order; expired cells that are
 * still stored follow them. dead counts the tombstones and expired cells that no deletion
 * covers. */
static void drop_cells(struct eng_row *r, struct rowi_shadow *shadow, int64_t now, uint64_t *dead) {
    enum { NO_COLUMN = UINT32_MAX };
    uint32_t n = 0, end = r->n_cells, deleted = NO_COLUMN; /* deleted: a collection of which no element was met yet */
    for (uint32_t i = 0; i < end; i++) {
        struct eng_cell *c = &r->cells[i];
        if (rowi_shadowed(shadow, c)) continue;
        bool expired = c->flags & ENG_CELL_EXPIRING && c->expiry <= now, deletion = rowi_is_deletion(c);
        if (UNLIKELY(c->column == deleted) && !deletion) {
            deleted = NO_COLUMN;
            r->n_deletions--;
        }
        if (expired || deletion) {
            ++*dead;
            r->n_expired += expired;
            r->n_deletions += deletion;
            if (c->flags & ENG_CELL_COMPLEX_DELETION) deleted = c->column;
            if (expired) c->flags |= ENG_CELL_EXPIRED;
            continue;
        }
        if (n != i) swap(&r->cells[n], c);
        n++;
    }
    r->n_cells = n;
    for (uint32_t i = n, to = n; to < n + r->n_expired; i++)
        if (r->cells[i].flags & ENG_CELL_EXPIRED) swap(&r->cells[to++], &r->cells[i]);
    if (r->n_expired > 1) qsort(r->cells + n, r->n_expired, sizeof(*r->cells), by_place_then_rank);
}

bool eng_row_resolve(struct eng_row *r, int64_t del_ts, int64_t now, uint64_t *tombstones) {
    struct rowi_shadow shadow = {.row_ts = r->del_ts > del_ts ? r->del_ts : del_ts, .column_ts = ENG_NO_TS};
    uint64_t dead = r->del_ts != ENG_NO_TS;
    r->n_expired = 0;
    r->n_deletions = r->del_ts != ENG_NO_TS && r->del_ts > del_ts && r->del_at != ENG_COVERED;
    if (r->live_ts != ENG_NO_TS && (r->live_ts <= shadow.row_ts || r->live_expiry <= now)) {
        r->marker_expired = r->live_ts > shadow.row_ts;
        dead += r->marker_expired;
        r->live_ts = ENG_NO_TS;
        r->live_ttl = 0;
        r->live_expiry = ENG_NO_EXPIRY;
    }
    bool untouched = r->plain && r->n_cells && r->cells[0].ts > shadow.row_ts;
    if (!untouched) drop_cells(r, &shadow, now, &dead);
    if (tombstones) *tombstones += dead;
    return r->n_cells > 0 || (r->kind == ENG_ROW && r->live_ts != ENG_NO_TS);
}
