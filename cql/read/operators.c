/* The operators that keep little or nothing between two batches, and the sort (read.h). */
#include "cql/read/read.h"

#include <stdlib.h>

#include "cql/read/select.h"

/* ---- filter ---- */

enum read_pull row_filter_next(struct read_op *op, struct read_batch *batch) {
    struct row_filter *f = (struct row_filter *)op;
    struct read_source *s = f->source;
    uint32_t most = batch->most, n = 0;
    while (n == 0) {
        /* as many as the partition may still yield */
        batch->most = f->first_only ? 1 : most;
        if (!f->first_only && f->counts && s->partition_limit != UINT64_MAX) {
            uint64_t left = s->given < s->partition_limit ? s->partition_limit - s->given : 1;
            if (left < most) batch->most = (uint32_t)left;
        }
        enum read_pull pull = read_next(f->below, batch);
        if (pull != READ_ROWS) return pull;
        for (uint32_t i = 0; i < batch->n; i++) {
            if (f->filters && !where_filters_match(f->filters, batch->values[i])) continue;
            batch->values[n] = batch->values[i];
            batch->out[n++] = batch->out[i];
        }
        if (s->read) s->read->filtered += batch->n - n;
    }
    batch->n = n;
    if (f->counts) s->given += n;
    if (f->first_only || (f->counts && s->given >= s->partition_limit)) s->skip_partition = true;
    return READ_ROWS;
}

/* ---- project ---- */

static int make_json(struct row_project *p, const struct value *values, struct value *json) {
    const struct select_plan *plan = p->plan;
    struct buf b;
    int rc = 0;
    buf_init(&b, 0);
    buf_u8(&b, '{');
    for (uint32_t i = 0; i < plan->list.n && !rc; i++) {
        if (i) buf_put_str(&b, ", ");
        buf_json_str(&b, slice_str(plan->list.json_names[i]));
        buf_put_str(&b, ": ");
        const struct cql_type *type = plan->list.terms[i]->type;
        if (value_is_null(values[i])) buf_put_str(&b, "null");
        else if (cql_type_has_json(type)) cql_value_json(type, values[i], &b);
        else rc = err_set(p->r->err, ERR_SERVER, "java.lang.UnsupportedOperationException");
    }
    buf_u8(&b, '}');
    struct slice s = buf_failed(&b) ? (struct slice){0} : arena_dup(p->r->arena, buf_slice(&b));
    buf_fini(&b);
    *json = value_of_slice(s);
    return rc ? rc : s.p ? 0 : err_nomem(p->r->err);
}

static enum read_pull project_next(struct read_op *op, struct read_batch *batch) {
    struct row_project *p = (struct row_project *)op;
    const struct select_plan *plan = p->plan;
    enum read_pull pull = read_next(p->below, batch);
    if (pull != READ_ROWS) return pull;
    for (uint32_t i = 0; i < batch->n; i++) {
        struct value *restrict out = p->out + (size_t)i * plan->list.n;
        const struct value *values = batch->values[i];
        struct term_context c = {.ev = &p->r->eval, .view = batch->view, .values = values,
                                 .aggregates = batch->aggregates, .latched = batch->latched};
        if (plan->list.ordinals && values) { /* columns as they are */
            for (uint32_t k = 0, n = plan->list.n; k < n; k++) out[k] = values[plan->list.ordinals[k]];
        } else {
            for (uint32_t k = 0; k < plan->list.n; k++)
                if (term_eval_in(plan->list.terms[k], &c, &out[k])) return READ_FAILED;
        }
        if (plan->list.json && make_json(p, out, &p->json[i])) return READ_FAILED;
        batch->out[i] = plan->list.json ? &p->json[i] : out;
    }
    return READ_ROWS;
}

int row_project_init(struct row_project *p, struct read_op *below, struct cql_run *r, const struct select_plan *plan,
                     uint32_t rows) {
    *p = (struct row_project){.op = {project_next}, .below = below, .r = r, .plan = plan};
    p->out = arena_alloc(r->arena, ((size_t)rows * plan->list.n + 1) * sizeof(*p->out));
    if (plan->list.json) p->json = ARENA_ARRAY(r->arena, rows, struct value);
    return p->out && (p->json || !plan->list.json) ? 0 : err_nomem(r->err);
}

/* ---- order ---- */

enum { KEEP_CHUNK = 16 << 10, KEEP_MAX = 64 << 20 };

struct sorted_row {
    struct slice key; /* of the columns named, in key form */
    size_t arrival;
    struct value *out;
};

static int too_large(const struct row_order *o) {
    return err_set(o->r->err, ERR_SERVER, "ORDER BY over several partitions has more than %d MB of rows to sort",
                   KEEP_MAX >> 20);
}

static int keep_row(struct row_order *o, const struct value *values, const struct value *out) {
    const struct schema_table *t = o->plan->table;
    uint32_t n = o->plan->list.json ? 1 : o->plan->list.n;
    if (o->n == o->cap) {
        size_t cap = o->cap ? o->cap * 2 : 64;
        struct sorted_row *rows = realloc(o->rows, cap * sizeof(*rows));
        if (!rows) return err_nomem(o->r->err);
        o->rows = rows;
        o->cap = cap;
    }
    struct sorted_row *kept = &o->rows[o->n];
    *kept = (struct sorted_row){.arrival = o->n, .out = ARENA_ARRAY(&o->keep, n + 1, struct value)};
    if (!kept->out) return too_large(o);
    for (uint32_t i = 0; i < n; i++) {
        kept->out[i] = out[i];
        if (kept->out[i].n <= 0) continue;
        kept->out[i].p = arena_dup(&o->keep, value_slice(out[i])).p;
        if (!kept->out[i].p) return too_large(o);
    }
    struct buf key;
    bool exact = true;
    int rc = 0;
    buf_init(&key, 0);
    for (uint32_t i = 0; rc == 0 && i < o->plan->order.n; i++) {
        const struct schema_column *c = schema_clustering(t, i);
        const struct value v = values[t->n_partition_key + i];
        if (value_is_null(v)) break;
        rc = cql_key_encode(c->type, c->desc, value_slice(v), &key, &exact, o->r->err);
    }
    if (rc == 0 && buf_failed(&key)) rc = err_nomem(o->r->err);
    if (rc == 0) kept->key = arena_dup(&o->keep, buf_slice(&key));
    if (rc == 0 && !kept->key.p) rc = too_large(o);
    buf_fini(&key);
    o->n += rc == 0;
    return rc;
}

/* Equal keys keep the order of their arrival: qsort is not stable. */
static int by_key(const void *a, const void *b, void *reversed) {
    const struct sorted_row *x = a, *y = b;
    int order = *(const bool *)reversed ? slice_cmp(y->key, x->key) : slice_cmp(x->key, y->key);
    return order ? order : (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

static enum read_pull order_next(struct read_op *op, struct read_batch *batch) {
    struct row_order *o = (struct row_order *)op;
    uint32_t most = batch->most;
    if (!o->sorted) {
        enum read_pull pull;
        bool reversed = o->plan->order.reversed;
        batch->most = READ_BATCH;
        while ((pull = read_next(o->below, batch)) == READ_ROWS)
            for (uint32_t i = 0; i < batch->n; i++)
                if (keep_row(o, batch->values[i], batch->out[i])) return READ_FAILED;
        if (pull != READ_END) return pull;
        if (o->n) qsort_r(o->rows, o->n, sizeof(*o->rows), by_key, &reversed);
        o->sorted = true;
    }
    for (batch->n = 0; batch->n < most && o->at < o->n; batch->n++) batch->out[batch->n] = o->rows[o->at++].out;
    return batch->n ? READ_ROWS : READ_END;
}

void row_order_init(struct row_order *o, struct read_op *below, struct cql_run *r, const struct select_plan *plan) {
    *o = (struct row_order){.op = {order_next}, .below = below, .r = r, .plan = plan};
    arena_init_in(&o->keep, r->arena->share, KEEP_CHUNK, KEEP_MAX);
}

void row_order_fini(struct row_order *o) {
    arena_fini(&o->keep);
    free(o->rows);
}
