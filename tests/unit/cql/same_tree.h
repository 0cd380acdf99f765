/* Compares two trees of one text. The statements that plain.c reads are compared in full: SELECT and
 * INSERT of the forms that build.h names at cqli_plain. */
#pragma once

#include <string.h>

#include "cql/syntax/ast.h"

static inline bool same_place(struct slice a, struct slice b) { return a.p == b.p && a.n == b.n; }
static inline bool same_name(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

static inline bool same_table(struct ast_name a, struct ast_name b) {
    return same_name(a.keyspace, b.keyspace) && same_name(a.name, b.name);
}

static inline bool same_expr(const struct ast_expr *a, const struct ast_expr *b) {
    if (!a || !b) return a == b;
    bool same = a->kind == b->kind && a->literal == b->literal && slice_eq(a->text, b->text) && a->bind == b->bind &&
                same_name(a->keyspace, b->keyspace) && same_name(a->name, b->name);
    return same && a->quoted == b->quoted && !a->type == !b->type && a->n_args == b->n_args &&
           same_place(a->source, b->source) && a->depth == b->depth;
}

static inline bool same_where(const struct ast_where *a, const struct ast_where *b) {
    bool same = a->n == b->n;
    for (uint32_t i = 0; i < a->n && same; i++) {
        const struct ast_relation *x = a->relations[i], *y = b->relations[i];
        same = x->kind == y->kind && x->n_lhs == y->n_lhs && x->op == y->op && same_expr(x->value, y->value) &&
               same_expr(x->element, y->element) && x->in_list == y->in_list;
        for (uint32_t k = 0; k < x->n_lhs && same; k++) same = same_name(x->lhs[k], y->lhs[k]);
    }
    return same;
}

static inline bool same_select(const struct ast_select *a, const struct ast_select *b) {
    bool same = same_table(a->table, b->table) && a->json == b->json && a->distinct == b->distinct &&
                a->allow_filtering == b->allow_filtering && a->n_selectors == b->n_selectors &&
                a->n_group_by == b->n_group_by && a->n_order_by == b->n_order_by && same_where(&a->where, &b->where);
    for (uint32_t i = 0; i < a->n_selectors && same; i++)
        same = same_expr(a->selectors[i].expr, b->selectors[i].expr) &&
               same_name(a->selectors[i].alias, b->selectors[i].alias);
    return same && same_expr(a->limit, b->limit) && same_expr(a->per_partition_limit, b->per_partition_limit);
}

static inline bool same_insert(const struct ast_insert *a, const struct ast_insert *b) {
    bool same = same_table(a->table, b->table) && a->n_columns == b->n_columns && a->unmatched == b->unmatched &&
                !a->json == !b->json && a->conditions.if_not_exists == b->conditions.if_not_exists &&
                same_expr(a->using.timestamp, b->using.timestamp) && same_expr(a->using.ttl, b->using.ttl);
    for (uint32_t i = 0; i < a->n_columns && same; i++)
        same = same_name(a->columns[i], b->columns[i]) && same_expr(a->values[i], b->values[i]);
    return same;
}

static inline bool same_tree(const struct ast_stmt *a, const struct ast_stmt *b) {
    if (a->kind != b->kind || a->binds.n != b->binds.n || !same_place(a->source, b->source)) return false;
    for (uint32_t i = 0; i < a->binds.n; i++)
        if (!same_name(a->binds.names[i], b->binds.names[i])) return false;
    if (a->kind == STMT_SELECT) return same_select(&a->select, &b->select);
    return a->kind != STMT_INSERT || same_insert(&a->insert, &b->insert);
}
