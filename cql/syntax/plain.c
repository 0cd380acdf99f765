/* cqli_plain: token by token, with one token of look-ahead in p->ahead. */
#include "cql/syntax/build.h"
#include "cql/syntax/grammar.h"

static struct token take(struct parse *p) {
    p->prev = p->ahead;
    p->ahead = token_next(&p->reader);
    return p->prev;
}

static bool accept(struct parse *p, uint16_t code) {
    bool is = p->ahead.code == code;
    if (is) take(p);
    return is;
}

/* A word that is none of CQL's, or a quoted name. */
static bool at_name(const struct parse *p) { return p->ahead.code == T_IDENT || p->ahead.code == T_QNAME; }
static const char *take_name(struct parse *p) { return cqli_ident(p, take(p)); }

static bool read_table(struct parse *p, struct ast_name *out) {
    if (!at_name(p)) return false;
    *out = cqli_name(NULL, take_name(p));
    if (!accept(p, T_DOT)) return true;
    if (!at_name(p)) return false;
    *out = cqli_name(out->name, take_name(p));
    return true;
}

/* Returns NULL if it is something else. */
static struct ast_expr *read_value(struct parse *p) {
    switch (p->ahead.code) {
    case T_STRING: return cqli_literal(p, LIT_STRING, take(p));
    case T_INTEGER: return cqli_literal(p, LIT_INTEGER, take(p));
    case T_FLOAT: return cqli_literal(p, LIT_FLOAT, take(p));
    case T_BOOLEAN: return cqli_literal(p, LIT_BOOLEAN, take(p));
    case T_UUID: return cqli_literal(p, LIT_UUID, take(p));
    case T_HEX: return cqli_literal(p, LIT_HEX, take(p));
    case T_NULL: return cqli_null(p, take(p));
    case T_QMARK: return cqli_bind(p, NULL, take(p));
    default: return NULL;
    }
}

/* ---- SELECT ---- */

static bool read_selectors(struct parse *p, struct seq *out) {
    if (p->ahead.code == T_STAR) {
        struct ast_selector star = {.expr = cqli_expr(p, EXPR_STAR, take(p).text.p, 0, NULL)};
        cqli_push(p, out, &star);
        return true;
    }
    do {
        if (!at_name(p)) return false;
        struct token t = take(p);
        struct ast_selector s = {.expr = cqli_column(p, cqli_ident(p, t), t)};
        cqli_push(p, out, &s);
    } while (accept(p, T_COMMA));
    return true;
}

static bool read_relations(struct parse *p, struct seq *out) {
    do {
        enum ast_op op;
        if (!at_name(p)) return false;
        struct seq *column = cqli_one_name(p, take_name(p));
        switch (p->ahead.code) {
        case T_EQ: op = OP_EQ; break;
        case T_LT: op = OP_LT; break;
        case T_LTE: op = OP_LTE; break;
        case T_GT: op = OP_GT; break;
        case T_GTE: op = OP_GTE; break;
        default: return false;
        }
        take(p);
        struct ast_expr *value = read_value(p);
        if (!value) return false;
        struct ast_relation *relation = cqli_relation(p, REL_COLUMN, column, op, value);
        cqli_push(p, out, &relation);
    } while (accept(p, T_AND));
    return true;
}

static struct ast_stmt *read_select(struct parse *p) {
    struct token first = take(p);
    struct ast_select select = {0};
    struct seq *selectors = SEQ(p, struct ast_selector), *relations = NULL;
    if (!read_selectors(p, selectors) || !accept(p, T_FROM) || !read_table(p, &select.table)) return NULL;
    if (accept(p, T_WHERE) && !read_relations(p, relations = SEQ(p, struct ast_relation *))) return NULL;
    if (accept(p, T_LIMIT)) {
        if (p->ahead.code != T_INTEGER && p->ahead.code != T_QMARK) return NULL;
        select.limit = read_value(p);
    }
    struct ast_stmt *s = cqli_stmt(p, STMT_SELECT, first);
    select.n_selectors = selectors->n;
    select.selectors = selectors->p;
    select.where = cqli_where(relations);
    s->select = select;
    return s;
}

/* ---- INSERT ---- */

static struct ast_stmt *read_insert(struct parse *p) {
    struct token first = take(p);
    struct ast_insert insert = {0};
    struct seq *columns = SEQ(p, const char *), *values = SEQ(p, struct ast_expr *);
    if (!accept(p, T_INTO) || !read_table(p, &insert.table) || !accept(p, T_LP)) return NULL;
    do {
        if (!at_name(p)) return NULL;
        const char *name = take_name(p);
        cqli_push(p, columns, &name);
    } while (accept(p, T_COMMA));
    if (!accept(p, T_RP) || !accept(p, T_VALUES) || !accept(p, T_LP)) return NULL;
    do {
        struct ast_expr *value = read_value(p);
        if (!value) return NULL;
        cqli_push(p, values, &value);
    } while (accept(p, T_COMMA));
    if (!accept(p, T_RP)) return NULL;
    struct ast_stmt *s = cqli_stmt(p, STMT_INSERT, first);
    insert.n_columns = columns->n < values->n ? columns->n : values->n;
    insert.unmatched = columns->n != values->n;
    insert.columns = columns->p;
    insert.values = values->p;
    s->insert = insert;
    return s;
}

/* ---- the door ---- */

struct ast_stmt *cqli_plain(struct parse *p) {
    struct ast_stmt *s = NULL;
    p->ahead = token_next(&p->reader);
    if (p->ahead.code == T_SELECT) s = read_select(p);
    else if (p->ahead.code == T_INSERT) s = read_insert(p);
    if (!s) return NULL;
    cqli_stmt_end(p, s);
    while (accept(p, T_SEMI)) continue;
    return !p->ahead.code && !p->failed && !p->rejected && !p->noted ? s : NULL;
}
