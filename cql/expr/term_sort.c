/* The order of sets and maps. */
#include "cql/expr/term_sort.h"

#include <stdlib.h>

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
        if (*n && t->id != CQL_LIST && cql_value_compare(t->args[0], value_slice(last.key), value_slice(e.key)) >= 0) sorted = false;
    return sorted;
}

static int write_all(const struct cql_type *t, struct cql_request *r, const struct entry *all, uint32_t n, struct value *v) {
    struct buf out;
    uint32_t kept = 0;
    bool map = t->id == CQL_MAP, list = t->id == CQL_LIST;
    buf_init(&out, 0);
    cql_collection_begin(0, &out);
    for (uint32_t i = 0, next; i < n; i = next, kept++) {
        /* Of equal elements or keys the first is kept (1.5 and 1.50 are equal), with the last of the values. */
        for (next = i + 1; !list && next < n && cql_value_compare(t->args[0], value_slice(all[i].key), value_slice(all[next].key)) == 0;) next++;
        cql_elem_put(all[i].key, &out);
        if (map) cql_elem_put(all[next - 1].value, &out);
    }
    if (!buf_failed(&out)) buf_patch_u32(&out, 0, kept);
    struct slice copy = buf_failed(&out) ? (struct slice){0} : arena_dup(r->arena, buf_slice(&out));
    buf_fini(&out);
    *v = value_of_slice(copy);
    return copy.p ? 0 : err_nomem(r->err);
}

/* Is there something to sort in what it holds? Tuples and vectors are kept as they came. */
static bool holds_sorted(const struct cql_type *t) {
    for (uint32_t i = 0; cql_type_is_collection(t) && i < t->n_args; i++)
        if (t->args[i]->id == CQL_SET || t->args[i]->id == CQL_MAP || holds_sorted(t->args[i])) return true;
    return false;
}

bool term_sorts(const struct cql_type *t) { return t->id == CQL_SET || t->id == CQL_MAP || holds_sorted(t); }

static int sort_inside(const struct cql_type *t, struct cql_request *r, struct entry *e) {
    if (term_sorts(t->args[0]) && term_sort(t->args[0], r, &e->key)) return -1;
    return t->id == CQL_MAP && term_sorts(t->args[1]) ? term_sort(t->args[1], r, &e->value) : 0;
}

int term_sort(const struct cql_type *t, struct cql_request *r, struct value *v) {
    uint32_t n;
    struct cql_elems it;
    bool inside = holds_sorted(t);
    if (is_sorted(t, value_slice(*v), &n) && (!inside || !n)) return 0;
    struct entry *all = ARENA_ARRAY(r->arena, n, struct entry);
    if (!all || cql_elems_open(t, value_slice(*v), &it) < 0) return err_nomem(r->err);
    for (uint32_t i = 0; i < n && read_entry(t, &it, &all[i]); i++) {
        all[i].at = i;
        if (inside && sort_inside(t, r, &all[i])) return -1;
    }
    if (t->id != CQL_LIST) qsort_r(all, n, sizeof *all, by_key, (void *)(uintptr_t)t->args[0]);
    return write_all(t, r, all, n, v);
}
