#include "cql/read/read.h"

#include "cql/expr/aggregate.h"
#include "cql/read/select.h"

enum { KEEP_CHUNK = 4096, KEEP_MAX = 64 << 20, KEY_KEEP = 1024 };

static int keep_values(struct row_group *g, const struct value *values, const bool *wanted, uint32_t n,
                       struct value **out) {
    struct value *kept = ARENA_ARRAY(&g->keep, n + 1, struct value);
    bool room = kept != NULL;
    for (uint32_t i = 0; room && i < n; i++) {
        kept[i] = wanted && !wanted[i] ? value_null() : values[i];
        if (kept[i].n <= 0) continue;
        kept[i].p = arena_dup(&g->keep, value_slice(values[i])).p;
        room = kept[i].p != NULL;
    }
    *out = kept;
    return room ? 0
                : err_set(g->r->err, ERR_SERVER, "The first row of a group has more than %d MB of values",
                          KEEP_MAX >> 20);
}

/* Equal bytes are equal values; values of clustering columns can be equal with different bytes, too
 * (1.0 and 1.00). Results of a function are compared by their bytes. */
static bool in_group(const struct row_group *g) {
    if (slice_eq(buf_slice(&g->next_key), buf_slice(&g->key))) return true;
    const struct schema_table *t = g->plan->table;
    struct rd key = rd_of(buf_slice(&g->key)), next = rd_of(buf_slice(&g->next_key));
    for (uint32_t i = 0; i < g->plan->group.n; i++) {
        struct slice mine = rd_bytes(&next, rd_u32(&next)), first = rd_bytes(&key, rd_u32(&key));
        bool computed = g->plan->group.function && i + 1 == g->plan->group.n;
        bool same = slice_eq(mine, first) ||
                    (i >= t->n_partition_key && !computed && cql_value_compare(t->columns[i].type, mine, first) == 0);
        if (!same || key.bad || next.bad) return false; /* bad: one is null, and the other is not */
    }
    return true;
}

/* The context in which terms are evaluated for the current row. */
static struct term_context row_context(const struct row_group *g) {
    return (struct term_context){.ev = &g->r->eval, .view = g->rows.view, .values = g->rows.values[g->at]};
}

/* Returns 1 if the row is in the open group now, or 0 if no further group of its partition is
 * wanted. */
static int start_group(struct row_group *g) {
    const struct select_plan *p = g->plan;
    struct term_context c = row_context(g);
    if (g->source->given >= g->partition_limit) {
        g->source->skip_partition = true;
        return 0;
    }
    g->source->given++;
    struct buf key = g->key;
    g->key = g->next_key;
    g->next_key = key;
    arena_reset(&g->keep);
    if (keep_values(g, c.values, p->wanted, p->table->n_columns, &g->first) ||
        term_latch_all(p->latches, &c, g->times) || keep_values(g, g->times, NULL, p->n_latches, &g->latched))
        return -1;
    g->open = true;
    return 1;
}

/* The results stay until the next pull clears them. */
static enum read_pull close_group(struct row_group *g, struct read_batch *out) {
    out->n = 1;
    out->view = NULL;
    out->values[0] = g->first;
    out->latched = g->latched;
    out->aggregates = g->aggregates;
    g->open = false;
    return READ_ROWS;
}

static enum read_pull next(struct read_op *op, struct read_batch *out) {
    struct row_group *g = (struct row_group *)op;
    const struct term *function = g->plan->group.function;
    if (!g->open) aggregates_clear(g->aggregates, g->plan->n_aggregates);
    while (!g->ended) {
        /* to the next row from below, unless the current one is pending */
        if (!g->pending && ++g->at >= g->rows.n) {
            g->at = g->rows.n = 0;
            g->rows.most = g->most;
            enum read_pull pull = read_next(g->below, &g->rows);
            if (pull == READ_END) break;
            if (pull != READ_ROWS) return pull;
        }
        struct term_context c = row_context(g);
        buf_clear(&g->next_key, KEY_KEEP);
        for (uint32_t i = 0; i < g->plan->group.n - (function != NULL); i++) cql_elem_put(c.values[i], &g->next_key);
        if (function) {
            struct value last;
            if (term_eval_in(function, &c, &last)) return READ_FAILED;
            cql_elem_put(last, &g->next_key);
        }
        if (buf_failed(&g->next_key)) {
            err_nomem(g->r->err);
            return READ_FAILED;
        }
        bool other = !g->open || !in_group(g);
        g->pending = other && g->open;
        if (g->pending) return close_group(g, out);
        int in = other ? start_group(g) : 1;
        if (in < 0) return READ_FAILED;
        for (uint32_t i = 0; in && i < g->plan->n_aggregates; i++)
            if (term_add(g->plan->aggregates[i], g->aggregates, &c)) return READ_FAILED;
    }
    bool nothing = g->ended || (!g->open && g->plan->grouped);
    g->ended = true;
    return nothing ? READ_END : close_group(g, out);
}

int row_group_init(struct row_group *g, struct read_op *below, struct read_source *source, struct cql_run *r,
                   const struct select_plan *plan, const struct read_spec *spec) {
    *g = (struct row_group){
        .op = {next}, .below = below, .source = source, .r = r, .plan = plan, .partition_limit = spec->partition_limit};
    /* Where a group may be the last one, only the first row of the next group may be read. */
    bool ends = spec->may_unread || spec->limit != UINT64_MAX || spec->partition_limit != UINT64_MAX;
    g->most = ends ? 1 : READ_BATCH;
    arena_init_in(&g->keep, r->arena->share, KEEP_CHUNK, KEEP_MAX);
    buf_init(&g->key, 0);
    buf_init(&g->next_key, 0);
    g->aggregates = aggregates_new(r->arena, plan->n_aggregates);
    g->times = ARENA_ARRAY(r->arena, plan->n_latches + 1, struct value);
    if (!g->aggregates || !g->times) return err_nomem(r->err);
    for (uint32_t i = 0; i < plan->n_latches; i++) g->times[i] = value_null();
    g->latched = g->times;
    return 0;
}

void row_group_fini(struct row_group *g) {
    aggregates_fini(g->aggregates, g->plan->n_aggregates);
    arena_fini(&g->keep);
    buf_fini(&g->key);
    buf_fini(&g->next_key);
}
