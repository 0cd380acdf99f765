/* SELECT: from the tree to a plan. */
#include "cql/read/select.h"

#include "base/murmur3.h"
#include "cql/expr/selector.h"

/* ---- the select list ---- */

static int add_column(struct compile *c, struct select_plan *p, struct result_column *columns,
                      const struct schema_column *column) {
    struct term *sel = term_new(c, TERM_COLUMN, column->type, 0);
    if (!sel) return -1;
    sel->column = column;
    c->scope->wanted[column->ordinal] = true;
    columns[p->list.n].name = column->name;
    columns[p->list.n].type = column->type;
    p->list.terms[p->list.n++] = sel;
    return 0;
}

static int add_selector(struct compile *c, struct select_plan *p, const struct ast_selector *x,
                        struct result_column *columns) {
    struct receiver any = receiver_of(p->table, "[selection]", NULL);
    struct term *sel = term_compile(c, x->expr, &any);
    if (!sel) return -1;
    const char *name = x->alias ? x->alias : selector_name(c, x->expr);
    if (!name) return -1;
    columns[p->list.n].name = name;
    columns[p->list.n].type = sel->type;
    p->list.terms[p->list.n++] = sel;
    return 0;
}

/* Cassandra checks the select list before WHERE only to find whether it selects static columns
 * alone: first for a static column, then for one that is neither static nor of the partition key.
 * It stops at the first that it finds. Returns true if it continues after these columns. */
static bool reached_before_where(const struct schema_table *t, const bool *wanted) {
    bool statics = false, others = false;
    if (!t->n_static) return false;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        statics = statics || (wanted[i] && t->columns[i].kind == COLUMN_STATIC);
        others = others ||
                 (wanted[i] && (t->columns[i].kind == COLUMN_CLUSTERING || t->columns[i].kind == COLUMN_REGULAR));
    }
    return !statics || !others;
}

/* To Cassandra a map's or user type's literal selects both. */
static bool has_map(const struct ast_expr *x) {
    if (x->kind == EXPR_MAP || x->kind == EXPR_UDT) return true;
    for (uint32_t i = 0; i < x->n_args; i++)
        if (x->args[i] && has_map(x->args[i])) return true;
    return false;
}

/* Error order: Cassandra reports an unknown name, or a call that fits no function, before the
 * faults of WHERE if it reaches that selector early (reached_before_where). It reports the other
 * faults of the select list after those of WHERE: the first of them goes to *later. */
static int add_selectors(struct compile *c, struct select_plan *p, const struct ast_select *ast,
                         struct result_column *columns, struct err *later) {
    bool map_before = false;
    for (uint32_t i = 0; i < ast->n_selectors; i++) {
        const struct ast_selector *x = &ast->selectors[i];
        bool early = !map_before && reached_before_where(p->table, c->scope->wanted);
        map_before = map_before || has_map(x->expr);
        c->scope->names_fault = false;
        if (x->expr->kind == EXPR_STAR) {
            for (uint32_t k = 0; k < p->table->n_columns; k++)
                if (add_column(c, p, columns, &p->table->columns[k])) return -1;
        } else if (add_selector(c, p, x, columns)) {
            struct err fault = *c->err;
            bool of_names = c->scope->names_fault || selector_want_names(c, x->expr);
            if (of_names && early) return -1;
            if (!later->set) *later = of_names ? *c->err : fault;
            err_clear(c->err);
        }
    }
    return 0;
}

/* SELECT JSON gives one column of text; names with capitals are quoted within it. */
static int make_json(struct compile *c, struct select_plan *p, struct result_column *columns) {
    p->list.json_names = ARENA_ARRAY(c->arena, p->list.n + 1, const char *);
    if (!p->list.json_names) return err_nomem(c->err);
    for (uint32_t i = 0; i < p->list.n; i++) {
        const char *name = columns[i].name;
        bool capitals = false;
        for (const char *q = name; *q; q++) capitals = capitals || (*q >= 'A' && *q <= 'Z');
        p->list.json_names[i] = capitals ? arena_printf(c->arena, "\"%s\"", name) : name;
        if (!p->list.json_names[i]) return err_nomem(c->err);
    }
    columns[0].name = "[json]";
    columns[0].type = cql_type_scalar(CQL_TEXT);
    return 0;
}

static int compile_selection(struct compile *c, struct select_plan *p, const struct ast_select *ast, bool *wanted,
                             struct cql_statement *out, struct err *later) {
    const struct schema_table *t = p->table;
    struct term_scope *s = ARENA_NEW(c->arena, struct term_scope);
    size_t room = (size_t)ast->n_selectors + t->n_columns + 1;
    struct result_column *columns = ARENA_ARRAY(c->arena, room, struct result_column);
    p->list.terms = ARENA_ARRAY(c->arena, room, struct term *);
    if (!s || !columns || !p->list.terms) return err_nomem(c->err);
    *s = (struct term_scope){.table = t, .wanted = wanted};
    struct compile on_row = *c;
    on_row.scope = s;
    if (add_selectors(&on_row, p, ast, columns, later)) return -1;
    if (later->set) return 0;
    p->n_aggregates = s->n_aggregates;
    p->aggregates = s->aggregates;
    p->n_latches = s->n_latches;
    p->latches = s->latches;
    struct term *subscripts = NULL; /* in the order of the select list */
    for (struct term *x = s->subscripts, *next; x; x = next) {
        next = x->next_subscript;
        x->next_subscript = subscripts;
        subscripts = x;
    }
    p->subscripts = subscripts;
    p->list.json = ast->json;
    if (p->list.json && make_json(c, p, columns)) return -1;
    if (!p->list.json) { /* a list of columns alone is not computed */
        uint32_t *ordinals = ARENA_ARRAY(c->arena, p->list.n + 1, uint32_t), n = 0;
        bool consecutive = true;
        if (!ordinals) return err_nomem(c->err);
        for (; n < p->list.n && p->list.terms[n]->kind == TERM_COLUMN; n++) {
            ordinals[n] = p->list.terms[n]->column->ordinal;
            consecutive = consecutive && ordinals[n] == ordinals[0] + n;
        }
        if (n == p->list.n) p->list.ordinals = ordinals;
        p->list.consecutive = n == p->list.n && consecutive;
    }
    out->result.n = p->list.json ? 1 : p->list.n;
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
    if (!t->n_static) return false;
    for (uint32_t i = 0; i < ast->n_selectors; i++)
        if (ast->selectors[i].expr->kind == EXPR_STAR) return false;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        if (!wanted[i]) continue;
        if (t->columns[i].kind == COLUMN_CLUSTERING || t->columns[i].kind == COLUMN_REGULAR) return false;
        statics = statics || t->columns[i].kind == COLUMN_STATIC;
    }
    return statics;
}

static int check_distinct(struct compile *c, const struct select_plan *p, const struct ast_select *ast,
                          const bool *selected) {
    const struct schema_table *t = p->table;
    if (ast->per_partition_limit)
        return err_invalid(c->err, "PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries");
    if (p->where->filters_rows || p->where->rows != WHERE_ALL_ROWS) {
        if (t->n_clustering || p->where->filters_rows)
            return err_invalid(
                c->err,
                "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or static columns.");
    }
    for (uint32_t i = 0; i < t->n_columns; i++) {
        enum schema_column_kind kind = t->columns[i].kind;
        if (selected[i] && (kind == COLUMN_CLUSTERING || kind == COLUMN_REGULAR))
            return err_invalid(
                c->err,
                "SELECT DISTINCT queries must only request partition key columns and/or static columns (not %s)",
                t->columns[i].name);
    }
    /* Rows of several partitions are sorted, and their ORDER BY columns count as selected; rows of
     * a range of tokens are not sorted. */
    const struct schema_column *order = ast->n_order_by ? schema_column_find(t, ast->order_by[0].column) : NULL;
    if (p->several_partitions && (!p->where->has_token || p->where->partitions == WHERE_KEYS) && order &&
        order->kind == COLUMN_CLUSTERING) /* compile_order refuses other columns */
        return err_invalid(
            c->err, "SELECT DISTINCT queries must only request partition key columns and/or static columns (not %s)",
            ast->order_by[0].column);
    for (uint32_t i = 0; i < t->n_partition_key && p->where->partitions == WHERE_TOKENS; i++)
        if (!selected[i])
            return err_invalid(c->err,
                               "SELECT DISTINCT queries must request all the partition key columns (missing %s)",
                               t->columns[i].name);
    return 0;
}

bool select_is_fixed(const struct select_plan *p, uint32_t position) {
    const struct where_plan *w = p->where;
    if (position < w->n_clustering_steps) return w->clustering_steps[position]->kind == STEP_EQ;
    for (uint32_t i = 0; p->table->virt && i < w->n_filters; i++)
        if (w->filters[i]->kind == STEP_EQ && w->filters[i]->columns[0] == schema_clustering(p->table, position))
            return true;
    return false;
}

/* The orderings by column. If a column is named twice, its last ordering replaces the first.
 * Returns their number, or -1. */
static int list_orderings(struct compile *c, const struct schema_table *t, const struct ast_select *ast,
                          struct ast_ordering *out) {
    uint32_t *slot = ARENA_ARRAY(c->arena, t->n_columns, uint32_t); /* by ordinal, from 1 */
    int n = 0;
    if (!slot) return err_nomem(c->err);
    for (uint32_t i = 0; i < ast->n_order_by; i++) {
        const struct ast_ordering *o = &ast->order_by[i];
        const struct schema_column *col = schema_column_find(t, o->column); /* check_order_names */
        if (!slot[col->ordinal]) slot[col->ordinal] = (uint32_t)++n;
        out[slot[col->ordinal] - 1] = *o;
    }
    return n;
}

static int check_order_names(struct compile *c, const struct schema_table *t, const struct ast_select *ast) {
    for (uint32_t i = 0; i < ast->n_order_by; i++)
        if (!ast->order_by[i].ann_of && !schema_column_find(t, ast->order_by[i].column))
            return selector_undefined(c, t, ast->order_by[i].column);
    return 0;
}

static int compile_order(struct compile *c, struct select_plan *p, const struct ast_select *ast) {
    const struct schema_table *t = p->table;
    if (ast->n_order_by == 0) return 0;
    if (ast->order_by[0].ann_of) return err_invalid(c->err, "ANN ordering is not yet supported.");
    for (uint32_t i = 0; i < t->n_partition_key; i++) {
        const struct where_step *s = p->where->partition_steps[i];
        if (!s || (s->kind != STEP_EQ && s->kind != STEP_IN))
            return err_invalid(c->err,
                               "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.");
    }
    p->order.given = true;
    struct ast_ordering *orderings = ARENA_ARRAY(c->arena, ast->n_order_by, struct ast_ordering);
    int n = orderings ? list_orderings(c, t, ast, orderings) : err_nomem(c->err);
    uint32_t at = 0;
    for (int i = 0; i < n; i++) {
        const struct schema_column *col = schema_column_find(t, orderings[i].column);
        if (col->kind != COLUMN_CLUSTERING)
            return err_invalid(
                c->err, "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got %s",
                col->name);
        /* Columns fixed by = may be left out. */
        while (at < col->position && select_is_fixed(p, at)) at++;
        if (col->position != at)
            return err_invalid(c->err, "Order by currently only supports the ordering of columns following their "
                                       "declared order in the PRIMARY KEY");
        at++;
        bool reversed = orderings[i].desc != col->desc;
        if (i && reversed != p->order.reversed) return err_invalid(c->err, "Unsupported order by relation");
        p->order.reversed = reversed;
    }
    p->order.n = at;
    return n < 0 ? -1 : 0;
}

static bool asks_for_times(const struct term *t) {
    if (!t) return false;
    bool asks = t->kind == TERM_WRITETIME || t->kind == TERM_MAX_WRITETIME || t->kind == TERM_TTL;
    for (uint32_t i = 0; i < t->n_args && !asks; i++) asks = asks_for_times(t->args[i]);
    return asks;
}

/* Decides which parts of a partition the statement reads. */
static int plan_reading(struct compile *c, struct select_plan *p, bool *wanted) {
    const struct schema_table *t = p->table;
    where_columns(p->where, wanted);
    for (uint32_t i = 0; i < t->n_columns && t->n_static; i++)
        p->statics.asked = p->statics.asked || (wanted[i] && t->columns[i].kind == COLUMN_STATIC);
    p->statics.only = t->n_static && p->where->rows == WHERE_ALL_ROWS;
    p->statics.read = p->statics.asked || p->statics.only;
    p->wanted = wanted;
    p->layout = row_view_layout_new(t, wanted, c->arena);
    if (!p->layout) return err_nomem(c->err);
    for (uint32_t i = 0; i < p->list.n; i++) p->asks_times = p->asks_times || asks_for_times(p->list.terms[i]);
    /* Not with static columns: the static row of a partition would overwrite values that are laid out already. */
    p->lays_out = p->layout->flat && !p->layout->has_ttl && !t->n_static && !p->asks_times;
    return 0;
}

static void put_steps(struct buf *b, struct where_step *const *steps, uint32_t n) {
    buf_uvarint(b, n);
    for (uint32_t i = 0; i < n; i++) {
        for (const struct where_step *s = steps[i]; s; s = s->next) {
            buf_u8(b, (uint8_t)(1 + s->kind));
            for (uint32_t k = 0; k < s->n_columns; k++) buf_uvarint(b, s->columns[k]->id + 1);
            if (s->from.term) buf_u8(b, s->from.inclusive ? '[' : '(');
            if (s->to.term) buf_u8(b, s->to.inclusive ? ']' : ')');
        }
        buf_u8(b, 0);
    }
}

/* A paging state is valid in any statement that reads the same rows in the same order, however it
 * is written, also after a TRUNCATE. The salt binds it to the table, to the restricted columns and
 * their operators, to the direction and to the groups. path_keys checks the partition against the
 * values. */
static int make_salt(struct compile *c, struct select_plan *p) {
    struct where_step *const token[] = {p->where->token};
    struct buf b;
    buf_init(&b, 0);
    buf_put(&b, p->table->id, sizeof(p->table->id));
    buf_u8(&b, (uint8_t)(p->order.reversed | p->distinct << 1 | (p->partition_limit != NULL) << 2 | p->grouped << 3 |
                         (p->n_aggregates > 0) << 4));
    buf_uvarint(&b, p->group.n);
    if (p->group.function) buf_put_str(&b, p->group.salt);
    buf_u8(&b, (uint8_t)(p->where->partitions | p->where->rows << 2));
    put_steps(&b, p->where->partition_steps, p->where->partitions == WHERE_KEYS ? p->table->n_partition_key : 0);
    put_steps(&b, p->where->clustering_steps, p->where->n_clustering_steps);
    put_steps(&b, token, p->where->token != NULL);
    put_steps(&b, p->where->filters, p->where->n_filters);
    p->salt = (uint32_t)murmur3_hash(buf_slice(&b));
    bool failed = buf_failed(&b);
    buf_fini(&b);
    return failed ? err_nomem(c->err) : 0;
}

int select_compile(struct compile *c, const struct ast_stmt *stmt, struct cql_statement *out) {
    const struct ast_select *ast = &stmt->select;
    struct select_plan *p = ARENA_NEW(c->arena, struct select_plan);
    out->table = statement_table(c, &ast->table);
    if (!out->table) return -1;
    bool *wanted = ARENA_ARRAY(c->arena, out->table->n_columns, bool);
    if (!p || !wanted) return err_nomem(c->err);
    out->plan = p;
    p->table = out->table;
    p->distinct = ast->distinct;
    struct err later; /* of the select list, once WHERE is right */
    err_clear(&later);
    if (compile_selection(c, p, ast, wanted, out, &later) || check_order_names(c, p->table, ast)) return -1;
    struct where_options o = {.purpose = WHERE_SELECT,
                              .allow_filtering = ast->allow_filtering,
                              .virtual_table = p->table->virt != NULL,
                              .only_statics = selects_only_statics(p->table, ast, wanted)};
    p->where = where_compile(c, p->table, &ast->where, &o);
    if (!p->where) return -1;
    if (later.set) {
        *c->err = later;
        return -1;
    }
    for (uint32_t i = 0; i < p->table->n_partition_key; i++)
        if (p->where->partition_steps[i] && p->where->partition_steps[i]->kind == STEP_IN) p->several_partitions = true;
    if (p->distinct && check_distinct(c, p, ast, wanted)) return -1;
    if (select_compile_group(c, p, ast)) return -1;
    if (ast->per_partition_limit && p->n_aggregates && !p->grouped)
        return err_invalid(c->err, "PER PARTITION LIMIT is not allowed with aggregate queries.");
    if (compile_order(c, p, ast)) return -1;
    if (p->where->needs_filtering) return where_refuse_filtering(c);
    struct receiver limit = receiver_of(p->table, "[limit]", cql_type_scalar(CQL_INT));
    if (ast->limit && !(p->limit = term_compile(c, ast->limit, &limit))) return -1;
    limit.name = "[per_partition_limit]";
    if (ast->per_partition_limit && !(p->partition_limit = term_compile(c, ast->per_partition_limit, &limit)))
        return -1;
    /* Rows of several partitions are sorted by columns that the select list need not contain. */
    for (uint32_t i = 0; i < p->order.n; i++) wanted[schema_clustering(p->table, i)->ordinal] = true;
    if (plan_reading(c, p, wanted)) return -1;
    out->n_pk = p->where->n_pk_binds;
    out->pk_indexes = p->where->pk_binds;
    p->path = p->table->virt ? &path_virtual : p->where->partitions == WHERE_KEYS ? &path_keys : &path_tokens;
    p->computes = !p->list.ordinals || p->where->n_filters || p->n_aggregates;
    return make_salt(c, p);
}
