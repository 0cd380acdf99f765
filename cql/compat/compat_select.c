#include <strings.h>

#include "cql/compat/compat_check.h"

static int ask(struct compile *c, bool used, enum refusal_id rule) {
    return used ? compat_refuse(&c->compat, rule, c->err) : 0;
}

/* Elements and slices of collections, at any depth; WRITETIME and TTL. */
static int check_selector(struct compile *c, const struct ast_expr *x, const struct schema_table *t) {
    bool writetime = x->kind == EXPR_CALL && strcasecmp(x->name, "writetime") == 0,
         ttl = x->kind == EXPR_CALL && strcasecmp(x->name, "ttl") == 0;
    bool names_one = (writetime || ttl) && t && x->n_args == 1 && x->args[0]->kind == EXPR_NAME;
    const struct schema_column *col = names_one ? schema_column_find(t, x->args[0]->name) : NULL;
    /* The elements of a multicell column have times of their own. */
    if (col && cql_type_is_multicell(col->type) &&
        compat_refuse(&c->compat, REFUSE_CELLS_TIME, c->err, writetime ? "WRITETIME" : "TTL"))
        return -1;
    if (ask(c, x->kind == EXPR_ELEMENT || x->kind == EXPR_RANGE, REFUSE_ELEMENT)) return -1;
    if (ask(c, writetime && t && !schema_has_client_timestamps(t), REFUSE_WRITETIME)) return -1;
    for (uint32_t i = 0; i < x->n_args; i++)
        if (x->args[i] && check_selector(c, x->args[i], t)) return -1;
    return 0;
}

int compat_check_select(struct compile *c, const struct ast_stmt *ast) {
    const struct ast_select *x = &ast->select;
    const struct schema_table *t = compat_table(c, &x->table);
    if (ask(c, x->distinct, REFUSE_DISTINCT) || ask(c, x->n_group_by, REFUSE_GROUP_BY)) return -1;
    if (ask(c, x->per_partition_limit, REFUSE_PER_PARTITION_LIMIT)) return -1;
    for (uint32_t i = 0; i < x->n_selectors; i++)
        if (compat_check_expr(c, x->selectors[i].expr) || check_selector(c, x->selectors[i].expr, t)) return -1;
    if (compat_check_relations(c, x->where.relations, x->where.n, t) || compat_check_restrictions(c, &x->where))
        return -1;
    if (compat_check_expr(c, x->limit)) return -1;
    /* The page of SELECT shows IN on the partition key beside a range; the page of differences excludes
     * slices: taken for clustering columns. */
    const struct ast_where *where = &x->where;
    bool in = false, clustering_in = false, range = false, token = false;
    for (uint32_t i = 0; i < where->n; i++) {
        const struct ast_relation *rel = where->relations[i];
        const struct schema_column *col = t && rel->n_lhs ? schema_column_find(t, rel->lhs[0]) : NULL;
        bool clustering = col && col->kind == COLUMN_CLUSTERING;
        bool compares = rel->op == OP_LT || rel->op == OP_LTE || rel->op == OP_GT || rel->op == OP_GTE;
        in = in || rel->op == OP_IN;
        clustering_in = clustering_in || (clustering && rel->op == OP_IN);
        range = range || (clustering && compares);
        token = token || rel->kind == REL_TOKEN;
    }
    return ask(c, in && token, REFUSE_TOKEN_IN) || ask(c, clustering_in && range, REFUSE_IN_SLICE) ? -1 : 0;
}
