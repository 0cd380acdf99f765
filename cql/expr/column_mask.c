#include "cql/expr/column_mask.h"

#include "cql/expr/term.h"
#include "cql/expr/term_compile.h"

/* The mask as it was written, for error texts. */
static struct slice signature(struct compile *c, const struct ast_column_mask *mask) {
    struct buf b;
    buf_init(&b, 1 << 16);
    if (mask->function.keyspace) buf_printf(&b, "%s.", mask->function.keyspace);
    buf_printf(&b, "%s(", mask->function.name);
    for (uint32_t i = 0; i < mask->n_args; i++) {
        if (i) buf_put_str(&b, ", ");
        buf_put_slice(&b, cqli_expr_text(c, mask->args[i]));
    }
    buf_u8(&b, ')');
    struct slice s = arena_dup(c->arena, buf_slice(&b));
    buf_fini(&b);
    return s.p ? s : slice_str("");
}

static const struct function *find(struct compile *c, const struct receiver *column,
                                   const struct ast_column_mask *mask) {
    /* The masked value, the first argument. Cassandra's errors show its type for it, by the Java
     * class. */
    struct ast_expr value = {.kind = EXPR_LITERAL, .literal = LIT_HEX, .text = slice_str("")}; /* quoted as it is */
    struct buf b;
    buf_init(&b, 1 << 16);
    cql_type_print_marshal(column->type, &b);
    struct slice class = arena_dup(c->arena, buf_slice(&b));
    buf_fini(&b);
    if (class.p) value.text = class;
    struct ast_expr call = {.kind = EXPR_CALL,
                            .keyspace = mask->function.keyspace,
                            .name = mask->function.name,
                            .n_args = mask->n_args + 1};
    const struct cql_type **known = ARENA_ARRAY(c->arena, call.n_args, const struct cql_type *);
    call.args = ARENA_ARRAY(c->arena, call.n_args, struct ast_expr *);
    if (!known || !call.args) return err_nomem(c->err), NULL;
    for (uint32_t i = 0; i < call.n_args; i++) {
        call.args[i] = i ? mask->args[i - 1] : &value;
        known[i] = i ? NULL : column->type;
    }
    return cqli_find_call(c, &call, known, column, 0);
}

static int check(struct compile *c, const struct function *f, const struct receiver *column, struct slice written) {
    if (f->aggregate && !f->call)
        return err_invalid(c->err, "Aggregate function %.*s cannot be used for masking table columns",
                           SLICE_FMT(written));
    if (!function_masks(f))
        return err_invalid(c->err, "Not-masking function %.*s cannot be used for masking table columns",
                           SLICE_FMT(written));
    /* CQL does not tell the older timeuuid class apart. */
    bool timeuuids = f->result->id == CQL_LEGACY_TIMEUUID && column->type->id == CQL_TIMEUUID;
    if (timeuuids || cql_type_eq(f->result, column->type)) return 0;
    struct slice given = cqli_type_text(c, f->result), wanted = cqli_type_text(c, column->type);
    return err_invalid(c->err,
                       "Masking function %.*s return type is %.*s. This is different to the type of the masked column "
                       "%s of type %.*s. Masking functions "
                       "can only be attached to table columns if they return the same data type as the masked column.",
                       SLICE_FMT(written), SLICE_FMT(given), column->name, SLICE_FMT(wanted));
}

static const char *text_of(struct compile *c, const struct cql_type *t, struct slice v,
                           void (*print)(const struct cql_type *, struct slice, struct buf *)) {
    struct buf b;
    buf_init(&b, 0);
    print(t, v, &b);
    struct slice copy = buf_failed(&b) ? (struct slice){0} : arena_dup(c->arena, buf_slice(&b));
    buf_fini(&b);
    if (!copy.p) err_nomem(c->err);
    else if (strlen((const char *)copy.p) != copy.n)
        err_invalid(c->err, "An argument of a mask must not hold a zero byte");
    return c->err->set ? NULL : (const char *)copy.p;
}

static int evaluate(struct compile *c, const struct function *f, uint32_t i, const struct receiver *column,
                    const struct ast_expr *x, struct schema_mask_argument *out) {
    const char *name = arena_printf(c->arena, "arg%u(system.%s)", i, f->name);
    struct receiver to = {.keyspace = column->keyspace,
                          .table = column->table,
                          .name = name ? name : "",
                          .type = f->args[i]};
    struct cql_request r = {.arena = c->arena, .now_us = c->now_us, .err = c->err};
    const struct term *t = term_compile(c, x, &to);
    struct value v;
    if (!t || term_eval(t, &r, &v) < 0) return -1;
    /* Cassandra shows a collection, a vector or a counter as its bytes. */
    bool bytes = cql_type_is_collection(to.type) || to.type->id == CQL_VECTOR || to.type->id == CQL_COUNTER;
    const struct cql_type *shown = bytes ? cql_type_scalar(CQL_BLOB) : to.type;
    out->type = (const char *)cqli_type_text(c, to.type).p;
    out->value = value_is_null(v) ? "" : text_of(c, shown, value_slice(v), cql_value_text);
    out->literal = value_is_null(v) ? "null" : text_of(c, to.type, value_slice(v), cql_value_print);
    return c->err->set ? -1 : 0;
}

/* The mask lives as long as the table, so bind markers are not allowed. */
const struct schema_mask *column_mask_compile(struct compile *c, const struct receiver *column,
                                              const struct ast_column_mask *mask) {
    struct term_search search;
    struct compile mine = *c;
    struct slice written = signature(c, mask);
    cqli_search_init(&search, written.n);
    mine.search = &search;
    mine.binds = NULL;
    const struct function *f = find(&mine, column, mask);
    if (!search.steps) return cqli_search_refuse(c), NULL;
    if (!f && function_is_unknown(c->err)) {
        err_clear(c->err);
        err_invalid(c->err, "Unable to find masking function for %s, no declared function matches the signature %.*s",
                    column->name, SLICE_FMT(written));
    }
    if (!f || check(c, f, column, written)) return NULL;
    struct schema_mask *m = ARENA_NEW(c->arena, struct schema_mask);
    struct schema_mask_argument *arguments = ARENA_ARRAY(c->arena, mask->n_args + 1, struct schema_mask_argument);
    if (!m || !arguments) return err_nomem(c->err), NULL;
    for (uint32_t i = 0; i < mask->n_args; i++)
        if (evaluate(&mine, f, i + 1, column, mask->args[i], &arguments[i])) return NULL;
    *m = (struct schema_mask){.function = f->name, .n_arguments = mask->n_args, .arguments = arguments};
    return m;
}
