/* SELECT: from the tree to a plan. */
#include "cql/read/select.h"

#include "base/murmur3.h"
#include "cql/request/result_meta.h"

/* ---- the select list ---- */

static int add_column(struct selection *s, struct select_plan *p, struct result_column *columns, const struct schema_column *c) {
    struct selector *sel = ARENA_NEW(s->compile->arena, struct selector);
    if (!sel) return err_nomem(s->compile->err);
    *sel = (struct selector){.kind = SELECTOR_COLUMN, .type = c->type, .column = c};
    s->wanted[c->ordinal] = true;
    columns[p->n_selectors].name = c->name;
    columns[p->n_selectors].type = c->type;
    p->selectors[p->n_selectors++] = sel;
    return 0;
}

static int add_selectors(struct selection *s, struct select_plan *p, const struct ast_select *ast, struct result_column *columns) {
    for (uint32_t i = 0; i < ast->n_selectors; i++) {
        const struct ast_selector *x = &ast->selectors[i];
        if (x->expr->kind == EXPR_STAR) {
            for (uint32_t k = 0; k < s->table->n_columns; k++)
                if (add_column(s, p, columns, &s->table->columns[k])) return -1;
            continue;
        }
        struct selector *sel = selector_compile(s, x->expr, NULL);
        if (!sel) return -1;
        /* A cast to the type that it is already is no cast. */
        const struct ast_expr *named = x->expr->kind == EXPR_CAST && sel->kind == SELECTOR_COLUMN ? x->expr->args[0] : x->expr;
        const char *name = x->alias ? x->alias : selector_name(s->compile, named);
        if (!name) return -1;
        columns[p->n_selectors].name = name;
        columns[p->n_selectors].type = sel->type;
        p->selectors[p->n_selectors++] = sel;
    }
    return 0;
}

/* SELECT JSON gives one column of text; names with capitals are quoted within it. */
static int make_json(struct compile *c, struct select_plan *p, struct result_column *columns) {
    p->json_names = ARENA_ARRAY(c->arena, p->n_selectors + 1, const char *);
    if (!p->json_names) return err_nomem(c->err);
    for (uint32_t i = 0; i < p->n_selectors; i++) {
        const char *name = columns[i].name;
        bool capitals = false;
        for (const char *q = name; *q; q++) capitals = capitals || (*q >= 'A' && *q <= 'Z');
        p->json_names[i] = capitals ? arena_printf(c->arena, "\"%s\"", name) : name;
        if (!p->json_names[i]) return err_nomem(c->err);
    }
    columns[0].name = "[json]";
    columns[0].type = cql_type_scalar(CQL_TEXT);
    return 0;
}

static int compile_selection(struct compile *c, struct select_plan *p, const struct ast_select *ast, bool *wanted, struct cql_statement *out) {
    const struct schema_table *t = p->table;
    struct selection *s = ARENA_NEW(c->arena, struct selection);
    size_t room = (size_t)ast->n_selectors + t->n_columns + 1;
    struct result_column *columns = ARENA_ARRAY(c->arena, room, struct result_column);
    p->selectors = ARENA_ARRAY(c->arena, room, struct selector *);
    if (!s || !columns || !p->selectors) return err_nomem(c->err);
    *s = (struct selection){.compile = c, .table = t, .wanted = wanted};
    if (add_selectors(s, p, ast, columns)) return -1;
    p->n_aggregates = s->n_aggregates;
    p->aggregates = s->aggregates;
    p->n_latches = s->n_latches;
    p->latches = s->latches;
    p->json = ast->json;
    if (p->json && make_json(c, p, columns)) return -1;
    out->result.n = p->json ? 1 : p->n_selectors;
    out->result.columns = columns;
    for (uint32_t i = 0; i < out->result.n; i++) {
        columns[i].keyspace = t->keyspace->name;
        columns[i].table = t->name;
    }
    return 0;
}

/* ---- checks ---- */

/* Are only static and partition key columns selected, with a static one among them? */
static bool selects_only_statics(const struct schema_table *t, const struct ast_select *ast, const bool *wanted) {
    bool statics = false;
    for (uint32_t i = 0; i < ast->n_selectors; i++)
        if (ast->selectors[i].expr->kind == EXPR_STAR) return false;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        if (!wanted[i]) continue;
        if (t->columns[i].kind == COLUMN_CLUSTERING || t->columns[i].kind == COLUMN_REGULAR) return false;
        statics = statics || t->columns[i].kind == COLUMN_STATIC;
    }
    return statics;
}

static int check_distinct(struct compile *c, const struct select_plan *p, const struct ast_select *ast, const bool *selected) {
    const struct schema_table *t = p->table;
    if (ast->per_partition_limit) return err_invalid(c->err, "PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries");
    if (p->where->filters_rows || p->where->rows != WHERE_ALL_ROWS) {
        if (t->n_clustering || p->where->filters_rows)
            return err_invalid(c->err, "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or static columns.");
    }
    for (uint32_t i = 0; i < t->n_columns; i++) {
        enum schema_column_kind kind = t->columns[i].kind;
        if (selected[i] && (kind == COLUMN_CLUSTERING || kind == COLUMN_REGULAR))
            return err_invalid(c->err, "SELECT DISTINCT queries must only request partition key columns and/or static columns (not %s)",
                               t->columns[i].name);
    }
    /* What rows of several partitions are sorted by counts as selected. */
    if (p->where->partition_in && ast->n_order_by)
        return err_invalid(c->err, "SELECT DISTINCT queries must only request partition key columns and/or static columns (not %s)",
                           ast->order_by[0].column);
    for (uint32_t i = 0; i < t->n_partition_key && p->where->partitions == WHERE_TOKENS; i++)
        if (!selected[i])
            return err_invalid(c->err, "SELECT DISTINCT queries must request all the partition key columns (missing %s)", t->columns[i].name);
    return 0;
}

static int compile_order(struct compile *c, struct select_plan *p, const struct ast_select *ast) {
    const struct schema_table *t = p->table;
    if (ast->n_order_by == 0) return 0;
    if (ast->order_by[0].ann_of) return err_invalid(c->err, "ANN ordering is not yet supported.");
    if (p->where->partitions != WHERE_KEYS && !t->virt)
        return err_invalid(c->err, "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.");
    p->ordered = true;
    uint32_t at = 0;
    for (uint32_t i = 0; i < ast->n_order_by; i++) {
        const struct ast_ordering *o = &ast->order_by[i];
        const struct schema_column *col = schema_column_find(t, o->column);
        if (!col) return selector_undefined(c, t, o->column);
        if (col->kind != COLUMN_CLUSTERING)
            return err_invalid(c->err, "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got %s", col->name);
        /* Columns fixed by = may be left out. */
        while (at < col->position && at < p->where->n_clustering_steps && p->where->clustering_steps[at]->kind == STEP_EQ) at++;
        if (col->position != at)
            return err_invalid(c->err, "Order by currently only supports the ordering of columns following their declared order in the PRIMARY KEY");
        at++;
        bool reversed = o->desc != col->desc;
        if (i && reversed != p->reversed) return err_invalid(c->err, "Unsupported order by relation");
        p->reversed = reversed;
    }
    return 0;
}

/* GROUP BY names leading primary key columns; those restricted by = may be left out. */
static int compile_group(struct compile *c, struct select_plan *p, const struct ast_select *ast) {
    const struct schema_table *t = p->table;
    uint32_t at = 0, keys = t->n_partition_key + t->n_clustering;
    for (uint32_t i = 0; i < ast->n_group_by; i++) {
        const struct ast_expr *x = ast->group_by[i];
        if (x->kind != EXPR_NAME) return err_invalid(c->err, "GROUP BY on functions is not yet supported.");
        const struct schema_column *col = schema_column_find(t, x->name);
        if (!col) return selector_undefined(c, t, x->name);
        if (col->ordinal >= keys) return err_invalid(c->err, "Group by is currently only supported on the columns of the PRIMARY KEY, got %s", col->name);
        while (at < col->ordinal && at < t->n_partition_key && p->where->partitions == WHERE_KEYS && p->where->partition_steps[at]->kind == STEP_EQ) at++;
        while (at < col->ordinal && at >= t->n_partition_key && at - t->n_partition_key < p->where->n_clustering_steps &&
               p->where->clustering_steps[at - t->n_partition_key]->kind == STEP_EQ)
            at++;
        if (col->ordinal != at)
            return err_invalid(c->err, "Group by currently only support groups of columns following their declared order in the PRIMARY KEY");
        at++;
    }
    if (at && at < t->n_partition_key)
        return err_invalid(c->err, "Group by is not supported on only a part of the partition key");
    if (p->distinct && at > t->n_partition_key)
        return err_invalid(c->err, "Grouping on clustering columns is not allowed for SELECT DISTINCT queries");
    p->n_group = at;
    p->grouped = ast->n_group_by > 0;
    return 0;
}

static int compile_limits(struct compile *c, struct select_plan *p, const struct ast_select *ast) {
    const struct schema_table *t = p->table;
    struct receiver to = {.keyspace = t->keyspace->name, .table = t->name, .name = "[per_partition_limit]", .type = cql_type_scalar(CQL_INT)};
    if (ast->per_partition_limit) {
        p->partition_limit = term_compile(c, ast->per_partition_limit, &to);
        if (!p->partition_limit) return -1;
        if (p->n_aggregates && !p->grouped) return err_invalid(c->err, "PER PARTITION LIMIT is not allowed with aggregate queries.");
    }
    to.name = "[limit]";
    if (!ast->limit) return 0;
    p->limit = term_compile(c, ast->limit, &to);
    return p->limit ? 0 : -1;
}

/* Which parts of a partition a run has to read. */
static int plan_reading(struct compile *c, struct select_plan *p, bool *wanted) {
    const struct schema_table *t = p->table;
    where_columns(p->where, wanted);
    bool statics = false;
    for (uint32_t i = 0; i < t->n_columns; i++) statics = statics || (wanted[i] && t->columns[i].kind == COLUMN_STATIC);
    p->static_only_rows = t->n_static && p->where->rows == WHERE_ALL_ROWS;
    p->wants_statics = statics || p->static_only_rows;
    /* Every column is looked at: what is charged is the row that was read, not the columns that were asked for. */
    p->layout = row_view_layout_new(t, NULL, c->arena);
    return p->layout ? 0 : err_nomem(c->err);
}

static int select_compile(struct compile *c, const struct ast_stmt *stmt, struct cql_statement *out) {
    const struct ast_select *ast = &stmt->select;
    struct select_plan *p = ARENA_NEW(c->arena, struct select_plan);
    out->table = statement_table(c, &ast->table);
    if (!out->table) return -1;
    bool *wanted = ARENA_ARRAY(c->arena, out->table->n_columns, bool);
    if (!p || !wanted) return err_nomem(c->err);
    out->plan = p;
    p->table = out->table;
    p->distinct = ast->distinct;
    if (compile_selection(c, p, ast, wanted, out)) return -1;
    struct where_options o = {.purpose = WHERE_SELECT,
                              .allow_filtering = ast->allow_filtering,
                              .virtual_table = p->table->virt != NULL,
                              .only_statics = selects_only_statics(p->table, ast, wanted)};
    p->where = where_compile(c, p->table, &ast->where, &o);
    if (!p->where || (p->distinct && check_distinct(c, p, ast, wanted))) return -1;
    if (compile_group(c, p, ast) || compile_limits(c, p, ast) || compile_order(c, p, ast)) return -1;
    if (p->where->needs_filtering) return where_refuse_filtering(c);
    if (plan_reading(c, p, wanted)) return -1;
    out->n_pk = p->where->n_pk_binds;
    out->pk_indexes = p->where->pk_binds;
    p->salt = (uint32_t)murmur3_hash(stmt->source);
    return result_meta_hash(&out->result, c->err);
}

const struct statement_ops select_ops = {.compile = select_compile, .run = select_run};
