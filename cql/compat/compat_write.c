#include "cql/compat/compat_check.h"
#include "keyspaces/quota.h"

static int check_using(struct compile *c, const struct ast_using *using, const struct schema_table *t) {
    if (using->ttl && t && !schema_has_ttl(t) && compat_refuse(&c->compat, REFUSE_TTL, c->err)) return -1;
    if (using->timestamp && t && !schema_has_client_timestamps(t) &&
        compat_refuse(&c->compat, REFUSE_TIMESTAMP, c->err))
        return -1;
    return compat_check_expr(c, using->ttl) || compat_check_expr(c, using->timestamp) ? -1 : 0;
}

static int check_no_in(struct compile *c, struct ast_relation *const *relations, uint32_t n, const char *words) {
    for (uint32_t i = 0; i < n; i++)
        if (relations[i]->op == OP_IN && compat_refuse(&c->compat, REFUSE_WRITE_IN, c->err, words)) return -1;
    return 0;
}

static int check_conditions(struct compile *c, const struct ast_conditions *ast, const struct schema_table *t,
                            const char *words) {
    if (check_no_in(c, ast->relations, ast->n, words)) return -1;
    return compat_check_relations(c, ast->relations, ast->n, t);
}

static int check_where(struct compile *c, const struct ast_where *where, const struct schema_table *t,
                       const char *words) {
    if (check_no_in(c, where->relations, where->n, words) || compat_check_restrictions(c, where)) return -1;
    return compat_check_relations(c, where->relations, where->n, t);
}

static bool is_regular(const struct schema_table *t, const char *name) {
    const struct schema_column *col = schema_column_find(t, name);
    return col && col->kind == COLUMN_REGULAR;
}

static int check_columns(struct compile *c, const struct schema_table *t, uint32_t n) {
    int most = t && schema_has_ttl(t) ? QUOTA_WRITTEN_COLUMNS_TTL : QUOTA_WRITTEN_COLUMNS;
    return n > (uint32_t)most ? compat_refuse(&c->compat, REFUSE_COLUMNS, c->err, (int)n, most) : 0;
}

int compat_check_insert(struct compile *c, const struct ast_stmt *ast) {
    const struct ast_insert *x = &ast->insert;
    const struct schema_table *t = compat_table(c, &x->table);
    uint32_t n = x->json && t ? t->n_regular : 0;
    if (check_using(c, &x->using, t)) return -1;
    for (uint32_t i = 0; i < x->n_columns; i++) {
        n += t && is_regular(t, x->columns[i]);
        if (compat_check_expr(c, x->values[i])) return -1;
    }
    return check_columns(c, t, n) || check_conditions(c, &x->conditions, t, "INSERT") ? -1 : 0;
}

int compat_check_update(struct compile *c, const struct ast_stmt *ast) {
    const struct ast_update *x = &ast->update;
    const struct schema_table *t = compat_table(c, &x->table);
    uint32_t n = 0;
    if (check_using(c, &x->using, t)) return -1;
    for (uint32_t i = 0; i < x->n_assignments; i++) {
        const struct ast_assignment *a = &x->assignments[i];
        bool before = false;
        for (uint32_t k = 0; k < i && k <= QUOTA_WRITTEN_COLUMNS && !before; k++)
            before = strcmp(x->assignments[k].column, a->column) == 0;
        n += t && is_regular(t, a->column) && !before;
        if (compat_check_expr(c, a->element) || compat_check_expr(c, a->value)) return -1;
    }
    if (check_columns(c, t, n) || check_where(c, &x->where, t, "UPDATE")) return -1;
    return check_conditions(c, &x->conditions, t, "UPDATE");
}

int compat_check_delete(struct compile *c, const struct ast_stmt *ast) {
    const struct ast_delete *x = &ast->delete_;
    const struct schema_table *t = compat_table(c, &x->table);
    if (check_using(c, &x->using, t) || check_where(c, &x->where, t, "DELETE")) return -1;
    return check_conditions(c, &x->conditions, t, "DELETE");
}
