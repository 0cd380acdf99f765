/* Compiling terms against their receivers. What has neither markers nor impure functions becomes a constant at once. */
#include "cql/expr/function.h"
#include "cql/expr/term.h"

/* Each step looks at one expression of the tree against one type. A literal is looked at once for each collection around it, and each has
 * a byte of text, at least; calls within calls are looked at again and again. */
enum { TERM_DEPTH_MAX = 64, TERM_STEPS = 1 << 16, TERM_STEPS_PER_BYTE = 16 };

/* Once it has said no, term_compile refuses the whole term: what was not looked at is not known to fit or not. */
static bool may_go_on(struct compile *c, uint32_t depth) {
    if (depth > TERM_DEPTH_MAX) *c->steps = 0;
    return *c->steps > 0 && --*c->steps > 0;
}

/* ---- texts ---- */

static struct slice text_of(const struct ast_expr *x) {
    if (x->kind == EXPR_NULL) return slice_str("NULL");
    if (x->source.n) return x->source;
    return x->kind == EXPR_BIND ? slice_str("?") : x->text;
}

static struct slice type_text(struct compile *c, const struct cql_type *t) {
    struct buf b;
    buf_init(&b, 4096);
    cql_type_print(t, &b);
    struct slice s = arena_dup(c->arena, buf_slice(&b));
    buf_fini(&b);
    return s.p ? s : slice_str("");
}

static struct term *refuse_literal(struct compile *c, const char *what, const struct receiver *to) {
    struct slice type = type_text(c, to->type);
    err_invalid(c->err, "Invalid %s literal for %s of type %.*s", what, to->name, SLICE_FMT(type));
    return NULL;
}

/* ---- what type an expression has, as far as it can be told without a receiver ---- */

static enum match fits(struct compile *c, const struct ast_expr *x, const struct cql_type *t, const struct receiver *near, uint32_t depth);
static const struct cql_type *type_of(struct compile *c, const struct ast_expr *x, const struct receiver *near, uint32_t depth);
static const struct function *find_call(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth);
static const struct function *find_operator(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth);

static bool is_operator(enum ast_expr_kind k) { return k >= EXPR_ADD && k <= EXPR_MOD; }

/* Runs a search whose failure is an answer, not an error of the statement. */
static const struct function *try_find(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    struct err ignored = {0};
    struct compile scratch = *c;
    scratch.err = &ignored;
    return is_operator(x->kind) ? find_operator(&scratch, x, to, depth) : find_call(&scratch, x, to, depth);
}

static const struct cql_type *type_of(struct compile *c, const struct ast_expr *x, const struct receiver *near, uint32_t depth) {
    struct receiver any = {.keyspace = near ? near->keyspace : NULL, .table = near ? near->table : NULL, .name = ""};
    if (!may_go_on(c, depth)) return NULL;
    if (x->kind == EXPR_LITERAL) return term_literal_type(x);
    if (x->kind == EXPR_NEG) return type_of(c, x->args[0], near, depth + 1);
    if (x->kind == EXPR_TYPE_HINT || x->kind == EXPR_CAST) {
        struct err ignored = {0};
        struct compile scratch = *c;
        scratch.err = &ignored;
        return compile_type(&scratch, x->type);
    }
    if (x->kind != EXPR_CALL && !is_operator(x->kind)) return NULL;
    const struct function *f = try_find(c, x, &any, depth + 1);
    return f ? f->result : NULL;
}

static enum match fits_items(struct compile *c, const struct ast_expr *x, const struct cql_type *t, const struct receiver *near, uint32_t depth) {
    bool ok = x->kind == EXPR_LIST    ? t->id == CQL_LIST || (t->id == CQL_VECTOR && t->dimension == x->n_args)
              : x->kind == EXPR_SET   ? t->id == CQL_SET || (t->id == CQL_MAP && x->n_args == 0)
              : x->kind == EXPR_MAP   ? t->id == CQL_MAP
              : x->kind == EXPR_TUPLE ? t->id == CQL_TUPLE && x->n_args <= t->n_args
                                      : t->id == CQL_UDT;
    for (uint32_t i = 0; ok && i < x->n_args && t->id != CQL_UDT; i++) {
        const struct cql_type *item = t->id == CQL_TUPLE ? t->args[i] : t->args[i % t->n_args];
        ok = fits(c, x->args[i], item, near, depth + 1) != MATCH_NO;
    }
    return ok ? MATCH_WEAK : MATCH_NO;
}

static enum match fits_type(const struct cql_type *t, const struct cql_type *from) {
    if (!from) return MATCH_NO;
    return cql_type_eq(t, from) ? MATCH_EXACT : function_type_fits(t, from) ? MATCH_WEAK : MATCH_NO;
}

static enum match fits(struct compile *c, const struct ast_expr *x, const struct cql_type *t, const struct receiver *near, uint32_t depth) {
    if (!may_go_on(c, depth)) return MATCH_NO;
    struct receiver to = {.keyspace = near ? near->keyspace : NULL, .table = near ? near->table : NULL, .name = "", .type = t};
    const struct function *f;
    switch (x->kind) {
    case EXPR_LITERAL:
        if (!cql_literal_fits(t, x->literal)) return MATCH_NO;
        return term_literal_type(x)->id == t->id ? MATCH_EXACT : MATCH_WEAK;
    case EXPR_NULL:
    case EXPR_BIND: return MATCH_WEAK;
    case EXPR_NEG: return fits(c, x->args[0], t, near, depth + 1);
    case EXPR_TYPE_HINT:
    case EXPR_CAST: return fits_type(t, type_of(c, x, near, depth + 1));
    case EXPR_TUPLE:
        if (x->n_args == 1 && t->id != CQL_TUPLE) return fits(c, x->args[0], t, near, depth + 1);
        return fits_items(c, x, t, near, depth);
    case EXPR_LIST:
    case EXPR_SET:
    case EXPR_MAP:
    case EXPR_UDT: return fits_items(c, x, t, near, depth);
    default:
        if (x->kind != EXPR_CALL && !is_operator(x->kind)) return MATCH_NO;
        f = try_find(c, x, &to, depth + 1);
        return f ? fits_type(t, f->result) : MATCH_NO;
    }
}

/* ---- functions and operators ---- */

struct arguments {
    struct compile *c;
    struct ast_expr *const *args;
    const struct cql_type *const *known; /* their types, where they are compiled already; may be NULL, as each of them */
    struct slice (*text)(struct compile *c, const struct ast_expr *x);
    const struct receiver *near;
    uint32_t depth;
};

static enum match argument_fits(void *arg, uint32_t i, const struct cql_type *t) {
    struct arguments *a = arg;
    if (a->known && a->known[i]) return fits_type(t, a->known[i]);
    return fits(a->c, a->args[i], t, a->near, a->depth + 1);
}

static const struct cql_type *argument_type(void *arg, uint32_t i) {
    struct arguments *a = arg;
    if (a->known && a->known[i]) return a->known[i];
    return type_of(a->c, a->args[i], a->near, a->depth + 1);
}

static struct slice argument_text(void *arg, uint32_t i) {
    struct arguments *a = arg;
    return a->text(a->c, a->args[i]);
}

static struct slice source_text(struct compile *c, const struct ast_expr *x) {
    (void)c;
    return text_of(x);
}

static const struct function *find_among(struct arguments *a, const struct ast_expr *x, const struct receiver *to) {
    struct compile *c = a->c;
    struct function_args args = {.n = x->n_args, .fits = argument_fits, .type = argument_type, .text = argument_text, .arg = a};
    if (a->depth > TERM_DEPTH_MAX || x->n_args > FUNCTION_ARGS_MAX) {
        err_invalid(c->err, "Too many arguments, or calls nested too deep");
        return NULL;
    }
    if (x->kind == EXPR_CALL) return function_resolve(c, x->keyspace, x->name, &args, to);
    const struct cql_type *type = compile_type(c, x->type);
    if (!type) return NULL;
    const struct cql_type *from = argument_type(a, 0);
    bool identity = from ? cql_type_eq(from, type) : argument_fits(a, 0, type) != MATCH_NO;
    if (identity) return function_new(c, "cast", type, &type, 1, function_as_blob);
    struct slice text = type_text(c, type);
    const char *name = text.n ? arena_printf(c->arena, "cast_as_%.*s", SLICE_FMT(text)) : NULL;
    return name ? function_resolve(c, "system", name, &args, NULL) : (err_nomem(c->err), NULL);
}

static const struct function *find_call(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    struct arguments a = {.c = c, .args = x->args, .text = source_text, .near = to, .depth = depth};
    return find_among(&a, x, to);
}

static const char *operator_sign(enum ast_expr_kind k) {
    return k == EXPR_ADD ? "+" : k == EXPR_SUB ? "-" : k == EXPR_MUL ? "*" : k == EXPR_DIV ? "/" : "%";
}

/* A literal takes the type that is wanted; what has a type keeps it; a literal beside such takes its own. */
static const struct cql_type *operand_type(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    bool adapts = x->kind == EXPR_LITERAL || x->kind == EXPR_NULL || (x->kind == EXPR_TUPLE && x->n_args == 1) ||
                  x->kind == EXPR_NEG || x->kind == EXPR_CALL || is_operator(x->kind);
    if (adapts && to && to->type && fits(c, x, to->type, to, depth + 1) != MATCH_NO) return to->type;
    return type_of(c, x, to, depth + 1);
}

static const struct function *find_operator(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    struct slice left = text_of(x->args[0]), right = text_of(x->args[1]);
    const char *sign = operator_sign(x->kind);
    const struct cql_type *a = operand_type(c, x->args[0], to, depth), *b = operand_type(c, x->args[1], to, depth);
    if (a && (a->id == CQL_TIMESTAMP || a->id == CQL_DATE) && fits(c, x->args[1], cql_type_scalar(CQL_DURATION), to, depth + 1) != MATCH_NO)
        b = cql_type_scalar(CQL_DURATION);
    else if (x->args[0]->kind == EXPR_BIND || x->args[1]->kind == EXPR_BIND) {
        err_invalid(c->err, "Ambiguous '%s' operation with args %.*s and %.*s: use type hint to disambiguate, example '(int) ?'", sign,
                    SLICE_FMT(left), SLICE_FMT(right));
        return NULL;
    }
    if (!a && x->args[0]->kind == EXPR_NULL) a = b;
    if (!b && x->args[1]->kind == EXPR_NULL) b = a;
    const struct function *f = a && b ? function_operator(c, x->kind, a, b) : NULL;
    if (f && to && to->type && !function_type_fits(to->type, f->result)) f = NULL;
    if (!f)
        err_invalid(c->err, "the '%s' operation is not supported between %.*s and %.*s", sign, SLICE_FMT(left), SLICE_FMT(right));
    return f;
}

/* ---- compiling ---- */

static struct term *compile_term(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth);

struct term *term_new(struct compile *c, enum term_kind kind, const struct cql_type *type, uint32_t n_args) {
    struct term *t = ARENA_NEW(c->arena, struct term);
    struct term **args = ARENA_ARRAY(c->arena, n_args, struct term *);
    if (!t || !args) {
        err_nomem(c->err);
        return NULL;
    }
    *t = (struct term){.kind = kind, .type = type, .n_args = n_args, .args = args};
    return t;
}

/* Evaluates what can be evaluated now. */
static struct term *fold(struct compile *c, struct term *t) {
    if (t->kind == TERM_CALL && !t->function->pure) return t;
    for (uint32_t i = 0; i < t->n_args; i++)
        if (t->args[i] && t->args[i]->kind != TERM_CONSTANT) return t;
    struct cql_request r = {.arena = c->arena, .err = c->err};
    struct value v;
    if (term_eval(t, &r, &v) < 0) return NULL;
    t->kind = TERM_CONSTANT;
    t->value = v;
    return t;
}

static struct term *compile_literal(struct compile *c, const struct ast_expr *x, const struct receiver *to) {
    struct buf b;
    struct term *t = term_new(c, TERM_CONSTANT, to->type, 0);
    if (!t) return NULL;
    buf_init(&b, 64 << 20);
    int rc = cql_literal_parse(to->type, x->literal, x->text, to->name, &b, c->err);
    if (rc == 0) {
        struct slice copy = arena_dup(c->arena, buf_slice(&b));
        t->value = value_of_slice(copy);
        if (!copy.p) rc = err_nomem(c->err);
    }
    buf_fini(&b);
    return rc < 0 ? NULL : t;
}

static struct term *compile_bind(struct compile *c, const struct ast_expr *x, const struct receiver *to) {
    struct term *t = term_new(c, TERM_BIND, to->type, 0);
    if (!t || !c->binds || x->bind < 0 || (uint32_t)x->bind >= c->binds->n) {
        err_invalid(c->err, "Bind variables cannot be used here");
        return NULL;
    }
    t->bind = x->bind;
    const char *name = c->binds->names ? c->binds->names[x->bind] : NULL;
    c->binds->specs[x->bind] = *to;
    if (name) c->binds->specs[x->bind].name = name;
    return t;
}

/* The receiver of an item: value(v), key(v), v[1], v.f. */
static struct receiver item_receiver(struct compile *c, const struct receiver *to, const struct cql_type *t, uint32_t i) {
    const char *name = t->id == CQL_MAP       ? arena_printf(c->arena, i % 2 ? "value(%s)" : "key(%s)", to->name)
                       : t->id == CQL_TUPLE   ? arena_printf(c->arena, "%s[%u]", to->name, i)
                       : t->id == CQL_UDT     ? arena_printf(c->arena, "%s.%s", to->name, t->field_names[i])
                                              : arena_printf(c->arena, "value(%s)", to->name);
    const struct cql_type *type = t->id == CQL_TUPLE || t->id == CQL_UDT ? t->args[i] : t->args[i % t->n_args];
    return (struct receiver){.keyspace = to->keyspace, .table = to->table, .name = name ? name : "", .type = type};
}

static int check_item(struct compile *c, const struct ast_expr *item, const struct receiver *to, const struct receiver *whole, uint32_t i,
                      uint32_t depth) {
    static const char *const kinds[CQL_TYPES] = {[CQL_LIST] = "list", [CQL_SET] = "set", [CQL_VECTOR] = "vector", [CQL_MAP] = "map"};
    const struct cql_type *t = whole->type;
    if (fits(c, item, to->type, to, depth + 1) != MATCH_NO) return 0;
    struct slice type = type_text(c, to->type), text = text_of(item);
    if (t->id == CQL_TUPLE)
        return err_invalid(c->err, "Invalid tuple literal for %s: component %u is not of type %.*s", whole->name, i, SLICE_FMT(type));
    if (t->id == CQL_UDT)
        return err_invalid(c->err, "Invalid user type literal for %s: field %s is not of type %.*s", whole->name, t->field_names[i], SLICE_FMT(type));
    const char *part = t->id == CQL_MAP && i % 2 == 0 ? "key" : "value";
    return err_invalid(c->err, "Invalid %s literal for %s: %s %.*s is not of type %.*s", kinds[t->id], whole->name, part, SLICE_FMT(text),
                       SLICE_FMT(type));
}

static bool has_marker(const struct term *t) {
    if (t->kind == TERM_BIND) return true;
    for (uint32_t i = 0; i < t->n_args; i++)
        if (t->args[i] && has_marker(t->args[i])) return true;
    return false;
}

static int compile_item(struct compile *c, const struct ast_expr *item, struct term *t, uint32_t at, const struct receiver *to, uint32_t depth) {
    struct receiver item_to = item_receiver(c, to, t->type, at);
    bool nullable = t->type->id == CQL_TUPLE || t->type->id == CQL_UDT;
    if (item->kind == EXPR_NULL && !nullable)
        return err_invalid(c->err, "null is not supported inside %s", t->type->id == CQL_VECTOR ? "vectors" : "collections");
    if (check_item(c, item, &item_to, to, at, depth) < 0) return -1;
    t->args[at] = compile_term(c, item, &item_to, depth + 1);
    if (!t->args[at]) return -1;
    if (!cql_type_is_collection(t->type) || !has_marker(t->args[at])) return 0;
    const char *kind = t->type->id == CQL_LIST ? "list" : t->type->id == CQL_SET ? "set" : "map";
    return err_invalid(c->err, "Invalid %s literal for %s: bind variables are not supported inside collection literals", kind, to->name);
}

static struct term *compile_items(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    struct term *t = term_new(c, TERM_ITEMS, to->type, x->n_args);
    for (uint32_t i = 0; t && i < x->n_args; i++)
        if (compile_item(c, x->args[i], t, i, to, depth) < 0) return NULL;
    return t ? fold(c, t) : NULL;
}

static struct term *compile_udt(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    const struct cql_type *type = to->type;
    if (type->id != CQL_UDT) return refuse_literal(c, "user type", to);
    struct term *t = term_new(c, TERM_ITEMS, type, type->n_args);
    for (uint32_t i = 0; t && i < x->n_args; i++) {
        uint32_t at = 0;
        while (at < type->n_args && strcmp(type->field_names[at], x->names[i]) != 0) at++;
        if (at == type->n_args) {
            err_invalid(c->err, "Unknown field '%s' in value of user defined type %s", x->names[i], type->name);
            return NULL;
        }
        if (compile_item(c, x->args[i], t, at, to, depth) < 0) return NULL;
    }
    return t ? fold(c, t) : NULL;
}

static struct term *compile_list(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    struct slice type = type_text(c, to->type);
    if (to->type->id == CQL_VECTOR && x->n_args != to->type->dimension) {
        err_invalid(c->err, "Invalid vector literal for %s of type %.*s; expected %u elements, but given %u", to->name, SLICE_FMT(type),
                    to->type->dimension, x->n_args);
        return NULL;
    }
    if (to->type->id == CQL_VECTOR || to->type->id == CQL_LIST) return compile_items(c, x, to, depth);
    err_invalid(c->err, "Unexpected receiver type '%.*s'; only list and vector are expected", SLICE_FMT(type));
    return NULL;
}

static struct term *compile_tuple(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    if (x->n_args == 1 && to->type->id != CQL_TUPLE) return compile_term(c, x->args[0], to, depth + 1);
    if (to->type->id != CQL_TUPLE) return refuse_literal(c, "tuple type", to);
    if (x->n_args > to->type->n_args) {
        struct slice type = type_text(c, to->type);
        err_invalid(c->err, "Invalid tuple literal for %s: too many elements. Type %.*s expects %u but got %u", to->name, SLICE_FMT(type),
                    to->type->n_args, x->n_args);
        return NULL;
    }
    return compile_items(c, x, to, depth);
}

static struct term *compile_call(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    const struct function *f = is_operator(x->kind) ? find_operator(c, x, to, depth) : find_call(c, x, to, depth);
    if (!f) return NULL;
    if (!function_type_fits(to->type, f->result)) {
        struct slice from = type_text(c, f->result), type = type_text(c, to->type);
        err_invalid(c->err, "Type error: cannot assign result of function system.%s (type %.*s) to %s (type %.*s)", f->name, SLICE_FMT(from),
                    to->name, SLICE_FMT(type));
        return NULL;
    }
    struct term *t = term_new(c, TERM_CALL, f->result, x->n_args);
    for (uint32_t i = 0; t && i < x->n_args; i++) {
        const char *name = arena_printf(c->arena, "arg%u(system.%s)", i, f->name);
        struct receiver arg = {.keyspace = to->keyspace, .table = to->table, .name = name ? name : "", .type = f->args[i]};
        t->args[i] = compile_term(c, x->args[i], &arg, depth + 1);
        if (!t->args[i]) return NULL;
    }
    if (t) t->function = f;
    return t ? fold(c, t) : NULL;
}

static struct term *compile_negation(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    if (!function_is_number(to->type)) {
        struct slice text = text_of(x->args[0]);
        err_invalid(c->err, "the '-' operation is not supported on %.*s", SLICE_FMT(text));
        return NULL;
    }
    struct term *t = term_new(c, TERM_CALL, to->type, 1);
    struct function *f = function_new(c, "_negate", to->type, &to->type, 1, function_negate);
    if (!t || !f) return NULL;
    t->function = f;
    t->args[0] = compile_term(c, x->args[0], to, depth + 1);
    return t->args[0] ? fold(c, t) : NULL;
}

static struct term *compile_hint(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    const struct cql_type *type = compile_type(c, x->type);
    if (!type) return NULL;
    struct slice inner = text_of(x->args[0]), name = type_text(c, type), want = type_text(c, to->type);
    if (fits(c, x->args[0], type, to, depth + 1) == MATCH_NO) {
        err_invalid(c->err, "Cannot cast value %.*s to type %.*s", SLICE_FMT(inner), SLICE_FMT(name));
        return NULL;
    }
    if (!function_type_fits(to->type, type)) {
        err_invalid(c->err, "Cannot assign value (%.*s)%.*s to %s of type %.*s", SLICE_FMT(name), SLICE_FMT(inner), to->name, SLICE_FMT(want));
        return NULL;
    }
    struct receiver hinted = *to;
    hinted.type = type;
    return compile_term(c, x->args[0], &hinted, depth + 1);
}

static struct term *compile_null(struct compile *c, const struct receiver *to) {
    struct term *t = term_new(c, TERM_CONSTANT, to->type, 0);
    if (t) t->value = value_null();
    return t;
}

static struct term *compile_term(struct compile *c, const struct ast_expr *x, const struct receiver *to, uint32_t depth) {
    if (depth > TERM_DEPTH_MAX) {
        err_invalid(c->err, "A value may not be nested more than %d deep", TERM_DEPTH_MAX);
        return NULL;
    }
    switch (x->kind) {
    case EXPR_LITERAL: return compile_literal(c, x, to);
    case EXPR_NULL: return compile_null(c, to);
    case EXPR_BIND: return compile_bind(c, x, to);
    case EXPR_LIST: return compile_list(c, x, to, depth);
    case EXPR_SET:
        if (to->type->id == CQL_SET || (to->type->id == CQL_MAP && x->n_args == 0)) return compile_items(c, x, to, depth);
        return refuse_literal(c, "set", to);
    case EXPR_MAP:
        if (to->type->id != CQL_MAP) return refuse_literal(c, "map", to);
        return compile_items(c, x, to, depth);
    case EXPR_UDT: return compile_udt(c, x, to, depth);
    case EXPR_TUPLE: return compile_tuple(c, x, to, depth);
    case EXPR_NEG: return compile_negation(c, x, to, depth);
    case EXPR_TYPE_HINT: return compile_hint(c, x, to, depth);
    case EXPR_CALL:
    case EXPR_CAST: return compile_call(c, x, to, depth);
    default: break;
    }
    if (is_operator(x->kind)) return compile_call(c, x, to, depth);
    struct slice text = text_of(x);
    err_invalid(c->err, "Invalid value %.*s for %s", SLICE_FMT(text), to->name);
    return NULL;
}

/* What a search may cost. */
static uint64_t steps_for(const struct ast_expr *x) { return TERM_STEPS + TERM_STEPS_PER_BYTE * (uint64_t)x->source.n; }

static void *refuse_steps(struct compile *c) {
    err_clear(c->err);
    err_invalid(c->err, "A value nests too many calls for their types to be found");
    return NULL;
}

struct term *term_compile(struct compile *c, const struct ast_expr *x, const struct receiver *to) {
    uint64_t steps = steps_for(x);
    struct compile mine = *c;
    mine.steps = &steps;
    struct term *t = compile_term(&mine, x, to, 0);
    return steps ? t : refuse_steps(c);
}

const struct function *term_find_call(struct compile *c, const struct ast_expr *x, const struct cql_type *const *known,
                                      struct slice (*text)(struct compile *c, const struct ast_expr *x), const struct receiver *to) {
    uint64_t steps = steps_for(x);
    struct compile mine = *c;
    mine.steps = &steps;
    struct arguments a = {.c = &mine, .args = x->args, .known = known, .text = text, .near = to};
    const struct function *f = find_among(&a, x, to);
    return steps ? f : refuse_steps(c);
}
