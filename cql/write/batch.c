/* BATCH: compiles the statements and checks that one batch may contain them; write.c writes it. */
#include "cql/write/write.h"

#include "cql/write/write_rules.h"

struct batch_plan {
    struct write_batch batch;
    uint32_t n;
    const struct cql_statement **statements;
};

/* ---- what may go together ---- */

struct traits {
    bool conditional, counters, others, own_timestamp, several_tables, virtual, regular;
    const struct schema_table *table;
};

static void traits_add(struct traits *t, const struct modify_plan *p) {
    t->conditional = t->conditional || p->conditional;
    t->counters = t->counters || p->counter;
    t->others = t->others || !p->counter;
    t->own_timestamp = t->own_timestamp || p->timestamp;
    t->several_tables = t->several_tables || (t->table && t->table != p->table);
    t->virtual = t->virtual || p->table->virt;
    t->regular = t->regular || !p->table->virt;
    t->table = p->table;
}

/* spans: conditions may be on several tables (write_rules_spans). */
static int check(const struct traits *t, enum ast_batch_kind kind, bool timestamp, bool spans, struct err *e) {
    if (timestamp && t->conditional) return err_invalid(e, "Cannot provide custom timestamp for conditional BATCH");
    if (timestamp && kind == BATCH_COUNTER) return err_invalid(e, "Cannot provide custom timestamp for counter BATCH");
    if (timestamp && t->own_timestamp)
        return err_invalid(e, "Timestamp must be set either on BATCH or individual statements");
    if (timestamp && t->counters)
        return err_invalid(e, "Cannot provide custom timestamp for a BATCH containing counters");
    if (kind == BATCH_COUNTER && t->others)
        return err_invalid(e, "Cannot include non-counter statement in a counter batch");
    if (t->counters && t->others)
        return err_invalid(e, "Counter and non-counter mutations cannot exist in the same batch");
    if (kind == BATCH_LOGGED && t->virtual)
        return err_invalid(e, "Cannot include a virtual table statement in a logged batch");
    if (t->virtual && t->regular)
        return err_invalid(e, "Mutations for virtual and regular tables cannot exist in the same batch");
    if (t->virtual && timestamp) return err_invalid(e, "Custom timestamp is not supported by virtual tables");
    if (kind == BATCH_LOGGED && t->counters)
        return err_invalid(e, "Cannot include a counter statement in a logged batch");
    if (t->conditional && t->several_tables && !spans)
        return err_invalid(e, "Batch with conditions cannot span multiple tables");
    return 0;
}

static int batch_compile(struct compile *c, const struct ast_stmt *stmt, struct cql_statement *out) {
    const struct ast_batch *ast = &stmt->batch;
    struct batch_plan *p = ARENA_NEW(c->arena, struct batch_plan);
    struct traits traits = {0};
    const struct term *ttl = NULL;
    if (!p || !(p->statements = ARENA_ARRAY(c->arena, (size_t)ast->n + 1, const struct cql_statement *)))
        return err_nomem(c->err);
    p->batch.kind = ast->kind;
    if (ast->using.ttl) return err_invalid(c->err, "Global TTL on the BATCH statement is not supported.");
    if (modify_compile_using(c, NULL, &ast->using, &p->batch.timestamp, &ttl)) return -1;
    c->in_batch = true;
    for (uint32_t i = 0; i < ast->n; i++) {
        const struct cql_statement *s = statement_compile(c, ast->stmts[i], write_ops(ast->stmts[i]->kind));
        if (!s) return -1;
        p->statements[p->n++] = s;
        traits_add(&traits, modify_plan_of(s));
    }
    out->plan = p;
    /* Drivers route a batch by the last statement that binds its whole partition key. That needs
     * all statements on one table and no bind marker of the batch itself (Cassandra's
     * VariableSpecifications). */
    bool routable = !traits.several_tables && (!p->batch.timestamp || term_is_constant(p->batch.timestamp));
    for (uint32_t i = 0; routable && i < p->n; i++) {
        if (!p->statements[i]->n_pk) continue;
        out->n_pk = p->statements[i]->n_pk;
        out->pk_indexes = p->statements[i]->pk_indexes;
    }
    bool spans = p->batch.kind == BATCH_LOGGED && !c->schema->cassandra_mode &&
                 c->compat.mode != COMPAT_OFF; /* as write_rules_spans says */
    if (check(&traits, p->batch.kind, p->batch.timestamp, spans, c->err)) return -1;
    for (uint32_t i = 0; i < p->n; i++)
        if (modify_check_counter(modify_plan_of(p->statements[i]), c->err)) return -1;
    return 0;
}

/* ---- running ---- */

enum cql_outcome batch_run(struct cql_run *r, const struct write_batch *batch, const struct write_item *items,
                           uint32_t n) {
    struct traits traits = {0};
    if (n == 0) return CQL_DONE;
    for (uint32_t i = 0; i < n; i++) traits_add(&traits, modify_plan_of(items[i].statement));
    bool spans = write_rules_spans(r, batch->kind);
    if (check(&traits, batch->kind, batch->timestamp, spans, r->err) || write_rules_batch(r, batch->kind, items, n))
        return CQL_FAILED;
    const struct schema_table *t = modify_plan_of(items[0].statement)->table;
    r->cost->keyspace = t->keyspace->name;
    r->cost->table = t->name;
    r->cost->object = t->object;
    r->cost->is_logged_batch = batch->kind == BATCH_LOGGED;
    /* The items' values replace the request's while they run. */
    const struct value *values = r->eval.values;
    uint32_t n_values = r->eval.n_values;
    enum cql_outcome outcome = write_run(r, batch, items, n);
    r->eval.values = values;
    r->eval.n_values = n_values;
    return outcome;
}

static enum cql_outcome batch_statement_run(struct cql_run *r, const struct cql_statement *s) {
    const struct batch_plan *p = s->plan;
    struct write_item *items = ARENA_ARRAY(r->arena, (size_t)p->n + 1, struct write_item);
    if (!items) {
        err_nomem(r->err);
        return CQL_FAILED;
    }
    /* Markers are numbered through the whole text, so each statement gets all values. */
    for (uint32_t i = 0; i < p->n; i++)
        items[i] = (struct write_item){.statement = p->statements[i], .n_values = r->eval.n_values,
                                       .values = r->eval.values};
    return batch_run(r, &p->batch, items, p->n);
}

const struct cql_statement *const *batch_statements(const struct cql_statement *s, uint32_t *n) {
    const struct batch_plan *p = s->plan;
    *n = p->n;
    return p->statements;
}

const struct statement_ops batch_ops = {.compile = batch_compile, .run = batch_statement_run};
