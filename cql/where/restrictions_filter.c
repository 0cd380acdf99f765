/* The filters of WHERE, which are checked for each row that is read. */
#include "cql/where/restrictions.h"

#include "cql/request/request.h"

/* A step with its values, n_columns for each. */
struct bound_filter {
    const struct where_step *step;
    uint32_t n_values;
    struct value *values; /* EQ, IN, CONTAINS: n_values x n_columns; ELEMENT: key, value */
    struct value *from, *to; /* RANGE; NULL means open */
};

struct where_filters {
    uint32_t n;
    struct bound_filter *filters;
};

static int refuse_null(struct evaluation *ev, const struct schema_column *c, struct value v) {
    bool unset = value_is_unset(v);
    if (c->kind == COLUMN_CLUSTERING || c->kind == COLUMN_PARTITION_KEY)
        return err_invalid(ev->err, unset ? "Invalid unset value for column %s"
                                 : "Invalid null value in condition for column %s",
                           c->name);
    return err_invalid(ev->err, "Unsupported %s value for column %s", unset ? "unset" : "null", c->name);
}

/* For IN on no key column Cassandra stops at the first null and skips unset values. */
static bool takes_nulls(const struct where_step *s) {
    const struct schema_column *c = s->columns[0];
    return s->kind == STEP_IN && !s->tuple && !schema_column_is_key(c);
}

static int split(struct evaluation *ev, const struct where_step *s, bool tuple, uint32_t n, struct value v,
                 struct value *out) {
    if (value_is_null(v)) return refuse_null(ev, s->columns[0], v);
    out[0] = v;
    if (!tuple) return 0;
    struct rd rd = rd_of(value_slice(v));
    for (uint32_t i = 0; i < n; i++) {
        int32_t len = rd_left(&rd) ? (int32_t)rd_u32(&rd) : -1;
        if (len < 0) return refuse_null(ev, s->columns[i], value_null());
        out[i] = value_of_slice(rd_bytes(&rd, (size_t)len));
        if (rd.bad) return err_invalid(ev->err, "Not enough bytes to read a tuple");
    }
    return 0;
}

static int bind_values(struct evaluation *ev, struct bound_filter *f) {
    const struct where_step *s = f->step;
    bool in = s->kind == STEP_IN;
    if (s->kind == STEP_ELEMENT) { /* m[key] = value */
        f->n_values = 1;
        f->values = ARENA_ARRAY(ev->arena, 2, struct value);
        if (!f->values) return err_nomem(ev->err);
        for (int i = 0; i < 2; i++) {
            if (term_eval(i ? s->term : s->element, ev, &f->values[i])) return -1;
            if (value_is_null(f->values[i]))
                return err_invalid(ev->err, "Unsupported %s map %s for column %s",
                                   value_is_unset(f->values[i]) ? "unset" : "null", i ? "value" : "key",
                                   s->columns[0]->name);
        }
        return 0;
    }
    if (in && s->list) {
        struct value list, item;
        struct cql_elems it;
        static const struct cql_type any_list = {.id = CQL_LIST};
        if (term_eval(s->list, ev, &list)) return -1;
        if (value_is_null(list))
            return err_invalid(ev->err, "Invalid %s value for column %s", value_is_unset(list) ? "unset" : "null",
                               s->columns[0]->name);
        if (list.n < 4) return err_invalid(ev->err, "Not enough bytes to read a list");
        uint32_t n = load_u32(list.p);
        if (n > (uint32_t)list.n / 4) return err_invalid(ev->err, "Not enough bytes to read a list");
        f->values = ARENA_ARRAY(ev->arena, (size_t)n * s->n_columns + 1, struct value);
        if (!f->values) return err_nomem(ev->err);
        if (cql_elems_open(&any_list, value_slice(list), &it))
            return err_invalid(ev->err, "Not enough bytes to read a list");
        while (f->n_values < n && cql_elems_next(&it, &item))
            if (split(ev, s, s->tuple, s->n_columns, item, f->values + (size_t)f->n_values++ * s->n_columns)) return -1;
        return 0;
    }
    f->n_values = in ? s->n_values : 1;
    f->values = ARENA_ARRAY(ev->arena, (size_t)f->n_values * s->n_columns + 2, struct value);
    if (!f->values) return err_nomem(ev->err);
    uint32_t n = f->n_values;
    f->n_values = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct value v;
        if (term_eval(in ? s->values[i] : s->term, ev, &v)) return -1;
        if (value_is_unset(v) && takes_nulls(s)) continue;
        if (value_is_null(v) && takes_nulls(s)) break;
        if (split(ev, s, s->tuple, s->n_columns, v, f->values + (size_t)f->n_values * s->n_columns)) return -1;
        f->n_values++;
    }
    return 0;
}

static int bind_bound(struct evaluation *ev, const struct where_step *s, const struct where_bound *b,
                      struct value **out) {
    if (!b->term) return 0;
    struct value v;
    *out = ARENA_ARRAY(ev->arena, b->n + 1, struct value);
    if (!*out) return err_nomem(ev->err);
    return term_eval(b->term, ev, &v) || split(ev, s, b->tuple, b->n, v, *out) ? -1 : 0;
}

struct where_filters *where_filters_bind(const struct where_plan *w, struct evaluation *ev) {
    struct where_filters *f = ARENA_NEW(ev->arena, struct where_filters);
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_filters; i++)
        for (const struct where_step *s = w->filters[i]; s; s = s->next) n++;
    if (f) f->filters = ARENA_ARRAY(ev->arena, n + 1, struct bound_filter);
    if (!f || !f->filters) return err_null(err_nomem(ev->err));
    for (uint32_t i = 0; i < w->n_filters; i++) {
        for (const struct where_step *s = w->filters[i]; s; s = s->next) {
            struct bound_filter *b = &f->filters[f->n++];
            b->step = s;
            if (s->kind == STEP_RANGE) {
                if (bind_bound(ev, s, &s->from, &b->from) || bind_bound(ev, s, &s->to, &b->to)) return NULL;
            } else if (bind_values(ev, b)) {
                return NULL;
            }
        }
    }
    return f;
}

/* Compares n columns of the row: -1, 0, 1; NO_ORDER when a column is null. */
enum { NO_ORDER = 2 };

static int compare(const struct where_step *s, const struct value *row, const struct value *with, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        struct value mine = row[s->columns[i]->ordinal];
        if (value_is_null(mine)) return NO_ORDER;
        int c = cql_value_compare(s->columns[i]->type, value_slice(mine), value_slice(with[i]));
        if (c) return c < 0 ? -1 : 1;
    }
    return 0;
}

bool where_collection_has(const struct cql_type *t, struct value collection, const struct value *key,
                          const struct value *value) {
    struct cql_elems it;
    struct value k, item;
    if (value_is_null(collection) || cql_elems_open(t, value_slice(collection), &it)) return false;
    const struct cql_type *of = t->args[t->id == CQL_MAP ? 1 : 0];
    while (cql_entries_next(t, &it, &k, &item)) {
        if (key && (value_is_null(k) || cql_value_compare(t->args[0], value_slice(k), value_slice(*key)))) continue;
        if (value && !cql_collection_finds(t, of, item, *value)) continue;
        return true;
    }
    return false;
}

bool where_filters_match(const struct where_filters *all, const struct value *row) {
    bool matches = true;
    for (uint32_t i = 0; matches && i < all->n; i++) {
        const struct bound_filter *f = &all->filters[i];
        const struct where_step *s = f->step;
        struct value v = row[s->columns[0]->ordinal];
        const struct cql_type *t = s->columns[0]->type;
        switch (s->kind) {
        case STEP_RANGE: {
            int from = f->from ? compare(s, row, f->from, s->from.n) : 1;
            int to = f->to ? compare(s, row, f->to, s->to.n) : -1;
            matches = !value_is_null(v) && from != NO_ORDER && to != NO_ORDER &&
                      (from > 0 || (from == 0 && s->from.inclusive)) && (to < 0 || (to == 0 && s->to.inclusive));
            break;
        }
        case STEP_CONTAINS: matches = where_collection_has(t, v, NULL, &f->values[0]); break;
        case STEP_CONTAINS_KEY: matches = where_collection_has(t, v, &f->values[0], NULL); break;
        case STEP_ELEMENT: matches = where_collection_has(t, v, &f->values[0], &f->values[1]); break;
        case STEP_EQ: case STEP_IN:
            matches = false;
            for (uint32_t k = 0; k < f->n_values && !matches; k++)
                matches = compare(s, row, f->values + (size_t)k * s->n_columns, s->n_columns) == 0;
            break;
        }
    }
    return matches;
}
