/* Names of result columns without an alias. */
#include "cql/expr/selector.h"
#include "cql/expr/term.h"

/* Drops casts to the type that a value has already: names do not show them. Returns NULL if memory
 * is exhausted. */
static const struct ast_expr *without_casts(struct compile *c, const struct ast_expr *x) {
    if (x->kind == EXPR_CAST) { /* its type and the value's, compiled with a scratch state */
        struct err ignored = {0};
        struct term_scope tried = *c->scope;
        struct compile scratch = *c;
        struct receiver any = receiver_of(c->scope->table, "", NULL);
        scratch.err = &ignored;
        scratch.scope = &tried;
        const struct cql_type *to = compile_type(&scratch, x->type);
        const struct term *t = to ? term_compile(&scratch, x->args[0], &any) : NULL;
        if (t && cql_type_eq(t->type, to)) return without_casts(c, x->args[0]);
    }
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

/* A longer text is not searched for casts: each cast is compiled for each one around it. */
const char *selector_name(struct compile *c, const struct ast_expr *x) {
    if (LIKELY(x->kind == EXPR_NAME && strlen(x->name) <= NAME_MAX_BYTES)) return x->name;
    struct buf b;
    buf_init(&b, NAME_MAX_BYTES + CASTS_MAX_BYTES);
    ast_print_selector(x, &b);
    const struct ast_expr *named = c->scope && !buf_failed(&b) ? without_casts(c, x) : x;
    if (named && named != x) {
        buf_clear(&b, NAME_MAX_BYTES);
        ast_print_selector(named, &b);
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
