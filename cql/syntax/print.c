/* Canonical CQL of what statements are made of: names, types, terms, relations, selectors,
 * properties. Recursion is bounded by ast_expr.depth. */
#include "cql/syntax/print.h"
#include "cql/syntax/token.h"

/* ---- names ---- */

void ast_print_name(const char *name, struct buf *out) {
    cql_identifier_print(name, token_word_is_free(slice_str(name)), out);
}

void cqli_print_table(const struct ast_name *n, struct buf *out) {
    if (n->keyspace) {
        ast_print_name(n->keyspace, out);
        buf_put_str(out, ".");
    }
    ast_print_name(n->name, out);
}

void cqli_print_names(const char *const *names, uint32_t n, struct buf *out) {
    for (uint32_t i = 0; i < n; i++) {
        if (i) buf_put_str(out, ", ");
        ast_print_name(names[i], out);
    }
}

void cqli_print_string(struct slice s, struct buf *out) {
    buf_put_str(out, "'");
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\'') buf_put_str(out, "'");
        buf_put(out, s.p + i, 1);
    }
    buf_put_str(out, "'");
}

/* ---- types ---- */

void ast_print_type(const struct ast_type *t, struct buf *out) {
    if (t->quoted_class) {
        struct buf class;
        buf_init(&class, 0);
        cql_class_print(slice_str(t->name), &class);
        if (buf_failed(&class)) out->failed = true;
        cqli_print_string(buf_slice(&class), out);
        buf_fini(&class);
        return;
    }
    if (t->keyspace) {
        ast_print_name(t->keyspace, out);
        buf_put_str(out, ".");
    }
    bool generic = !strcmp(t->name, "frozen") || cql_type_generic(slice_str(t->name)) != CQL_TYPES;
    if (t->n_args && generic) buf_put_str(out, t->name); /* SET is reserved and still no quoted name here */
    else ast_print_name(t->name, out);
    if (!t->n_args) return;
    buf_put_str(out, "<");
    for (uint32_t i = 0; i < t->n_args; i++) {
        if (i) buf_put_str(out, ", ");
        ast_print_type(t->args[i], out);
    }
    if (t->dimension) buf_printf(out, ", %u", t->dimension);
    buf_put_str(out, ">");
}

/* ---- expressions ---- */

void cqli_print_exprs(struct ast_expr *const *x, uint32_t n, struct buf *out) {
    for (uint32_t i = 0; i < n; i++) {
        if (i) buf_put_str(out, ", ");
        ast_print_expr(x[i], out);
    }
}

static void print_pairs(const struct ast_expr *x, struct buf *out) {
    buf_put_str(out, "{");
    uint32_t step = x->kind == EXPR_MAP ? 2 : 1;
    for (uint32_t i = 0; i < x->n_args; i += step) {
        if (i) buf_put_str(out, ", ");
        if (x->kind == EXPR_UDT) ast_print_name(x->names[i], out);
        else ast_print_expr(x->args[i], out);
        buf_put_str(out, ": ");
        ast_print_expr(x->args[i + step - 1], out);
    }
    buf_put_str(out, "}");
}

static void print_list(const char *open, const struct ast_expr *x, const char *close, struct buf *out) {
    buf_put_str(out, open);
    cqli_print_exprs(x->args, x->n_args, out);
    buf_put_str(out, close);
}

static void print_subscript(const struct ast_expr *x, struct buf *out) {
    ast_print_expr(x->args[0], out);
    buf_put_str(out, "[");
    if (x->args[1]) ast_print_expr(x->args[1], out);
    if (x->kind == EXPR_RANGE) {
        buf_put_str(out, "..");
        if (x->args[2]) ast_print_expr(x->args[2], out);
    }
    buf_put_str(out, "]");
}

static void print_call(const struct ast_expr *x, struct buf *out) {
    if (x->keyspace) {
        ast_print_name(x->keyspace, out);
        buf_put_str(out, ".");
    }
    if (!strcmp(x->name, "token")) buf_put_str(out, x->name); /* reserved, and yet a function */
    else ast_print_name(x->name, out);
    print_list("(", x, ")", out);
}

void ast_print_expr(const struct ast_expr *x, struct buf *out) {
    static const char *const ops[] = {
        [EXPR_ADD] = " + ", [EXPR_SUB] = " - ", [EXPR_MUL] = " * ", [EXPR_DIV] = " / ", [EXPR_MOD] = " % ",
    };
    switch (x->kind) {
    case EXPR_LITERAL:
        if (x->literal == LIT_STRING) cqli_print_string(x->text, out);
        else buf_put_slice(out, x->text);
        break;
    case EXPR_NULL: buf_put_str(out, "NULL"); break;
    case EXPR_BIND:
        buf_put_str(out, x->name ? ":" : "?");
        if (x->name) ast_print_name(x->name, out);
        break;
    case EXPR_NAME: ast_print_name(x->name, out); break;
    case EXPR_STAR: buf_put_str(out, "*"); break;
    case EXPR_FIELD:
        ast_print_expr(x->args[0], out);
        buf_put_str(out, ".");
        ast_print_name(x->name, out);
        break;
    case EXPR_ELEMENT:
    case EXPR_RANGE: print_subscript(x, out); break;
    case EXPR_CALL: print_call(x, out); break;
    case EXPR_CAST:
        buf_put_str(out, "CAST(");
        ast_print_expr(x->args[0], out);
        buf_put_str(out, " AS ");
        ast_print_type(x->type, out);
        buf_put_str(out, ")");
        break;
    case EXPR_TYPE_HINT:
        buf_put_str(out, "(");
        ast_print_type(x->type, out);
        buf_put_str(out, ") ");
        ast_print_expr(x->args[0], out);
        break;
    case EXPR_LIST: print_list("[", x, "]", out); break;
    case EXPR_SET: print_list("{", x, "}", out); break;
    case EXPR_TUPLE: print_list("(", x, ")", out); break;
    case EXPR_MAP:
    case EXPR_UDT: print_pairs(x, out); break;
    case EXPR_NEG:
        buf_put_str(out, "- "); /* the blank keeps it from becoming the sign of a number, or a comment */
        ast_print_expr(x->args[0], out);
        break;
    case EXPR_ADD:
    case EXPR_SUB:
    case EXPR_MUL:
    case EXPR_DIV:
    case EXPR_MOD:
        ast_print_expr(x->args[0], out);
        buf_put_str(out, ops[x->kind]);
        ast_print_expr(x->args[1], out);
        break;
    }
}

/* ---- relations ---- */

static void print_lhs(const struct ast_relation *r, struct buf *out) {
    if (r->kind == REL_COLUMN) {
        ast_print_name(r->lhs[0], out);
        if (r->element) {
            buf_put_str(out, "[");
            ast_print_expr(r->element, out);
            buf_put_str(out, "]");
        }
        if (r->field) {
            buf_put_str(out, ".");
            ast_print_name(r->field, out);
        }
        return;
    }
    buf_put_str(out, r->kind == REL_TOKEN ? "TOKEN(" : "(");
    cqli_print_names(r->lhs, r->n_lhs, out);
    buf_put_str(out, ")");
}

static void print_relation(const struct ast_relation *r, struct buf *out) {
    if (r->kind == REL_CUSTOM) {
        buf_put_str(out, "expr(");
        cqli_print_table(&r->index, out);
        buf_put_str(out, ", ");
        ast_print_expr(r->value, out);
        buf_put_str(out, ")");
        return;
    }
    print_lhs(r, out);
    buf_printf(out, " %s", ast_op_text(r->op));
    if (r->in_list) {
        buf_put_str(out, " (");
        cqli_print_exprs(r->values, r->n_values, out);
        buf_put_str(out, ")");
    } else if (r->value) {
        buf_put_str(out, " ");
        ast_print_expr(r->value, out);
    }
}

void cqli_print_relations(const char *lead, struct ast_relation *const *r, uint32_t n, struct buf *out) {
    for (uint32_t i = 0; i < n; i++) {
        buf_put_str(out, i ? " AND " : lead);
        print_relation(r[i], out);
    }
}

void cqli_print_where(const struct ast_where *w, struct buf *out) {
    cqli_print_relations(" WHERE ", w->relations, w->n, out);
}

/* ---- selectors ---- */

void cqli_print_selectors(const struct ast_selector *s, uint32_t n, struct buf *out) {
    for (uint32_t i = 0; i < n; i++) {
        if (i) buf_put_str(out, ", ");
        ast_print_expr(s[i].expr, out);
        if (!s[i].alias) continue;
        buf_put_str(out, " AS ");
        ast_print_name(s[i].alias, out);
    }
}

/* ---- properties ---- */

void ast_print_prop(const struct ast_prop_value *v, struct buf *out) {
    if (v->kind == PROP_LITERAL && v->literal == LIT_STRING) {
        cqli_print_string(v->text, out);
    } else if (v->kind != PROP_MAP) {
        buf_put_slice(out, v->text);
    } else {
        buf_put_str(out, "{");
        for (uint32_t i = 0; i < v->n; i++) {
            if (i) buf_put_str(out, ", ");
            ast_print_prop(v->keys[i], out);
            buf_put_str(out, ": ");
            ast_print_prop(v->values[i], out);
        }
        buf_put_str(out, "}");
    }
}

void cqli_print_props(const struct ast_props *p, struct buf *out) {
    const char *lead = " WITH ";
    if (p->compact_storage) {
        buf_printf(out, "%sCOMPACT STORAGE", lead);
        lead = " AND ";
    }
    if (p->n_order) {
        buf_printf(out, "%sCLUSTERING ORDER BY (", lead);
        for (uint32_t i = 0; i < p->n_order; i++) {
            if (i) buf_put_str(out, ", ");
            ast_print_name(p->order[i].column, out);
            buf_put_str(out, p->order[i].desc ? " DESC" : " ASC");
        }
        buf_put_str(out, ")");
        lead = " AND ";
    }
    for (uint32_t i = 0; i < p->n; i++) {
        buf_put_str(out, lead);
        ast_print_name(p->props[i].name, out);
        buf_put_str(out, " = ");
        ast_print_prop(p->props[i].value, out);
        lead = " AND ";
    }
}

void cqli_print_key(const char *const *pk, uint32_t n_pk, const char *const *ck, uint32_t n_ck, struct buf *out) {
    buf_put_str(out, "PRIMARY KEY (");
    cqli_print_if(n_pk > 1, "(", out);
    cqli_print_names(pk, n_pk, out);
    cqli_print_if(n_pk > 1, ")", out);
    cqli_print_if(n_ck > 0, ", ", out);
    cqli_print_names(ck, n_ck, out);
    buf_put_str(out, ")");
}
