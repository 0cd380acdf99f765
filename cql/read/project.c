#include "cql/read/operators.h"

#include "cql/read/select.h"

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

static enum read_pull next(struct read_op *op, struct read_batch *batch) {
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
    *p = (struct row_project){.op = {next}, .below = below, .r = r, .plan = plan};
    p->out = arena_alloc(r->arena, ((size_t)rows * plan->list.n + 1) * sizeof(*p->out));
    if (plan->list.json) p->json = ARENA_ARRAY(r->arena, rows, struct value);
    return p->out && (p->json || !plan->list.json) ? 0 : err_nomem(r->err);
}
