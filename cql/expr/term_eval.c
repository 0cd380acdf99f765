/* Evaluates terms. Bound and column values are returned in place. */
#include "base/hot.h"
#include "cql/expr/aggregate.h"
#include "cql/expr/function.h"
#include "cql/expr/term.h"
#include "cql/expr/term_sort.h"
#include "cql/row/row_view.h"

/* ---- values of the statement ---- */

static int eval_items(const struct term *t, const struct term_context *c, struct value *out) {
    bool collection = cql_type_is_collection(t->type), vector = t->type->id == CQL_VECTOR;
    bool nullable = t->nulls || t->type->id == CQL_TUPLE || t->type->id == CQL_UDT;
    const char *of = vector ? "vectors" : "collections";
    struct err *e = c->ev->err;
    struct buf b;
    int rc = 0;
    buf_init(&b, 64 << 20);
    if (collection) cql_collection_begin(t->type->id == CQL_MAP ? t->n_args / 2 : t->n_args, &b);
    for (uint32_t i = 0; i < t->n_args && !rc; i++) {
        struct value item = value_null();
        if (t->args[i] && term_eval_in(t->args[i], c, &item) < 0) rc = -1;
        else if (value_is_unset(item) && t->type->id == CQL_UDT)
            rc = err_invalid(e, "Invalid unset value for field '%s' of user defined type %s", t->type->field_names[i],
                             t->type->name);
        else if (value_is_unset(item) && t->type->id == CQL_TUPLE)
            rc = err_invalid(e, "Invalid unset value for tuple field number %u", i);
        else if (value_is_unset(item)) rc = err_invalid(e, "unset value is not supported inside %s", of);
        else if (value_is_null(item) && !nullable) rc = err_invalid(e, "null is not supported inside %s", of);
        else if (vector) cql_vector_put(t->type, value_slice(item), &b);
        else cql_elem_put(item, &b);
    }
    if (rc) {
        buf_fini(&b);
        return -1;
    }
    if (term_keep(c->ev, &b, out)) return -1;
    bool sorts = t->type->id == CQL_SET || t->type->id == CQL_MAP;
    if (sorts && term_sort(t->type, c->ev, out)) return -1;
    /* Cassandra takes the type of a set's elements from the first element; a descending clustering
     * column makes the set descending. */
    bool descends = t->type->id == CQL_SET && t->n_args && t->args[0] && t->args[0]->kind == TERM_COLUMN &&
                    t->args[0]->column->desc;
    return descends ? term_turn(t->type, c->ev, out) : 0;
}

/* ---- parts of values ---- */

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
    struct value of, key, k, v;
    struct cql_elems it;
    *out = value_null();
    if (term_eval_in(t->args[0], c, &of) || eval_key(t->args[1], c, t->of_name, &key)) return -1;
    if (value_is_null(of)) return 0;
    if (cql_elems_open(type, value_slice(of), &it))
        return err_set(c->ev->err, ERR_SERVER, "A stored collection is damaged");
    while (cql_entries_next(type, &it, &k, &v)) {
        if (value_is_null(k) || cql_value_compare(type->args[0], value_slice(k), value_slice(key))) continue;
        *out = v;
        break;
    }
    return 0;
}

/* Finishes a collection of n entries, with the count at its beginning. Not wanted: the result stays null. */
static int keep_list(const struct term_context *c, struct buf *b, uint32_t n, bool wanted, struct value *out) {
    if (!buf_failed(b)) buf_patch_u32(b, 0, n);
    if (wanted || buf_failed(b)) return term_keep(c->ev, b, out);
    buf_fini(b);
    return 0;
}

/* Whether a key of the collection lies between two others, both included; a null one is no bound. */
static bool is_between(const struct cql_type *t, struct value k, struct value from, struct value to) {
    if (!value_is_null(from) && cql_value_compare(t->args[0], value_slice(k), value_slice(from)) < 0) return false;
    return value_is_null(to) || cql_value_compare(t->args[0], value_slice(k), value_slice(to)) <= 0;
}

/* An empty slice of a non-frozen collection is null. */
static int eval_slice(const struct term *t, const struct term_context *c, struct value *out) {
    struct value of, from, to, k, v;
    struct cql_elems it;
    *out = value_null();
    if (term_eval_in(t->args[0], c, &of)) return -1;
    if (eval_bound(t->args[1], c, t->of_name, &from) || eval_bound(t->args[2], c, t->of_name, &to)) return -1;
    if (value_is_null(of)) return 0;
    if (cql_elems_open(t->type, value_slice(of), &it))
        return err_set(c->ev->err, ERR_SERVER, "A stored collection is damaged");
    uint32_t n = 0;
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, 0);
    while (cql_entries_next(t->type, &it, &k, &v)) {
        if (!is_between(t->type, k, from, to)) continue;
        cql_elem_put(k, &b);
        if (t->type->id == CQL_MAP) cql_elem_put(v, &b);
        n++;
    }
    return keep_list(c, &b, n, n || !cql_type_is_multicell(t->type), out);
}

/* ---- times of a row ---- */

static bool is_dead(const struct eng_cell *cell) {
    return cell->flags & (ENG_CELL_TOMBSTONE | ENG_CELL_COMPLEX_DELETION);
}

static struct row_view_time time_of(const struct eng_cell *cell) {
    return (struct row_view_time){.present = true, .ts = cell->ts, .ttl = cell->ttl, .expiry = cell->expiry};
}

/* Writes the timestamp, or the seconds left to live, to p. Returns the bytes, or 0 if the value is
 * null. */
static int32_t store_time(const struct term *t, const struct term_context *c, struct row_view_time time, uint8_t p[8]) {
    if (!time.present) return 0;
    if (t->kind != TERM_TTL) {
        store_u64(p, (uint64_t)time.ts);
        return 8;
    }
    int64_t left = time.ttl && time.expiry != ENG_NO_EXPIRY ? time.expiry - c->ev->now_s : -1;
    if (left < 0) return 0;
    store_u32(p, (uint32_t)left);
    return 4;
}

/* The part of a collection whose times are selected: an element, or all between two keys. */
struct part {
    bool whole; /* no part: all of them */
    struct value from, to;    /* keys; null: no bound */
    struct buf first, last;   /* cell paths of from and to */
};

static int part_open(const struct term *t, const struct term_context *c, struct part *out) {
    struct err *e = c->ev->err;
    const char *name = t->column->name;
    bool exact = true;
    *out = (struct part){.whole = t->n_args == 0};
    buf_init(&out->first, 0);
    buf_init(&out->last, 0);
    if (out->whole) return 0;
    if (t->n_args == 1) {
        if (eval_key(t->args[0], c, name, &out->from)) return -1;
        out->to = out->from;
    } else if (eval_bound(t->args[0], c, name, &out->from) || eval_bound(t->args[1], c, name, &out->to)) {
        return -1;
    }
    const struct cql_type *keys = t->column->type->args[0];
    for (int i = 0; i < 2; i++) {
        struct value bound = i ? out->to : out->from;
        struct buf *path = i ? &out->last : &out->first;
        if (!value_is_null(bound) && cql_key_encode(keys, false, value_slice(bound), path, &exact, e)) return -1;
        if (buf_failed(path)) return err_nomem(e);
    }
    return 0;
}

static bool part_has(const struct part *p, const struct eng_cell *cell) {
    if (is_dead(cell)) return false;
    if (p->whole) return true;
    if (!value_is_null(p->from) && slice_cmp(cell->path, buf_slice(&p->first)) < 0) return false;
    return value_is_null(p->to) || slice_cmp(cell->path, buf_slice(&p->last)) <= 0;
}

/* The time of a field of a non-frozen user type, which is that of its cell. */
static struct row_view_time field_time(const struct eng_cell *cells, uint32_t n, uint32_t field) {
    struct row_view_time none = {0};
    for (uint32_t i = 0; i < n; i++)
        if (!is_dead(&cells[i]) && cells[i].path.n == 2 && load_u16(cells[i].path.p) == field)
            return time_of(&cells[i]);
    return none;
}

/* The times of a non-frozen collection, one entry per element of the part, or of a user type, one
 * entry per field. Null if there is no time at all. */
static int compute_time_list(const struct term *t, const struct term_context *c, const struct part *part,
                             struct value *out) {
    const struct cql_type *type = t->column->type;
    bool fields = type->id == CQL_UDT;
    uint32_t n, listed = 0, live = 0;
    const struct eng_cell *cells = row_view_cells(c->view, t->column, &n);
    struct buf b;
    buf_init(&b, 0);
    buf_u32(&b, 0);
    for (uint32_t i = 0; i < (fields ? type->n_args : n); i++) {
        uint8_t bytes[8];
        if (!fields && !part_has(part, &cells[i])) continue;
        struct row_view_time time = fields ? field_time(cells, n, i) : time_of(&cells[i]);
        int32_t length = store_time(t, c, time, bytes);
        cql_elem_put(length ? value_of(bytes, length) : value_null(), &b);
        live += time.present;
        listed++;
    }
    return keep_list(c, &b, listed, live > 0, out);
}

/* The time of a field's cell, the newest of a collection's part, or that of a frozen column. */
static struct row_view_time part_time(const struct term *t, const struct term_context *c, const struct part *part) {
    uint32_t n;
    struct row_view_time newest = {0};
    const struct cql_type *type = t->column->type;
    if (!t->of_field && part->whole) return row_view_time(c->view, t->column);
    if (!t->of_field && type->frozen) {
        struct cql_elems it;
        struct value of = c->values[t->column->ordinal], k, v;
        if (value_is_null(of) || cql_elems_open(type, value_slice(of), &it)) return newest;
        while (cql_entries_next(type, &it, &k, &v))
            if (is_between(type, k, part->from, part->to)) return row_view_time(c->view, t->column);
        return newest;
    }
    const struct eng_cell *cells = row_view_cells(c->view, t->column, &n);
    if (t->of_field) return field_time(cells, n, t->time_field);
    for (uint32_t i = 0; i < n; i++)
        if (part_has(part, &cells[i]) && (!newest.present || cells[i].ts > newest.ts)) newest = time_of(&cells[i]);
    return newest;
}

static int compute_time(const struct term *t, const struct term_context *c, struct value *out) {
    struct part part;
    *out = value_null();
    if (!c->view) return 0;
    int rc = part_open(t, c, &part);
    if (rc == 0 && t->type->id == CQL_LIST) {
        rc = compute_time_list(t, c, &part, out);
    } else if (rc == 0) {
        struct row_view_time time = part_time(t, c, &part);
        struct value field = value_of("", 0);
        uint8_t *p = arena_alloc(c->ev->arena, 8);
        if (!p) rc = err_nomem(c->ev->err);
        else if (time.present && t->field_value) rc = term_eval_in(t->field_value, c, &field);
        int32_t length = rc || value_is_null(field) ? 0 : store_time(t, c, time, p);
        if (length) *out = value_of(p, length);
    }
    buf_fini(&part.first);
    buf_fini(&part.last);
    return rc;
}

int term_latch_all(const struct term *latches, const struct term_context *c, struct value *out) {
    for (; latches; latches = latches->next_latch)
        if (compute_time(latches, c, &out[latches->latch])) return -1;
    return 0;
}

int term_add(const struct term *t, struct aggregate *all, const struct term_context *c) {
    struct value v = value_of("", 0); /* a row, where rows are counted */
    if (t->n_args && term_eval_in(t->args[0], c, &v)) return -1;
    return aggregate_add(&all[t->slot], t->aggregate, t->n_args ? t->args[0]->type : NULL, v, c->ev->err);
}

/* ---- any term ---- */

static inline int eval_bind(const struct term *t, struct evaluation *ev, struct value *out) {
    if (UNLIKELY((uint32_t)t->bind >= ev->n_values)) return err_invalid(ev->err, "Invalid amount of bind variables");
    *out = ev->values[t->bind];
    if (out->n < 0) return 0;
    if (cql_value_validate(t->type, value_slice(*out), ev->err) < 0) return -1;
    return UNLIKELY(t->settles) ? term_settle(t->type, ev, out) : 0;
}

int term_compute(const struct term *t, const struct term_context *c, struct value *out) {
    switch (t->kind) {
    case TERM_CONSTANT: *out = t->value; return 0;
    case TERM_BIND: return eval_bind(t, c->ev, out);
    case TERM_ITEMS: return eval_items(t, c, out);
    case TERM_CALL: {
        struct value args[FUNCTION_ARGS_MAX];
        for (uint32_t i = 0; i < t->n_args; i++)
            if (term_eval_in(t->args[i], c, &args[i])) return -1;
        return function_call(t->function, c->ev, args, t->n_args, out);
    }
    case TERM_ELEMENT: return eval_element(t, c, out);
    case TERM_SLICE: return eval_slice(t, c, out);
    case TERM_FIELD: {
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
    case TERM_COLUMN: return term_eval_in(t, c, out);
    case TERM_WRITETIME: case TERM_MAX_WRITETIME: case TERM_TTL:
        if (!c->latched) return compute_time(t, c, out);
        *out = c->latched[t->latch];
        return 0;
    case TERM_AGGREGATE: {
        struct buf b;
        buf_init(&b, 0);
        *out = value_null();
        int rc = aggregate_result(&c->aggregates[t->slot], t->aggregate, t->type, &b, c->ev->err);
        if (rc == 0) return term_keep(c->ev, &b, out);
        buf_fini(&b);
        return rc < 0 ? -1 : 0;
    }
    }
    return -1;
}

SELDOM static int eval_without_row(const struct term *t, struct evaluation *ev, struct value *out) {
    const struct term_context statement = {.ev = ev};
    return term_eval_in(t, &statement, out);
}

int term_eval(const struct term *t, struct evaluation *ev, struct value *out) {
    return LIKELY(t->kind == TERM_BIND) ? eval_bind(t, ev, out) : eval_without_row(t, ev, out);
}

bool term_is_constant(const struct term *t) { return t->kind == TERM_CONSTANT; }

int32_t term_bind_index(const struct term *t) { return t->kind == TERM_BIND ? t->bind : -1; }
