#include "cql/compat/compat_check.h"

#include <strings.h>

#include "cql/syntax/ast_other.h"
#include "keyspaces/quota.h"

static const enum refusal_id rules[STMT_KINDS] = {
#define STMT(id, words, functions, permission, resource, rule, ...) [STMT_##id] = rule,
#include "cql/syntax/stmt.def"
#undef STMT
};

enum refusal_id compat_rule_of(enum stmt_kind kind) { return rules[kind]; }

const struct schema_table *compat_table(struct compile *c, const struct ast_name *name) {
    const char *keyspace = name->keyspace ? name->keyspace : c->keyspace;
    compat_is_of(&c->compat, keyspace, name->name);
    return keyspace ? schema_table_any(c->schema, keyspace, name->name) : NULL;
}

/* ---- operators ---- */

static bool is_inequality(enum ast_op op) {
    return op == OP_LT || op == OP_LTE || op == OP_GT || op == OP_GTE || op == OP_NEQ;
}

/* Operators of WHERE, or of IF, that Keyspaces does not list. Checked before the statement is
 * compiled, because Tally may not have them either. */
static int check_listed_operators(struct compile *c, struct ast_relation *const *relations, uint32_t n,
                                  bool conditions) {
    for (uint32_t i = 0; i < n; i++) {
        bool custom = relations[i]->kind == REL_CUSTOM;
        enum ast_op is = relations[i]->op;
        const char *op = custom ? "expr()" : ast_op_text(is);
        bool known = is == OP_EQ || is == OP_IN || is_inequality(is);
        if (is == OP_NEQ) known = conditions;
        if (is == OP_CONTAINS || is == OP_CONTAINS_KEY) known = !conditions;
        if ((custom || !known) && compat_refuse(&c->compat, REFUSE_OPERATOR, c->err, op)) return -1;
    }
    return 0;
}

static int check_operators(struct compile *c, const struct ast_stmt *ast) {
    const struct ast_name *table = ast_table(ast);
    const struct ast_where *where = ast_where(ast);
    const struct ast_conditions *conditions = ast_conditions(ast);
    for (uint32_t i = 0; ast->kind == STMT_BATCH && i < ast->batch.n; i++)
        if (check_operators(c, ast->batch.stmts[i])) return -1;
    if (!table || !where) return 0;
    (void)compat_table(c, table);
    if (check_listed_operators(c, where->relations, where->n, false)) return -1;
    return conditions ? check_listed_operators(c, conditions->relations, conditions->n, true) : 0;
}

int compat_check_kind(struct compile *c, const struct ast_stmt *ast) {
    if (LIKELY(c->compat.mode == COMPAT_OFF)) return 0;
    if (check_operators(c, ast)) return -1;
    bool create = ast->kind == STMT_CREATE_TABLE, alter = ast->kind == STMT_ALTER_TABLE;
    const struct ast_alter_table *a = &ast->alter_table;
    enum refusal_id rule = rules[ast->kind];
    if (create && ast->create_table.props.compact_storage) rule = REFUSE_COMPACT_STORAGE;
    else if (alter && a->op == ALTER_TABLE_DROP) rule = REFUSE_ALTER_DROP;
    else if (alter && a->op == ALTER_TABLE_RENAME) rule = REFUSE_ALTER_RENAME;
    else if (alter && (a->op == ALTER_TABLE_MASK || a->op == ALTER_TABLE_DROP_MASK)) rule = REFUSE_MASK;
    const struct ast_column *columns = create ? ast->create_table.columns : alter ? a->columns : NULL;
    for (uint32_t i = 0; columns && i < (create ? ast->create_table.n_columns : a->n_columns); i++)
        if (columns[i].masked && rule == rules[ast->kind]) rule = REFUSE_MASK;
    const struct ast_name *named = ast_any_table(ast);
    if (named) (void)compat_table(c, named);
    if (rule != REFUSALS) return compat_refuse(&c->compat, rule, c->err, stmt_words(ast->kind));
    bool conditional = alter && (a->if_exists || a->column_if_exists || a->column_if_not_exists);
    if (ast->kind == STMT_ALTER_KEYSPACE) conditional = ast->keyspace.if_exists;
    return conditional ? compat_refuse(&c->compat, REFUSE_ALTER_IF, c->err, stmt_words(ast->kind)) : 0;
}

int compat_check_prepare(struct compat *k, const struct ast_stmt *ast, struct err *e) {
    if (stmt_is_data(ast->kind)) return 0;
    k->statement = ast->source;
    return compat_refuse(k, REFUSE_PREPARED_DDL, e, stmt_words(ast->kind));
}

int compat_check(struct compile *c, const struct ast_stmt *ast) {
    static int (*const checks[STMT_KINDS])(struct compile *, const struct ast_stmt *) = {
#define STMT(id, words, functions, permission, resource, rule, checks, ...) [STMT_##id] = compat_check_##checks,
#include "cql/syntax/stmt.def"
#undef STMT
    };
    return LIKELY(c->compat.mode == COMPAT_OFF) ? 0 : checks[ast->kind](c, ast);
}

int compat_check_nothing(struct compile *c, const struct ast_stmt *ast) {
    (void)c;
    (void)ast;
    return 0;
}

/* ---- SELECT ---- */

/* The left and right sides of relations. */
static int check_relations(struct compile *c, struct ast_relation *const *relations, uint32_t n,
                           const struct schema_table *t) {
    for (uint32_t i = 0; i < n; i++) {
        const struct ast_relation *rel = relations[i];
        bool alone = t && rel->kind == REL_COLUMN && !rel->element && !rel->field;
        const struct schema_column *col = alone ? schema_column_find(t, rel->lhs[0]) : NULL;
        bool whole = col && (cql_type_is_collection(col->type) || col->type->id == CQL_UDT);
        if (whole && is_inequality(rel->op) && compat_refuse(&c->compat, REFUSE_FROZEN_INEQUALITY, c->err, col->name))
            return -1;
        if (compat_check_expr(c, rel->element) || compat_check_expr(c, rel->value)) return -1;
        for (uint32_t k = 0; k < rel->n_values; k++)
            if (compat_check_expr(c, rel->values[k])) return -1;
    }
    return 0;
}

/* WHERE may not restrict elements, fields or tuples of columns. IF may. */
static int check_restrictions(struct compile *c, const struct ast_where *where) {
    for (uint32_t i = 0; i < where->n; i++) {
        const struct ast_relation *rel = where->relations[i];
        if ((rel->element || rel->field) && compat_refuse(&c->compat, REFUSE_WHERE_ELEMENT, c->err, rel->lhs[0]))
            return -1;
        if (rel->kind == REL_TUPLE && compat_refuse(&c->compat, REFUSE_WHERE_TUPLE, c->err)) return -1;
    }
    return 0;
}

static int ask(struct compile *c, bool used, enum refusal_id rule) {
    return used ? compat_refuse(&c->compat, rule, c->err) : 0;
}

/* Elements and slices of collections, at any depth; WRITETIME and TTL. */
static int check_selector(struct compile *c, const struct ast_expr *x, const struct schema_table *t) {
    bool writetime = x->kind == EXPR_CALL && strcasecmp(x->name, "writetime") == 0,
         ttl = x->kind == EXPR_CALL && strcasecmp(x->name, "ttl") == 0;
    bool names_one = (writetime || ttl) && t && x->n_args == 1 && x->args[0]->kind == EXPR_NAME;
    const struct schema_column *col = names_one ? schema_column_find(t, x->args[0]->name) : NULL;
    /* Each element of a multicell column has its own time. */
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
    if (check_relations(c, x->where.relations, x->where.n, t) || check_restrictions(c, &x->where))
        return -1;
    if (compat_check_expr(c, x->limit)) return -1;
    /* AWS's page about SELECT shows IN on the partition key with a range; the page about differences excludes
     * slices, which we apply to clustering columns. */
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

/* ---- writes ---- */

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
    return check_relations(c, ast->relations, ast->n, t);
}

static int check_where(struct compile *c, const struct ast_where *where, const struct schema_table *t,
                       const char *words) {
    if (check_no_in(c, where->relations, where->n, words) || check_restrictions(c, where)) return -1;
    return check_relations(c, where->relations, where->n, t);
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

/* USING TIMESTAMP of the batch is that of each of its statements. */
int compat_check_batch(struct compile *c, const struct ast_stmt *ast) {
    const struct ast_batch *batch = &ast->batch;
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct schema_table *t = compat_table(c, ast_table(batch->stmts[i]));
        if (batch->using.timestamp && t && !schema_has_client_timestamps(t) &&
            compat_refuse(&c->compat, REFUSE_TIMESTAMP, c->err))
            return -1;
        if (compat_check(c, batch->stmts[i])) return -1;
    }
    return 0;
}
