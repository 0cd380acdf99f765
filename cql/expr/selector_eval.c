#include "cql/expr/function.h"
#include "cql/row/row_key.h"
#include "cql/expr/selector.h"

static int number_out(struct arena *a, uint64_t v, uint32_t bytes, struct value *out, struct err *e) {
    uint8_t *p = arena_alloc(a, 8);
    if (!p) return err_nomem(e);
    if (bytes == 8) store_u64(p, v);
    else store_u32(p, (uint32_t)v);
    *out = value_of(p, bytes);
    return 0;
}

static int64_t now_seconds(const struct cql_request *r) { return r->params.has_now ? r->params.now_seconds : r->now_us / 1000000; }

static int32_t ttl_left(const struct row_view_time *t, int64_t now) {
    return t->ttl && t->expiry != ENG_NO_EXPIRY ? (int32_t)(t->expiry - now) : -1;
}

/* Of a non-frozen collection: one entry per element. */
static int eval_time_list(const struct selector *s, const struct selector_context *c, struct value *out) {
    uint32_t n, live = 0;
    const struct eng_cell *cells = row_view_cells(c->view, s->column, &n);
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, 0);
    for (uint32_t i = 0; i < n; i++) {
        if (cells[i].flags & (ENG_CELL_TOMBSTONE | ENG_CELL_COMPLEX_DELETION)) continue;
        struct row_view_time t = {.present = true, .ts = cells[i].ts, .ttl = cells[i].ttl, .expiry = cells[i].expiry};
        uint8_t bytes[8];
        struct value v = value_of(bytes, s->kind == SELECTOR_TTL ? 4 : 8);
        if (s->kind != SELECTOR_TTL) store_u64(bytes, (uint64_t)t.ts);
        else if (t.ttl) store_u32(bytes, (uint32_t)ttl_left(&t, now_seconds(c->r)));
        else v = value_null();
        cql_elem_put(v, &b);
        live++;
    }
    if (!buf_failed(&b)) buf_patch_u32(&b, 0, live);
    *out = value_null();
    int rc = 0;
    if (live) {
        struct slice copy = buf_failed(&b) ? (struct slice){0} : arena_dup(c->r->arena, buf_slice(&b));
        if (copy.p) *out = value_of_slice(copy);
        else rc = err_nomem(c->r->err);
    }
    buf_fini(&b);
    return rc;
}

/* Of one element of a map or set (of a frozen one: of the column). */
static int element_time(const struct selector *s, const struct selector_context *c, struct row_view_time *out) {
    struct value key;
    uint32_t n;
    bool exact = true;
    if (term_eval(s->term, c->r, &key)) return -1;
    if (value_is_null(key)) return 0;
    const struct eng_cell *cells = row_view_cells(c->view, s->column, &n);
    struct buf path;
    buf_init(&path, 0);
    int rc = cql_key_encode(s->column->type->args[0], false, value_slice(key), &path, &exact, c->r->err);
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        if (cells[i].flags & (ENG_CELL_TOMBSTONE | ENG_CELL_COMPLEX_DELETION) || !slice_eq(cells[i].path, buf_slice(&path))) continue;
        *out = (struct row_view_time){.present = true, .ts = cells[i].ts, .ttl = cells[i].ttl, .expiry = cells[i].expiry};
    }
    if (rc == 0 && buf_failed(&path)) rc = err_nomem(c->r->err);
    buf_fini(&path);
    return rc;
}

static int compute_time(const struct selector *s, const struct selector_context *c, struct value *out) {
    *out = value_null();
    if (!c->view) return 0;
    if (s->type->id == CQL_LIST) return eval_time_list(s, c, out);
    struct row_view_time t = {0};
    if (!s->term || s->column->type->frozen) t = row_view_time(c->view, s->column);
    else if (element_time(s, c, &t)) return -1;
    if (!t.present) return 0;
    if (s->kind != SELECTOR_TTL) return number_out(c->r->arena, (uint64_t)t.ts, 8, out, c->r->err);
    int32_t left = ttl_left(&t, now_seconds(c->r));
    return left < 0 ? 0 : number_out(c->r->arena, (uint32_t)left, 4, out, c->r->err);
}

static int eval_time(const struct selector *s, const struct selector_context *c, struct value *out) {
    if (!c->latched) return compute_time(s, c, out);
    *out = c->latched[s->latch];
    return 0;
}

int selector_latch_all(const struct selector *latches, const struct selector_context *c, struct value *out) {
    for (; latches; latches = latches->next_latch)
        if (compute_time(latches, c, &out[latches->latch])) return -1;
    return 0;
}

static int eval_element(const struct selector *s, const struct selector_context *c, struct value *out) {
    const struct cql_type *t = s->args[0]->type;
    struct value of, key, k;
    struct cql_elems it;
    *out = value_null();
    if (selector_eval(s->args[0], c, &of) || term_eval(s->term, c->r, &key)) return -1;
    if (value_is_null(of)) return 0;
    if (value_is_null(key)) return err_invalid(c->r->err, "Invalid null value for element selection on %s", s->args[0]->column ? s->args[0]->column->name : "");
    if (cql_elems_open(t, value_slice(of), &it)) return err_set(c->r->err, ERR_SERVER, "A stored collection is damaged");
    while (cql_elems_next(&it, &k)) {
        struct value v = k;
        if (t->id == CQL_MAP && !cql_elems_next(&it, &v)) break;
        if (value_is_null(k) || cql_value_compare(t->args[0], value_slice(k), value_slice(key))) continue;
        *out = v;
        break;
    }
    return 0;
}

/* The elements from one key to another, both included; of a non-frozen collection nothing is null. */
static int eval_range(const struct selector *s, const struct selector_context *c, struct value *out) {
    const struct cql_type *t = s->type;
    struct value of, from = value_null(), to = value_null(), k, v;
    struct cql_elems it;
    uint32_t n = 0;
    *out = value_null();
    if (selector_eval(s->args[0], c, &of)) return -1;
    if ((s->term && term_eval(s->term, c->r, &from)) || (s->term2 && term_eval(s->term2, c->r, &to))) return -1;
    if (value_is_null(of)) return 0;
    if ((s->term && value_is_null(from)) || (s->term2 && value_is_null(to)))
        return err_invalid(c->r->err, "Invalid null value for slice selection on %s", s->args[0]->column ? s->args[0]->column->name : "");
    if (cql_elems_open(t, value_slice(of), &it)) return err_set(c->r->err, ERR_SERVER, "A stored collection is damaged");
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, 0);
    while (cql_elems_next(&it, &k)) {
        if (t->id == CQL_MAP && !cql_elems_next(&it, &v)) break;
        if (s->term && cql_value_compare(t->args[0], value_slice(k), value_slice(from)) < 0) continue;
        if (s->term2 && cql_value_compare(t->args[0], value_slice(k), value_slice(to)) > 0) continue;
        cql_elem_put(k, &b);
        if (t->id == CQL_MAP) cql_elem_put(v, &b);
        n++;
    }
    if (!buf_failed(&b)) buf_patch_u32(&b, 0, n);
    struct slice copy = buf_failed(&b) ? (struct slice){0} : arena_dup(c->r->arena, buf_slice(&b));
    buf_fini(&b);
    if (!copy.p) return err_nomem(c->r->err);
    if (n || !cql_type_is_multicell(t)) *out = value_of_slice(copy);
    return 0;
}

static int eval_field(const struct selector *s, const struct selector_context *c, struct value *out) {
    struct value of;
    struct cql_elems it;
    *out = value_null();
    if (selector_eval(s->args[0], c, &of)) return -1;
    if (value_is_null(of)) return 0;
    if (cql_elems_open(s->args[0]->type, value_slice(of), &it)) return err_set(c->r->err, ERR_SERVER, "A stored user type value is damaged");
    for (uint32_t i = 0; i <= s->field; i++)
        if (!cql_elems_next(&it, out)) *out = value_null();
    return 0;
}

static int eval_function(const struct selector *s, const struct selector_context *c, struct value *out) {
    struct value args[FUNCTION_ARGS_MAX];
    if (s->n_args > FUNCTION_ARGS_MAX) return err_invalid(c->r->err, "Too many arguments of a function (at most %d)", FUNCTION_ARGS_MAX);
    for (uint32_t i = 0; i < s->n_args; i++)
        if (selector_eval(s->args[i], c, &args[i])) return -1;
    return function_call(s->function, c->r, s->types, args, s->n_args, out);
}

static int eval_token(const struct selector *s, const struct selector_context *c, struct value *out) {
    struct value args[FUNCTION_ARGS_MAX];
    struct eng_part part;
    if (s->n_args > FUNCTION_ARGS_MAX) return err_invalid(c->r->err, "Too many arguments of a function (at most %d)", FUNCTION_ARGS_MAX);
    for (uint32_t i = 0; i < s->n_args; i++) {
        if (selector_eval(s->args[i], c, &args[i])) return -1;
        *out = value_null();
        if (value_is_null(args[i])) return 0;
    }
    if (row_key_partition(s->table, args, c->r->arena, &part, c->r->err)) return -1;
    return number_out(c->r->arena, (uint64_t)part.token, 8, out, c->r->err);
}

static int eval_aggregate(const struct selector *s, const struct selector_context *c, struct value *out);

int selector_compute(const struct selector *s, const struct selector_context *c, struct value *out) {
    switch (s->kind) {
    case SELECTOR_COLUMN: break;
    case SELECTOR_TERM: return term_eval(s->term, c->r, out);
    case SELECTOR_FUNCTION: return eval_function(s, c, out);
    case SELECTOR_ELEMENT: return eval_element(s, c, out);
    case SELECTOR_RANGE: return eval_range(s, c, out);
    case SELECTOR_FIELD: return eval_field(s, c, out);
    case SELECTOR_TIMESTAMP: case SELECTOR_MAX_TIMESTAMP: case SELECTOR_TTL: return eval_time(s, c, out);
    case SELECTOR_TOKEN: return eval_token(s, c, out);
    case SELECTOR_AGGREGATE: return eval_aggregate(s, c, out);
    }
    return -1;
}

/* ---- aggregates ---- */

struct aggregate *aggregates_new(struct arena *a, uint32_t n) {
    struct aggregate *all = ARENA_ARRAY(a, n + 1, struct aggregate);
    for (uint32_t i = 0; all && i < n; i++) aggregate_init(&all[i]);
    return all;
}

void aggregates_clear(struct aggregate *all, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) aggregate_clear(&all[i]);
}

void aggregates_fini(struct aggregate *all, uint32_t n) {
    for (uint32_t i = 0; all && i < n; i++) aggregate_fini(&all[i]);
}

int selector_add(struct aggregate *all, const struct selector *s, const struct selector_context *c) {
    struct value v = value_of("", 0); /* a row, for COUNT(*) */
    if (s->n_args && selector_eval(s->args[0], c, &v)) return -1;
    return aggregate_add(&all[s->slot], s->aggregate, s->n_args ? s->args[0]->type : NULL, v, c->r->err);
}

static int eval_aggregate(const struct selector *s, const struct selector_context *c, struct value *out) {
    struct buf b;
    buf_init(&b, 0);
    *out = value_null();
    int rc = aggregate_result(&c->aggregates[s->slot], s->aggregate, s->type, &b, c->r->err);
    if (rc == 0) {
        struct slice copy = arena_dup(c->r->arena, buf_slice(&b));
        *out = value_of_slice(copy);
        if (!copy.p) rc = err_nomem(c->r->err);
    }
    buf_fini(&b);
    return rc < 0 ? -1 : 0;
}
