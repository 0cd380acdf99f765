/* Names of result columns without an alias, as Cassandra's ColumnIdentifier texts are: an
 * expression in lower case, functions with their keyspace. */
#include "cql/expr/selector.h"
#include "cql/expr/term.h"

static void print_args(const struct ast_expr *x, struct buf *b) {
    buf_u8(b, '(');
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (i) buf_put_str(b, ", ");
        selector_print_name(x->args[i], b);
    }
    buf_u8(b, ')');
}

static void print_items(const struct ast_expr *x, char open, char close, struct buf *b) {
    buf_u8(b, (uint8_t)open);
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (i) buf_put_str(b, x->kind == EXPR_MAP && i % 2 ? ": " : ", ");
        if (x->kind == EXPR_UDT) buf_printf(b, "%s: ", x->names[i]);
        selector_print_name(x->args[i], b);
    }
    buf_u8(b, (uint8_t)close);
}

static bool is_named(const struct ast_expr *x, const char *name) { return !strcmp(x->name, name); }

void selector_print_name(const struct ast_expr *x, struct buf *b) {
    static const char *const signs[] = {" + ", " - ", " * ", " / ", " % "};
    switch (x->kind) {
    case EXPR_NAME: buf_put_str(b, x->name); return;
    case EXPR_CALL: {
        /* WRITETIME and TTL are shown without a keyspace, functions with one; JSON functions by old
         * names. */
        bool rows = is_named(x, "count") && x->n_args == 1 &&
                    (x->args[0]->kind == EXPR_STAR || x->args[0]->kind == EXPR_LITERAL);
        if (rows || is_named(x, "countRows")) {
            buf_put_str(b, "count");
            return;
        }
        bool of_column = is_named(x, "writetime") || is_named(x, "ttl") || is_named(x, "maxwritetime");
        if (!of_column) buf_printf(b, "%s.", x->keyspace ? x->keyspace : "system");
        const char *name = is_named(x, "to_json") ? "tojson" : is_named(x, "from_json") ? "fromjson" : x->name;
        buf_put_str(b, name);
        print_args(x, b);
        return;
    }
    case EXPR_CAST:
        buf_put_str(b, "cast(");
        selector_print_name(x->args[0], b);
        buf_put_str(b, " as ");
        ast_print_type(x->type, b);
        buf_u8(b, ')');
        return;
    case EXPR_FIELD:
        selector_print_name(x->args[0], b);
        buf_printf(b, ".%s", x->name);
        return;
    case EXPR_ELEMENT: case EXPR_RANGE:
        selector_print_name(x->args[0], b);
        buf_u8(b, '[');
        if (x->args[1]) ast_quote_expr(x->args[1], b);
        if (x->kind == EXPR_RANGE) buf_put_str(b, "..");
        if (x->kind == EXPR_RANGE && x->args[2]) ast_quote_expr(x->args[2], b);
        buf_u8(b, ']');
        return;
    case EXPR_ADD: case EXPR_SUB: case EXPR_MUL: case EXPR_DIV: case EXPR_MOD:
        selector_print_name(x->args[0], b);
        buf_put_str(b, signs[x->kind - EXPR_ADD]);
        selector_print_name(x->args[1], b);
        return;
    case EXPR_TYPE_HINT:
        buf_u8(b, '(');
        ast_print_type(x->type, b);
        buf_u8(b, ')');
        selector_print_name(x->args[0], b);
        return;
    case EXPR_TUPLE: print_args(x, b); return;
    case EXPR_LIST: print_items(x, '[', ']', b); return;
    case EXPR_SET: case EXPR_MAP: case EXPR_UDT: print_items(x, '{', '}', b); return;
    case EXPR_NEG:
        buf_u8(b, '-');
        selector_print_name(x->args[0], b);
        return;
    default: ast_quote_expr(x, b);
    }
}

/* Whether the value has the cast's type already: compiles it with a scratch state to see its
 * type. */
static bool is_no_cast(struct compile *c, const struct ast_expr *x) {
    struct err ignored = {0};
    struct term_scope tried = *c->scope;
    struct compile scratch = *c;
    struct receiver any = receiver_of(c->scope->table, "", NULL);
    scratch.err = &ignored;
    scratch.scope = &tried;
    const struct cql_type *to = compile_type(&scratch, x->type);
    const struct term *t = to ? term_compile(&scratch, x->args[0], &any) : NULL;
    return t && cql_type_eq(t->type, to);
}

/* Drops casts to the type that a value has already: names do not show them. NULL: no memory. */
static const struct ast_expr *without_casts(struct compile *c, const struct ast_expr *x) {
    if (x->kind == EXPR_CAST && is_no_cast(c, x)) return without_casts(c, x->args[0]);
    struct ast_expr *copy = NULL;
    for (uint32_t i = 0; i < x->n_args; i++) {
        const struct ast_expr *bare = x->args[i] ? without_casts(c, x->args[i]) : NULL;
        if (bare == x->args[i]) continue;
        if (!bare) return NULL;
        if (!copy) {
            struct ast_expr **args = ARENA_ARRAY(c->arena, x->n_args, struct ast_expr *);
            copy = ARENA_NEW(c->arena, struct ast_expr);
            if (!copy || !args) return NULL;
            memcpy(args, x->args, x->n_args * sizeof *args);
            *copy = *x;
            copy->args = args;
        }
        copy->args[i] = (struct ast_expr *)(uintptr_t)bare;
    }
    return copy ? copy : x;
}

enum { NAME_MAX_BYTES = UINT16_MAX, CASTS_MAX_BYTES = 8192 /* of the casts that are dropped from a name */ };

/* A text too long for a name is not searched for casts: a cast is compiled once more for each cast
 * around it. */
const char *selector_name(struct compile *c, const struct ast_expr *x) {
    if (LIKELY(x->kind == EXPR_NAME && strlen(x->name) <= NAME_MAX_BYTES)) return x->name;
    struct buf b;
    buf_init(&b, NAME_MAX_BYTES + CASTS_MAX_BYTES);
    selector_print_name(x, &b);
    const struct ast_expr *named = c->scope && !buf_failed(&b) ? without_casts(c, x) : x;
    if (named && named != x) {
        buf_clear(&b, NAME_MAX_BYTES);
        selector_print_name(named, &b);
    }
    bool over = b.over || b.n > NAME_MAX_BYTES;
    struct slice s = named && !buf_failed(&b) && !over ? arena_dup(c->arena, buf_slice(&b)) : (struct slice){0};
    buf_fini(&b);
    if (over) return err_null(err_invalid(c->err,
                                          "The name of what is selected would be longer than %d bytes: name it with AS",
                                          NAME_MAX_BYTES));
    if (!s.p) err_nomem(c->err);
    return (const char *)s.p;
}
