/* Terms of a select list that read a row: columns, parts of values, times. */
#include <strings.h>

#include "cql/expr/selector.h"
#include "cql/expr/term.h"
#include "cql/expr/term_compile.h"

int selector_undefined(struct compile *c, const struct schema_table *t, const char *name) {
    struct buf b;
    buf_init(&b, 4096);
    ast_print_name(name, &b);
    buf_put_str(&b, " in table ");
    ast_print_name(t->keyspace->name, &b);
    buf_u8(&b, '.');
    ast_print_name(t->name, &b);
    err_invalid(c->err, "Undefined column name %.*s", SLICE_FMT(buf_slice(&b)));
    buf_fini(&b);
    return -1;
}

int selector_want_names(struct compile *c, const struct ast_expr *x) {
    const struct schema_column *column = x->kind == EXPR_NAME ? schema_column_find(c->scope->table, x->name) : NULL;
    if (x->kind == EXPR_NAME && !column) {
        err_clear(c->err);
        return selector_undefined(c, c->scope->table, x->name);
    }
    if (column) c->scope->wanted[column->ordinal] = true;
    for (uint32_t i = 0; i < x->n_args; i++)
        if (x->args[i] && selector_want_names(c, x->args[i])) return -1;
    return 0;
}

/* ---- names of result columns without an alias ---- */

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

/* ---- columns ---- */

static const struct schema_column *find_column(struct compile *c, const char *name) {
    const struct schema_column *column = schema_column_find(c->scope->table, name);
    if (column) {
        c->scope->wanted[column->ordinal] = true;
    } else {
        selector_undefined(c, c->scope->table, name);
        c->scope->names_fault = true;
    }
    return column;
}

/* Compiles the expression that a part is selected from; it has its own type. */
static struct term *compile_whole(struct compile *c, const struct ast_expr *x, uint32_t depth) {
    struct receiver any = receiver_of(c->scope->table, "", NULL);
    return cqli_term(c, x, &any, depth + 1);
}

/* ---- elements and slices ---- */

static struct slice bare_type_text(struct compile *c, const struct cql_type *t) {
    struct buf b;
    buf_init(&b, 4096);
    cql_type_print_bare(t, &b);
    return cqli_text(c, &b);
}

/* Compiles the keys of m[a] or m[a..b] into to, as values of the statement. m is a map or set. */
static int compile_keys(struct compile *c, const struct ast_expr *x, const char *name, const struct cql_type *t,
                        struct term **to, uint32_t depth) {
    bool slice = x->kind == EXPR_RANGE;
    if (t->id == CQL_LIST)
        return err_invalid(c->err, "%s selection is only allowed on sets and maps, but %s is a list",
                           slice ? "Slice" : "Element", name);
    if (t->id != CQL_MAP && t->id != CQL_SET) {
        struct slice type = t->id == CQL_UDT ? cqli_type_text(c, t) : bare_type_text(c, t);
        return err_invalid(c->err, "Invalid %s selection: %s %s %.*s is not a collection", slice ? "slice" : "element",
                           name, slice ? "of type" : "is of type", SLICE_FMT(type));
    }
    const char *key_name = arena_printf(c->arena, t->id == CQL_MAP ? "key(%s)" : "value(%s)", name);
    if (!key_name) return err_nomem(c->err);
    const struct receiver key = receiver_of(c->scope->table, key_name, t->args[0]);
    struct compile values = *c; /* a key is a value of the statement and reads no row */
    values.scope = NULL;
    for (uint32_t i = 1; i < x->n_args; i++) {
        to[i - 1] = NULL;
        if (x->args[i] && !(to[i - 1] = cqli_term(&values, x->args[i], &key, depth + 1))) return -1;
    }
    return 0;
}

/* ---- WRITETIME, MAXWRITETIME, TTL ---- */

static struct term *compile_field(struct compile *c, const struct ast_expr *x, uint32_t depth);

static struct term *compile_time(struct compile *c, const struct ast_expr *x, enum term_kind kind, uint32_t depth) {
    const struct ast_expr *of = x->args[0], *field = of->kind == EXPR_FIELD ? of : NULL,
                          *part = of->kind == EXPR_NAME || field ? NULL : of;
    if (part) of = part->args[0];
    while (field && of->kind == EXPR_FIELD) of = of->args[0];
    if (of->kind != EXPR_NAME) {
        if (cqli_is_of_row(x->args[0]) && !cqli_term_of_row(c, x->args[0], depth)) return NULL;
        return err_null(err_invalid(c->err, "The %s function takes a column", x->name));
    }
    const struct schema_column *column = find_column(c, of->name);
    if (!column) return NULL;
    if (schema_column_is_key(column)) return err_null(err_invalid(c->err,
        "Cannot use selection function %s on PRIMARY KEY part %s", x->name, column->name));
    struct term *out = term_new(c, kind, cql_type_scalar(kind == TERM_TTL ? CQL_INT : CQL_BIGINT),
                                part ? part->n_args - 1 : 0);
    if (!out) return NULL;
    out->column = column;
    if (!c->scope->inside_aggregate) {
        out->latch = c->scope->n_latches++;
        out->next_latch = c->scope->latches;
        c->scope->latches = out;
    }
    if (field) {
        /* The time of a field is that of its cell: the column's cell for a frozen type, else the
         * cell of the outermost field. A null field has none. */
        const struct term *leaf = compile_field(c, field, depth);
        if (!leaf) return NULL;
        out->field_value = leaf;
        if (column->type->frozen) return out;
        while (leaf->args[0]->kind == TERM_FIELD) leaf = leaf->args[0];
        out->of_field = true;
        out->time_field = (uint16_t)leaf->field;
        return out;
    }
    if (part && compile_keys(c, part, column->name, column->type, out->args, depth)) return NULL;
    bool several = !part || part->kind == EXPR_RANGE;
    if (!several || !cql_type_is_multicell(column->type) || kind == TERM_MAX_WRITETIME) return out;
    /* A non-frozen collection has a list of times, one for each of its elements. */
    out->type = cql_type_new(c->arena, CQL_LIST, true, &out->type, 1, 0, c->err);
    return out->type ? out : NULL;
}

bool cqli_is_time_of_part(const struct term *t) {
    if (t->kind != TERM_WRITETIME && t->kind != TERM_TTL) return false;
    return !t->column->type->frozen && (t->of_field || (t->n_args && t->type->id != CQL_LIST));
}

/* ---- fields ---- */

static struct term *compile_field(struct compile *c, const struct ast_expr *x, uint32_t depth) {
    struct term *of = compile_whole(c, cqli_inside(x->args[0]), depth); /* (v).a is a field of v */
    struct term *out = of ? term_new(c, TERM_FIELD, NULL, 1) : NULL;
    const char *name = out ? selector_name(c, x->args[0]) : NULL;
    if (!name) return NULL;
    if (of->type->id != CQL_UDT) {
        struct slice type = bare_type_text(c, of->type);
        return err_null(err_invalid(c->err, "Invalid field selection: %s of type %.*s is not a user type", name,
                                    SLICE_FMT(type)));
    }
    out->args[0] = of;
    out->field = cql_type_field(of->type, slice_str(x->name));
    if (out->field < of->type->n_args) {
        out->type = of->type->args[out->field];
        return out;
    }
    struct slice type = cqli_type_text(c, of->type);
    return err_null(err_invalid(c->err, "%s of type %.*s has no field %s", name, SLICE_FMT(type), x->name));
}

/* ---- any ---- */

bool cqli_is_of_row(const struct ast_expr *x) {
    return x->kind == EXPR_NAME || x->kind == EXPR_ELEMENT || x->kind == EXPR_RANGE || x->kind == EXPR_FIELD;
}

struct term *cqli_term_of_row(struct compile *c, const struct ast_expr *x, uint32_t depth) {
    switch (x->kind) {
    case EXPR_NAME: {
        const struct schema_column *column = find_column(c, x->name);
        struct term *out = column ? term_new(c, TERM_COLUMN, column->type, 0) : NULL;
        if (out) out->column = column;
        return out;
    }
    case EXPR_ELEMENT: case EXPR_RANGE: {
        struct term *of = compile_whole(c, x->args[0], depth);
        struct term *out = of ? term_new(c, x->kind == EXPR_RANGE ? TERM_SLICE : TERM_ELEMENT, NULL, x->n_args) : NULL;
        const char *name = out ? selector_name(c, x->args[0]) : NULL;
        if (!name || compile_keys(c, x, name, of->type, out->args + 1, depth)) return NULL;
        out->args[0] = of;
        out->of_name = name;
        out->type = x->kind == EXPR_RANGE ? of->type : of->type->args[of->type->id == CQL_MAP ? 1 : 0];
        for (uint32_t i = 1; i < out->n_args; i++) {
            const struct term *key = out->args[i];
            if (!key || (term_is_constant(key) && !value_is_null(key->value))) continue;
            out->next_subscript = c->scope->subscripts;
            c->scope->subscripts = out;
            break;
        }
        return out;
    }
    default: return compile_field(c, x, depth);
    }
}

bool cqli_term_time(struct compile *c, const struct ast_expr *x, uint32_t depth, struct term **out) {
    static const struct { const char *name; enum term_kind kind; } all[] = {
        {"writetime", TERM_WRITETIME}, {"maxwritetime", TERM_MAX_WRITETIME}, {"ttl", TERM_TTL},
    };
    if (!c->scope || x->kind != EXPR_CALL || x->quoted) return false;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (strcmp(x->name, all[i].name)) continue;
        *out = compile_time(c, x, all[i].kind, depth);
        return true;
    }
    return false;
}
