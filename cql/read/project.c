#include "cql/read/project.h"

#include "cql/read/select.h"

static int make_json(struct row_project *p, const struct value *values, struct value *json) {
    const struct select_plan *plan = p->plan;
    struct buf b;
    int rc = 0;
    buf_init(&b, 0);
    buf_u8(&b, '{');
    for (uint32_t i = 0; i < plan->n_selectors && !rc; i++) {
        if (i) buf_put_str(&b, ", ");
        buf_json_str(&b, slice_str(plan->json_names[i]));
        buf_put_str(&b, ": ");
        const struct cql_type *type = plan->selectors[i]->type;
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

/* Columns as they are. */
static void pick(const struct select_plan *plan, const struct value *values, struct value *restrict out) {
    const uint32_t *ordinals = plan->ordinals;
    for (uint32_t i = 0, n = plan->n_selectors; i < n; i++) out[i] = values[ordinals[i]];
}

static int compute(struct row_project *p, const struct read_batch *batch, uint32_t row, struct value *out) {
    struct term_context c = {.ev = &p->r->eval,
                             .view = batch->view,
                             .values = batch->values[row],
                             .aggregates = batch->aggregates,
                             .latched = batch->latched};
    for (uint32_t i = 0; i < p->plan->n_selectors; i++)
        if (term_eval_in(p->plan->selectors[i], &c, &out[i])) return -1;
    return 0;
}

static enum read_pull next(struct read_op *op, struct read_batch *batch) {
    struct row_project *p = (struct row_project *)op;
    const struct select_plan *plan = p->plan;
    enum read_pull pull = read_next(p->below, batch);
    if (pull != READ_ROWS) return pull;
    for (uint32_t i = 0; i < batch->n; i++) {
        struct value *out = p->out + (size_t)i * plan->n_selectors;
        if (plan->ordinals && batch->values[i]) pick(plan, batch->values[i], out);
        else if (compute(p, batch, i, out)) return READ_FAILED;
        if (plan->json && make_json(p, out, &p->json[i])) return READ_FAILED;
        batch->out[i] = plan->json ? &p->json[i] : out;
    }
    return READ_ROWS;
}

int row_project_init(struct row_project *p, struct read_op *below, struct cql_run *r, const struct select_plan *plan,
                     uint32_t rows) {
    *p = (struct row_project){.op = {next}, .below = below, .r = r, .plan = plan};
    p->out = arena_alloc(r->arena, ((size_t)rows * plan->n_selectors + 1) * sizeof(*p->out));
    if (plan->json) p->json = ARENA_ARRAY(r->arena, rows, struct value);
    return p->out && (p->json || !plan->json) ? 0 : err_nomem(r->err);
}
