/* How errors quote a value: as the texts of Cassandra's terms are (Term.Raw.getText). Recursion is
 * bounded by ast_expr.depth. */
#include "cql/syntax/ast.h"

static void quote_all(const char *open, const struct ast_expr *x, const char *close, struct buf *out) {
    buf_put_str(out, open);
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (i) buf_put_str(out, x->kind == EXPR_MAP && i % 2 ? ": " : ", ");
        if (x->kind == EXPR_UDT) buf_printf(out, "%s: ", x->names[i]);
        ast_quote_expr(x->args[i], out);
    }
    buf_put_str(out, close);
}

void ast_quote_expr(const struct ast_expr *x, struct buf *out) {
    static const char *const names[] = {[EXPR_NEG] = "negate", [EXPR_ADD] = "add",    [EXPR_SUB] = "substract",
                                        [EXPR_MUL] = "multiply", [EXPR_DIV] = "divide", [EXPR_MOD] = "modulo"};
    switch (x->kind) {
    case EXPR_LITERAL:
        if (x->literal == LIT_STRING) buf_printf(out, "'%.*s'", SLICE_FMT(x->text));
        else buf_put_slice(out, x->text);
        break;
    case EXPR_BIND: buf_u8(out, '?'); break;
    case EXPR_CALL:
        if (x->keyspace) {
            ast_print_name(x->keyspace, out);
            buf_u8(out, '.');
        }
        if (strcmp(x->name, "token") == 0) buf_put_str(out, x->name); /* reserved, and yet a function */
        else ast_print_name(x->name, out);
        quote_all("(", x, ")", out);
        break;
    case EXPR_CAST:
        buf_put_str(out, "system.cast_as_");
        ast_print_type(x->type, out);
        quote_all("(", x, ")", out);
        break;
    case EXPR_TYPE_HINT:
        buf_u8(out, '(');
        ast_print_type(x->type, out);
        quote_all(")", x, "", out);
        break;
    case EXPR_LIST: quote_all("[", x, "]", out); break;
    case EXPR_TUPLE: quote_all("(", x, ")", out); break;
    case EXPR_SET: case EXPR_MAP: case EXPR_UDT: quote_all("{", x, "}", out); break;
    case EXPR_NEG: case EXPR_ADD: case EXPR_SUB: case EXPR_MUL: case EXPR_DIV:
    case EXPR_MOD: /* an operator is a function whose name needs quotes */
        buf_printf(out, "system.\"_%s\"", names[x->kind]);
        quote_all("(", x, ")", out);
        break;
    case EXPR_NULL: buf_put_str(out, "NULL"); break;
    case EXPR_NAME: ast_print_name(x->name, out); break;
    case EXPR_STAR: buf_u8(out, '*'); break;
    case EXPR_FIELD:
        ast_quote_expr(x->args[0], out);
        buf_u8(out, '.');
        ast_print_name(x->name, out);
        break;
    case EXPR_ELEMENT: case EXPR_RANGE:
        ast_quote_expr(x->args[0], out);
        buf_u8(out, '[');
        if (x->args[1]) ast_quote_expr(x->args[1], out);
        if (x->kind == EXPR_RANGE) {
            buf_put_str(out, "..");
            if (x->args[2]) ast_quote_expr(x->args[2], out);
        }
        buf_u8(out, ']');
        break;
    }
}
