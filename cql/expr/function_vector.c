/* Similarity of two vectors of floats: similarity_cosine, _euclidean, _dot_product (VectorFcts). */
#include <math.h>

#include "cql/expr/function.h"

static const char *const names[] = {"similarity_cosine", "similarity_euclidean", "similarity_dot_product"};
static const char takes[] = "vector<float, n>, vector<float, n>";

static float load_float(const uint8_t *p, size_t at) {
    uint32_t bits = load_u32(p + 4 * at);
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static int call_similarity(const struct function_in *in, struct buf *out) {
    uint32_t n = in->f->args[0]->dimension, bits;
    float dot = 0, a2 = 0, b2 = 0, distance = 0, result;
    for (int i = 0; i < 2; i++)
        if (in->args[i].n != (int64_t)n * 4)
            return err_invalid(in->ev->err, "A vector of %u floats has %u bytes", n, n * 4);
    for (uint32_t i = 0; i < n; i++) {
        float a = load_float(in->args[0].p, i), b = load_float(in->args[1].p, i), d = a - b;
        dot += a * b;
        a2 += a * a;
        b2 += b * b;
        distance += d * d;
    }
    if (strcmp(in->f->name, names[0]) == 0) {
        if (a2 == 0 || b2 == 0)
            return err_invalid(in->ev->err, "Function system.similarity_cosine doesn't support all-zero vectors.");
        result = (1 + (float)(dot / sqrt((double)a2 * (double)b2))) / 2;
    } else {
        result = strcmp(in->f->name, names[1]) == 0 ? 1 / (1 + distance) : (1 + dot) / 2;
    }
    memcpy(&bits, &result, sizeof bits);
    buf_u32(out, bits);
    return 0;
}

/* The type of an argument. In a select list a literal list is a vector of floats; among the values
 * of a statement it has no type. An argument without a type gets the type of the call's
 * receiver. */
static const struct cql_type *type_of(struct compile *c, const struct function_args *args, uint32_t i,
                                      const struct receiver *to) {
    int64_t items = args->items(args->arg, i);
    const struct cql_type *item = cql_type_scalar(CQL_FLOAT);
    if (items >= 0 && c->scope) return cql_type_new(c->arena, CQL_VECTOR, true, &item, 1, (uint32_t)items, c->err);
    const struct cql_type *own = items < 0 ? args->type(args->arg, i) : NULL;
    return own || !to ? own : to->type;
}

/* An argument whose type is still unknown gets the other's type. */
static int find_types(struct compile *c, const char *name, const struct function_args *args, const struct receiver *to,
                      const struct cql_type **types) {
    for (uint32_t i = 0; i < 2; i++) types[i] = type_of(c, args, i, to);
    if (c->err->set) return -1;
    if (!types[0] && !types[1]) return function_refuse_untyped(c, name, takes, args, 0);
    for (uint32_t i = 0; i < 2; i++)
        if (!types[i]) types[i] = types[!i];
    for (uint32_t i = 0; i < 2; i++)
        if (types[i]->id != CQL_VECTOR || types[i]->args[0]->id != CQL_FLOAT)
            return function_refuse_type(c, name, "a float vector argument", args, i, types[i]);
    if (types[0]->dimension == types[1]->dimension) return 0;
    return err_invalid(c->err, "All arguments must have the same vector dimensions");
}

int function_resolve_vector(struct compile *c, const char *name, const struct function_args *args,
                            const struct receiver *to, const struct function **out) {
    size_t row = 0;
    const struct cql_type *types[2];
    while (row < ARRAY_LEN(names) && strcmp(names[row], name) != 0) row++;
    if (row == ARRAY_LEN(names)) return 0;
    *out = NULL;
    if (args->n != 2) function_refuse_number(c, name, takes);
    else if (find_types(c, name, args, to, types) == 0)
        *out = function_new(c, names[row], cql_type_scalar(CQL_FLOAT), types, 2, call_similarity);
    return 1;
}
