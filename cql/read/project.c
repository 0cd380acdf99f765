#include "cql/read/project.h"

#include "cql/read/select.h"

static int make_json(struct row_project *p) {
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
        if (value_is_null(p->out[i])) buf_put_str(&b, "null");
        else if (cql_type_has_json(type)) cql_value_json(type, p->out[i], &b);
        else rc = err_set(p->r->err, ERR_SERVER, "java.lang.UnsupportedOperationException");
    }
    buf_u8(&b, '}');
    struct slice s = buf_failed(&b) ? (struct slice){0} : arena_dup(p->r->arena, buf_slice(&b));
    buf_fini(&b);
    p->json = value_of_slice(s);
    return rc ? rc : s.p ? 0 : err_nomem(p->r->err);
}

static enum read_pull next(struct read_op *op, struct read_row *row) {
    struct row_project *p = (struct row_project *)op;
    enum read_pull pull = read_next(p->below, row);
    if (pull != READ_ROW) return pull;
    const struct select_plan *plan = p->plan;
    if (plan->ordinals && row->values) {
        const uint32_t *ordinals = plan->ordinals;
        const struct value *values = row->values;
        struct value *restrict out = p->out;
        for (uint32_t i = 0, n = plan->n_selectors; i < n; i++) out[i] = values[ordinals[i]];
        row->out = p->out;
        return READ_ROW;
    }
    struct term_context c = {.ev = &p->r->eval,
                             .view = row->view,
                             .values = row->values,
                             .aggregates = row->aggregates,
                             .latched = row->latched};
    for (uint32_t i = 0; i < plan->n_selectors; i++)
        if (term_eval_in(plan->selectors[i], &c, &p->out[i])) return READ_FAILED;
    row->out = p->out;
    if (!plan->json) return READ_ROW;
    row->out = &p->json;
    return make_json(p) ? READ_FAILED : READ_ROW;
}

int row_project_init(struct row_project *p, struct read_op *below, struct cql_run *r,
                     const struct select_plan *plan) {
    *p = (struct row_project){.op = {next}, .below = below, .r = r, .plan = plan};
    p->out = ARENA_ARRAY(r->arena, plan->n_selectors + 1, struct value);
    return p->out ? 0 : err_nomem(r->err);
}
