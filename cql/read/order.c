#include "cql/read/operators.h"

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

/* Equal keys stay in the order of their arrival: qsort is not stable. */
static int by_key(const void *a, const void *b, void *reversed) {
    const struct sorted_row *x = a, *y = b;
    int order = *(const bool *)reversed ? slice_cmp(y->key, x->key) : slice_cmp(x->key, y->key);
    return order ? order : (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

static enum read_pull next(struct read_op *op, struct read_batch *batch) {
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
    *o = (struct row_order){.op = {next}, .below = below, .r = r, .plan = plan};
    arena_init_in(&o->keep, r->arena->share, KEEP_CHUNK, KEEP_MAX);
}

void row_order_fini(struct row_order *o) {
    arena_fini(&o->keep);
    free(o->rows);
}
