/* How an expression fits a type, and its own type. */
#include "cql/expr/selector.h"
#include "cql/expr/term.h"
#include "cql/expr/term_compile.h"

/* Counts one step of the search. When the steps are used up, term_compile refuses the whole term,
 * because the remaining expressions were not checked. */
static bool count_step(struct compile *c, uint32_t depth) {
    if (depth > TERM_DEPTH_MAX) c->search->steps = 0;
    return c->search->steps > 0 && --c->search->steps > 0;
}

/* ---- texts ---- */

/* A text that has grown too long is cut. */
struct slice cqli_text(struct compile *c, struct buf *b) {
    struct slice s = arena_dup(c->arena, buf_slice(b));
    buf_fini(b);
    return s.p ? s : slice_str("");
}

struct slice cqli_expr_text(struct compile *c, const struct ast_expr *x) {
    struct buf b;
    buf_init(&b, 1 << 16);
    if (c->scope) ast_print_selector(x, &b);
    else ast_quote_expr(x, &b);
    return cqli_text(c, &b);
}

struct slice cqli_type_text(struct compile *c, const struct cql_type *t) {
    struct buf b;
    buf_init(&b, 4096);
    cql_type_print(t, &b);
    return cqli_text(c, &b);
}

/* ---- own types ---- */

bool cqli_is_operator(enum ast_expr_kind k) { return k >= EXPR_ADD && k <= EXPR_MOD; }

static bool is_call(enum ast_expr_kind k) { return k == EXPR_CALL || k == EXPR_NEG || cqli_is_operator(k); }

bool cqli_has_own_type(const struct compile *c, const struct ast_expr *x) {
    if (!c->scope) return false;
    if (x->kind == EXPR_TUPLE && x->n_args == 1) return cqli_has_own_type(c, x->args[0]);
    return cqli_is_of_row(x) || is_call(x->kind) || x->kind == EXPR_CAST || x->kind == EXPR_TYPE_HINT;
}

const struct ast_expr *cqli_inside(const struct ast_expr *x) {
    while (x->kind == EXPR_TUPLE && x->n_args == 1) x = x->args[0];
    return x;
}

/* Compiles the expression with a scratch state to see its type. */
static const struct cql_type *type_on_row(struct compile *c, const struct ast_expr *x, const struct receiver *near,
                                          uint32_t depth) {
    struct err ignored = {0};
    struct term_scope tried = *c->scope;
    struct compile scratch = *c;
    scratch.err = &ignored;
    scratch.scope = &tried;
    struct receiver any = {.keyspace = near->keyspace, .table = near->table, .name = near->name};
    struct term *t = cqli_term(&scratch, x, &any, depth + 1);
    return t ? t->type : NULL;
}

/* Resolves a call; a failure is not an error of the statement. */
static const struct function *try_find(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                                       uint32_t depth) {
    struct err ignored = {0};
    struct compile scratch = *c;
    scratch.err = &ignored;
    return cqli_find_call(&scratch, x, NULL, to, depth);
}

/* A list or set has its first element's type; a tuple has one if all its parts have. */
static const struct cql_type *type_of_items(struct compile *c, const struct ast_expr *x, const struct receiver *near,
                                            bool loosely, uint32_t depth) {
    bool tuple = x->kind == EXPR_TUPLE;
    const struct cql_type **parts = ARENA_ARRAY(c->arena, x->n_args, const struct cql_type *);
    if (!parts || (tuple && x->n_args < 2)) return NULL;
    for (uint32_t i = 0; i < x->n_args; i++) {
        parts[i] = cqli_type_of(c, x->args[i], near, loosely, depth + 1);
        if (tuple && !parts[i]) return NULL;
        if (!tuple && parts[i])
            return cql_type_new(c->arena, x->kind == EXPR_LIST ? CQL_LIST : CQL_SET, true, &parts[i], 1, 0, c->err);
    }
    return tuple ? cql_type_new(c->arena, CQL_TUPLE, true, parts, x->n_args, 0, c->err) : NULL;
}

const struct cql_type *cqli_type_of(struct compile *c, const struct ast_expr *x, const struct receiver *near,
                                    bool loosely, uint32_t depth) {
    struct receiver any = {.keyspace = near ? near->keyspace : NULL, .table = near ? near->table : NULL, .name = ""};
    if (!count_step(c, depth)) return NULL;
    if (x->kind == EXPR_LIST || x->kind == EXPR_SET || x->kind == EXPR_TUPLE)
        return type_of_items(c, x, &any, loosely, depth);
    if (cqli_has_own_type(c, x)) return type_on_row(c, x, &any, depth);
    if (x->kind == EXPR_LITERAL) return loosely ? cqli_literal_type(x) : NULL;
    if (x->kind == EXPR_TYPE_HINT || x->kind == EXPR_CAST) {
        struct err ignored = {0};
        struct compile scratch = *c;
        scratch.err = &ignored;
        return compile_type_in(&scratch, any.keyspace, x->type);
    }
    if (!is_call(x->kind)) return NULL;
    const struct function *f = try_find(c, x, &any, depth + 1);
    return f ? f->result : NULL;
}

/* ---- how it fits ---- */

/* Within another value every type is frozen, also a column's, unless a type hint is around it. */
static bool fits_frozen(struct compile *c, const struct ast_expr *x, const struct cql_type *t,
                        const struct receiver *near, uint32_t depth) {
    if (!cqli_has_own_type(c, x)) return cqli_fits(c, x, t, near, depth) != MATCH_NO;
    const struct cql_type *own = count_step(c, depth) ? cqli_type_of(c, x, near, false, depth) : NULL,
                          *frozen = own ? cql_type_freeze(c->arena, own) : NULL;
    return frozen && cqli_fits_type(t, frozen) != MATCH_NO;
}

static enum match fits_items(struct compile *c, const struct ast_expr *x, const struct cql_type *t,
                             const struct receiver *near, uint32_t depth) {
    bool any_size = c->scope != NULL; /* the select list refuses another number of elements when it makes the vector */
    bool ok = x->kind == EXPR_LIST
                  ? t->id == CQL_LIST || (t->id == CQL_VECTOR && (any_size || t->dimension == x->n_args))
              : x->kind == EXPR_SET   ? t->id == CQL_SET || (t->id == CQL_MAP && x->n_args == 0)
              : x->kind == EXPR_MAP   ? t->id == CQL_MAP
              : x->kind == EXPR_TUPLE ? t->id == CQL_TUPLE && x->n_args <= t->n_args
                                      : t->id == CQL_UDT;
    for (uint32_t i = 0; ok && i < x->n_args; i++) {
        uint32_t field = t->id == CQL_UDT ? cql_type_field(t, slice_str(x->names[i])) : i;
        if (t->id == CQL_UDT && field == t->n_args) continue; /* compile_udt refuses it by its name */
        const struct cql_type *item = t->id == CQL_TUPLE || t->id == CQL_UDT ? t->args[field] : t->args[i % t->n_args];
        bool freezes = !c->search->hints && (c->search->untyped || x->kind != EXPR_TUPLE);
        ok = freezes ? fits_frozen(c, x->args[i], item, near, depth + 1)
                     : cqli_fits(c, x->args[i], item, near, depth + 1) != MATCH_NO;
    }
    return ok ? MATCH_WEAK : MATCH_NO;
}

/* {a: b} in a select list, for a map: the names are columns, which are its keys. */
static enum match fits_named(struct compile *c, const struct ast_expr *x, const struct cql_type *t,
                             const struct receiver *near, uint32_t depth) {
    if (!c->scope || t->id != CQL_MAP) return fits_items(c, x, t, near, depth);
    for (uint32_t i = 0; i < x->n_args; i++) {
        const struct schema_column *key = schema_column_find(c->scope->table, x->names[i]);
        if (!key || cqli_fits_type(t->args[0], key->type) == MATCH_NO) return MATCH_NO;
        if (cqli_fits(c, x->args[i], t->args[1], near, depth + 1) == MATCH_NO) return MATCH_NO;
    }
    return MATCH_WEAK;
}

enum match cqli_fits_type(const struct cql_type *t, const struct cql_type *from) {
    if (!from) return MATCH_NO;
    return cql_type_eq(t, from) ? MATCH_EXACT : function_type_fits(t, from) ? MATCH_WEAK : MATCH_NO;
}

/* Searches once for each call and type; collections and types made of others are not remembered. */
static enum match fits_call(struct compile *c, const struct ast_expr *x, const struct cql_type *t,
                            const struct receiver *near, uint32_t depth) {
    struct term_search *s = c->search;
    if (!s->remembers) memset(s->memo, 0, sizeof s->memo);
    s->remembers = true;
    size_t at = ((uintptr_t)x / sizeof(void *) * 31 + t->id) % TERM_MEMO;
    if (t->id < CQL_LIST && s->memo[at].x == x && s->memo[at].type == t->id) return s->memo[at].match;
    struct receiver to = {.keyspace = near ? near->keyspace : NULL,
                          .table = near ? near->table : NULL,
                          .name = "",
                          .type = t};
    const struct function *f = try_find(c, x, &to, depth + 1);
    /* A call that cannot be resolved counts as fitting: compiling it reports the error. */
    enum match m = f ? cqli_fits_type(t, f->result) : s->steps ? MATCH_WEAK : MATCH_NO;
    if (t->id >= CQL_LIST) return m;
    s->memo[at].x = x;
    s->memo[at].type = t->id;
    s->memo[at].match = m;
    return m;
}

enum match cqli_fits(struct compile *c, const struct ast_expr *x, const struct cql_type *t, const struct receiver *near,
                     uint32_t depth) {
    if (!count_step(c, depth)) return MATCH_NO;
    if (cqli_has_own_type(c, x)) {
        return cqli_fits_type(t, cqli_type_of(c, cqli_inside(x), near, false, depth + 1));
    }
    switch (x->kind) {
    case EXPR_LITERAL:
        if (!cql_literal_fits(t, x->literal)) return MATCH_NO;
        return cqli_literal_type(x)->id == t->id ? MATCH_EXACT : MATCH_WEAK;
    case EXPR_NULL: return t->id == CQL_COUNTER ? MATCH_NO : MATCH_WEAK;
    case EXPR_BIND: return MATCH_WEAK;
    case EXPR_TYPE_HINT: case EXPR_CAST: return cqli_fits_type(t, cqli_type_of(c, x, near, false, depth + 1));
    case EXPR_TUPLE:
        if (x->n_args == 1 && t->id != CQL_TUPLE) return cqli_fits(c, x->args[0], t, near, depth + 1);
        return fits_items(c, x, t, near, depth);
    case EXPR_LIST: case EXPR_SET: case EXPR_MAP: return fits_items(c, x, t, near, depth);
    case EXPR_UDT: return fits_named(c, x, t, near, depth);
    default: return is_call(x->kind) ? fits_call(c, x, t, near, depth) : MATCH_NO;
    }
}
