/* Names and types as CQL; expressions as errors quote them, which is Term.Raw.getText of Cassandra, and as
 * result columns without an alias are named, which is ColumnIdentifier: in lower case, functions with their
 * keyspace. Recursion is bounded by ast_expr.depth. */
#include "cql/syntax/ast.h"
#include "cql/syntax/token.h"

void ast_print_name(const char *name, struct buf *out) {
    cql_identifier_print(name, token_word_is_free(slice_str(name)), out);
}

void ast_print_type(const struct ast_type *t, struct buf *out) {
    if (t->quoted_class) {
        struct buf class;
        buf_init(&class, 0);
        cql_class_print(slice_str(t->name), &class);
        if (buf_failed(&class)) out->failed = true;
        struct slice s = buf_slice(&class);
        buf_put_str(out, "'");
        for (size_t i = 0; i < s.n; i++) {
            if (s.p[i] == '\'') buf_put_str(out, "'");
            buf_put(out, s.p + i, 1);
        }
        buf_put_str(out, "'");
        buf_fini(&class);
        return;
    }
    if (t->keyspace) {
        ast_print_name(t->keyspace, out);
        buf_put_str(out, ".");
    }
    bool generic = !strcmp(t->name, "frozen") || cql_type_generic(slice_str(t->name)) != CQL_TYPES;
    if (t->n_args && generic) buf_put_str(out, t->name); /* SET is reserved, but not quoted here */
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

static void print(const struct ast_expr *x, bool name, struct buf *out);

static void print_all(const char *open, const struct ast_expr *x, const char *close, bool name, struct buf *out) {
    buf_put_str(out, open);
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (i) buf_put_str(out, x->kind == EXPR_MAP && i % 2 ? ": " : ", ");
        if (x->kind == EXPR_UDT) buf_printf(out, "%s: ", x->names[i]);
        print(x->args[i], name, out);
    }
    buf_put_str(out, close);
}

/* In a name functions have a keyspace, WRITETIME and TTL none, JSON functions their old names. */
static void print_call(const struct ast_expr *x, bool name, struct buf *out) {
    bool count = !strcmp(x->name, "count") && x->n_args == 1 &&
                 (x->args[0]->kind == EXPR_STAR || x->args[0]->kind == EXPR_LITERAL);
    if (name && (count || !strcmp(x->name, "countRows"))) {
        buf_put_str(out, "count");
        return;
    }
    bool of_column = !strcmp(x->name, "writetime") || !strcmp(x->name, "ttl") || !strcmp(x->name, "maxwritetime");
    if (name && !of_column) buf_printf(out, "%s.", x->keyspace ? x->keyspace : "system");
    if (!name && x->keyspace) {
        ast_print_name(x->keyspace, out);
        buf_u8(out, '.');
    }
    if (name && !strcmp(x->name, "to_json")) buf_put_str(out, "tojson");
    else if (name && !strcmp(x->name, "from_json")) buf_put_str(out, "fromjson");
    else if (name || strcmp(x->name, "token") == 0) buf_put_str(out, x->name); /* reserved, but also a function */
    else ast_print_name(x->name, out);
    print_all("(", x, ")", name, out);
}

/* In an error an operator is a function, whose name needs quotes. */
static void print_operator(const struct ast_expr *x, bool name, struct buf *out) {
    static const char *const names[] = {[EXPR_NEG] = "negate", [EXPR_ADD] = "add", [EXPR_SUB] = "substract",
                                        [EXPR_MUL] = "multiply", [EXPR_DIV] = "divide", [EXPR_MOD] = "modulo"};
    static const char *const signs[] = {[EXPR_ADD] = " + ", [EXPR_SUB] = " - ", [EXPR_MUL] = " * ",
                                        [EXPR_DIV] = " / ", [EXPR_MOD] = " % "};
    if (!name) {
        buf_printf(out, "system.\"_%s\"", names[x->kind]);
        print_all("(", x, ")", false, out);
        return;
    }
    if (x->kind == EXPR_NEG) buf_u8(out, '-');
    print(x->args[0], true, out);
    if (x->kind == EXPR_NEG) return;
    buf_put_str(out, signs[x->kind]);
    print(x->args[1], true, out);
}

static void print(const struct ast_expr *x, bool name, struct buf *out) {
    switch (x->kind) {
    case EXPR_LITERAL:
        if (x->literal == LIT_STRING) buf_printf(out, "'%.*s'", SLICE_FMT(x->text));
        else buf_put_slice(out, x->text);
        break;
    case EXPR_BIND: buf_u8(out, '?'); break;
    case EXPR_CALL: print_call(x, name, out); break;
    case EXPR_CAST:
        if (name) {
            print_all("cast(", x, " as ", true, out);
            ast_print_type(x->type, out);
            buf_u8(out, ')');
            break;
        }
        buf_put_str(out, "system.cast_as_");
        ast_print_type(x->type, out);
        print_all("(", x, ")", false, out);
        break;
    case EXPR_TYPE_HINT:
        buf_u8(out, '(');
        ast_print_type(x->type, out);
        print_all(")", x, "", name, out);
        break;
    case EXPR_LIST: print_all("[", x, "]", name, out); break;
    case EXPR_TUPLE: print_all("(", x, ")", name, out); break;
    case EXPR_SET: case EXPR_MAP: case EXPR_UDT: print_all("{", x, "}", name, out); break;
    case EXPR_NEG: case EXPR_ADD: case EXPR_SUB: case EXPR_MUL: case EXPR_DIV: case EXPR_MOD:
        print_operator(x, name, out);
        break;
    case EXPR_NULL: buf_put_str(out, "NULL"); break;
    case EXPR_STAR: buf_u8(out, '*'); break;
    case EXPR_FIELD:
        print(x->args[0], name, out);
        buf_u8(out, '.');
        if (name) buf_put_str(out, x->name);
        else ast_print_name(x->name, out);
        break;
    case EXPR_NAME:
        if (name) buf_put_str(out, x->name);
        else ast_print_name(x->name, out);
        break;
    case EXPR_ELEMENT: case EXPR_RANGE: /* keys are values, also in a name */
        print(x->args[0], name, out);
        buf_u8(out, '[');
        if (x->args[1]) print(x->args[1], false, out);
        if (x->kind == EXPR_RANGE) buf_put_str(out, "..");
        if (x->kind == EXPR_RANGE && x->args[2]) print(x->args[2], false, out);
        buf_u8(out, ']');
        break;
    }
}

void ast_quote_expr(const struct ast_expr *x, struct buf *out) { print(x, false, out); }
void ast_print_selector(const struct ast_expr *x, struct buf *out) { print(x, true, out); }
