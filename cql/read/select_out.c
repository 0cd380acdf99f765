/* SELECT: from the rows a run passes to the rows of the result. */
#include <stdlib.h>

#include "cql/request/request.h"
#include "cql/request/db.h"
#include "cql/row/row_size.h"
#include "cql/read/select.h"
#include "metering/size/size.h"

enum { KEEP_CHUNK = 4096, KEEP_MAX = 64 << 20 };

/* Rows to be sorted at the end: ORDER BY over the partitions of an IN. */
struct sorted_row {
    struct slice ck;
    size_t arrival;
    struct value *values;
};
struct sorted_rows {
    size_t n, cap;
    struct sorted_row *rows;
};

int select_out_begin(struct select_state *run) {
    const struct select_plan *p = run->plan;
    struct arena *a = run->r->arena;
    arena_init(&run->keep, KEEP_CHUNK, KEEP_MAX);
    buf_init(&run->key, 0);
    buf_init(&run->ck, 0);
    buf_init(&run->group_key, 0);
    run->out = ARENA_ARRAY(a, p->n_selectors + 1, struct value);
    run->aggregates = p->n_aggregates ? aggregates_new(a, p->n_aggregates) : NULL;
    run->times = ARENA_ARRAY(a, p->n_latches + 1, struct value);
    if (!run->out || !run->times || (p->n_aggregates && !run->aggregates)) return err_nomem(run->r->err);
    for (uint32_t i = 0; i < p->n_latches; i++) run->times[i] = value_null();
    run->latched = run->times;
    bool several = p->where->partition_in || (run->as_keyspaces && p->where->clustering_in);
    if (p->ordered && several && !p->n_aggregates && !p->grouped) {
        run->sorted = ARENA_NEW(a, struct sorted_rows);
        if (!run->sorted) return err_nomem(run->r->err);
    }
    if (p->where->n_filters && !(run->filters = where_filters_bind(p->where, run->r))) return -1;
    run->read_start = run->r->cost->bytes_read;
    return row_view_init(&run->view, p->layout, a, run->r->err);
}

void select_out_fini(struct select_state *run) {
    if (run->sorted) free(run->sorted->rows);
    aggregates_fini(run->aggregates, run->plan->n_aggregates);
    buf_fini(&run->key);
    buf_fini(&run->ck);
    buf_fini(&run->group_key);
    arena_fini(&run->keep);
}

/* ---- what is charged ---- */

static uint64_t page_bytes(const struct select_state *run) {
    const struct op_cost *c = run->r->cost;
    return run->earlier_bytes + size_row_bytes(c->size_model, c->n_columns, &run->read->rows) + size_static_bytes(&run->read->statics);
}

/* Adds the row that the view is at to what was read (NULL: the static values were added already). False: it does not fit the page, which
 * ends before it, and it has not been read. */
static bool charge_row(struct select_state *run, const struct eng_row *row) {
    struct op_cost *c = run->r->cost;
    struct size_parts before = run->read->rows;
    if (row) row_size_add(&run->read->rows, c->size_model, &run->view);
    bool full = run->as_keyspaces && run->paged && run->page_rows;
    if (full && (run->page_left == 0 || page_bytes(run) > PAGE_BYTES)) {
        run->read->rows = before;
        c->rows_read = run->rows_read;
        c->bytes_read = run->bytes_read;
        run->page_full = true;
        run->before = !run->in_row;
        return false;
    }
    run->page_rows++;
    run->rows_read = c->rows_read;
    run->bytes_read = c->bytes_read;
    return true;
}

static int note_place(struct select_state *run, const struct eng_row *row) {
    run->in_row = row != NULL;
    if (!row) return 0;
    buf_clear(&run->ck, 1 << 16);
    buf_put_slice(&run->ck, row->ck);
    return buf_failed(&run->ck) ? err_nomem(run->r->err) : 0;
}

int select_out_partition(struct select_state *run, struct slice key, const struct eng_row *statics) {
    run->partition_done = false;
    run->in_row = false;
    buf_clear(&run->key, 1 << 16);
    buf_put_slice(&run->key, key);
    if (buf_failed(&run->key)) return err_nomem(run->r->err);
    struct err *e = run->r->err;
    if (row_view_partition(&run->view, buf_slice(&run->key), statics, e)) return -1;
    if (!statics || !run->plan->wants_statics || !run->read) return 0;
    if (row_view_row(&run->view, NULL, e)) return -1;
    row_size_add_static(&run->read->statics, &run->view);
    return 0;
}

int select_out_done(struct select_state *run, struct slice key) {
    run->in_row = run->before = false;
    buf_clear(&run->key, 1 << 16);
    buf_put_slice(&run->key, key);
    return buf_failed(&run->key) ? err_nomem(run->r->err) : 0;
}

/* ---- result rows ---- */

static int send(struct select_state *run, const struct value *values) {
    struct cql_request *r = run->r;
    r->cost->rows_returned++;
    if (r->sink->row(r->sink, values) == 0) return 0;
    return r->err->set ? -1 : err_set(r->err, ERR_SERVER, "The response is larger than a frame may be");
}

static int make_json_row(struct select_state *run, struct value *out) {
    const struct select_plan *p = run->plan;
    struct buf b;
    buf_init(&b, 0);
    buf_u8(&b, '{');
    for (uint32_t i = 0; i < p->n_selectors; i++) {
        if (i) buf_put_str(&b, ", ");
        buf_json_str(&b, slice_str(p->json_names[i]));
        buf_put_str(&b, ": ");
        if (value_is_null(run->out[i])) buf_put_str(&b, "null");
        else cql_value_json(p->selectors[i]->type, run->out[i], &b);
    }
    buf_u8(&b, '}');
    struct slice s = buf_failed(&b) ? (struct slice){0} : arena_dup(run->r->arena, buf_slice(&b));
    buf_fini(&b);
    *out = value_of_slice(s);
    return s.p ? 0 : err_nomem(run->r->err);
}

/* Copies values to where they outlive their row. */
static struct value *keep_values(struct select_state *run, const struct value *values, uint32_t n) {
    struct value *out = ARENA_ARRAY(&run->keep, n + 1, struct value);
    for (uint32_t i = 0; out && i < n; i++) {
        out[i] = values[i];
        if (values[i].n <= 0) continue;
        out[i].p = arena_dup(&run->keep, value_slice(values[i])).p;
        if (!out[i].p) out = NULL;
    }
    if (!out) err_nomem(run->r->err);
    return out;
}

static int keep_sorted(struct select_state *run, const struct value *values, uint32_t n) {
    struct sorted_rows *all = run->sorted;
    struct err *e = run->r->err;
    if (all->n == all->cap) {
        size_t cap = all->cap ? all->cap * 2 : 64;
        struct sorted_row *rows = realloc(all->rows, cap * sizeof(*rows));
        if (!rows) return err_nomem(e);
        all->rows = rows;
        all->cap = cap;
    }
    struct sorted_row *row = &all->rows[all->n];
    row->arrival = all->n;
    row->ck = arena_dup(&run->keep, buf_slice(&run->ck));
    row->values = row->ck.p ? keep_values(run, values, n) : NULL;
    if (!row->values) return row->ck.p ? -1 : err_nomem(e);
    all->n++;
    return 0;
}

static void count_result_row(struct select_state *run) {
    if (run->has_limit && --run->limit_left == 0) {
        run->limit_reached = true;
        run->done = !run->count_read_rows;
    }
    if (!run->count_read_rows && run->page_left != UINT64_MAX && --run->page_left == 0) run->page_full = true;
}

/* Evaluates the select list on the row that the view is at, or on what a group kept of its first row. */
static int project(struct select_state *run, const struct selector_context *c) {
    const struct select_plan *p = run->plan;
    if (run->skip) {
        run->skip--;
        return 0;
    }
    if (p->table->virt) run->partition++;
    for (uint32_t i = 0; i < p->n_selectors; i++)
        if (selector_eval(p->selectors[i], c, &run->out[i])) return -1;
    struct value json, *out = run->out;
    if (p->json) {
        if (make_json_row(run, &json)) return -1;
        out = &json;
    }
    if (run->sorted) return keep_sorted(run, out, p->json ? 1 : p->n_selectors);
    if (send(run, out)) return -1;
    count_result_row(run);
    return 0;
}

/* ---- groups ---- */

/* The row that the view is at; virtual tables have values only. */
static struct selector_context context_of_row(struct select_state *run) {
    return (struct selector_context){.r = run->r, .view = run->view.row || run->view.statics ? &run->view : NULL, .values = run->view.values};
}

/* An aggregate of nothing has a group without a row. */
static int close_group(struct select_state *run) {
    if (!run->group_open && run->plan->grouped) return 0;
    run->group_open = false;
    struct selector_context c = {.r = run->r, .values = run->first, .latched = run->latched, .aggregates = run->aggregates};
    if (project(run, &c)) return -1;
    aggregates_clear(run->aggregates, run->plan->n_aggregates);
    return 0;
}

static int open_group(struct select_state *run) {
    const struct select_plan *p = run->plan;
    struct selector_context c = context_of_row(run);
    arena_reset(&run->keep);
    run->first = keep_values(run, run->view.values, p->table->n_columns);
    if (!run->first || selector_latch_all(p->latches, &c, run->times)) return -1;
    run->latched = keep_values(run, run->times, p->n_latches);
    if (!run->latched) return -1;
    run->group_open = true;
    return 0;
}

static int same_group(struct select_state *run, bool *same) {
    struct buf b;
    buf_init(&b, 0);
    for (uint32_t i = 0; i < run->plan->n_group; i++) cql_elem_put(run->view.values[i], &b);
    *same = run->group_open && slice_eq(buf_slice(&b), buf_slice(&run->group_key));
    bool failed = buf_failed(&b);
    buf_fini(&run->group_key);
    run->group_key = b;
    return failed ? err_nomem(run->r->err) : 0;
}

static int add_to_group(struct select_state *run) {
    bool same;
    if (same_group(run, &same)) return -1;
    if (run->group_open && !same && close_group(run)) return -1;
    if (run->done) return 0;
    if (!run->group_open) {
        if (run->partition_limit && run->given >= run->partition_limit) {
            run->partition_done = true;
            return 0;
        }
        run->given++;
        if (open_group(run)) return -1;
    }
    struct selector_context c = context_of_row(run);
    for (uint32_t i = 0; i < run->plan->n_aggregates; i++) {
        if (selector_add(run->aggregates, run->plan->aggregates[i], &c)) return -1;
    }
    return 0;
}

/* ---- rows ---- */

int select_out_values(struct select_state *run) {
    const struct select_plan *p = run->plan;
    if (run->filters && !where_filters_match(run->filters, &run->view)) {
        if (run->read) run->read->filtered++;
        return 0;
    }
    if (p->distinct && run->given) {
        run->partition_done = true;
        return 0;
    }
    if (p->n_aggregates || p->grouped) return add_to_group(run);
    run->given++;
    if ((run->partition_limit && run->given >= run->partition_limit) || p->distinct) run->partition_done = true;
    struct selector_context c = context_of_row(run);
    return project(run, &c);
}

static void count_read_row(struct select_state *run) {
    if (!run->paged) return;
    if (run->count_read_rows && run->page_left != UINT64_MAX) run->page_left--;
    if (!run->as_keyspaces && run->r->cost->bytes_read - run->read_start >= PAGE_BYTES) run->page_full = true;
}

int select_out_row(struct select_state *run, const struct eng_row *row) {
    if (run->partition_done || (run->partition_limit && !run->plan->grouped && run->given >= run->partition_limit)) {
        run->rows_seen++;
        run->partition_done = true;
        return 0;
    }
    if (row_view_row(&run->view, row, run->r->err)) return -1;
    if (!charge_row(run, row)) return 0;
    run->rows_seen++;
    if (note_place(run, row)) return -1;
    if (!run->limit_reached) {
        if (select_out_values(run)) return -1;
    } else {
        run->read->past_limit++;
    }
    count_read_row(run);
    return 0;
}

int select_out_expired(struct select_state *run, const struct eng_row *row) {
    if (row_view_row(&run->view, row, run->r->err)) return -1;
    if (!charge_row(run, row)) return 0;
    run->read->expired++;
    return note_place(run, row);
}

int select_out_bound(struct select_state *run, const struct eng_row *row) {
    if (row_view_row(&run->view, row, run->r->err)) return -1;
    row_size_add(&run->read->rows, run->r->cost->size_model, &run->view);
    run->read->at_bound++;
    return 0;
}

/* Equal keys of different partitions stay in the order they came in; qsort is not stable. */
static int compare_sorted(const void *a, const void *b) {
    const struct sorted_row *x = a, *y = b;
    int c = slice_cmp(x->ck, y->ck);
    return c ? c : (x->arrival > y->arrival) - (x->arrival < y->arrival);
}
static int compare_reversed(const void *a, const void *b) {
    const struct sorted_row *x = a, *y = b;
    int c = slice_cmp(y->ck, x->ck);
    return c ? c : (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

static int send_sorted(struct select_state *run) {
    struct sorted_rows *all = run->sorted;
    qsort(all->rows, all->n, sizeof(*all->rows), run->plan->reversed ? compare_reversed : compare_sorted);
    for (size_t i = 0; i < all->n && !run->done && !run->limit_reached; i++) {
        if (send(run, all->rows[i].values)) return -1;
        count_result_row(run);
    }
    return 0;
}

int select_out_end(struct select_state *run) {
    const struct select_plan *p = run->plan;
    struct cql_request *r = run->r;
    if (run->sorted && run->sorted->n && send_sorted(run)) return -1;
    if ((p->n_aggregates || p->grouped) && !run->done && close_group(run)) return -1;
    r->result.kind = RESULT_ROWS;
    r->result.meta = &run->s->result;
    if (!run->page_full || run->done || run->limit_reached || (run->sorted && !run->as_keyspaces)) return 0;
    struct paging_state state = {.has_limit = run->has_limit, .limit_left = run->limit_left, .given = run->given, .partition = run->partition,
                                 .key = buf_slice(&run->key), .before = run->before, .ck = run->in_row ? buf_slice(&run->ck) : (struct slice){0}};
    return paging_encode(&state, p->salt, r->arena, &r->result.paging_state, r->err);
}
