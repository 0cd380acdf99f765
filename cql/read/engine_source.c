#include "cql/read/engine_source.h"

#include "base/hot.h"
#include "cql/read/select.h"
#include "cql/request/db.h"

enum {
    SKIP_AFTER = 16,      /* a scan skips up to this many unwanted rows of a partition, then reopens after it */
    PART_ROWS = 4096,     /* of a part; some milliseconds */
    PART_BYTES = 1 << 20,
    PART_POINTS = 256,
    BATCH_BYTES = 64 << 10, /* as stored, of the rows of a batch but its last */
    LOOP_VALUES_MAX = 16 << 10, /* bytes of a row that a loop computes on; larger numbers take milliseconds */
};

/* A step's result in addition to READ_...: it has no row to return, and the next step follows. */
enum { NEXT_STEP = 2 };

static enum eng_tier tier(const struct engine_source *s) { return s->spec.r->blocking ? ENG_TIER_ANY : ENG_TIER_CACHE; }

static inline int keep(struct kept_key *k, struct slice bytes, struct err *e) {
    return LIKELY(!kept_key_put(k, bytes)) ? 0 : err_nomem(e);
}

/* ---- partitions ---- */

static int new_read(struct engine_source *s) {
    s->base.read = read_meter_new(&s->meter, s->spec.plan->table, s->piece.part);
    s->view.mark = arena_mark(s->spec.r->arena); /* the cost may live in the arena that rows are rewound in */
    return s->base.read ? 0 : err_nomem(s->spec.r->err);
}

static int view_partition(struct engine_source *s, struct slice key, const struct eng_row *statics) {
    struct err *e = s->spec.r->err;
    s->base.skip_partition = s->in_row = s->row_out = false;
    if (keep(&s->key, key, e) || row_view_partition(&s->view, s->key.is, statics, e)) return -1;
    read_meter_enter(&s->meter);
    if (!statics || !s->spec.plan->statics.asked) return 0;
    read_meter_static(&s->meter);
    return 0;
}

/* again: not NULL if an earlier page returned rows of the partition. Several subqueries that read the same partition
 * share its count of rows. */
static int enter_partition(struct engine_source *s, struct slice key, const struct eng_row *statics,
                           const struct paging_state *again) {
    bool same = s->spec.as_keyspaces && s->partition_open && slice_eq(key, s->key.is);
    s->rows_seen = again != NULL;
    if (!same) s->base.given = again ? again->given : 0;
    s->partition_open = true;
    return view_partition(s, key, statics);
}

/* ---- rows ---- */

/* The last row that was returned is done. Returns READ_END if the page ends with it. */
static int pass_row(struct engine_source *s) {
    if (!s->row_out) return NEXT_STEP;
    s->row_out = false;
    s->in_row = s->row != NULL;
    bool tracked = s->spec.as_keyspaces || s->spec.may_unread;
    if (tracked && s->row && keep(&s->ck, s->row_ck, s->spec.r->err)) return READ_FAILED;
    if (!read_meter_passed(&s->meter)) return NEXT_STEP;
    s->base.page_end = true;
    return !tracked && s->row && keep(&s->ck, s->row_ck, s->spec.r->err) ? READ_FAILED : READ_END;
}

/* Counts the row that the view is at as read, unless the page ends before it. */
static bool charge_row(struct engine_source *s, const struct eng_row *row) {
    if (LIKELY(read_meter_row(&s->meter, row != NULL))) return true;
    s->base.page_end = true;
    s->before = !s->in_row;
    if (s->before) read_meter_leave(&s->meter);
    return false;
}

/* Functions, JSON or conditions on values this large would take a loop too long. */
static bool is_too_much(const struct engine_source *s) {
    size_t bytes = 0;
    if (s->spec.r->blocking) return false;
    for (uint32_t i = 0; i < s->spec.plan->table->n_columns; i++)
        bytes += s->view.values[i].n > 0 ? (size_t)s->view.values[i].n : 0;
    return bytes > LOOP_VALUES_MAX;
}

/* Adds the row to the batch. Returns READ_ROWS, READ_END if the page is full, or NEXT_STEP if the row is not wanted. */
static inline int give_row(struct engine_source *s, const struct eng_row *row, struct read_batch *out) {
    if (s->base.skip_partition || s->base.given >= s->base.partition_limit) {
        s->rows_seen++;
        s->base.skip_partition = true;
        return NEXT_STEP;
    }
    if (row_view_row(&s->view, row, s->spec.r->err)) return READ_FAILED;
    if (UNLIKELY(s->spec.plan->computes && is_too_much(s))) return READ_INCOMPLETE;
    if (!charge_row(s, row)) return READ_END;
    s->rows_seen++;
    s->row = row;
    if (row) s->row_ck = row->ck;
    s->row_out = true;
    out->values[out->n] = s->view.values;
    out->out[out->n++] = select_result(s->spec.plan, s->view.values);
    return READ_ROWS;
}

/* The row is charged, but does not count towards the page size, in keyspaces mode either: according to AWS's page about
 * capacity PAGE SIZE 1 with LIMIT 1 reads one row if none has expired, so it continues past expired ones. */
static int pass_expired(struct engine_source *s, const struct eng_row *row) {
    if (row_view_row(&s->view, row, s->spec.r->err)) return READ_FAILED;
    if (!charge_row(s, row)) return READ_END;
    bool nothing_else = !row->n_cells && row->live_ts == ENG_NO_TS;
    if (nothing_else) s->base.read->markers++;
    else s->base.read->expired++;
    s->in_row = true;
    return keep(&s->ck, row->ck, s->spec.r->err) ? READ_FAILED : NEXT_STEP;
}

/* The static row is still due if the page ends before it. */
static int give_static_row(struct engine_source *s, struct read_batch *out) {
    int pull = give_row(s, NULL, out);
    if (pull != READ_END) s->static_row_due = false;
    return pull;
}

/* ---- a row by its key ---- */

/* Reads the row and, where the statement needs them, the partition's static values as they were at the same moment. */
SELDOM static int read_point(struct engine_source *s, struct read_batch *out) {
    struct cql_run *r = s->spec.r;
    struct eng *eng = r->db->options.eng;
    const struct piece *p = &s->piece;
    bool timestamps = s->view.layout->has_timestamps, visible, has_statics = false;
    struct eng_row *row, *statics = NULL; /* visible, or expired and still stored; else NULL */
    uint8_t n_markers; /* of deletions over the row's position */
    s->state = AT_NEXT_PIECE;
    if (s->had_point) arena_release(r->arena, s->point_mark); /* a large row of the point before */
    s->point_mark = arena_mark(r->arena);
    s->had_point = true;
    if (s->spec.plan->statics.read) {
        struct eng_pair *pair = ARENA_NEW(r->arena, struct eng_pair);
        if (!pair) return err_nomem(r->err);
        int rc = eng_pair_get(eng, tier(s), p->part, p->ck, r->eval.now_s, r->arena, pair, r->cost, r->err);
        if (rc < 0) return rc;
        visible = pair->has_row;
        has_statics = pair->has_statics;
        n_markers = pair->row.n_markers;
        row = visible || pair->expired || (timestamps && pair->row.n_deletions) ? &pair->row : NULL;
        statics = has_statics || pair->statics.n_expired ? &pair->statics : NULL;
    } else {
        uint64_t dead = r->cost->tombstones;
        row = ARENA_NEW(r->arena, struct eng_row);
        if (!row) return err_nomem(r->err);
        int rc = eng_row_get(eng, tier(s), p->part, ENG_ROW, p->ck, r->eval.now_s, r->arena, row, r->cost, r->err);
        if (rc < 0) return rc;
        visible = rc > 0;
        n_markers = row->n_markers;
        if (!visible && r->cost->tombstones != dead) {
            /* The row is read again as it was before it expired; it is in the cost already. */
            rc = eng_row_get(eng, tier(s), p->part, ENG_ROW, p->ck, ENG_NEVER_EXPIRES, r->arena, row, NULL, r->err);
            if (rc < 0) return rc;
            if (!rc && !(timestamps && row->n_deletions)) row = NULL;
        } else if (!visible) {
            row = NULL;
        }
    }
    if (new_read(s) || enter_partition(s, p->part->key, statics, NULL)) return READ_FAILED;
    if (UNLIKELY(timestamps && n_markers)) read_meter_markers(&s->meter, n_markers);
    if (visible) return give_row(s, row, out);
    int pull = row ? pass_expired(s, row) : NEXT_STEP;
    if (pull != NEXT_STEP || !has_statics || !s->spec.plan->statics.only) return pull;
    return give_row(s, NULL, out);
}

/* ---- scans ---- */

static int open_scan(struct engine_source *s) {
    struct piece_scan *scan = s->scan;
    struct cql_run *r = s->spec.r;
    scan->passed = 0;
    scan->open = eng_scan_open(r->db->options.eng, tier(s), &scan->spec, r->cost, r->err);
    if (scan->open && r->blocking) eng_scan_allow(scan->open, PART_ROWS, PART_BYTES);
    return scan->open ? 0 : -1;
}

static void close_scan(struct engine_source *s) {
    eng_scan_close(s->scan->open);
    s->scan->open = NULL;
}

static int start_scan(struct engine_source *s) {
    struct piece_scan *scan = s->scan;
    const struct piece *p = &s->piece;
    const struct paging_state *resume = p->resume;
    /* Filters and deletions make the scan longer, the end of the data shorter. */
    uint64_t wanted = s->spec.page_rows;
    if (!s->spec.count_read_rows && s->spec.limit < wanted) wanted = s->spec.limit;
    scan->spec = (struct eng_scan_spec){.table = s->spec.plan->table->storage,
                                          .part = p->part,
                                          .slices = p->slices,
                                          .n_slices = p->n_slices,
                                          .token_from = p->token_from,
                                          .token_to = p->token_to,
                                          .wants = p->wants,
                                          .wants_arg = s,
                                          .reverse = s->spec.plan->order.reversed,
                                          .statics = s->spec.plan->statics.read,
                                          .rows = true,
                                          .expired = true,
                                          .deletions = s->view.layout->has_timestamps,
                                          .now = s->spec.r->eval.now_s,
                                          .wanted = p->wants || wanted == UINT64_MAX ? 0 : wanted,
                                          .batches = s->base.most > 1,
                                          .layout = s->spec.plan->lays_out ? &s->view.laid : NULL};
    if (resume) {
        scan->spec.resume_key = resume->key;
        scan->spec.resume_ck = resume->ck;
        scan->spec.resume_skip = !resume->ck.p && !resume->before;
        scan->spec.resume_statics = resume->static_row_due;
    }
    return open_scan(s);
}

static int start_partition(struct engine_source *s, struct read_batch *out) {
    struct piece_scan *scan = s->scan;
    const struct paging_state *resume = s->piece.resume;
    const struct eng_item *item = &scan->item;
    bool again = resume && resume->ck.p && slice_eq(resume->key, item->part.key);
    scan->passed = 0;
    s->quarters_seen |= 1u << path_tokens_quarter(item->part.token);
    scan->statics_kept = false;
    scan->statics = item->statics;
    bool statics = item->has_static || item->static_expired;
    if (enter_partition(s, item->part.key, statics ? &scan->statics : NULL, again ? resume : NULL)) return READ_FAILED;
    /* The scan reads the next partition's static row before the last batch of this one is sent. */
    if (statics && s->base.most > 1 && !s->piece.part) {
        scan->statics_kept = true;
        if (row_view_keep_statics(&s->view, s->spec.r->err)) return READ_FAILED;
    }
    if (UNLIKELY(item->n_markers)) read_meter_markers(&s->meter, item->n_markers);
    s->static_row_due = item->has_static && (!again || resume->static_row_due) && s->spec.plan->statics.only;
    return item->static_only && s->static_row_due ? give_static_row(s, out) : NEXT_STEP;
}

SELDOM static int take_item(struct engine_source *s, struct read_batch *out) {
    struct piece_scan *scan = s->scan;
    s->state = AT_SCAN;
    if (scan->item.kind == ENG_ITEM_PARTITION) {
        if (!s->static_row_due) return start_partition(s, out);
        s->state = AT_HELD;
        return give_static_row(s, out);
    }
    if (s->base.skip_partition) { /* no more rows of the partition are wanted */
        s->static_row_due = false;
        if (s->piece.part) {
            close_scan(s);
        } else if (++scan->passed > SKIP_AFTER) { /* reopen the scan after the partition */
            close_scan(s);
            if (keep(&scan->resume_key, s->key.is, s->spec.r->err)) return READ_FAILED;
            scan->spec.resume_key = scan->resume_key.is;
            scan->spec.resume_ck = (struct slice){0};
            scan->spec.resume_skip = true;
            scan->spec.resume_statics = false;
            if (open_scan(s)) return READ_FAILED;
        }
        s->state = s->piece.part ? AT_BOUND : AT_SCAN;
        return NEXT_STEP;
    }
    if (scan->item.kind == ENG_ITEM_EXPIRED) {
        /* The static row is returned if all rows turn out to have expired. By then the scan has moved
         * to the next partition, or ended. */
        if (s->static_row_due && !scan->statics_kept) {
            scan->statics_kept = true;
            if (row_view_keep_statics(&s->view, s->spec.r->err)) return READ_FAILED;
        }
        return pass_expired(s, scan->item.row);
    }
    s->static_row_due = false;
    return give_row(s, scan->item.row, out);
}

static int read_scan(struct engine_source *s, struct read_batch *out) {
    struct piece_scan *scan = s->scan;
    eng_scan_begin_batch(scan->open);
    int rc = eng_scan_next(scan->open, &scan->item, s->spec.r->err);
    if (LIKELY(rc == 1 && scan->item.kind == ENG_ITEM_ROW && !s->base.skip_partition)) {
        s->static_row_due = false;
        return give_row(s, scan->item.row, out);
    }
    if (rc == ENG_PAUSED) return READ_AGAIN;
    if (rc < 0) return rc;
    if (rc > 0) return take_item(s, out);
    s->state = AT_BOUND;
    return s->static_row_due ? give_static_row(s, out) : NEXT_STEP;
}

/* ---- batches ---- */

/* Adds the rows that follow a first one, while they are visible rows of the same partition. Each is
 * counted as by pass_row for the row before it, and give_row. */
static enum read_pull add_following(struct engine_source *s, struct read_batch *out) {
    struct piece_scan *scan = s->scan;
    struct cql_run *r = s->spec.r;
    struct row_view *v = &s->view;
    uint32_t most = out->most < s->base.most ? out->most : s->base.most, n = out->n;
    /* The filter has not yet counted the rows of the partition that an earlier page returned. */
    if (s->base.partition_limit - s->base.given < most) most = (uint32_t)(s->base.partition_limit - s->base.given);
    const uint32_t result = s->spec.plan->list.consecutive ? s->spec.plan->list.ordinals[0] : 0;
    struct read_meter_batch sum = read_meter_batch_begin(&s->meter, &most);
    const uint64_t large = r->cost->bytes_read + BATCH_BYTES, enough = large < sum.enough ? large : sum.enough;
    struct slice ck = s->row_ck;
    enum read_pull got = READ_ROWS;
    while (n < most && scan->item.stays && sum.bytes_read < enough) {
        row_view_next(v);
        int rc = eng_scan_next(scan->open, &scan->item, r->err);
        if (UNLIKELY(rc != 1 || scan->item.kind != ENG_ITEM_ROW)) {
            /* no further row can be added; the next pull finds the reason again */
            if (rc == 1) s->state = AT_HELD;
            if (rc == 0) s->state = AT_BOUND;
            got = rc >= 0 || rc == ENG_PAUSED ? READ_ROWS : (enum read_pull)rc;
            break;
        }
        const struct eng_row *row = scan->item.row;
        if (UNLIKELY(!row_view_laid_out(v, row) && row_view_row(v, row, r->err))) return READ_FAILED;
        if (UNLIKELY(s->spec.plan->computes && is_too_much(s))) return READ_INCOMPLETE;
        if (UNLIKELY(!read_meter_batch_row(&s->meter, &sum))) {
            s->base.page_end = true;
            break;
        }
        ck = row->ck;
        out->values[n] = v->values;
        out->out[n++] = v->values + result; /* select_result, unless the row is projected */
    }
    read_meter_batch_end(&s->meter, &sum);
    s->rows_seen += n - out->n;
    s->row_ck = ck;
    out->n = n;
    return got;
}

/* The first of the rows that match an excluded bound is read, and not returned; on the next page, when
 * this one is full. */
SELDOM static int read_bound(struct engine_source *s) {
    struct piece_scan *scan = s->scan;
    struct cql_run *r = s->spec.r;
    close_scan(s);
    s->state = AT_NEXT_PIECE;
    if (!s->piece.bound) return NEXT_STEP;
    struct eng_scan_spec spec = {.table = s->spec.plan->table->storage,
                                 .part = s->piece.part,
                                 .slices = s->piece.bound,
                                 .n_slices = 1,
                                 .rows = true,
                                 .expired = true,
                                 .now = r->eval.now_s};
    scan->open = eng_scan_open(r->db->options.eng, tier(s), &spec, r->cost, r->err);
    if (!scan->open) return READ_FAILED;
    scan->item.kind = ENG_ITEM_PARTITION;
    int rc = 1;
    while (rc == 1 && scan->item.kind == ENG_ITEM_PARTITION) rc = eng_scan_next(scan->open, &scan->item, r->err);
    bool in_row = s->in_row;
    if (rc == 1) {
        if (view_partition(s, s->piece.part->key, NULL) || row_view_row(&s->view, scan->item.row, r->err))
            return READ_FAILED;
        s->in_row = in_row;
        if (charge_row(s, scan->item.row)) s->base.read->at_bound++;
    }
    close_scan(s);
    return rc < 0 ? rc : s->base.page_end ? READ_END : NEXT_STEP;
}

/* ---- pieces ---- */

SELDOM static int next_piece(struct engine_source *s) {
    struct piece *p = &s->piece;
    if (s->spec.r->blocking && s->points_left-- == 0) return READ_AGAIN;
    struct piece following = {0};
    int rc = s->next_piece(s, s->keys, &following);
    if (rc < 0) return rc;
    if (rc == 0) return READ_END;
    *p = following;
    s->state = p->kind == PIECE_POINT ? AT_POINT : AT_SCAN;
    if (p->kind == PIECE_POINT) return NEXT_STEP;
    if (!s->scan) {
        s->scan = ARENA_NEW(s->spec.r->arena, struct piece_scan);
        if (!s->scan) return err_nomem(s->spec.r->err);
        kept_key_init(&s->scan->resume_key);
    }
    if (new_read(s)) return READ_FAILED;
    if (p->kind == PIECE_SCAN) return start_scan(s) ? READ_FAILED : NEXT_STEP;
    s->state = AT_BOUND;
    return NEXT_STEP;
}

static int step(struct engine_source *s, struct read_batch *out) {
    switch (s->state) {
    case AT_NEXT_PIECE: return next_piece(s);
    case AT_POINT: return read_point(s, out);
    case AT_SCAN: return read_scan(s, out);
    case AT_HELD: return take_item(s, out);
    case AT_BOUND: return read_bound(s);
    case AT_END: return READ_END;
    }
    return READ_FAILED;
}

static enum read_pull next(struct read_op *op, struct read_batch *out) {
    struct engine_source *s = (struct engine_source *)op;
    out->n = 0;
    out->view = s->base.most == 1 ? &s->view : NULL;
    int rc = pass_row(s);
    if (rc == NEXT_STEP && s->base.page_end) rc = READ_END;
    row_view_first(&s->view, s->state == AT_HELD);
    while (rc == NEXT_STEP) rc = step(s, out);
    bool more = rc == READ_ROWS && s->state == AT_SCAN && s->row && s->base.most > 1;
    if (more) return add_following(s, out);
    if (rc != READ_END) return (enum read_pull)rc;
    s->base.exhausted = s->state != AT_END && !s->base.page_end;
    s->state = AT_END;
    return READ_END;
}

/* ---- functions for the paths and the operators above ---- */

struct read_source *engine_source_new(const struct read_spec *spec, const struct access_path *path, engine_piece_fn *fn,
                                      void *keys, uint32_t rows, bool single) {
    struct cql_run *r = spec->r;
    struct engine_source *s = ARENA_NEW(r->arena, struct engine_source);
    if (!s) return err_nomem(r->err), NULL;
    s->base = (struct read_source){.op = {next},
                                   .path = path,
                                   .most = spec->plan->asks_times ? 1 : rows,
                                   .single = single};
    s->spec = *spec;
    s->next_piece = fn;
    s->keys = keys;
    s->meter = (struct read_meter){.cost = r->cost,
                                   .before_row = spec->as_keyspaces,
                                   .paged = spec->paged,
                                   .may_undo = spec->may_unread,
                                   .rows_left = spec->count_read_rows && !single ? spec->page_rows : UINT64_MAX,
                                   .bytes_start = r->cost->bytes_read};
    kept_key_init(&s->key);
    kept_key_init(&s->ck);
    s->points_left = PART_POINTS;
    if (row_view_init(&s->view, spec->plan->layout, s->base.most, r->arena, r->err)) return NULL;
    row_sizer_init(&s->meter.sizer, &s->view, r->cost);
    return &s->base;
}

int engine_source_probe(struct engine_source *s, int64_t from, int64_t to) {
    struct cql_run *r = s->spec.r;
    struct eng_scan_spec spec = {.table = s->spec.plan->table->storage,
                                 .token_from = from,
                                 .token_to = to,
                                 .statics = true,
                                 .rows = true,
                                 .expired = true,
                                 .deletions = s->view.layout->has_timestamps,
                                 .now = r->eval.now_s};
    struct eng_scan *scan = eng_scan_open(r->db->options.eng, tier(s), &spec, NULL, r->err);
    struct eng_item item;
    if (!scan) return READ_FAILED;
    int rc;
    do {
        if (r->blocking) eng_scan_allow(scan, PART_ROWS, PART_BYTES);
        rc = eng_scan_next(scan, &item, r->err);
        if (rc == ENG_PAUSED && cql_check_running(r)) rc = READ_FAILED;
    } while (rc == ENG_PAUSED);
    eng_scan_close(scan);
    return rc;
}

int engine_source_end_page(struct engine_source *s, struct slice key) {
    s->in_row = s->before = false;
    s->base.page_end = true;
    return keep(&s->key, key, s->spec.r->err);
}

void engine_source_begin_part(struct read_source *source) {
    struct engine_source *s = (struct engine_source *)source;
    s->points_left = PART_POINTS;
    if (s->scan && s->scan->open) eng_scan_allow(s->scan->open, PART_ROWS, PART_BYTES);
}

void engine_source_unread(struct read_source *source) {
    struct engine_source *s = (struct engine_source *)source;
    read_meter_undo(&s->meter);
    s->row_out = false;
    s->static_row_due = !s->row;
    s->before = !s->in_row;
}

void engine_source_position(const struct read_source *source, struct paging_state *out) {
    const struct engine_source *s = (const struct engine_source *)source;
    out->given = s->base.given;
    out->partition = s->index;
    /* after the last partition, which may have no rows: key is then still another partition's */
    if (s->base.exhausted && s->piece.part) {
        out->key = s->piece.part->key;
        return;
    }
    out->key = s->key.is;
    out->before = s->before;
    if (s->row_out && s->row) out->ck = s->row_ck;
    else if (!s->row_out && s->in_row) out->ck = s->ck.is;
    out->static_row_due = out->ck.p && s->static_row_due;
}

void engine_source_close(struct read_source *source) {
    struct engine_source *s = (struct engine_source *)source;
    if (s->scan) {
        close_scan(s);
        kept_key_fini(&s->scan->resume_key);
    }
    kept_key_fini(&s->key);
    kept_key_fini(&s->ck);
}
