/* Calls, casts, operators and negation: the function is resolved from the known argument types,
 * then arguments without a type get the parameter's. */
#include <strings.h>

#include "cql/expr/aggregate.h"
#include "cql/expr/selector.h"
#include "cql/expr/term.h"
#include "cql/expr/term_compile.h"

struct arguments {
    struct compile *c;
    struct ast_expr *const *args;
    /* types of arguments that are compiled already; NULL for others, or NULL altogether */
    const struct cql_type *const *known;
    const struct receiver *near;
    uint32_t depth;
};

static enum match argument_fits(void *arg, uint32_t i, const struct cql_type *t) {
    struct arguments *a = arg;
    if (a->known && a->known[i]) return cqli_fits_type(t, a->known[i]);
    return cqli_fits(a->c, a->args[i], t, a->near, a->depth + 1);
}

/* One expression in parentheses may be a tuple or not, so its type counts as unknown
 * (Selectable.BetweenParenthesesOrWithTuple). */
static const struct cql_type *argument_type(void *arg, uint32_t i) {
    struct arguments *a = arg;
    bool bare = a->args[i]->kind != EXPR_TUPLE || a->args[i]->n_args != 1;
    if (a->known && a->known[i]) return bare ? a->known[i] : NULL;
    return cqli_type_of(a->c, a->args[i], a->near, true, a->depth + 1);
}

static struct slice argument_text(void *arg, uint32_t i) {
    struct arguments *a = arg;
    return cqli_expr_text(a->c, a->args[i]);
}

static int64_t argument_items(void *arg, uint32_t i) {
    struct arguments *a = arg;
    return a->args[i]->kind == EXPR_LIST ? (int64_t)a->args[i]->n_args : -1;
}

static const struct function *find_cast(struct compile *c, const struct ast_expr *x, struct arguments *a,
                                        const struct function_args *args, const struct receiver *to) {
    const struct cql_type *type = compile_type(c, x->type);
    if (!type) return NULL;
    const struct cql_type *from = argument_type(a, 0);
    bool says_nothing = x->args[0]->kind == EXPR_BIND || x->args[0]->kind == EXPR_NULL;
    bool identity = from ? cql_type_eq(from, type) : !says_nothing && argument_fits(a, 0, type) != MATCH_NO;
    if (identity && c->scope) return function_new(c, "cast", type, &type, 1, function_as_blob);
    if (strcmp(x->type->name, "varchar") == 0) { /* Cassandra has casts to "varchar" only where none is needed */
        struct slice what = cqli_expr_text(c, x->args[0]);
        if (c->scope) err_invalid(c->err, "%.*s cannot be cast to varchar", SLICE_FMT(what));
        else err_invalid(c->err, "Unknown function system.cast_as_varchar called");
        return NULL;
    }
    struct slice text = cqli_type_text(c, type);
    const char *name = text.n ? arena_printf(c->arena, "cast_as_%.*s", SLICE_FMT(text)) : NULL;
    return name ? function_resolve(c, "system", name, args, to) : (err_nomem(c->err), NULL);
}

const struct function *cqli_find_call(struct compile *c, const struct ast_expr *x, const struct cql_type *const *known,
                                      const struct receiver *to, uint32_t depth) {
    struct arguments a = {.c = c, .args = x->args, .known = known, .near = to, .depth = depth};
    struct function_args args = {.n = x->n_args, .fits = argument_fits, .type = argument_type, .text = argument_text,
                                 .items = argument_items, .arg = &a};
    if (depth > TERM_DEPTH_MAX || x->n_args > FUNCTION_ARGS_MAX)
        return err_null(err_invalid(c->err, "Too many arguments, or calls nested too deep"));
    if (x->kind == EXPR_CAST) return find_cast(c, x, &a, &args, to);
    if (x->kind == EXPR_NEG) return function_resolve(c, "system", "_negate", &args, to);
    if (x->kind == EXPR_CALL) return function_resolve(c, x->keyspace, x->name, &args, to);
    bool has_marker = x->args[0]->kind == EXPR_BIND || x->args[1]->kind == EXPR_BIND;
    return function_operator(c, x->kind, &args, to, has_marker);
}

/* ---- compiling ---- */

/* Compiles the arguments that have their own type, before the function is resolved. */
static int compile_known(struct compile *c, const struct ast_expr *x, struct term *t, const struct cql_type **known,
                         const struct receiver *near, uint32_t depth) {
    struct receiver any = {.keyspace = near->keyspace, .table = near->table, .name = near->name};
    for (uint32_t i = 0; i < x->n_args; i++) {
        bool wants_own = x->kind == EXPR_CAST; /* the argument of a cast has no other source of its type */
        /* A cast's type is known before the cast is checked. */
        if (!wants_own && x->args[i]->kind == EXPR_CAST) {
            if (!(known[i] = compile_type(c, x->args[i]->type))) return -1;
            continue;
        }
        if (!wants_own && !cqli_has_own_type(c, x->args[i])) continue;
        t->args[i] = cqli_term(c, wants_own ? x->args[i] : cqli_inside(x->args[i]), &any, depth + 1);
        if (!t->args[i]) return -1;
        known[i] = t->args[i]->type;
    }
    return 0;
}

static int compile_rest(struct compile *c, const struct ast_expr *x, struct term *t, const struct function *f,
                        const struct receiver *near, uint32_t depth) {
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (t->args[i]) continue;
        const char *name = c->scope || x->kind == EXPR_NEG ? near->name
                                                           : arena_printf(c->arena, "arg%u(system.%s)", i, f->name);
        struct receiver arg = {.keyspace = near->keyspace, .table = near->table, .name = name ? name : "",
                               .type = f->args[i]};
        t->args[i] = cqli_term(c, x->args[i], &arg, depth + 1);
        if (!t->args[i]) return -1;
    }
    return 0;
}

/* When Cassandra resolves a function, it takes the time of an element or field of a non-frozen
 * value for a list, though it is one number: a function that takes no list is refused, and one that
 * takes a list gets the number. */
static const struct function *find_on_row(struct compile *c, const struct ast_expr *x, const struct term *t,
                                          const struct cql_type **known, const struct receiver *near, uint32_t depth) {
    bool listed = false;
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (!t->args[i] || !cqli_is_time_of_part(t->args[i])) continue;
        known[i] = cql_type_new(c->arena, CQL_LIST, true, &t->args[i]->type, 1, 0, c->err);
        if (!known[i]) return NULL;
        listed = true;
    }
    const struct function *f = cqli_find_call(c, x, known, near, depth);
    for (uint32_t i = 0; i < x->n_args && listed; i++)
        if (t->args[i]) known[i] = t->args[i]->type;
    return f && listed ? cqli_find_call(c, x, known, near, depth) : f;
}

static struct term *compile_function(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                                     uint32_t depth) {
    struct receiver near = *to;
    struct term *t = term_new(c, TERM_CALL, NULL, x->n_args);
    const struct cql_type **known = t ? ARENA_ARRAY(c->arena, x->n_args, const struct cql_type *) : NULL;
    if (!known) return err_null(err_nomem(c->err));
    for (uint32_t i = 0; i < x->n_args; i++) known[i] = NULL;
    if (c->scope) {
        near.type = NULL; /* resolved by its arguments alone */
        if (compile_known(c, x, t, known, &near, depth)) return NULL;
        if (x->kind == EXPR_CAST && cql_type_eq(known[0], compile_type(c, x->type))) return t->args[0];
    }
    const struct function *f = find_on_row(c, x, t, known, &near, depth);
    for (uint32_t i = 0; !f && c->scope && i < x->n_args; i++) {
        if (t->args[i] || !selector_want_names(c, x->args[i])) continue;
        c->scope->names_fault = true;
        return NULL;
    }
    if (!f) {
        if (!c->scope) return NULL;
        c->scope->names_fault = x->kind != EXPR_CAST;
        if (!function_is_unknown(c->err)) return NULL;
        if (x->kind == EXPR_CAST) {
            const struct cql_type *type = compile_type(c, x->type);
            struct slice text = cqli_expr_text(c, x->args[0]), name = type ? cqli_type_text(c, type) : slice_str("");
            err_clear(c->err);
            return err_null(err_invalid(c->err, "%.*s cannot be cast to %.*s", SLICE_FMT(text), SLICE_FMT(name)));
        }
        err_clear(c->err);
        return err_null(err_invalid(c->err, "Unknown function '%s%s%s'", x->keyspace ? x->keyspace : "",
                                    x->keyspace ? "." : "", x->name));
    }
    if (f->aggregate && !f->call && !c->scope)
        return err_null(err_invalid(c->err, "Aggregation function are not supported in the where clause"));
    if (near.type && !function_type_fits(near.type, f->result)) {
        struct slice from = cqli_type_text(c, f->result), type = cqli_type_text(c, to->type);
        return err_null(err_invalid(c->err,
            "Type error: cannot assign result of function system.%s (type %.*s) to %s (type %.*s)", f->name,
            SLICE_FMT(from), to->name, SLICE_FMT(type)));
    }
    t->type = f->result;
    t->function = f;
    if (compile_rest(c, x, t, f, to, depth)) return NULL;
    return c->scope ? t : cqli_term_fold(c, t);
}

/* ---- aggregates ---- */

/* An aggregate within another one is refused after the call itself was found valid. */
static struct term *compile_aggregate(struct compile *c, const struct ast_expr *x, const struct aggregate_op *op,
                                      const struct receiver *to, uint32_t depth) {
    struct term_scope *s = c->scope;
    /* count(*), count(1) and "countRows"() take rows as they are. */
    bool star = x->n_args == 1 && (x->args[0]->kind == EXPR_STAR || x->args[0]->kind == EXPR_LITERAL);
    bool takes_rows = strcmp(x->name, "countRows") == 0 ? x->n_args == 0 : star;
    bool inner = s->inside_aggregate, of_rows = op->counts_rows && takes_rows;
    s->nests_aggregate = inner;
    s->inside_aggregate = true;
    struct term *t = of_rows ? term_new(c, TERM_AGGREGATE, cql_type_scalar(CQL_BIGINT), 0)
                             : compile_function(c, x, to, depth);
    s->inside_aggregate = inner;
    if (inner || !t) return t;
    if (!s->nests_aggregate && s->n_aggregates < ARRAY_LEN(s->aggregates)) {
        t->kind = TERM_AGGREGATE;
        t->aggregate = op;
        t->slot = s->n_aggregates;
        s->aggregates[s->n_aggregates++] = t;
        return t;
    }
    return err_null(err_invalid(c->err,
        s->nests_aggregate ? "aggregate functions cannot be used as arguments of aggregate functions"
        : "Too many aggregates"));
}

struct term *cqli_term_call(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    struct term *time;
    if (cqli_term_time(c, x, depth, &time)) return time;
    bool native = c->scope && x->kind == EXPR_CALL && (!x->keyspace || !strcmp(x->keyspace, "system"));
    const struct aggregate_op *op = NULL;
    if (native) op = aggregate_find(strcmp(x->name, "countRows") ? x->name : "count");
    return op ? compile_aggregate(c, x, op, to, depth) : compile_function(c, x, to, depth);
}
