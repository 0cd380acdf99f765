/* map_keys, map_values, collection_count, _min, _max, _sum and _avg (CollectionFcts). */
#include "cql/expr/aggregate.h"
#include "cql/expr/function.h"

enum wants { WANTS_MAP, WANTS_COLLECTION, WANTS_LIST_OR_SET, WANTS_NUMBERS };

static const struct {
    const char *name;
    enum wants wants;
    const char *aggregate; /* of the elements */
} rows[] = {
    {"map_keys", WANTS_MAP, NULL},
    {"map_values", WANTS_MAP, NULL},
    {"collection_count", WANTS_COLLECTION, NULL},
    {"collection_min", WANTS_LIST_OR_SET, "min"},
    {"collection_max", WANTS_LIST_OR_SET, "max"},
    {"collection_sum", WANTS_NUMBERS, "sum"},
    {"collection_avg", WANTS_NUMBERS, "avg"},
};

static int open_argument(const struct function_in *in, struct cql_elems *it) {
    if (cql_elems_open(in->f->args[0], value_slice(in->args[0]), it) == 0) return 0;
    return err_invalid(in->ev->err, "Not enough bytes to read a collection");
}

/* The keys of a map are a set, its values a list. */
static int call_half_of_map(const struct function_in *in, struct buf *out) {
    bool keys = in->f->result->id == CQL_SET;
    struct cql_elems it;
    struct value key, value;
    if (open_argument(in, &it) < 0) return -1;
    cql_collection_begin(it.left / 2, out);
    while (cql_elems_next(&it, &key) && cql_elems_next(&it, &value)) cql_elem_put(keys ? key : value, out);
    return 0;
}

static int call_count(const struct function_in *in, struct buf *out) {
    struct cql_elems it;
    if (open_argument(in, &it) < 0) return -1;
    buf_u32(out, in->f->args[0]->id == CQL_MAP ? it.left / 2 : it.left);
    return 0;
}

static int call_aggregate(const struct function_in *in, struct buf *out) {
    const struct aggregate_op *op = in->f->aggregate;
    const struct cql_type *t = in->f->args[0]->args[0];
    struct cql_elems it;
    struct value item;
    struct aggregate a;
    if (open_argument(in, &it) < 0) return -1;
    aggregate_init(&a);
    int rc = 0;
    while (rc == 0 && cql_elems_next(&it, &item)) rc = aggregate_add(&a, op, t, item, in->ev->err);
    if (rc == 0) rc = aggregate_result(&a, op, t, out, in->ev->err);
    aggregate_fini(&a);
    return rc;
}

int function_resolve_collection(struct compile *c, const char *name, const struct function_args *args,
                                const struct function **out) {
    static const char *const kinds[] = {[WANTS_MAP] = "map", [WANTS_COLLECTION] = "collection",
                                        [WANTS_LIST_OR_SET] = "numeric_set_or_list",
                                        [WANTS_NUMBERS] = "numeric_set_or_list"};
    static const char *const words[] = {[WANTS_MAP] = "a map argument", [WANTS_COLLECTION] = "a collection argument",
                                        [WANTS_LIST_OR_SET] = "a set or list argument",
                                        [WANTS_NUMBERS] = "a numeric set/list argument"};
    size_t row = 0;
    while (row < ARRAY_LEN(rows) && strcmp(rows[row].name, name) != 0) row++;
    if (row == ARRAY_LEN(rows)) return 0;
    enum wants wants = rows[row].wants;
    const struct cql_type *t = args->n == 1 ? args->type(args->arg, 0) : NULL;
    bool single = t && (t->id == CQL_LIST || t->id == CQL_SET);
    bool fits = wants == WANTS_MAP          ? t && t->id == CQL_MAP
                : wants == WANTS_COLLECTION ? t && cql_type_is_collection(t)
                                            : single && (wants == WANTS_LIST_OR_SET || function_is_number(t->args[0]));
    *out = NULL;
    if (args->n != 1) function_refuse_number(c, name, kinds[wants]);
    else if (!t) function_refuse_untyped(c, name, kinds[wants], args, 0);
    else if (!fits) function_refuse_type(c, name, words[wants], args, 0, t);
    if (!fits) return 1;
    bool keys = row == 0;
    const struct cql_type *result = wants == WANTS_COLLECTION ? cql_type_scalar(CQL_INT) : t->args[0];
    if (wants == WANTS_MAP)
        result = cql_type_new(c->arena, keys ? CQL_SET : CQL_LIST, true, &t->args[!keys], 1, 0, c->err);
    function_fn call = wants == WANTS_MAP          ? call_half_of_map
                       : wants == WANTS_COLLECTION ? call_count
                                                   : call_aggregate;
    struct function *f = result ? function_new(c, rows[row].name, result, &t, 1, call) : NULL;
    if (f && rows[row].aggregate) f->aggregate = aggregate_find(rows[row].aggregate);
    *out = f;
    return 1;
}
