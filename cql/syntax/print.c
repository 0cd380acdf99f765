/* Names and types as CQL. */
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
