/* Nodes of expressions and relations. */
#include "cql/syntax/build.h"

/* ---- expressions ---- */

static struct slice source_from(const struct parse *p, const uint8_t *first) {
    const uint8_t *end = p->prev.text.p + p->prev.text.n;
    return slice_of(first, end > first ? (size_t)(end - first) : 0);
}

static struct ast_expr *leaf(struct parse *p, enum ast_expr_kind kind, struct token t) {
    struct ast_expr *x = NEW(p, struct ast_expr);
    x->kind = kind;
    x->source = t.text;
    return x;
}

struct ast_expr *cqli_literal(struct parse *p, enum cql_literal kind, struct token t) {
    struct ast_expr *x = leaf(p, EXPR_LITERAL, t);
    x->literal = kind;
    x->text = cqli_token_text(p, t);
    if (kind != LIT_FLOAT) return x;
    /* A float of a statement must fit into a double, whatever its column's type is: Cassandra's parser reads
     * it as a Java double, and then reads the text of the double, "Infinity", as a decimal. */
    struct err ignored = {0};
    struct buf wire;
    buf_init(&wire, 0);
    int rc = cql_literal_parse(cql_type_scalar(CQL_DOUBLE), LIT_FLOAT, x->text, "", (struct cql_reading){0}, &wire,
                               &ignored);
    bool infinite = rc == 0 && wire.n == 8 && load_u64(wire.p) << 1 >> 1 == UINT64_C(0x7FF0000000000000);
    buf_fini(&wire);
    if (infinite)
        cqli_refuse(p, "Failed parsing statement: [%.*s] reason: NumberFormatException Character I is neither a "
                       "decimal digit number, decimal point, nor \"e\" notation exponential mark.",
                    SLICE_FMT(p->text));
    return x;
}

struct ast_expr *cqli_float(struct parse *p, const char *text, struct token t) {
    struct ast_expr *x = leaf(p, EXPR_LITERAL, t);
    x->literal = LIT_FLOAT;
    x->text = slice_str(text);
    return x;
}

struct ast_expr *cqli_null(struct parse *p, struct token t) { return leaf(p, EXPR_NULL, t); }

struct ast_expr *cqli_bind(struct parse *p, const char *name, struct token first) {
    struct ast_expr *x = leaf(p, EXPR_BIND, first);
    if (name) x->source = source_from(p, first.text.p);
    x->name = name;
    x->bind = (int32_t)p->binds->n;
    cqli_push(p, p->binds, &name);
    return x;
}

struct ast_expr *cqli_column(struct parse *p, const char *name, struct token t) {
    struct ast_expr *x = leaf(p, EXPR_NAME, t);
    x->name = name;
    return x;
}

static void set_args(struct parse *p, struct ast_expr *x, uint32_t n, struct ast_expr **args) {
    x->n_args = n;
    x->args = args;
    for (uint32_t i = 0; i < n; i++)
        if (args[i] && args[i]->depth >= x->depth) x->depth = (uint16_t)(args[i]->depth + 1);
    if (x->depth > EXPR_DEPTH_MAX) cqli_refuse(p, "The expression is nested too deeply");
}

struct ast_expr *cqli_expr(struct parse *p, enum ast_expr_kind kind, const uint8_t *first, uint32_t n,
                           struct ast_expr *const *args) {
    struct ast_expr *x = NEW(p, struct ast_expr);
    x->kind = kind;
    x->source = source_from(p, first);
    if (!n) return x;
    struct ast_expr **copy = cqli_new(p, n * sizeof(*copy));
    if (p->failed) return x;
    memcpy(copy, args, n * sizeof(*copy));
    set_args(p, x, n, copy);
    return x;
}

struct ast_expr *cqli_expr1(struct parse *p, enum ast_expr_kind kind, const uint8_t *first, struct ast_expr *a) {
    return cqli_expr(p, kind, first, 1, &a);
}

struct ast_expr *cqli_expr2(struct parse *p, enum ast_expr_kind kind, struct ast_expr *a, struct ast_expr *b) {
    struct ast_expr *args[] = {a, b};
    return cqli_expr(p, kind, a->source.p, 2, args);
}

struct ast_expr *cqli_seq_expr(struct parse *p, enum ast_expr_kind kind, struct token first, struct seq *args) {
    /* In a selector every map is read as {expr: expr}; it is a UDT when all keys are bare names. */
    struct ast_expr *const *items = p->failed ? NULL : args->p;
    bool is_udt = kind == EXPR_MAP && !p->failed && args->n;
    for (uint32_t i = 0; is_udt && i < args->n; i += 2) is_udt = items[i]->kind == EXPR_NAME;
    if (is_udt) {
        struct seq *fields = SEQ(p, struct udt_field);
        for (uint32_t i = 0; i + 1 < args->n; i += 2) {
            struct udt_field field = {.name = items[i]->name, .value = items[i + 1]};
            cqli_push(p, fields, &field);
        }
        return cqli_udt(p, first, fields);
    }
    struct ast_expr *x = cqli_expr(p, kind, first.text.p, 0, NULL);
    if (!p->failed) set_args(p, x, args->n, args->p);
    return x;
}

struct ast_expr *cqli_udt(struct parse *p, struct token first, struct seq *fields) {
    struct ast_expr *x = cqli_expr(p, EXPR_UDT, first.text.p, 0, NULL);
    const char **names = cqli_new(p, fields->n * sizeof(*names));
    struct ast_expr **values = cqli_new(p, fields->n * sizeof(*values));
    if (p->failed) return x;
    const struct udt_field *f = fields->p;
    for (uint32_t i = 0; i < fields->n; i++) names[i] = f[i].name, values[i] = f[i].value;
    x->names = names;
    set_args(p, x, fields->n, values);
    return x;
}

struct ast_expr *cqli_call(struct parse *p, struct ast_name f, const uint8_t *first, struct seq *args) {
    struct ast_expr *x = cqli_expr(p, EXPR_CALL, first, 0, NULL);
    x->keyspace = f.keyspace;
    x->name = f.name;
    if (!p->failed) set_args(p, x, args->n, args->p);
    return x;
}

struct ast_expr *cqli_call_chain(struct parse *p, struct ast_expr *chain, struct seq *args, struct token paren) {
    const uint8_t *first = chain->source.p;
    if (chain->kind == EXPR_NAME) {
        struct ast_expr *x = cqli_call(p, cqli_name(NULL, chain->name), first, args);
        x->quoted = *first == '"';
        bool is_time = !p->failed && !x->quoted &&
                       (!strcmp(x->name, "ttl") || !strcmp(x->name, "writetime") || !strcmp(x->name, "maxwritetime"));
        if (is_time) {
            /* In Cassandra's grammar these take a column, or an element or field of one. */
            const struct ast_expr *of = x->n_args == 1 ? x->args[0] : NULL;
            while (of && (of->kind == EXPR_FIELD || of->kind == EXPR_ELEMENT || of->kind == EXPR_RANGE))
                of = of->args[0];
            if (!of || of->kind != EXPR_NAME) cqli_reject(p, p->prev);
        } else if (!x->quoted && cqli_is_no_function(slice_str(x->name))) {
            cqli_reject(p, paren);
        }
        return x;
    }
    bool qualified = chain->kind == EXPR_FIELD && chain->n_args == 1 && chain->args[0]->kind == EXPR_NAME;
    bool quoted = chain->source.p[chain->source.n - 1] == '"';
    if (!qualified || (!quoted && cqli_is_no_function(slice_str(chain->name)))) cqli_reject(p, paren);
    return qualified ? cqli_call(p, cqli_name(chain->args[0]->name, chain->name), first, args) : chain;
}

struct ast_expr *cqli_call_star(struct parse *p, struct ast_expr *chain, struct token star) {
    bool quoted = chain->source.p && *chain->source.p == '"';
    if (chain->kind != EXPR_NAME || quoted || strcmp(chain->name, "count")) {
        cqli_reject(p, star);
        return chain;
    }
    struct ast_expr *x = leaf(p, EXPR_STAR, star);
    return cqli_call(p, cqli_name(NULL, chain->name), chain->source.p, cqli_push(p, SEQ(p, struct ast_expr *), &x));
}

struct ast_expr *cqli_field(struct parse *p, struct ast_expr *of, const char *field) {
    struct ast_expr *x = cqli_expr1(p, EXPR_FIELD, of->source.p, of);
    x->name = field;
    return x;
}

struct ast_expr *cqli_cast(struct parse *p, struct token first, struct ast_expr *x, struct ast_type *t) {
    struct ast_expr *c = cqli_expr1(p, EXPR_CAST, first.text.p, x);
    c->type = t;
    return c;
}

/* A type hint applies to the first name of the expression that follows it: (u) x.a means ((u) x).a. */
struct ast_expr *cqli_hint(struct parse *p, struct token first, struct ast_type *t, struct ast_expr *x) {
    bool selects = x->kind == EXPR_FIELD || x->kind == EXPR_ELEMENT || x->kind == EXPR_RANGE;
    if (p->failed) return x;
    const uint8_t *end = x->source.p + x->source.n;
    struct ast_expr *h = selects ? x : cqli_expr1(p, EXPR_TYPE_HINT, first.text.p, x);
    if (selects) {
        x->args[0] = cqli_hint(p, first, t, x->args[0]);
        set_args(p, x, x->n_args, x->args);
    } else {
        h->type = t;
    }
    h->source = slice_of(first.text.p, (size_t)(end - first.text.p));
    return h;
}

struct ast_expr *cqli_hint_expr(struct parse *p, struct token first, struct seq *exprs, struct ast_expr *x) {
    if (p->failed) return x;
    const struct ast_expr *only = exprs->n == 1 ? *(struct ast_expr *const *)exprs->p : NULL;
    struct token at = {.code = 1, .text = x->source}, type_at = {.code = 1, .text = only ? only->source : x->source};
    struct ast_type *t;
    if (only && only->kind == EXPR_NAME) {
        t = cqli_type(p, NULL, only->name, type_at);
    } else if (only && only->kind == EXPR_FIELD && only->args[0]->kind == EXPR_NAME) {
        t = cqli_type(p, only->args[0]->name, only->name, type_at);
    } else if (only && only->kind == EXPR_LITERAL && only->literal == LIT_STRING) {
        t = cqli_type_class(p, (struct token){.code = 1, .text = only->source});
    } else {
        cqli_reject(p, at);
        return x;
    }
    return cqli_hint(p, first, t, x);
}

/* ---- relations ---- */

struct seq *cqli_one_name(struct parse *p, const char *name) { return cqli_push(p, SEQ(p, const char *), &name); }

struct ast_relation *cqli_relation(struct parse *p, enum ast_relation_kind kind, struct seq *lhs, enum ast_op op,
                                   struct ast_expr *value) {
    struct ast_relation *r = NEW(p, struct ast_relation);
    *r = (struct ast_relation){.kind = kind, .op = op, .value = value};
    if (lhs) r->n_lhs = lhs->n, r->lhs = lhs->p;
    return r;
}

struct ast_relation *cqli_in(struct parse *p, struct ast_relation *r, struct seq *values) {
    (void)p;
    r->in_list = true;
    r->n_values = values->n;
    r->values = values->p;
    return r;
}

struct ast_where cqli_where(struct seq *relations) {
    return relations ? (struct ast_where){.n = relations->n, .relations = relations->p} : (struct ast_where){0};
}
