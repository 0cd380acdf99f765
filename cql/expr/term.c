/* Compiles terms: literals, markers, collections, hints; and the entry, term_compile. A term
 * without markers and impure functions becomes a constant at once. */
#include "cql/expr/selector.h"
#include "cql/expr/term.h"
#include "cql/expr/term_compile.h"
#include "cql/expr/term_sort.h"

static struct term *refuse_literal(struct compile *c, const char *what, const struct receiver *to) {
    struct slice type = cqli_type_text(c, to->type);
    return err_null(err_invalid(c->err, "Invalid %s literal for %s of type %.*s", what, to->name, SLICE_FMT(type)));
}

struct term *term_new(struct compile *c, enum term_kind kind, const struct cql_type *type, uint32_t n_args) {
    struct term *t = arena_alloc(c->arena, sizeof(*t));
    struct term **args = n_args ? ARENA_ARRAY(c->arena, n_args, struct term *) : NULL;
    if (!t || (n_args && !args)) return err_null(err_nomem(c->err));
    *t = (struct term){.kind = kind, .type = type, .n_args = n_args, .args = args};
    if (kind == TERM_CALL && c->binds) c->binds->worked_on = true;
    return t;
}

struct term *cqli_term_fold(struct compile *c, struct term *t) {
    if (t->kind == TERM_CALL && !t->function->pure) return t;
    for (uint32_t i = 0; i < t->n_args; i++)
        if (t->args[i] && t->args[i]->kind != TERM_CONSTANT) return t;
    struct err failure = {0};
    struct evaluation ev = {.arena = c->arena, .err = t->kind == TERM_CALL ? &failure : c->err,
                            .reading = c->reading,
                            .now_s = c->reading.now_us / 1000000};
    struct value v;
    if (term_eval(t, &ev, &v) < 0) return t->kind == TERM_CALL ? t : NULL;
    t->kind = TERM_CONSTANT;
    t->value = v;
    return t;
}

/* The receiver of an item: value(v), key(v), v[1], v.f; the select list has one name for all. */
static struct receiver item_receiver(struct compile *c, const struct receiver *to, const struct cql_type *t,
                                     uint32_t i) {
    const char *name = c->scope             ? to->name
                       : t->id == CQL_MAP       ? arena_printf(c->arena, i % 2 ? "value(%s)" : "key(%s)", to->name)
                       : t->id == CQL_TUPLE   ? arena_printf(c->arena, "%s[%u]", to->name, i)
                       : t->id == CQL_UDT     ? arena_printf(c->arena, "%s.%s", to->name, t->field_names[i])
                                              : arena_printf(c->arena, "value(%s)", to->name);
    const struct cql_type *type = t->id == CQL_TUPLE || t->id == CQL_UDT ? t->args[i] : t->args[i % t->n_args];
    return (struct receiver){.keyspace = to->keyspace, .table = to->table, .name = name ? name : "", .type = type};
}

/* Cassandra reports this wherever it checks the type of a list. */
static bool refuse_list(struct compile *c, const struct ast_expr *x, const struct cql_type *wanted) {
    if (x->kind != EXPR_LIST || wanted->id == CQL_LIST || wanted->id == CQL_VECTOR) return false;
    struct slice type = cqli_type_text(c, wanted);
    err_invalid(c->err, "Unexpected receiver type '%.*s'; only list and vector are expected", SLICE_FMT(type));
    return true;
}

static int refuse_item(struct compile *c, const struct ast_expr *item, const struct cql_type *wanted,
                       const struct receiver *whole, uint32_t i) {
    static const char *const kinds[CQL_TYPES] = {
        [CQL_LIST] = "list", [CQL_SET] = "set", [CQL_VECTOR] = "vector", [CQL_MAP] = "map"};
    const struct cql_type *t = whole->type;
    struct slice type = cqli_type_text(c, wanted), text = cqli_expr_text(c, item);
    if (!c->scope && refuse_list(c, item, wanted)) return -1;
    if (t->id == CQL_TUPLE)
        return err_invalid(c->err, "Invalid tuple literal for %s: component %u is not of type %.*s", whole->name, i,
                           SLICE_FMT(type));
    if (t->id == CQL_UDT)
        return err_invalid(c->err, "Invalid user type literal for %s: field %s is not of type %.*s", whole->name,
                           t->field_names[i], SLICE_FMT(type));
    const char *part = t->id == CQL_MAP && i % 2 == 0 ? "key" : "value";
    return err_invalid(c->err, "Invalid %s literal for %s: %s %.*s is not of type %.*s", kinds[t->id], whole->name,
                       part, SLICE_FMT(text), SLICE_FMT(type));
}

static bool has_marker(const struct term *t) {
    if (t->kind == TERM_BIND) return true;
    for (uint32_t i = 0; i < t->n_args; i++)
        if (t->args[i] && has_marker(t->args[i])) return true;
    return false;
}

/* Compiles one item. An item with its own type is compiled before the check that it fits, so
 * that its own errors are reported first. */
static struct term *compile_fitting(struct compile *c, const struct ast_expr *item, const struct receiver *to,
                                    const struct receiver *whole, uint32_t at, uint32_t depth) {
    /* In a select list, compiling a literal reports the type that it does not fit. */
    bool own = cqli_has_own_type(c, item), fits = own || (c->scope && item->kind == EXPR_LITERAL);
    if (!fits) fits = cqli_fits(c, item, to->type, to, depth + 1) != MATCH_NO;
    struct term *t = fits ? cqli_term(c, own ? cqli_inside(item) : item, to, depth + 1) : NULL;
    const struct cql_type *frozen = t && own ? cql_type_freeze(c->arena, t->type) : NULL;
    if (t && own) fits = frozen && cqli_fits_type(to->type, frozen) != MATCH_NO;
    if (!fits) refuse_item(c, item, to->type, whole, at);
    return fits ? t : NULL;
}

static int compile_item(struct compile *c, const struct ast_expr *item, struct term *t, uint32_t at,
                        const struct receiver *to, uint32_t depth) {
    struct receiver item_to = item_receiver(c, to, t->type, at);
    bool nullable = t->nulls || t->type->id == CQL_TUPLE || t->type->id == CQL_UDT;
    if (item->kind == EXPR_NULL && !nullable)
        return err_invalid(c->err, "null is not supported inside %s",
                           t->type->id == CQL_VECTOR ? "vectors" : "collections");
    t->args[at] = compile_fitting(c, item, &item_to, to, at, depth);
    if (!t->args[at]) return -1;
    if (c->scope || !cql_type_is_collection(t->type) || !has_marker(t->args[at])) return 0;
    const char *kind = t->type->id == CQL_LIST ? "list" : t->type->id == CQL_SET ? "set" : "map";
    return err_invalid(c->err, "Invalid %s literal for %s: bind variables are not supported inside collection literals",
                       kind, to->name);
}

static struct term *compile_items(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                                  uint32_t depth) {
    struct term *t = term_new(c, TERM_ITEMS, to->type, x->n_args);
    if (t) t->nulls = c->scope && to->type->id == CQL_LIST;
    for (uint32_t i = 0; t && i < x->n_args; i++)
        if (compile_item(c, x->args[i], t, i, to, depth) < 0) return NULL;
    return t ? cqli_term_fold(c, t) : NULL;
}

/* {a: b} in a select list with a map as receiver: columns are its keys. */
static struct term *compile_named_map(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                                      uint32_t depth) {
    struct ast_expr map = *x;
    struct ast_expr *names = ARENA_ARRAY(c->arena, x->n_args, struct ast_expr);
    map.args = ARENA_ARRAY(c->arena, 2 * x->n_args, struct ast_expr *);
    if (!names || !map.args) return err_null(err_nomem(c->err));
    map.kind = EXPR_MAP;
    map.n_args = 2 * x->n_args;
    for (uint32_t i = 0; i < x->n_args; i++) {
        names[i] = (struct ast_expr){.kind = EXPR_NAME, .name = x->names[i]};
        map.args[2 * i] = &names[i];
        map.args[2 * i + 1] = x->args[i];
    }
    return compile_items(c, &map, to, depth);
}

static struct term *compile_udt(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                                uint32_t depth) {
    const struct cql_type *type = to->type;
    if (c->scope && type->id == CQL_MAP) return compile_named_map(c, x, to, depth);
    if (type->id != CQL_UDT) return refuse_literal(c, "user type", to);
    struct term *t = term_new(c, TERM_ITEMS, type, type->n_args);
    for (uint32_t i = 0; t && i < x->n_args; i++) {
        uint32_t at = cql_type_field(type, slice_str(x->names[i]));
        if (at == type->n_args)
            return err_null(err_invalid(c->err, "Unknown field '%s' in value of user defined type %s", x->names[i],
                                        type->name));
        if (compile_item(c, x->args[i], t, at, to, depth) < 0) return NULL;
    }
    return t ? cqli_term_fold(c, t) : NULL;
}

static struct term *compile_list(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                                 uint32_t depth) {
    if (refuse_list(c, x, to->type)) return NULL;
    if (to->type->id == CQL_VECTOR && x->n_args != to->type->dimension) {
        struct slice type = cqli_type_text(c, to->type);
        if (c->scope)
            err_invalid(c->err, "Unable to create a vector selector of type %.*s from %u elements", SLICE_FMT(type),
                        x->n_args);
        else
            err_invalid(c->err, "Invalid vector literal for %s of type %.*s; expected %u elements, but given %u",
                        to->name, SLICE_FMT(type), to->type->dimension, x->n_args);
        return NULL;
    }
    return compile_items(c, x, to, depth);
}

static struct term *compile_tuple(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                                  uint32_t depth) {
    if (x->n_args == 1 && to->type->id != CQL_TUPLE) return cqli_term(c, x->args[0], to, depth + 1);
    if (to->type->id != CQL_TUPLE) return refuse_literal(c, "tuple type", to);
    if (x->n_args > to->type->n_args) {
        struct slice type = cqli_type_text(c, to->type);
        return err_null(err_invalid(c->err,
                                    "Invalid tuple literal for %s: too many elements. Type %.*s expects %u but got %u",
                                    to->name, SLICE_FMT(type), to->type->n_args, x->n_args));
    }
    return compile_items(c, x, to, depth);
}

/* ---- type hints ---- */

/* (type) x in a select list. */
static struct term *compile_row_hint(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                                     uint32_t depth) {
    const struct cql_type *type = compile_type_in(c, c->scope->table->keyspace->name, x->type),
                          *frozen = type ? cql_type_freeze(c->arena, type) : NULL;
    c->scope->names_fault = c->scope->names_fault || !type;
    if (!type) return NULL;
    if (!frozen) return err_null(err_nomem(c->err));
    const struct ast_expr *of = x->args[0];
    bool own = cqli_has_own_type(c, of);
    struct receiver hinted = {.keyspace = to->keyspace, .table = to->table, .name = "[selection]",
                              .type = own ? NULL : type};
    c->search->hints++;
    bool fits = own || cqli_fits(c, of, type, to, depth + 1) != MATCH_NO;
    c->search->hints--;
    struct term *t = fits ? cqli_term(c, own ? cqli_inside(of) : of, &hinted, depth + 1) : NULL;
    if (fits && !t) return NULL;
    if (own) fits = !cqli_is_time_of_part(t) && cqli_fits_type(frozen, t->type) != MATCH_NO;
    if (fits && own) {
        /* The unchanged value under another type that its bytes are valid for. */
        if (cql_type_eq(t->type, frozen)) return t;
        struct term *out = term_new(c, TERM_CALL, frozen, 1);
        struct function *as_it_is = out ? function_new(c, "cast", frozen, &frozen, 1, function_as_blob) : NULL;
        if (!as_it_is) return NULL;
        out->function = as_it_is;
        out->args[0] = t;
        return out;
    }
    if (fits) t->type = frozen;
    if (fits) return t;
    struct slice text = cqli_expr_text(c, x), wanted = cqli_type_text(c, frozen);
    return err_null(err_invalid(c->err, "Cannot assign value %.*s to %.*s of type %.*s", SLICE_FMT(text),
                                SLICE_FMT(text), SLICE_FMT(wanted)));
}

static struct term *compile_hint(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                                 uint32_t depth) {
    if (c->scope) return compile_row_hint(c, x, to, depth);
    const struct cql_type *type = compile_type_in(c, to->keyspace, x->type);
    if (!type) return NULL;
    struct slice inner = cqli_expr_text(c, x->args[0]), name = cqli_type_text(c, type),
                 want = cqli_type_text(c, to->type);
    if (cqli_fits(c, x->args[0], type, to, depth + 1) == MATCH_NO) {
        if (refuse_list(c, x->args[0], type)) return NULL;
        return err_null(err_invalid(c->err, "Cannot cast value %.*s to type %.*s", SLICE_FMT(inner), SLICE_FMT(name)));
    }
    if (!function_type_fits(to->type, type))
        return err_null(err_invalid(c->err, "Cannot assign value (%.*s)%.*s to %s of type %.*s", SLICE_FMT(name),
                                    SLICE_FMT(inner), to->name, SLICE_FMT(want)));
    struct receiver hinted = *to;
    hinted.type = type;
    return cqli_term(c, x->args[0], &hinted, depth + 1);
}

/* ---- any expression ---- */

/* Compiles an expression that takes the receiver's type. */
static struct term *compile_value(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                                  uint32_t depth) {
    struct term *null;
    switch (x->kind) {
    case EXPR_LITERAL: {
        struct buf b;
        struct term *t = term_new(c, TERM_CONSTANT, to->type, 0);
        if (!t) return NULL;
        buf_init(&b, 64 << 20);
        if (cql_literal_parse(to->type, x->literal, x->text, to->name, c->reading, &b, c->err)) {
            buf_fini(&b);
            return NULL;
        }
        t->value = value_of_slice(arena_take(c->arena, &b));
        return t->value.p ? t : err_null(err_nomem(c->err));
    }
    case EXPR_NULL:
        if (to->type->id == CQL_COUNTER)
            return err_null(err_invalid(c->err, "Invalid null value for counter increment/decrement"));
        null = term_new(c, TERM_CONSTANT, to->type, 0);
        if (null) null->value = value_null();
        return null;
    case EXPR_BIND: {
        struct term *t = term_new(c, TERM_BIND, to->type, 0);
        if (!t || !c->binds || x->bind < 0 || (uint32_t)x->bind >= c->binds->n)
            return err_null(err_invalid(c->err, "Bind variables cannot be used here"));
        t->bind = x->bind;
        t->settles = to->type && term_settles(to->type);
        const char *name = c->binds->names ? c->binds->names[x->bind] : NULL;
        c->binds->specs[x->bind] = *to;
        if (name) c->binds->specs[x->bind].name = name;
        return t;
    }
    case EXPR_LIST: return compile_list(c, x, to, depth);
    case EXPR_SET:
        if (to->type->id == CQL_SET || (to->type->id == CQL_MAP && x->n_args == 0))
            return compile_items(c, x, to, depth);
        return refuse_literal(c, "set", to);
    case EXPR_MAP:
        if (to->type->id != CQL_MAP) return refuse_literal(c, "map", to);
        return compile_items(c, x, to, depth);
    case EXPR_UDT: return compile_udt(c, x, to, depth);
    case EXPR_TUPLE: return compile_tuple(c, x, to, depth);
    default: break;
    }
    struct slice text = cqli_expr_text(c, x);
    return err_null(err_invalid(c->err, "Invalid value %.*s for %s", SLICE_FMT(text), to->name));
}

/* Without a receiver type, the parts of the expression must determine its type. */
static struct term *compile_untyped(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                                    uint32_t depth) {
    struct receiver own = *to;
    own.type = cqli_type_of(c, x, to, false, depth);
    if (own.type && cqli_check_durations(c, own.type)) return NULL;
    if (own.type) {
        c->search->untyped++;
        struct term *t = compile_value(c, x, &own, depth);
        c->search->untyped--;
        return t;
    }
    for (uint32_t i = 0; i < x->n_args; i++)
        if (cqli_has_own_type(c, x->args[i]) && !cqli_term(c, cqli_inside(x->args[i]), to, depth + 1)) return NULL;
    struct slice text = cqli_expr_text(c, x);
    return err_null(err_invalid(c->err,
        "Cannot infer type for term %.*s in selection clause (try using a cast to force a type)", SLICE_FMT(text)));
}

struct term *cqli_term(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    if (depth > TERM_DEPTH_MAX)
        return err_null(err_invalid(c->err, "A value may not be nested more than %d deep", TERM_DEPTH_MAX));
    if (c->scope && cqli_is_of_row(x)) return cqli_term_of_row(c, x, depth);
    if (x->kind == EXPR_TYPE_HINT) return compile_hint(c, x, to, depth);
    if (x->kind == EXPR_CALL || x->kind == EXPR_CAST || x->kind == EXPR_NEG || cqli_is_operator(x->kind))
        return cqli_term_call(c, x, to, depth);
    return to->type ? compile_value(c, x, to, depth) : compile_untyped(c, x, to, depth);
}

void cqli_search_refuse(struct compile *c) {
    err_clear(c->err);
    err_invalid(c->err, "A value nests too many calls for their types to be found");
}

struct term *term_compile(struct compile *c, const struct ast_expr *x, const struct receiver *to) {
    struct term_search search;
    struct compile mine = *c;
    cqli_search_init(&search, x->source.n);
    mine.search = &search;
    struct term *t = cqli_term(&mine, x, to, 0);
    if (!search.steps) cqli_search_refuse(c);
    return search.steps ? t : NULL;
}
