/* Canonical CQL of a statement; here those that read and write rows. */
#include "cql/syntax/print.h"

static void print_conditions(const struct ast_conditions *c, struct buf *out) {
    cqli_print_if(c->if_not_exists, " IF NOT EXISTS", out);
    cqli_print_if(c->if_exists, " IF EXISTS", out);
    cqli_print_relations(" IF ", c->relations, c->n, out);
}

static void print_using(const struct ast_using *u, struct buf *out) {
    const struct {
        const char *word;
        const struct ast_expr *value;
    } parts[] = {{"TIMESTAMP ", u->timestamp}, {"TTL ", u->ttl}};
    const char *lead = " USING ";
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (!parts[i].value) continue;
        buf_put_str(out, lead);
        buf_put_str(out, parts[i].word);
        ast_print_expr(parts[i].value, out);
        lead = " AND ";
    }
}

/* ---- statements ---- */

static void print_limit(const char *words, const struct ast_expr *limit, struct buf *out) {
    if (!limit) return;
    buf_put_str(out, words);
    ast_print_expr(limit, out);
}

static void print_select(const struct ast_select *s, struct buf *out) {
    buf_put_str(out, "SELECT ");
    cqli_print_if(s->json, "JSON ", out);
    cqli_print_if(s->distinct, "DISTINCT ", out);
    cqli_print_selectors(s->selectors, s->n_selectors, out);
    buf_put_str(out, " FROM ");
    cqli_print_table(&s->table, out);
    cqli_print_where(&s->where, out);
    if (s->n_group_by) buf_put_str(out, " GROUP BY ");
    cqli_print_exprs(s->group_by, s->n_group_by, out);
    for (uint32_t i = 0; i < s->n_order_by; i++) {
        const struct ast_ordering *o = &s->order_by[i];
        buf_put_str(out, i ? ", " : " ORDER BY ");
        ast_print_name(o->column, out);
        if (o->ann_of) {
            buf_put_str(out, " ANN OF ");
            ast_print_expr(o->ann_of, out);
        }
        buf_put_str(out, o->desc ? " DESC" : " ASC");
    }
    print_limit(" PER PARTITION LIMIT ", s->per_partition_limit, out);
    print_limit(" LIMIT ", s->limit, out);
    cqli_print_if(s->allow_filtering, " ALLOW FILTERING", out);
}

static void print_insert(const struct ast_insert *s, struct buf *out) {
    buf_put_str(out, "INSERT INTO ");
    cqli_print_table(&s->table, out);
    if (s->json) {
        buf_put_str(out, " JSON ");
        ast_print_expr(s->json, out);
        cqli_print_if(s->json_default_unset, " DEFAULT UNSET", out);
    } else {
        buf_put_str(out, " (");
        cqli_print_names(s->columns, s->n_columns, out);
        buf_put_str(out, ") VALUES (");
        cqli_print_exprs(s->values, s->n_columns, out);
        buf_put_str(out, ")");
    }
    print_conditions(&s->conditions, out);
    print_using(&s->using, out);
}

static void print_assignment(const struct ast_assignment *a, struct buf *out) {
    ast_print_name(a->column, out);
    if (a->element) {
        buf_put_str(out, "[");
        ast_print_expr(a->element, out);
        buf_put_str(out, "]");
    }
    if (a->field) {
        buf_put_str(out, ".");
        ast_print_name(a->field, out);
    }
    if (!a->operand && (a->op == ASSIGN_ADD || a->op == ASSIGN_SUB)) {
        buf_put_str(out, a->op == ASSIGN_ADD ? " += " : " -= ");
        ast_print_expr(a->value, out);
        return;
    }
    buf_put_str(out, " = ");
    if (a->op == ASSIGN_ADD || a->op == ASSIGN_SUB) {
        ast_print_name(a->operand, out);
        buf_put_str(out, a->op == ASSIGN_ADD ? " + " : " - ");
    }
    ast_print_expr(a->value, out);
    if (a->op == ASSIGN_PREPEND) {
        buf_put_str(out, " + ");
        ast_print_name(a->operand, out);
    }
}

static void print_update(const struct ast_update *s, struct buf *out) {
    buf_put_str(out, "UPDATE ");
    cqli_print_table(&s->table, out);
    print_using(&s->using, out);
    buf_put_str(out, " SET ");
    for (uint32_t i = 0; i < s->n_assignments; i++) {
        if (i) buf_put_str(out, ", ");
        print_assignment(&s->assignments[i], out);
    }
    cqli_print_where(&s->where, out);
    print_conditions(&s->conditions, out);
}

static void print_delete(const struct ast_delete *s, struct buf *out) {
    buf_put_str(out, "DELETE ");
    for (uint32_t i = 0; i < s->n_deletions; i++) {
        const struct ast_deletion *d = &s->deletions[i];
        if (i) buf_put_str(out, ", ");
        ast_print_name(d->column, out);
        if (d->element) {
            buf_put_str(out, "[");
            ast_print_expr(d->element, out);
            buf_put_str(out, "]");
        }
        if (d->field) {
            buf_put_str(out, ".");
            ast_print_name(d->field, out);
        }
    }
    buf_put_str(out, s->n_deletions ? " FROM " : "FROM ");
    cqli_print_table(&s->table, out);
    print_using(&s->using, out);
    cqli_print_where(&s->where, out);
    print_conditions(&s->conditions, out);
}

static void print_batch(const struct ast_batch *b, struct buf *out) {
    static const char *const kinds[] = {
        [BATCH_LOGGED] = "", [BATCH_UNLOGGED] = "UNLOGGED ", [BATCH_COUNTER] = "COUNTER "};
    buf_printf(out, "BEGIN %sBATCH", kinds[b->kind]);
    print_using(&b->using, out);
    for (uint32_t i = 0; i < b->n; i++) {
        buf_put_str(out, " ");
        ast_print(b->stmts[i], out);
        buf_put_str(out, ";");
    }
    buf_put_str(out, " APPLY BATCH");
}

void ast_print(const struct ast_stmt *s, struct buf *out) {
    switch (s->kind) {
    case STMT_SELECT: print_select(&s->select, out); break;
    case STMT_INSERT: print_insert(&s->insert, out); break;
    case STMT_UPDATE: print_update(&s->update, out); break;
    case STMT_DELETE: print_delete(&s->delete_, out); break;
    case STMT_BATCH: print_batch(&s->batch, out); break;
    default:
        if (!cqli_print_ddl(s, out)) cqli_print_other(s, out);
        break;
    }
}
