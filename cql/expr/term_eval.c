/* Evaluates terms. Bound values and column values are returned in place, from the frame or the
 * row. */
#include "cql/expr/aggregate.h"
#include "cql/expr/function.h"
#include "cql/expr/term.h"
#include "cql/expr/term_sort.h"
#include "cql/row/row_view.h"
#include "types/vector.h"

/* Copies the buffer's bytes to the request's arena. */
static int keep(struct evaluation *ev, const struct buf *b, struct value *out) {
    struct slice copy = buf_failed(b) ? (struct slice){0} : arena_dup(ev->arena, buf_slice(b));
    *out = value_of_slice(copy);
    return copy.p ? 0 : err_nomem(ev->err);
}

static int number_out(struct arena *a, uint64_t v, uint32_t bytes, struct value *out, struct err *e) {
    uint8_t *p = arena_alloc(a, 8);
    if (!p) return err_nomem(e);
    if (bytes == 8) store_u64(p, v);
    else store_u32(p, (uint32_t)v);
    *out = value_of(p, bytes);
    return 0;
}

/* ---- values of the statement ---- */

static int eval_bind(const struct term *t, struct evaluation *ev, struct value *out) {
    if (UNLIKELY((uint32_t)t->bind >= ev->n_values))
        return err_invalid(ev->err, "Invalid amount of bind variables");
    struct value v = ev->values[t->bind];
    *out = v;
    if (v.n < 0) return 0;
    if (cql_value_validate(t->type, value_slice(v), ev->err) < 0) return -1;
    return term_settles(t->type) ? term_settle(t->type, ev, out) : 0;
}

static int put_items(const struct term *t, const struct term_context *c, struct buf *out) {
    bool collection = cql_type_is_collection(t->type), vector = t->type->id == CQL_VECTOR;
    bool nullable = t->nulls || t->type->id == CQL_TUPLE || t->type->id == CQL_UDT;
    struct err *e = c->ev->err;
    if (collection) cql_collection_begin(t->type->id == CQL_MAP ? t->n_args / 2 : t->n_args, out);
    for (uint32_t i = 0; i < t->n_args; i++) {
        struct value item = value_null();
        if (t->args[i] && term_eval_in(t->args[i], c, &item) < 0) return -1;
        if (value_is_unset(item)) {
            if (t->type->id == CQL_UDT)
                return err_invalid(e, "Invalid unset value for field '%s' of user defined type %s",
                                   t->type->field_names[i], t->type->name);
            if (t->type->id == CQL_TUPLE) return err_invalid(e, "Invalid unset value for tuple field number %u", i);
            return err_invalid(e, "unset value is not supported inside %s", vector ? "vectors" : "collections");
        }
        if (value_is_null(item) && !nullable)
            return err_invalid(e, "null is not supported inside %s", vector ? "vectors" : "collections");
        if (vector)
            cql_vector_put(t->type, value_slice(item), out);
        else
            cql_elem_put(item, out);
    }
    return buf_failed(out) ? err_nomem(c->ev->err) : 0;
}

static int eval_items(const struct term *t, const struct term_context *c, struct value *out) {
    struct buf b;
    buf_init(&b, 64 << 20);
    int rc = put_items(t, c, &b);
    if (rc == 0) rc = keep(c->ev, &b, out);
    buf_fini(&b);
    bool sorts = t->type->id == CQL_SET || t->type->id == CQL_MAP;
    if (rc == 0 && sorts) rc = term_sort(t->type, c->ev, out);
    /* Cassandra takes the type of a set's elements from the first element; a descending clustering
     * column makes the set descending. */
    bool descends = t->type->id == CQL_SET && t->n_args && t->args[0] && t->args[0]->kind == TERM_COLUMN &&
                    t->args[0]->column->desc;
    return rc == 0 && descends ? term_turn(t->type, c->ev, out) : rc;
}

static int eval_call(const struct term *t, const struct term_context *c, struct value *out) {
    struct value args[FUNCTION_ARGS_MAX];
    for (uint32_t i = 0; i < t->n_args; i++)
        if (term_eval_in(t->args[i], c, &args[i])) return -1;
    return function_call(t->function, c->ev, args, t->n_args, out);
}

/* ---- parts of values ---- */

static int damaged(const struct term_context *c) {
    return err_set(c->ev->err, ERR_SERVER, "A stored collection is damaged");
}

static int refuse_key(const char *is, const char *what, const char *of, const struct term_context *c) {
    return err_invalid(c->ev->err, "Invalid %s value for %s selection on %s", is, what, of);
}

/* Evaluates one key of the collection named of. */
static int eval_key(const struct term *key, const struct term_context *c, const char *of, struct value *out) {
    if (term_eval_in(key, c, out)) return -1;
    if (!value_is_null(*out)) return 0;
    return refuse_key(value_is_unset(*out) ? "unset" : "null", "element", of, c);
}

/* Evaluates a bound of a slice; *out is null if there is none or it is unset. */
static int eval_bound(const struct term *bound, const struct term_context *c, const char *of, struct value *out) {
    *out = value_null();
    if (!bound) return 0;
    if (term_eval_in(bound, c, out)) return -1;
    if (value_is_unset(*out)) *out = value_null();
    else if (value_is_null(*out)) return refuse_key("null", "slice", of, c);
    return 0;
}

int term_check_subscripts(const struct term *subscripts, struct evaluation *ev) {
    const struct term_context statement = {.ev = ev};
    struct value key;
    for (const struct term *t = subscripts; t; t = t->next_subscript) {
        if (t->kind == TERM_ELEMENT) {
            if (eval_key(t->args[1], &statement, t->of_name, &key)) return -1;
            continue;
        }
        if (eval_bound(t->args[1], &statement, t->of_name, &key)) return -1;
        if (eval_bound(t->args[2], &statement, t->of_name, &key)) return -1;
    }
    return 0;
}

static int eval_element(const struct term *t, const struct term_context *c, struct value *out) {
    const struct cql_type *type = t->args[0]->type;
    struct value of, key, k;
    struct cql_elems it;
    *out = value_null();
    if (term_eval_in(t->args[0], c, &of) || eval_key(t->args[1], c, t->of_name, &key)) return -1;
    if (value_is_null(of)) return 0;
    if (cql_elems_open(type, value_slice(of), &it)) return damaged(c);
    while (cql_elems_next(&it, &k)) {
        struct value v = k;
        if (type->id == CQL_MAP && !cql_elems_next(&it, &v)) break;
        if (value_is_null(k) || cql_value_compare(type->args[0], value_slice(k), value_slice(key))) continue;
        *out = v;
        break;
    }
    return 0;
}

/* The elements from one key to another, both included; a null key is no bound. */
static uint32_t put_slice(const struct cql_type *t, struct cql_elems *it, const struct value *from,
                          const struct value *to, struct buf *out) {
    struct value k, v;
    uint32_t n = 0;
    while (cql_elems_next(it, &k)) {
        if (t->id == CQL_MAP && !cql_elems_next(it, &v)) break;
        if (!value_is_null(*from) && cql_value_compare(t->args[0], value_slice(k), value_slice(*from)) < 0) continue;
        if (!value_is_null(*to) && cql_value_compare(t->args[0], value_slice(k), value_slice(*to)) > 0) continue;
        cql_elem_put(k, out);
        if (t->id == CQL_MAP) cql_elem_put(v, out);
        n++;
    }
    return n;
}

/* An empty slice of a non-frozen collection is null. */
static int eval_slice(const struct term *t, const struct term_context *c, struct value *out) {
    struct value of, from, to;
    struct cql_elems it;
    *out = value_null();
    if (term_eval_in(t->args[0], c, &of)) return -1;
    if (eval_bound(t->args[1], c, t->of_name, &from) || eval_bound(t->args[2], c, t->of_name, &to)) return -1;
    if (value_is_null(of)) return 0;
    if (cql_elems_open(t->type, value_slice(of), &it)) return damaged(c);
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, 0);
    uint32_t n = put_slice(t->type, &it, &from, &to, &b);
    if (!buf_failed(&b)) buf_patch_u32(&b, 0, n);
    int rc = n || buf_failed(&b) || !cql_type_is_multicell(t->type) ? keep(c->ev, &b, out) : 0;
    buf_fini(&b);
    return rc;
}

static int eval_field(const struct term *t, const struct term_context *c, struct value *out) {
    struct value of;
    struct cql_elems it;
    *out = value_null();
    if (term_eval_in(t->args[0], c, &of)) return -1;
    if (value_is_null(of)) return 0;
    if (cql_elems_open(t->args[0]->type, value_slice(of), &it))
        return err_set(c->ev->err, ERR_SERVER, "A stored user type value is damaged");
    for (uint32_t i = 0; i <= t->field; i++)
        if (!cql_elems_next(&it, out)) *out = value_null();
    return 0;
}

/* ---- times of a row ---- */

static int32_t ttl_left(const struct row_view_time *t, int64_t now) {
    return t->ttl && t->expiry != ENG_NO_EXPIRY ? (int32_t)(t->expiry - now) : -1;
}

static bool is_dead(const struct eng_cell *cell) {
    return cell->flags & (ENG_CELL_TOMBSTONE | ENG_CELL_COMPLEX_DELETION);
}

static struct row_view_time time_of(const struct eng_cell *cell) {
    return (struct row_view_time){.present = true, .ts = cell->ts, .ttl = cell->ttl, .expiry = cell->expiry};
}

/* The part of a collection whose times are selected: one element, or all between two keys, both
 * included. */
struct part {
    bool whole; /* no part: all of them */
    bool has_from, has_to;
    struct value from, to;    /* keys */
    struct buf first, last;   /* cell paths of from and to */
};

static int part_open(const struct term *t, const struct term_context *c, struct part *out) {
    const struct cql_type *type = t->column->type;
    bool exact = true;
    *out = (struct part){.whole = t->n_args == 0};
    buf_init(&out->first, 0);
    buf_init(&out->last, 0);
    if (out->whole) return 0;
    const char *name = t->column->name;
    if (t->n_args == 1) {
        if (eval_key(t->args[0], c, name, &out->from)) return -1;
        out->to = out->from;
    } else if (eval_bound(t->args[0], c, name, &out->from) || eval_bound(t->args[1], c, name, &out->to)) {
        return -1;
    }
    out->has_from = !value_is_null(out->from);
    out->has_to = !value_is_null(out->to);
    const struct cql_type *keys = type->args[0];
    struct err *e = c->ev->err;
    if (out->has_from && cql_key_encode(keys, false, value_slice(out->from), &out->first, &exact, e)) return -1;
    if (out->has_to && cql_key_encode(keys, false, value_slice(out->to), &out->last, &exact, e)) return -1;
    return buf_failed(&out->first) || buf_failed(&out->last) ? err_nomem(c->ev->err) : 0;
}

static bool part_has(const struct part *p, const struct eng_cell *cell) {
    if (is_dead(cell)) return false;
    if (p->has_from && slice_cmp(cell->path, buf_slice(&p->first)) < 0) return false;
    return !p->has_to || slice_cmp(cell->path, buf_slice(&p->last)) <= 0;
}

/* Whether a frozen collection has an element of the part. */
static bool part_is_in(const struct part *p, const struct cql_type *t, struct value of) {
    struct cql_elems it;
    struct value k, v;
    if (value_is_null(of) || cql_elems_open(t, value_slice(of), &it)) return false;
    while (cql_elems_next(&it, &k)) {
        if (t->id == CQL_MAP && !cql_elems_next(&it, &v)) break;
        if (p->has_from && cql_value_compare(t->args[0], value_slice(k), value_slice(p->from)) < 0) continue;
        if (!p->has_to || cql_value_compare(t->args[0], value_slice(k), value_slice(p->to)) <= 0) return true;
    }
    return false;
}

/* The time of a field of a non-frozen user type, which is that of its cell. */
static struct row_view_time field_time(const struct eng_cell *cells, uint32_t n, uint32_t field) {
    struct row_view_time none = {0};
    for (uint32_t i = 0; i < n; i++)
        if (!is_dead(&cells[i]) && cells[i].path.n == 2 && load_u16(cells[i].path.p) == field)
            return time_of(&cells[i]);
    return none;
}

static void put_time_element(const struct term *t, const struct term_context *c, const struct row_view_time *time,
                             struct buf *out) {
    uint8_t bytes[8] = {0};
    struct value v = value_of(bytes, t->kind == TERM_TTL ? 4 : 8);
    if (!time->present || (t->kind == TERM_TTL && !time->ttl)) v = value_null();
    else if (t->kind == TERM_TTL) store_u32(bytes, (uint32_t)ttl_left(time, c->ev->now_s));
    else store_u64(bytes, (uint64_t)time->ts);
    cql_elem_put(v, out);
}

/* The times of a non-frozen user type: one entry per field; null if no field is set. */
static int compute_time_fields(const struct term *t, const struct term_context *c, struct value *out) {
    uint32_t n, live = 0, fields = t->column->type->n_args;
    const struct eng_cell *cells = row_view_cells(c->view, t->column, &n);
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, fields);
    for (uint32_t i = 0; i < fields; i++) {
        struct row_view_time time = field_time(cells, n, i);
        live += time.present;
        put_time_element(t, c, &time, &b);
    }
    int rc = live ? keep(c->ev, &b, out) : 0;
    buf_fini(&b);
    return rc;
}

/* The times of a non-frozen collection, one entry per element, or of a user type. */
static int compute_time_list(const struct term *t, const struct term_context *c, const struct part *part,
                             struct value *out) {
    if (t->column->type->id == CQL_UDT) return compute_time_fields(t, c, out);
    uint32_t n, live = 0;
    const struct eng_cell *cells = row_view_cells(c->view, t->column, &n);
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, 0);
    for (uint32_t i = 0; i < n; i++) {
        if (!part_has(part, &cells[i])) continue;
        struct row_view_time time = time_of(&cells[i]);
        put_time_element(t, c, &time, &b);
        live++;
    }
    if (!buf_failed(&b)) buf_patch_u32(&b, 0, live);
    int rc = live ? keep(c->ev, &b, out) : 0;
    buf_fini(&b);
    return rc;
}

/* One time: of a field its cell's, of a part of a collection the newest, of a frozen collection the
 * column's. */
static struct row_view_time part_time(const struct term *t, const struct term_context *c, const struct part *part) {
    uint32_t n;
    struct row_view_time newest = {0};
    if (t->of_field) {
        const struct eng_cell *fields = row_view_cells(c->view, t->column, &n);
        return field_time(fields, n, t->time_field);
    }
    if (part->whole) return row_view_time(c->view, t->column);
    if (t->column->type->frozen)
        return part_is_in(part, t->column->type, c->values[t->column->ordinal]) ? row_view_time(c->view, t->column)
                                                                                : newest;
    const struct eng_cell *cells = row_view_cells(c->view, t->column, &n);
    for (uint32_t i = 0; i < n; i++)
        if (part_has(part, &cells[i]) && (!newest.present || cells[i].ts > newest.ts)) newest = time_of(&cells[i]);
    return newest;
}

static int put_time(const struct term *t, const struct term_context *c, const struct part *part, struct value *out) {
    if (t->type->id == CQL_LIST) return compute_time_list(t, c, part, out);
    struct row_view_time time = part_time(t, c, part);
    struct value field = value_of("", 0);
    if (time.present && t->field_value && term_eval_in(t->field_value, c, &field)) return -1;
    if (!time.present || value_is_null(field)) return 0;
    if (t->kind != TERM_TTL) return number_out(c->ev->arena, (uint64_t)time.ts, 8, out, c->ev->err);
    int32_t left = ttl_left(&time, c->ev->now_s);
    return left < 0 ? 0 : number_out(c->ev->arena, (uint32_t)left, 4, out, c->ev->err);
}

static int compute_time(const struct term *t, const struct term_context *c, struct value *out) {
    struct part part;
    *out = value_null();
    if (!c->view) return 0;
    int rc = part_open(t, c, &part);
    if (rc == 0) rc = put_time(t, c, &part, out);
    buf_fini(&part.first);
    buf_fini(&part.last);
    return rc;
}

int term_latch_all(const struct term *latches, const struct term_context *c, struct value *out) {
    for (; latches; latches = latches->next_latch)
        if (compute_time(latches, c, &out[latches->latch])) return -1;
    return 0;
}

/* ---- aggregates ---- */

int term_add(const struct term *t, struct aggregate *all, const struct term_context *c) {
    struct value v = value_of("", 0); /* a row, where rows are counted */
    if (t->n_args && term_eval_in(t->args[0], c, &v)) return -1;
    return aggregate_add(&all[t->slot], t->aggregate, t->n_args ? t->args[0]->type : NULL, v, c->ev->err);
}

static int eval_aggregate(const struct term *t, const struct term_context *c, struct value *out) {
    struct buf b;
    buf_init(&b, 0);
    *out = value_null();
    int rc = aggregate_result(&c->aggregates[t->slot], t->aggregate, t->type, &b, c->ev->err);
    if (rc == 0) rc = keep(c->ev, &b, out);
    buf_fini(&b);
    return rc < 0 ? -1 : 0;
}

/* ---- any term ---- */

int term_compute(const struct term *t, const struct term_context *c, struct value *out) {
    switch (t->kind) {
    case TERM_CONSTANT: *out = t->value; return 0;
    case TERM_BIND: return eval_bind(t, c->ev, out);
    case TERM_ITEMS: return eval_items(t, c, out);
    case TERM_CALL: return eval_call(t, c, out);
    case TERM_ELEMENT: return eval_element(t, c, out);
    case TERM_SLICE: return eval_slice(t, c, out);
    case TERM_FIELD: return eval_field(t, c, out);
    case TERM_COLUMN: return term_eval_in(t, c, out);
    case TERM_WRITETIME:
    case TERM_MAX_WRITETIME:
    case TERM_TTL:
        if (!c->latched) return compute_time(t, c, out);
        *out = c->latched[t->latch];
        return 0;
    case TERM_AGGREGATE: return eval_aggregate(t, c, out);
    }
    return -1;
}

int term_eval(const struct term *t, struct evaluation *ev, struct value *out) {
    const struct term_context statement = {.ev = ev};
    return term_eval_in(t, &statement, out);
}

bool term_is_constant(const struct term *t) { return t->kind == TERM_CONSTANT; }

int32_t term_bind_index(const struct term *t) { return t->kind == TERM_BIND ? t->bind : -1; }
