/* The order of sets and maps, and the form of elements. */
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

int term_keep(struct evaluation *ev, struct buf *b, struct value *out) {
    *out = value_of_slice(arena_take(ev->arena, b));
    return out->p ? 0 : err_nomem(ev->err);
}

static int write_all(const struct cql_type *t, struct evaluation *ev, const struct entry *all, uint32_t n,
                     struct value *v) {
    struct buf out;
    uint32_t kept = 0;
    bool map = t->id == CQL_MAP, list = t->id == CQL_LIST;
    buf_init(&out, 0);
    cql_collection_begin(0, &out);
    for (uint32_t i = 0, next; i < n; i = next, kept++) {
        /* The first of equal elements or keys (1.5, 1.50) is kept, with the last value. */
        for (next = i + 1; !list && next < n &&
                           cql_value_compare(t->args[0], value_slice(all[i].key), value_slice(all[next].key)) == 0;)
            next++;
        cql_elem_put(all[i].key, &out);
        if (map) cql_elem_put(all[next - 1].value, &out);
    }
    if (!buf_failed(&out)) buf_patch_u32(&out, 0, kept);
    return term_keep(ev, &out, v);
}

/* Whether settling may change elements. Tuples and user types are kept as sent. */
static bool changes_inside(const struct cql_type *t) {
    bool changes = false;
    for (uint32_t i = 0; i < t->n_args && !changes; i++) {
        const struct cql_type *of = t->args[i];
        changes = cql_type_has_forms(of) || term_settles(of) || (of->id == CQL_VECTOR && changes_inside(of));
    }
    return changes;
}

bool term_settles(const struct cql_type *t) {
    return cql_type_is_collection(t) && (t->id != CQL_LIST || changes_inside(t));
}

int term_settle_item(const struct cql_type *t, struct evaluation *ev, struct value *v) {
    struct buf out;
    if (term_settles(t)) return term_settle(t, ev, v);
    if (t->id == CQL_VECTOR && changes_inside(t)) {
        struct rd rd = rd_of(value_slice(*v));
        struct slice element;
        buf_init(&out, 0);
        for (uint32_t i = 0; i < t->dimension && cql_vector_next(t, &rd, &element) == 0; i++) {
            struct value item = value_of_slice(element);
            if (term_settle_item(t->args[0], ev, &item)) {
                buf_fini(&out);
                return -1;
            }
            cql_vector_put(t, value_slice(item), &out);
        }
        return term_keep(ev, &out, v);
    }
    if (!cql_type_has_forms(t) || cql_value_is_canonical(t, value_slice(*v))) return 0;
    buf_init(&out, 0);
    cql_value_canonical(t, value_slice(*v), &out);
    return term_keep(ev, &out, v);
}

static int by_order(const struct cql_type *t, struct evaluation *ev, struct value *v, bool inside) {
    uint32_t n = 0;
    struct cql_elems it;
    struct entry e, last = {0};
    bool stays = true; /* until an element is out of order, or changes */
    if (cql_elems_open(t, value_slice(*v), &it) < 0) return 0;
    for (; cql_entries_next(t, &it, &e.key, &e.value); last = e, n++)
        if (n && t->id != CQL_LIST && cql_value_compare(t->args[0], value_slice(last.key), value_slice(e.key)) >= 0)
            stays = false;
    if (stays && (!inside || !n)) return 0;
    struct entry *all = ARENA_ARRAY(ev->arena, n, struct entry);
    if (!all || cql_elems_open(t, value_slice(*v), &it) < 0) return err_nomem(ev->err);
    for (uint32_t i = 0; i < n && cql_entries_next(t, &it, &all[i].key, &all[i].value); i++) {
        const struct entry came = all[i];
        all[i].at = i;
        if (inside && term_settle_item(t->args[0], ev, &all[i].key)) return -1;
        if (inside && t->id == CQL_MAP && term_settle_item(t->args[1], ev, &all[i].value)) return -1;
        stays = stays && came.key.p == all[i].key.p && came.value.p == all[i].value.p;
    }
    if (stays) return 0;
    if (t->id != CQL_LIST) qsort_r(all, n, sizeof *all, by_key, (void *)(uintptr_t)t->args[0]);
    return write_all(t, ev, all, n, v);
}

int term_sort(const struct cql_type *t, struct evaluation *ev, struct value *v) { return by_order(t, ev, v, false); }

int term_turn(const struct cql_type *t, struct evaluation *ev, struct value *v) {
    struct cql_elems it;
    if (cql_elems_open(t, value_slice(*v), &it) < 0) return 0;
    uint32_t n = it.left;
    struct entry *all = ARENA_ARRAY(ev->arena, n + 1, struct entry);
    if (!all) return err_nomem(ev->err);
    for (uint32_t i = n; i > 0 && cql_elems_next(&it, &all[i - 1].key);) i--;
    return write_all(t, ev, all, n, v);
}

int term_settle(const struct cql_type *t, struct evaluation *ev, struct value *v) {
    return by_order(t, ev, v, changes_inside(t));
}
