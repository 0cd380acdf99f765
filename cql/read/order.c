#include "cql/read/order.h"

#include <stdlib.h>

#include "cql/read/select.h"

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

static int make_key(struct row_order *o, const struct value *values, struct slice *out) {
    const struct schema_table *t = o->plan->table;
    struct buf b;
    bool exact = true;
    int rc = 0;
    buf_init(&b, 0);
    for (uint32_t i = 0; rc == 0 && i < o->plan->n_order; i++) {
        const struct schema_column *c = schema_clustering(t, i);
        const struct value v = values[t->n_partition_key + i];
        if (value_is_null(v)) break;
        rc = cql_key_encode(c->type, c->desc, value_slice(v), &b, &exact, o->r->err);
    }
    if (rc == 0 && buf_failed(&b)) rc = err_nomem(o->r->err);
    if (rc == 0) *out = arena_dup(&o->keep, buf_slice(&b));
    if (rc == 0 && !out->p) rc = too_large(o);
    buf_fini(&b);
    return rc;
}

static int keep_row(struct row_order *o, const struct value *values, const struct value *out) {
    if (o->n == o->cap) {
        size_t cap = o->cap ? o->cap * 2 : 64;
        struct sorted_row *rows = realloc(o->rows, cap * sizeof(*rows));
        if (!rows) return err_nomem(o->r->err);
        o->rows = rows;
        o->cap = cap;
    }
    uint32_t n = o->plan->json ? 1 : o->plan->n_selectors;
    struct sorted_row *kept = &o->rows[o->n];
    *kept = (struct sorted_row){.arrival = o->n, .out = ARENA_ARRAY(&o->keep, n + 1, struct value)};
    if (!kept->out) return too_large(o);
    for (uint32_t i = 0; i < n; i++) {
        kept->out[i] = out[i];
        if (kept->out[i].n <= 0) continue;
        kept->out[i].p = arena_dup(&o->keep, value_slice(out[i])).p;
        if (!kept->out[i].p) return too_large(o);
    }
    if (make_key(o, values, &kept->key)) return -1;
    o->n++;
    return 0;
}

/* qsort is not stable. */
static int compare(const struct sorted_row *x, const struct sorted_row *y, int by_key) {
    return by_key ? by_key : (x->arrival > y->arrival) - (x->arrival < y->arrival);
}
static int forward(const void *a, const void *b) {
    const struct sorted_row *x = a, *y = b;
    return compare(x, y, slice_cmp(x->key, y->key));
}
static int reverse(const void *a, const void *b) {
    const struct sorted_row *x = a, *y = b;
    return compare(x, y, slice_cmp(y->key, x->key));
}

static enum read_pull sort_all(struct row_order *o, struct read_batch *batch) {
    enum read_pull pull;
    batch->most = READ_BATCH;
    while ((pull = read_next(o->below, batch)) == READ_ROWS)
        for (uint32_t i = 0; i < batch->n; i++)
            if (keep_row(o, batch->values[i], batch->out[i])) return READ_FAILED;
    if (pull != READ_END) return pull;
    if (o->n) qsort(o->rows, o->n, sizeof(*o->rows), o->plan->reversed ? reverse : forward);
    o->sorted = true;
    return READ_END;
}

static enum read_pull next(struct read_op *op, struct read_batch *batch) {
    struct row_order *o = (struct row_order *)op;
    uint32_t most = batch->most;
    enum read_pull pull = o->sorted ? READ_END : sort_all(o, batch);
    if (!o->sorted) return pull;
    for (batch->n = 0; batch->n < most && o->at < o->n; batch->n++) batch->out[batch->n] = o->rows[o->at++].out;
    return batch->n ? READ_ROWS : READ_END;
}

void row_order_init(struct row_order *o, struct read_op *below, struct cql_run *r, const struct select_plan *plan) {
    *o = (struct row_order){.op = {next}, .below = below, .r = r, .plan = plan};
    arena_init_in(&o->keep, r->arena->share, KEEP_CHUNK, KEEP_MAX);
}

void row_order_fini(struct row_order *o) {
    arena_fini(&o->keep);
    free(o->rows);
}
