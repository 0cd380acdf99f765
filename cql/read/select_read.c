/* SELECT: one read of the engine, a row by its key or a scan, into the rows that a run passes. */
#include "cql/request/request.h"
#include "cql/request/db.h"
#include "cql/read/select.h"
#include "metering/size/size.h"

enum { SKIP_AFTER = 16 }; /* rows of a partition that is done are passed over so long before the scan is opened anew behind it */

static enum eng_tier tier(const struct cql_request *r) { return r->blocking ? ENG_TIER_ANY : ENG_TIER_CACHE; }

static int64_t now_seconds(const struct cql_request *r) { return r->params.has_now ? r->params.now_seconds : r->now_us / 1000000; }

int select_read_new(struct select_state *run) {
    struct op_cost *c = run->r->cost;
    if (run->read) run->earlier_bytes += size_row_bytes(c->size_model, c->n_columns, &run->read->rows) + size_static_bytes(&run->read->statics);
    run->read = op_cost_read(c);
    /* The cost may live in the arena that rows are rewound in. */
    run->view.mark = run->partition_mark = arena_mark(run->r->arena);
    return run->read ? 0 : err_nomem(run->r->err);
}

/* Rows that were given of the partition count on when it is read again, or from where the last page ended. */
static void enter_partition(struct select_state *run, struct slice key, bool again, uint64_t given) {
    bool same = run->as_keyspaces && run->partition_open && slice_eq(key, buf_slice(&run->key));
    run->rows_seen = again;
    if (!same) run->given = given;
    run->partition_open = true;
}

/* ---- one row ---- */

/* 1: visible; 0: not, and *out is the row that has expired, or NULL. */
static int get_row(struct select_state *run, const struct eng_part *part, struct slice ck, struct eng_row **out) {
    struct cql_request *r = run->r;
    struct eng *eng = r->db->options.eng;
    uint64_t dead = r->cost->tombstones;
    *out = ARENA_NEW(r->arena, struct eng_row);
    if (!*out) return err_nomem(r->err);
    int rc = eng_row_get(eng, tier(r), part, ENG_ROW, ck, now_seconds(r), r->arena, *out, r->cost, r->err);
    if (rc) return rc;
    /* Counted already: what it passed is looked at once more, as it was before it expired. */
    int stored = r->cost->tombstones == dead ? 0 : eng_row_get(eng, tier(r), part, ENG_ROW, ck, ENG_NEVER_EXPIRES, r->arena, *out, NULL, r->err);
    if (stored == 0) *out = NULL;
    return stored < 0 ? stored : 0;
}

int select_read_point(struct select_state *run, const struct eng_part *part, struct slice ck) {
    struct cql_request *r = run->r;
    struct eng_row *statics = NULL, *row = NULL;
    if (run->plan->wants_statics) {
        statics = ARENA_NEW(r->arena, struct eng_row);
        if (!statics) return err_nomem(r->err);
        int rc = eng_row_get(r->db->options.eng, tier(r), part, ENG_STATIC, slice_of("", 0), now_seconds(r), r->arena, statics, r->cost, r->err);
        if (rc < 0) return rc;
        if (rc == 0) statics = NULL;
    }
    int visible = get_row(run, part, ck, &row);
    if (visible < 0) return visible;
    if (select_read_new(run)) return -1;
    enter_partition(run, part->key, false, 0);
    if (select_out_partition(run, part->key, statics)) return -1;
    if (visible) return select_out_row(run, row);
    if (row && select_out_expired(run, row)) return -1;
    return statics && run->plan->static_only_rows ? select_out_row(run, NULL) : 0;
}

/* ---- scans ---- */

uint32_t select_quarter(int64_t token) { return (uint32_t)(((uint64_t)token ^ (uint64_t)1 << 63) >> 62); }

/* The partition that ends had nothing but static values. */
static int end_partition(struct select_state *run, bool open, bool has_static) {
    if (!open || !has_static || run->rows_seen || !run->plan->static_only_rows) return 0;
    return select_out_row(run, NULL);
}

/* Static values are looked at once more when the partition turns out to have no rows, and then the scan is past them. */
static int keep_statics(struct select_state *run, const struct eng_row *from, struct eng_row *out) {
    struct arena *a = run->r->arena;
    arena_rewind(a, run->partition_mark);
    *out = *from;
    out->cells = ARENA_ARRAY(a, from->n_cells + 1, struct eng_cell);
    if (!out->cells) return err_nomem(run->r->err);
    for (uint32_t i = 0; i < from->n_cells; i++) {
        struct eng_cell *c = &out->cells[i];
        *c = from->cells[i];
        if (c->path.n) c->path = arena_dup(a, c->path);
        if (c->value.n) c->value = arena_dup(a, c->value);
        if ((c->path.n && !c->path.p) || (c->value.n && !c->value.p)) return err_nomem(run->r->err);
    }
    run->view.mark = arena_mark(a);
    return 0;
}

static int start_partition(struct select_state *run, const struct eng_item *item, struct eng_row *statics, const struct paging_state *resume) {
    if (item->has_static && keep_statics(run, &item->statics, statics)) return -1;
    bool again = resume && resume->ck.p && slice_eq(resume->key, item->part.key);
    enter_partition(run, item->part.key, again, again ? resume->given : 0);
    return select_out_partition(run, item->part.key, item->has_static ? statics : NULL);
}

/* Pulls a scan dry, or until the page or the result is complete. 1: opened anew behind the partition is wanted. */
static int pull(struct select_state *run, struct eng_scan *scan, const struct paging_state *resume, struct quarters *q, bool one_partition) {
    struct eng_item item;
    struct eng_row statics;
    bool open = false, has_static = false;
    uint64_t passed = 0;
    int rc;
    while (!run->page_full && !run->done && (rc = eng_scan_next(scan, &item, run->r->err)) != 0) {
        if (rc < 0) return rc;
        if (item.kind == ENG_ITEM_PARTITION) {
            if (end_partition(run, open, has_static)) return -1;
            if (run->page_full || run->done) return 0;
            open = true;
            passed = 0;
            has_static = item.has_static;
            if (q) q->seen |= 1u << select_quarter(item.part.token);
            if (start_partition(run, &item, &statics, resume)) return -1;
            continue;
        }
        if (run->partition_done) {
            if (one_partition) return 0;
            if (++passed > SKIP_AFTER) return 1;
            continue;
        }
        if (item.kind == ENG_ITEM_EXPIRED ? select_out_expired(run, &item.row) : select_out_row(run, &item.row)) return -1;
    }
    if (run->page_full || run->done) return 0;
    return end_partition(run, open, has_static);
}

int select_read_scan(struct select_state *run, struct eng_scan_spec *spec, const struct paging_state *resume, struct quarters *q) {
    struct cql_request *r = run->r;
    spec->table = run->plan->table->storage;
    spec->reverse = run->plan->reversed;
    spec->statics = run->plan->wants_statics;
    spec->rows = spec->expired = true;
    spec->now = now_seconds(r);
    if (resume) {
        spec->resume_key = resume->key;
        spec->resume_ck = resume->ck;
        spec->resume_skip = !resume->ck.p && !resume->before;
    }
    int rc;
    do {
        struct eng_scan *s = eng_scan_open(r->db->options.eng, tier(r), spec, r->cost, r->err);
        if (!s) return -1;
        rc = pull(run, s, resume, q, spec->part != NULL);
        eng_scan_close(s);
        if (rc != 1) break;
        spec->resume_key = arena_dup(r->arena, buf_slice(&run->key));
        run->view.mark = run->partition_mark = arena_mark(r->arena);
        spec->resume_ck = (struct slice){0};
        spec->resume_skip = true;
        if (!spec->resume_key.p) return err_nomem(r->err);
    } while (rc == 1);
    return rc;
}

int select_read_bound(struct select_state *run, const struct eng_part *part, const struct eng_slice *bound) {
    struct cql_request *r = run->r;
    struct eng_scan_spec spec = {.table = run->plan->table->storage, .part = part, .slices = bound, .n_slices = 1, .rows = true, .expired = true,
                                 .now = now_seconds(r)};
    struct eng_scan *s = eng_scan_open(r->db->options.eng, tier(r), &spec, r->cost, r->err);
    if (!s) return -1;
    struct eng_item item = {.kind = ENG_ITEM_PARTITION};
    int rc = 1;
    while (rc == 1 && item.kind == ENG_ITEM_PARTITION) rc = eng_scan_next(s, &item, r->err);
    if (rc == 1) rc = select_out_partition(run, part->key, NULL) || select_out_bound(run, &item.row) ? -1 : 0;
    eng_scan_close(s);
    return rc;
}
