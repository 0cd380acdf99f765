/* Evaluating terms. A bound value is returned where it lies in the frame. */
#include <stdlib.h>

#include "cql/expr/term_form.h"
#include "types/vector.h"

/* ---- order of sets and maps ---- */

struct entry {
    struct value key, value;
    uint32_t at;
};

static int by_key(const void *a, const void *b, void *type) {
    const struct entry *x = a, *y = b;
    int c = cql_value_compare(type, value_slice(x->key), value_slice(y->key));
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

static bool read_entry(const struct cql_type *t, struct cql_elems *it, struct entry *out) {
    out->value = value_null();
    return cql_elems_next(it, &out->key) && (t->id != CQL_MAP || cql_elems_next(it, &out->value));
}

static bool is_sorted(const struct cql_type *t, struct slice v, uint32_t *n) {
    struct cql_elems it;
    struct entry e, last = {0};
    *n = 0;
    if (cql_elems_open(t, v, &it) < 0) return true;
    bool sorted = true;
    for (; read_entry(t, &it, &e); last = e, ++*n)
        if (*n && cql_value_compare(t->args[0], value_slice(last.key), value_slice(e.key)) >= 0) sorted = false;
    return sorted;
}

static int write_sorted(const struct cql_type *t, struct cql_request *r, const struct entry *all, uint32_t n, struct value *v) {
    struct buf out;
    uint32_t kept = 0;
    bool map = t->id == CQL_MAP;
    buf_init(&out, 0);
    cql_collection_begin(0, &out);
    for (uint32_t i = 0, next; i < n; i = next, kept++) {
        /* Of equal elements or keys the first is kept (1.5 and 1.50 are equal), with the last of the values. */
        for (next = i + 1; next < n && cql_value_compare(t->args[0], value_slice(all[i].key), value_slice(all[next].key)) == 0;) next++;
        cql_elem_put(all[i].key, &out);
        if (map) cql_elem_put(all[next - 1].value, &out);
    }
    if (!buf_failed(&out)) buf_patch_u32(&out, 0, kept);
    struct slice copy = buf_failed(&out) ? (struct slice){0} : arena_dup(r->arena, buf_slice(&out));
    buf_fini(&out);
    *v = value_of_slice(copy);
    return copy.p ? 0 : err_nomem(r->err);
}

int term_sort_elements(const struct cql_type *t, struct cql_request *r, struct value *v) {
    uint32_t n;
    struct cql_elems it;
    if (is_sorted(t, value_slice(*v), &n)) return 0;
    struct entry *all = ARENA_ARRAY(r->arena, n, struct entry);
    if (!all || cql_elems_open(t, value_slice(*v), &it) < 0) return err_nomem(r->err);
    for (uint32_t i = 0; i < n && read_entry(t, &it, &all[i]); i++) all[i].at = i;
    qsort_r(all, n, sizeof *all, by_key, (void *)(uintptr_t)t->args[0]);
    return write_sorted(t, r, all, n, v);
}

/* ---- kinds of terms ---- */

static int eval_bind(const struct term *t, struct cql_request *r, struct value *out) {
    if (UNLIKELY((uint32_t)t->bind >= r->params.n_values))
        return err_invalid(r->err, "Invalid amount of bind variables");
    struct value v = r->params.values[t->bind];
    *out = v;
    if (v.n < 0) return 0;
    if (cql_value_validate(t->type, value_slice(v), r->err) < 0) return -1;
    return t->type->id == CQL_SET || t->type->id == CQL_MAP ? term_sort_elements(t->type, r, out) : 0;
}

static int check_item(const struct term *t, struct cql_request *r, struct value v) {
    bool nullable = t->type->id == CQL_TUPLE || t->type->id == CQL_UDT;
    if (value_is_unset(v)) {
        if (t->type->id == CQL_UDT) return err_invalid(r->err, "Invalid unset value for field of user defined type %s", t->type->name);
        if (t->type->id == CQL_TUPLE) return err_invalid(r->err, "Invalid unset value for tuple field number");
        return err_invalid(r->err, "unset value is not supported inside %s", t->type->id == CQL_VECTOR ? "vectors" : "collections");
    }
    if (value_is_null(v) && !nullable)
        return err_invalid(r->err, "null is not supported inside %s", t->type->id == CQL_VECTOR ? "vectors" : "collections");
    return 0;
}

static int put_items(const struct term *t, struct cql_request *r, struct buf *out) {
    bool collection = cql_type_is_collection(t->type);
    if (collection) cql_collection_begin(t->type->id == CQL_MAP ? t->n_args / 2 : t->n_args, out);
    for (uint32_t i = 0; i < t->n_args; i++) {
        struct value item = value_null();
        if (t->args[i] && term_eval(t->args[i], r, &item) < 0) return -1;
        if (check_item(t, r, item) < 0) return -1;
        if (t->type->id == CQL_VECTOR)
            cql_vector_put(t->type, value_slice(item), out);
        else
            cql_elem_put(item, out);
    }
    return buf_failed(out) ? err_nomem(r->err) : 0;
}

static int eval_items(const struct term *t, struct cql_request *r, struct value *out) {
    struct buf b;
    buf_init(&b, 64 << 20);
    int rc = put_items(t, r, &b);
    if (rc == 0) {
        struct slice copy = arena_dup(r->arena, buf_slice(&b));
        *out = value_of_slice(copy);
        if (!copy.p) rc = err_nomem(r->err);
    }
    buf_fini(&b);
    bool sorts = t->type->id == CQL_SET || t->type->id == CQL_MAP;
    return rc == 0 && sorts ? term_sort_elements(t->type, r, out) : rc;
}

static int eval_call(const struct term *t, struct cql_request *r, struct value *out) {
    struct value args[FUNCTION_ARGS_MAX];
    for (uint32_t i = 0; i < t->n_args; i++)
        if (term_eval(t->args[i], r, &args[i]) < 0) return -1;
    return function_call(t->f, r, t->f->args, args, t->n_args, out);
}

int term_eval(const struct term *t, struct cql_request *r, struct value *out) {
    switch (t->kind) {
    case TERM_BIND: return eval_bind(t, r, out);
    case TERM_ITEMS: return eval_items(t, r, out);
    case TERM_CALL: return eval_call(t, r, out);
    default: *out = t->value; return 0;
    }
}

bool term_is_constant(const struct term *t) { return t->kind == TERM_CONSTANT; }

int32_t term_bind_index(const struct term *t) { return t->kind == TERM_BIND ? t->bind : -1; }
