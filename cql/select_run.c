/* SELECT: a plan and bound values to reads of the engine. */
#include "base/murmur3.h"
#include "cql/cql.h"
#include "cql/db.h"
#include "cql/select.h"

enum { SKIP_AFTER = 16 }; /* rows of a partition that is done are passed over so long before the scan is opened anew behind it */

static enum eng_tier tier(const struct cql_request *r) { return r->blocking ? ENG_TIER_ANY : ENG_TIER_CACHE; }

static int64_t now_seconds(const struct cql_request *r) { return r->params.has_now ? r->params.now_seconds : r->now_us / 1000000; }

static int new_read(struct select_state *run) {
    run->read = op_cost_read(run->r->cost);
    /* The cost may live in the arena that rows are rewound in. */
    run->view.mark = run->partition_mark = arena_mark(run->r->arena);
    return run->read ? 0 : err_nomem(run->r->err);
}

/* ---- one row ---- */

static int read_point(struct select_state *run, const struct eng_part *part, struct slice ck) {
    struct cql_request *r = run->r;
    struct eng *eng = r->db->options.eng;
    struct eng_row *statics = NULL, *row = NULL;
    if (run->plan->wants_statics) {
        statics = ARENA_NEW(r->arena, struct eng_row);
        if (!statics) return err_nomem(r->err);
        int rc = eng_row_get(eng, tier(r), part, ENG_STATIC, slice_of("", 0), now_seconds(r), r->arena, statics, r->cost, r->err);
        if (rc < 0) return rc;
        if (rc == 0) statics = NULL;
    }
    row = ARENA_NEW(r->arena, struct eng_row);
    if (!row) return err_nomem(r->err);
    int rc = eng_row_get(eng, tier(r), part, ENG_ROW, ck, now_seconds(r), r->arena, row, r->cost, r->err);
    if (rc < 0) return rc;
    if (rc == 0) row = NULL;
    if (new_read(run)) return -1;
    run->given = run->rows_seen = 0;
    if (select_out_partition(run, part->key, statics)) return -1;
    if (row) return select_out_row(run, row);
    return statics && run->plan->static_only_rows ? select_out_row(run, NULL) : 0;
}

/* ---- scans ---- */

/* The partition that ends had nothing but static values. */
static int end_partition(struct select_state *run, bool open, bool has_static) {
    if (!open || !has_static || run->rows_seen || !run->plan->static_only_rows) return 0;
    return select_out_row(run, NULL);
}

struct quarters { /* of the token ring: a new table has four storage partitions, and a scan pays for empty ones */
    uint32_t first, seen;
};
static uint32_t quarter_of(int64_t token) { return (uint32_t)(((uint64_t)token ^ (uint64_t)1 << 63) >> 62); }

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
    run->rows_seen = again ? 1 : 0;
    run->given = again ? resume->given : 0;
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
            if (q) q->seen |= 1u << quarter_of(item.part.token);
            if (start_partition(run, &item, &statics, resume)) return -1;
            continue;
        }
        if (run->partition_done) {
            if (one_partition) return 0;
            if (++passed > SKIP_AFTER) return 1;
            continue;
        }
        if (select_out_row(run, &item.row)) return -1;
    }
    if (run->page_full || run->done) return 0;
    return end_partition(run, open, has_static);
}

static int scan(struct select_state *run, struct eng_scan_spec *spec, const struct paging_state *resume, struct quarters *q) {
    struct cql_request *r = run->r;
    spec->table = run->plan->table->storage;
    spec->reverse = run->plan->reversed;
    spec->statics = run->plan->wants_statics;
    spec->rows = true;
    spec->now = now_seconds(r);
    if (resume) {
        spec->resume_key = resume->key;
        spec->resume_ck = resume->ck;
        spec->resume_skip = !resume->ck.p;
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

/* ---- partitions by key ---- */

struct key_plan {
    struct eng_part *parts;
    struct row_key *keys;
    struct eng_slice *slices;
    uint32_t n_parts, n_keys, n_slices;
    bool whole; /* no restriction on rows */
};

static int eval_keys(struct select_state *run, struct key_plan *k) {
    const struct where_plan *w = run->plan->where;
    struct cql_request *r = run->r;
    bool sorted = r->db->options.mode == MODE_CASSANDRA;
    if (where_parts(w, r, sorted, &k->parts, &k->n_parts)) return -1;
    k->whole = w->rows == WHERE_ALL_ROWS;
    if (k->whole) return 0;
    if (w->rows == WHERE_ROW_KEYS && where_row_keys(w, r, &k->keys, &k->n_keys)) return -1;
    if (k->n_keys == 1) return 0;
    return where_slices(w, r, &k->slices, &k->n_slices);
}

static int read_part(struct select_state *run, const struct key_plan *k, const struct eng_part *part, const struct paging_state *resume) {
    if (k->n_keys == 1 && !run->plan->distinct) return read_point(run, part, k->keys[0].ck);
    if (new_read(run)) return -1;
    if (!k->whole && k->n_slices == 0 && k->n_keys != 1) return 0;
    struct eng_slice one = {0};
    if (k->n_keys == 1) one = (struct eng_slice){.from = {.key = k->keys[0].ck}, .to = {.key = k->keys[0].ck, .after = true}};
    struct eng_scan_spec spec = {.part = part, .slices = k->n_keys == 1 ? &one : k->slices, .n_slices = k->n_keys == 1 ? 1 : k->n_slices};
    return scan(run, &spec, resume, NULL);
}

static int run_keys(struct select_state *run, const struct key_plan *k, const struct paging_state *resume) {
    uint32_t first = resume ? resume->partition : 0;
    if (k->n_parts == 1 && k->n_keys == 1) run->page_left = UINT64_MAX; /* one row is never followed by a page */
    if (resume && (first >= k->n_parts || !slice_eq(k->parts[first].key, resume->key)))
        return err_set(run->r->err, ERR_PROTOCOL, "Invalid value for the paging state");
    for (uint32_t i = first; i < k->n_parts && !run->page_full && !run->done; i++) {
        const struct paging_state *from = i == first ? resume : NULL;
        run->partition = i;
        if (from && (!from->ck.p || k->n_keys == 1)) continue; /* that partition is done */
        int rc = read_part(run, k, &k->parts[i], from);
        if (rc < 0) return rc;
    }
    return 0;
}

/* ---- ranges of tokens ---- */

static int run_tokens(struct select_state *run, int64_t from, int64_t to, const struct paging_state *resume) {
    struct quarters q = {.first = quarter_of(from)};
    struct eng_scan_spec spec = {.token_from = from, .token_to = to};
    bool whole = !run->plan->where->has_token;
    if (new_read(run)) return -1;
    if (resume) {
        struct eng_part part = {.token = murmur3_token(resume->key)};
        if (part.token < from || part.token > to) return err_set(run->r->err, ERR_PROTOCOL, "Invalid value for the paging state");
        q.first = quarter_of(part.token);
        q.seen = 1u << q.first;
    }
    int rc = scan(run, &spec, resume, whole ? &q : NULL);
    if (rc || !whole) return rc;
    uint32_t last = run->page_full || run->done ? quarter_of(murmur3_token(buf_slice(&run->key))) : 3;
    for (uint32_t i = q.first; i <= last; i++) run->r->cost->empty_partitions += !(q.seen & 1u << i);
    return 0;
}

/* ---- the run ---- */

static int eval_limit(struct cql_request *r, const struct term *t, uint64_t *out) {
    struct value v;
    if (term_eval(t, r, &v)) return -1;
    if (value_is_unset(v)) return 0;
    if (value_is_null(v)) return err_invalid(r->err, "Invalid null value of limit");
    if (v.n != 4 || (int32_t)load_u32(v.p) <= 0) return err_invalid(r->err, "LIMIT must be strictly positive");
    *out = load_u32(v.p);
    return 0;
}

static int eval_limits(struct select_state *run) {
    const struct select_plan *p = run->plan;
    struct cql_request *r = run->r;
    if (p->limit && eval_limit(r, p->limit, &run->limit_left)) return -1;
    run->has_limit = run->limit_left > 0;
    if (p->partition_limit && eval_limit(r, p->partition_limit, &run->partition_limit)) return -1;
    bool paged = r->params.page_size > 0 && !p->n_aggregates && !p->grouped;
    run->page_left = paged ? (uint64_t)r->params.page_size : UINT64_MAX;
    run->count_read_rows = paged && r->db->options.mode == MODE_KEYSPACES && p->where->n_filters && !p->table->virt;
    return 0;
}

/* Rows of several partitions are sorted at the end, so no page of them is known before. Fewer than a page need none. */
static int check_order(const struct select_state *run) {
    const struct select_plan *p = run->plan;
    struct cql_request *r = run->r;
    if (!p->ordered || !p->where->partition_in || r->params.page_size <= 0) return 0;
    if (!p->n_aggregates && !p->grouped && run->has_limit && run->limit_left <= (uint64_t)r->params.page_size) return 0;
    return err_invalid(r->err, "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either remove the "
                               "ORDER BY or the IN and sort client side, or disable paging for this query");
}

static enum query_class class_of(const struct select_plan *p) {
    if (p->where->partitions == WHERE_TOKENS) return p->where->has_token ? QUERY_PARTITION_RANGE : QUERY_TABLE_SCAN;
    return p->where->rows == WHERE_ROW_KEYS ? QUERY_POINT : QUERY_ROW_RANGE;
}

static int run_plan(struct select_state *run, const struct paging_state *resume) {
    struct cql_request *r = run->r;
    const struct select_plan *p = run->plan;
    struct key_plan keys = {0};
    int64_t from = 0, to = 0;
    int some = 1;
    bool by_key = p->where->partitions == WHERE_KEYS && !p->table->virt;
    if (by_key ? eval_keys(run, &keys) : (some = where_tokens(p->where, r, &from, &to)) < 0) return -1;
    if (check_order(run)) return -1;
    if (select_out_begin(run)) return -1;
    if (r->sink->begin(r->sink, &run->s->result))
        return r->err->set ? -1 : err_set(r->err, ERR_SERVER, "The response is larger than a frame may be");
    int rc = p->table->virt ? select_virtual(run) : by_key ? run_keys(run, &keys, resume) : some ? run_tokens(run, from, to, resume) : 0;
    return rc ? rc : select_out_end(run);
}

static void start_over(struct cql_request *r) {
    r->sink->restart(r->sink);
    *r->cost = (struct op_cost){.arena = r->cost->arena, .size_model = r->cost->size_model};
}

/* A long scan, or many reads in a row, must not hold the loop. */
static bool belongs_elsewhere(const struct cql_request *r, const struct select_plan *p) {
    if (r->blocking || p->table->virt) return false;
    if (p->where->partitions == WHERE_TOKENS || p->where->partition_in) return true;
    return p->where->rows != WHERE_ROW_KEYS && (r->params.page_size <= 0 || p->n_aggregates || p->grouped);
}

enum cql_outcome select_run(struct cql_request *r, const struct cql_statement *s) {
    struct select_state run = {.r = r, .s = s, .plan = s->plan};
    struct paging_state state;
    const struct paging_state *resume = NULL;
    if (belongs_elsewhere(r, run.plan)) return CQL_OFFLOAD;
    r->cost->is_read = true;
    op_cost_class(r->cost, class_of(run.plan));
    if (eval_limits(&run)) return CQL_FAILED;
    if (r->params.paging_state.p) {
        if (paging_decode(r->params.paging_state, run.plan->salt, &state, r->err)) return CQL_FAILED;
        resume = &state;
        run.has_limit = state.has_limit;
        run.limit_left = state.limit_left;
        if (run.plan->table->virt) run.skip = run.partition = state.partition;
        if (run.has_limit && run.limit_left == 0) run.done = true;
    }
    int rc = run_plan(&run, resume);
    select_out_fini(&run);
    if (rc == 0) return CQL_DONE;
    if (rc != ENG_INCOMPLETE) return CQL_FAILED;
    start_over(r);
    return CQL_OFFLOAD;
}
