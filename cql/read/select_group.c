/* GROUP BY: leading columns of the primary key. The last one may be the argument of a function that
 * keeps its order: floor(time, 1h). The words and their order are Cassandra's
 * (SelectStatement.getAggregationSpecFactory). */
#include "cql/expr/aggregate.h"
#include "cql/expr/function.h"
#include "cql/expr/selector.h"
#include "cql/read/select.h"

/* ---- functions ---- */

/* Finds the columns that a term uses, each once, in the order of their appearance. Returns
 * their number, and at most `most` of them in out. */
static uint32_t find_columns(const struct term *t, const struct schema_column **out, uint32_t n, uint32_t most) {
    if (t->kind == TERM_COLUMN) {
        bool had = false;
        for (uint32_t i = 0; i < n && i < most; i++) had = had || out[i] == t->column;
        if (!had && n < most) out[n] = t->column;
        return n + !had;
    }
    for (uint32_t i = 0; i < t->n_args; i++)
        if (t->args[i]) n = find_columns(t->args[i], out, n, most);
    return n;
}

/* The column that is the function's argument. Returns NULL with an error. */
static const struct schema_column *compile_function(struct compile *c, struct select_plan *p,
                                                    const struct ast_expr *x) {
    enum { COLUMNS_MAX = 16 };
    const struct schema_column *columns[COLUMNS_MAX];
    struct term_scope *s = ARENA_NEW(c->arena, struct term_scope);
    bool *looked_at = ARENA_ARRAY(c->arena, p->table->n_columns, bool);
    if (!s || !looked_at) return err_nomem(c->err), NULL;
    *s = (struct term_scope){.table = p->table, .wanted = looked_at};
    struct compile on_row = *c;
    on_row.scope = s;
    struct receiver any = receiver_of(p->table, "[selection]", NULL);
    const struct term *t = term_compile(&on_row, x, &any);
    if (!t) return NULL;
    bool aggregate = t->kind == TERM_AGGREGATE;
    if (!aggregate && (t->kind != TERM_CALL || x->kind == EXPR_CAST))
        return err_invalid(c->err, "Group by is only supported on columns and on functions of a column"), NULL;
    if (aggregate) {
        const char *name = strcmp(x->name, "count") == 0 && t->n_args == 0 ? "count_rows" : x->name;
        err_invalid(c->err, "Aggregate functions are not supported within the GROUP BY clause, got: system.%s", name);
        return NULL;
    }
    uint32_t n = find_columns(t, columns, 0, COLUMNS_MAX);
    if (n == 0)
        return err_invalid(c->err, "GROUP BY functions must have one clustering column name as parameter"), NULL;
    if (n > 1) {
        struct buf names;
        buf_init(&names, ERR_TEXT_MAX);
        for (uint32_t i = 0; i < n && i < COLUMNS_MAX; i++)
            buf_printf(&names, "%s%s", i ? "," : "", columns[i]->name);
        err_invalid(c->err, "GROUP BY functions accept only one clustering column as parameter, got: %.*s",
                    SLICE_FMT(buf_slice(&names)));
        buf_fini(&names);
        return NULL;
    }
    if (columns[0]->kind != COLUMN_CLUSTERING)
        return err_invalid(c->err, "Group by functions are only supported on clustering columns, got %s",
                           columns[0]->name),
               NULL;
    p->group.function = t;
    p->group.salt = selector_name(&on_row, x);
    return p->group.salt ? columns[0] : NULL;
}

/* NULL if its values are in the order of the column's, because all other arguments are the same for
 * all rows; or if memory is exhausted. */
static const char *fault_of(struct compile *c, const struct term *t) {
    if (t->kind == TERM_COLUMN) return NULL;
    if (t->kind != TERM_CALL)
        return "Only column names and monotonic scalar functions are supported in the GROUP BY clause.";
    const struct schema_column *ignored[1];
    bool alone = t->function->monotonic;
    for (uint32_t i = 1; i < t->n_args; i++) alone = alone && find_columns(t->args[i], ignored, 0, 1) == 0;
    if (alone) return fault_of(c, t->args[0]);
    struct buf text;
    uint32_t constants = 0, reversed = 0;
    buf_init(&text, ERR_TEXT_MAX);
    for (uint32_t i = 0; i < t->n_args; i++) {
        constants |= (uint32_t)term_is_constant(t->args[i]) << i;
        reversed |= (uint32_t)(t->args[i]->kind == TERM_COLUMN && t->args[i]->column->desc) << i;
    }
    function_print(t->function, constants, reversed, &text);
    const char *said = arena_printf(c->arena,
                                    "Only monotonic functions are supported in the GROUP BY clause. Got: %.*s ",
                                    SLICE_FMT(buf_slice(&text)));
    buf_fini(&text);
    return said ? said : err_null(err_nomem(c->err));
}

/* ---- columns ---- */

int select_compile_group(struct compile *c, struct select_plan *p, const struct ast_select *ast) {
    const struct schema_table *t = p->table;
    bool by_key = p->where->partitions == WHERE_KEYS || t->virt;
    for (uint32_t i = 0; i < ast->n_group_by; i++) {
        const struct ast_expr *x = ast->group_by[i];
        bool column = x->kind == EXPR_NAME;
        const struct schema_column *col = column ? schema_column_find(t, x->name) : compile_function(c, p, x);
        if (!col) return column ? selector_undefined(c, t, x->name) : -1;
        if (column && !schema_column_is_key(col))
            return err_invalid(c->err, "Group by is currently only supported on the columns of the PRIMARY KEY, got %s",
                               col->name);
        if (column && p->group.function)
            return err_invalid(c->err, "Functions are only supported on the last element of the GROUP BY clause");
        /* it may leave out columns that = restricts */
        uint32_t at = p->group.n;
        while (at < col->ordinal && at < t->n_partition_key && by_key && p->where->partition_steps[at] &&
               p->where->partition_steps[at]->kind == STEP_EQ)
            at++;
        while (at < col->ordinal && at >= t->n_partition_key && select_is_fixed(p, at - t->n_partition_key)) at++;
        if (col->ordinal != at)
            return err_invalid(
                c->err,
                "Group by currently only support groups of columns following their declared order in the PRIMARY KEY");
        p->group.n = at + 1;
    }
    if (p->group.n && p->group.n < p->table->n_partition_key)
        return err_invalid(c->err, "Group by is not supported on only a part of the partition key");
    if (p->distinct && p->group.n > p->table->n_partition_key)
        return err_invalid(c->err, "Grouping on clustering columns is not allowed for SELECT DISTINCT queries");
    p->grouped = ast->n_group_by > 0;
    p->group.fault = p->group.function ? fault_of(c, p->group.function) : NULL;
    return c->err->set ? -1 : 0;
}
