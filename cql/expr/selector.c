#include "cql/expr/selector.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#include "cql/expr/aggregate.h"
#include "cql/expr/function.h"

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

static const struct schema_column *find_column(struct selection *s, const char *name) {
    const struct schema_column *c = schema_column_find(s->table, name);
    if (!c) selector_undefined(s->compile, s->table, name);
    else s->wanted[c->ordinal] = true;
    return c;
}

static struct term *compile_column(struct selection *s, const struct ast_expr *x) {
    const struct schema_column *c = find_column(s, x->name);
    struct term *out = c ? term_new(s->compile, TERM_COLUMN, c->type, 0) : NULL;
    if (out) out->column = c;
    return out;
}

/* A value of the statement, that is of this type from then on. */
static struct term *compile_term(struct selection *s, const struct ast_expr *x, const struct cql_type *type) {
    const char *name = selector_name(s->compile, x);
    if (!name) return NULL;
    struct receiver to = receiver_of(s->table, name, type);
    struct term *out = term_compile(s->compile, x, &to);
    if (out) out->type = type;
    return out;
}

static bool is_typed(const struct ast_expr *x) {
    if (x->kind == EXPR_TUPLE && x->n_args == 1) return is_typed(x->args[0]);
    return x->kind == EXPR_NAME || x->kind == EXPR_CALL || x->kind == EXPR_CAST || x->kind == EXPR_TYPE_HINT || x->kind == EXPR_FIELD ||
           x->kind == EXPR_ELEMENT || x->kind == EXPR_RANGE || (x->kind >= EXPR_NEG && x->kind <= EXPR_MOD);
}

/* In parentheses or not; NULL: it is none. */
static const struct ast_expr *literal_in(const struct ast_expr *x) {
    while (x->kind == EXPR_TUPLE && x->n_args == 1) x = x->args[0];
    return x->kind == EXPR_LITERAL ? x : NULL;
}

/* Numbers meet other numbers, and texts other texts, as what they are. */
static bool keeps_its_type(const struct ast_expr *literal, const struct cql_type *other) {
    bool text = other->id == CQL_TEXT || other->id == CQL_ASCII;
    return literal->literal == LIT_INTEGER || literal->literal == LIT_FLOAT || (text && literal->literal == LIT_STRING);
}

/* Arguments of a function: those whose type is known first, then the others in the light of them. types: of each, NULL where the function
 * decides. */
static int compile_args(struct selection *s, struct term *out, struct ast_expr *const *args, bool same_type, const struct cql_type **types) {
    const struct cql_type *hint = NULL;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < out->n_args; i++) {
            if (is_typed(args[i]) != (pass == 0)) continue;
            const struct ast_expr *literal = same_type ? literal_in(args[i]) : NULL;
            const struct cql_type *to = literal ? term_literal_type(literal) : NULL;
            if (to && hint && !keeps_its_type(literal, hint) && cql_literal_fits(hint, literal->literal)) to = hint;
            if (pass == 1 && !to) {
                bool made = !same_type && args[i]->kind != EXPR_LITERAL; /* of literals: [1], (1, 'a') */
                types[i] = made ? term_argument_type(s->compile, args[i]) : NULL;
                continue;
            }
            out->args[i] = selector_compile(s, args[i], to);
            if (!out->args[i]) return -1;
            types[i] = out->args[i]->type;
            if (!hint) hint = types[i];
        }
    }
    return 0;
}

static struct slice argument_name(struct compile *c, const struct ast_expr *x) {
    const char *name = selector_name(c, x);
    return slice_str(name ? name : "");
}

/* The select list words an unknown function in its own way. */
static void reword_unknown(struct err *e, const char *name) {
    if (strncmp(e->text, "Unknown function ", 17)) return;
    err_clear(e);
    err_invalid(e, "Unknown function '%s'", name);
}

static struct term *compile_function(struct selection *s, const struct ast_expr *x, const struct cql_type *to) {
    struct term *out = term_new(s->compile, TERM_CALL, NULL, x->n_args);
    const struct cql_type **types = out ? ARENA_ARRAY(s->compile->arena, x->n_args, const struct cql_type *) : NULL;
    if (!types) return err_nomem(s->compile->err), NULL;
    if (compile_args(s, out, x->args, false, types)) return NULL;
    struct receiver receiver = receiver_of(s->table, "", to);
    out->function = term_find_call(s->compile, x, types, argument_name, to ? &receiver : NULL);
    if (!out->function) {
        reword_unknown(s->compile->err, x->name);
        return NULL;
    }
    out->type = out->function->result;
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (!out->args[i]) out->args[i] = compile_term(s, x->args[i], out->function->args[i]);
        if (!out->args[i]) return NULL;
    }
    return out;
}

static struct term *ambiguous(struct selection *s, const char *sign, struct ast_expr *const *args) {
    struct buf a, b;
    buf_init(&a, 4096);
    buf_init(&b, 4096);
    ast_print_expr(args[0], &a);
    ast_print_expr(args[1], &b);
    err_invalid(s->compile->err, "Ambiguous '%s' operation with args %.*s and %.*s: use type hint to disambiguate, example '(int) ?'", sign,
                SLICE_FMT(buf_slice(&a)), SLICE_FMT(buf_slice(&b)));
    buf_fini(&a);
    buf_fini(&b);
    return NULL;
}

static struct term *compile_operator(struct selection *s, enum ast_expr_kind op, struct ast_expr *const *args) {
    static const char *const signs[] = {"+", "-", "*", "/", "%"};
    const struct cql_type *types[2];
    struct term *out = term_new(s->compile, TERM_CALL, NULL, 2);
    if (!out || compile_args(s, out, args, true, types)) return NULL;
    if (!types[0] || !types[1]) return ambiguous(s, signs[op - EXPR_ADD], args);
    out->function = function_operator(s->compile, op, types[0], types[1]);
    if (out->function) {
        out->type = out->function->result;
        return out;
    }
    struct buf a, b;
    buf_init(&a, 4096);
    buf_init(&b, 4096);
    selector_print_name(args[0], &a);
    selector_print_name(args[1], &b);
    err_invalid(s->compile->err, "the '%s' operation is not supported between %.*s and %.*s", signs[op - EXPR_ADD], SLICE_FMT(buf_slice(&a)),
                SLICE_FMT(buf_slice(&b)));
    buf_fini(&a);
    buf_fini(&b);
    return NULL;
}

/* -x is 0 - x. */
static struct term *compile_negation(struct selection *s, const struct ast_expr *x) {
    struct ast_expr *zero = ARENA_NEW(s->compile->arena, struct ast_expr);
    struct ast_expr **args = ARENA_ARRAY(s->compile->arena, 2, struct ast_expr *);
    if (!zero || !args) return err_nomem(s->compile->err), NULL;
    *zero = (struct ast_expr){.kind = EXPR_LITERAL, .literal = LIT_INTEGER, .text = slice_str("0")};
    args[0] = zero;
    args[1] = x->args[0];
    return compile_operator(s, EXPR_SUB, args);
}

/* token(partition key columns or values) */
static struct term *compile_token(struct selection *s, const struct ast_expr *x) {
    uint32_t n = s->table->n_partition_key;
    if (x->n_args != n) {
        err_invalid(s->compile->err, "Invalid number of arguments in call to function system.token: %u required but %u provided", n, x->n_args);
        return NULL;
    }
    if (n > FUNCTION_ARGS_MAX) {
        err_invalid(s->compile->err, "Too many arguments of a function (at most %d)", FUNCTION_ARGS_MAX);
        return NULL;
    }
    struct term *out = term_new(s->compile, TERM_TOKEN, cql_type_scalar(CQL_BIGINT), n);
    for (uint32_t i = 0; out && i < n; i++) {
        const struct schema_column *c = schema_partition_key(s->table, i);
        bool fits = x->args[i]->kind != EXPR_LITERAL || cql_literal_fits(c->type, x->args[i]->literal);
        out->args[i] = fits ? selector_compile(s, x->args[i], c->type) : NULL;
        if (fits && !out->args[i]) return NULL;
        if (fits && cql_type_eq(out->args[i]->type, c->type)) continue;
        const char *name = selector_name(s->compile, x->args[i]);
        struct buf t;
        buf_init(&t, 4096);
        cql_type_print_bare(c->type, &t);
        err_invalid(s->compile->err, "Type error: %s cannot be passed as argument %u of function system.token of type %.*s", name ? name : "", i,
                    SLICE_FMT(buf_slice(&t)));
        buf_fini(&t);
        return NULL;
    }
    if (!out) return NULL;
    out->table = s->table;
    return out;
}

/* ---- WRITETIME, MAXWRITETIME, TTL ---- */

static struct term *compile_time(struct selection *s, const struct ast_expr *x, enum term_kind kind, const char *name) {
    struct err *e = s->compile->err;
    const struct ast_expr *of = x->n_args == 1 ? x->args[0] : NULL;
    const struct ast_expr *element = of && of->kind == EXPR_ELEMENT ? of->args[1] : NULL;
    if (element) of = of->args[0];
    if (!of || of->kind != EXPR_NAME) {
        err_invalid(e, "The %s function takes a column", name);
        return NULL;
    }
    const struct schema_column *c = find_column(s, of->name);
    if (!c) return NULL;
    if (schema_column_is_key(c)) {
        err_invalid(e, "Cannot use selection function %s on PRIMARY KEY part %s", name, c->name);
        return NULL;
    }
    struct term *out = term_new(s->compile, kind, cql_type_scalar(kind == TERM_TTL ? CQL_INT : CQL_BIGINT), element != NULL);
    if (!out) return NULL;
    out->column = c;
    if (!s->inside_aggregate) {
        out->latch = s->n_latches++;
        out->next_latch = s->latches;
        s->latches = out;
    }
    if (element) {
        if (c->type->id != CQL_MAP && c->type->id != CQL_SET) {
            err_invalid(e, "Element selection is only allowed on sets and maps, but %s is not one", c->name);
            return NULL;
        }
        struct receiver to = receiver_of(s->table, c->name, c->type->args[0]);
        out->args[0] = term_compile(s->compile, element, &to);
        return out->args[0] ? out : NULL;
    }
    if (!cql_type_is_multicell(c->type) || kind == TERM_MAX_WRITETIME) return out;
    struct cql_type *list = ARENA_NEW(s->compile->arena, struct cql_type);
    const struct cql_type **of_type = ARENA_NEW(s->compile->arena, const struct cql_type *);
    if (!list || !of_type) return err_nomem(e), NULL;
    *of_type = out->type;
    *list = (struct cql_type){.id = CQL_LIST, .n_args = 1, .args = of_type};
    out->type = list;
    return out;
}

/* ---- aggregates ---- */

static struct term *refuse_number(struct selection *s, const char *name) {
    struct buf b;
    buf_init(&b, 4096);
    for (int id = 0; id < CQL_LIST; id++) {
        const struct cql_type *t = cql_type_scalar(id);
        if (!function_is_number(t)) continue;
        buf_printf(&b, "%ssystem.%s : (", b.n ? ", " : "", name);
        cql_type_print_bare(t, &b);
        buf_put_str(&b, ") -> ");
        cql_type_print_bare(t, &b);
    }
    err_invalid(s->compile->err, "Invalid call to function %s, none of its type signatures match (known type signatures: %.*s)", name,
                SLICE_FMT(buf_slice(&b)));
    buf_fini(&b);
    return NULL;
}

static struct term *refuse_count(struct selection *s, const char *name, const struct aggregate_op *op, uint32_t n) {
    if (op->numbers) return refuse_number(s, name);
    if (op->counts_rows) err_invalid(s->compile->err, "Invalid number of arguments in call to function system.%s: 1 required but %u provided", name, n);
    else err_invalid(s->compile->err, "Invalid number of arguments for function system.%s(any)", name);
    return NULL;
}

/* What is added up: what says its type, or values of the statement that have one as arguments. Anything can be counted. */
static struct term *compile_added(struct selection *s, const struct ast_expr *x, const struct aggregate_op *op) {
    const struct ast_expr *arg = x->args[0], *literal = op->numbers ? literal_in(arg) : NULL;
    if (is_typed(arg)) return selector_compile(s, arg, NULL);
    const struct cql_type *type = literal ? term_literal_type(literal) : term_argument_type(s->compile, arg);
    if (!type && op->counts_rows) type = cql_type_scalar(CQL_BLOB);
    if (type) return compile_term(s, arg, type);
    struct slice name = argument_name(s->compile, arg);
    err_invalid(s->compile->err, "Cannot infer type of argument %.*s in call to function system.%s(any): use type casts to disambiguate", SLICE_FMT(name),
                x->name);
    return NULL;
}

static struct term *compile_aggregate(struct selection *s, const struct ast_expr *x, const struct aggregate_op *op) {
    if (s->inside_aggregate || s->n_aggregates == ARRAY_LEN(s->aggregates)) {
        err_invalid(s->compile->err, s->inside_aggregate ? "aggregate functions cannot be used as arguments of aggregate functions" : "Too many aggregates");
        return NULL;
    }
    if (x->n_args != 1) return refuse_count(s, x->name, op, x->n_args);
    bool rows = op->counts_rows && (x->args[0]->kind == EXPR_STAR || x->args[0]->kind == EXPR_LITERAL);
    struct term *out = term_new(s->compile, TERM_AGGREGATE, NULL, rows ? 0 : 1);
    if (!out) return NULL;
    out->aggregate = op;
    if (!rows) {
        s->inside_aggregate = true;
        out->args[0] = compile_added(s, x, op);
        s->inside_aggregate = false;
        if (!out->args[0]) return NULL;
    }
    if (op->numbers && !function_is_number(out->args[0]->type)) return refuse_number(s, x->name);
    out->type = op->type(rows ? NULL : out->args[0]->type);
    out->slot = s->n_aggregates;
    s->aggregates[s->n_aggregates++] = out;
    return out;
}

static struct term *compile_call(struct selection *s, const struct ast_expr *x, const struct cql_type *to) {
    if (!x->keyspace || strcmp(x->keyspace, "system") == 0) {
        if (!strcasecmp(x->name, "writetime")) return compile_time(s, x, TERM_WRITETIME, "writetime");
        if (!strcasecmp(x->name, "maxwritetime")) return compile_time(s, x, TERM_MAX_WRITETIME, "maxwritetime");
        if (!strcasecmp(x->name, "ttl")) return compile_time(s, x, TERM_TTL, "ttl");
        const struct aggregate_op *aggregate = aggregate_find(x->name);
        if (aggregate) return compile_aggregate(s, x, aggregate);
    }
    if (!strcasecmp(x->name, "token")) return compile_token(s, x);
    return compile_function(s, x, to);
}

/* ---- parts of values ---- */

static void refuse_collection(struct selection *s, const char *what, const char *name, const char *is, const struct cql_type *t) {
    struct buf b;
    buf_init(&b, 4096);
    cql_type_print_bare(t, &b);
    err_invalid(s->compile->err, "Invalid %s selection: %s %s %.*s is not a collection", what, name ? name : "", is, SLICE_FMT(buf_slice(&b)));
    buf_fini(&b);
}

static struct term *compile_element(struct selection *s, const struct ast_expr *x) {
    struct err *e = s->compile->err;
    struct term *of = selector_compile(s, x->args[0], NULL);
    struct term *out = of ? term_new(s->compile, TERM_ELEMENT, NULL, 2) : NULL;
    if (!out) return NULL;
    if (of->type->id != CQL_MAP && of->type->id != CQL_SET) {
        const char *name = selector_name(s->compile, x->args[0]);
        if (cql_type_is_collection(of->type)) err_invalid(e, "Element selection is only allowed on sets and maps, but %s is a list", name ? name : "");
        else refuse_collection(s, "element", name, "is of type", of->type);
        return NULL;
    }
    const char *key = selector_name(s->compile, x->args[0]);
    if (!key) return NULL;
    key = arena_printf(s->compile->arena, of->type->id == CQL_MAP ? "key(%s)" : "value(%s)", key);
    struct receiver to = receiver_of(s->table, key, of->type->args[0]);
    if (!key) return err_nomem(e), NULL;
    out->args[0] = of;
    out->type = of->type->args[of->type->id == CQL_MAP ? 1 : 0];
    out->args[1] = term_compile(s->compile, x->args[1], &to);
    return out->args[1] ? out : NULL;
}

/* m[a..b] */
static struct term *compile_range(struct selection *s, const struct ast_expr *x) {
    struct err *e = s->compile->err;
    struct term *of = selector_compile(s, x->args[0], NULL);
    struct term *out = of ? term_new(s->compile, TERM_SLICE, NULL, 3) : NULL;
    const char *name = out ? selector_name(s->compile, x->args[0]) : NULL;
    if (!name) return NULL;
    const struct cql_type *t = of->type;
    if (t->id == CQL_LIST) {
        err_invalid(e, "Slice selection is only allowed on sets and maps, but %s is a list", name);
        return NULL;
    }
    if (t->id != CQL_MAP && t->id != CQL_SET) {
        refuse_collection(s, "slice", name, "of type", t);
        return NULL;
    }
    const char *key = arena_printf(s->compile->arena, t->id == CQL_MAP ? "key(%s)" : "value(%s)", name);
    if (!key) return err_nomem(e), NULL;
    struct receiver to = receiver_of(s->table, key, t->args[0]);
    out->args[0] = of;
    out->type = t;
    for (uint32_t i = 1; i < 3; i++)
        if (x->args[i] && !(out->args[i] = term_compile(s->compile, x->args[i], &to))) return NULL;
    return out;
}

static struct term *compile_field(struct selection *s, const struct ast_expr *x) {
    struct term *of = selector_compile(s, x->args[0], NULL);
    struct term *out = of ? term_new(s->compile, TERM_FIELD, NULL, 1) : NULL;
    if (!out) return NULL;
    const char *name = selector_name(s->compile, x->args[0]);
    if (of->type->id != CQL_UDT) {
        struct buf b;
        buf_init(&b, 4096);
        cql_type_print_bare(of->type, &b);
        err_invalid(s->compile->err, "Invalid field selection: %s of type %.*s is not a user type", name ? name : "", SLICE_FMT(buf_slice(&b)));
        buf_fini(&b);
        return NULL;
    }
    out->args[0] = of;
    for (; out->field < of->type->n_args; out->field++) {
        if (strcmp(of->type->field_names[out->field], x->name)) continue;
        out->type = of->type->args[out->field];
        return out;
    }
    err_invalid(s->compile->err, "%s of type %s has no field %s", name ? name : "", of->type->name, x->name);
    return NULL;
}

static struct term *compile_cast(struct selection *s, const struct ast_expr *x) {
    const struct cql_type *to = compile_type(s->compile, x->type);
    struct term *of = to ? selector_compile(s, x->args[0], NULL) : NULL;
    if (!of || cql_type_eq(of->type, to)) return of;
    struct term *out = term_new(s->compile, TERM_CALL, to, 1);
    if (!out) return NULL;
    out->args[0] = of;
    out->function = term_find_call(s->compile, x, &of->type, argument_name, NULL);
    if (out->function) return out;
    if (s->compile->err->code != ERR_INVALID || strncmp(s->compile->err->text, "Unknown function ", 17)) return NULL;
    struct buf name, type;
    buf_init(&name, 4096);
    buf_init(&type, 4096);
    selector_print_name(x->args[0], &name);
    cql_type_print(to, &type);
    err_clear(s->compile->err);
    err_invalid(s->compile->err, "%.*s cannot be cast to %.*s", SLICE_FMT(buf_slice(&name)), SLICE_FMT(buf_slice(&type)));
    buf_fini(&name);
    buf_fini(&type);
    return NULL;
}

static struct term *refuse_hint(struct selection *s, const struct ast_expr *x, const struct cql_type *type) {
    struct buf name, text;
    buf_init(&name, 4096);
    buf_init(&text, 4096);
    selector_print_name(x, &name);
    cql_type_print(type, &text);
    err_invalid(s->compile->err, "Cannot assign value %.*s to %.*s of type %.*s", SLICE_FMT(buf_slice(&name)), SLICE_FMT(buf_slice(&name)),
                SLICE_FMT(buf_slice(&text)));
    buf_fini(&name);
    buf_fini(&text);
    return NULL;
}

/* The value as it is, under another type that it is one of, too. */
static struct term *retype(struct selection *s, struct term *of, const struct cql_type *type) {
    if (cql_type_eq(of->type, type)) return of;
    struct term *out = term_new(s->compile, TERM_CALL, type, 1);
    struct function *as_it_is = out ? function_new(s->compile, "cast", type, &type, 1, function_as_blob) : NULL;
    if (!as_it_is) return NULL;
    out->function = as_it_is;
    out->args[0] = of;
    return out;
}

/* (type) x */
static struct term *compile_hint(struct selection *s, const struct ast_expr *x) {
    const struct ast_expr *of = x->args[0], *literal = literal_in(of);
    const struct cql_type *type = compile_type(s->compile, x->type);
    if (!type) return NULL;
    if (literal && !cql_literal_fits(type, literal->literal)) return refuse_hint(s, x, type);
    if (!is_typed(of)) return compile_term(s, of, type);
    struct term *value = selector_compile(s, of, type);
    if (!value) return NULL;
    type = cql_type_freeze(s->compile->arena, type);
    if (!type) return err_nomem(s->compile->err), NULL;
    return function_type_fits(type, value->type) ? retype(s, value, type) : refuse_hint(s, x, type);
}

static struct term *compile_untyped(struct selection *s, const struct ast_expr *x, const struct cql_type *to) {
    if (to) return compile_term(s, x, to);
    struct buf b;
    buf_init(&b, 4096);
    ast_print_expr(x, &b);
    err_invalid(s->compile->err, "Cannot infer type for term %.*s in selection clause (try using a cast to force a type)", SLICE_FMT(buf_slice(&b)));
    buf_fini(&b);
    return NULL;
}

struct term *selector_compile(struct selection *s, const struct ast_expr *x, const struct cql_type *to) {
    switch (x->kind) {
    case EXPR_NAME: return compile_column(s, x);
    case EXPR_CALL: return compile_call(s, x, to);
    case EXPR_CAST: return compile_cast(s, x);
    case EXPR_ELEMENT: return compile_element(s, x);
    case EXPR_RANGE: return compile_range(s, x);
    case EXPR_FIELD: return compile_field(s, x);
    case EXPR_TYPE_HINT: return compile_hint(s, x);
    case EXPR_NEG: return compile_negation(s, x);
    case EXPR_TUPLE: return x->n_args == 1 && is_typed(x) ? selector_compile(s, x->args[0], to) : compile_untyped(s, x, to);
    case EXPR_ADD: case EXPR_SUB: case EXPR_MUL: case EXPR_DIV: case EXPR_MOD: return compile_operator(s, x->kind, x->args);
    default: return compile_untyped(s, x, to);
    }
}
