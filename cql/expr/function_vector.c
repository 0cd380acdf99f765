/* Similarity of two vectors of floats: similarity_cosine, _euclidean, _dot_product (VectorFcts). */
#include <math.h>

#include "cql/expr/function.h"

struct sums {
    float dot, a2, b2, distance;
};

static float load_float(const uint8_t *p) {
    uint32_t bits = load_u32(p);
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static int add_up(const struct function_in *in, struct sums *s) {
    uint32_t n = in->f->args[0]->dimension;
    *s = (struct sums){0};
    for (int i = 0; i < 2; i++)
        if (in->args[i].n != (int64_t)n * 4)
            return err_invalid(in->ev->err, "A vector of %u floats has %u bytes", n, n * 4);
    for (uint32_t i = 0; i < n; i++) {
        float a = load_float(in->args[0].p + 4 * (size_t)i), b = load_float(in->args[1].p + 4 * (size_t)i), d = a - b;
        s->dot += a * b;
        s->a2 += a * a;
        s->b2 += b * b;
        s->distance += d * d;
    }
    return 0;
}

static int put(float f, struct buf *out) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    buf_u32(out, bits);
    return 0;
}

static int call_cosine(const struct function_in *in, struct buf *out) {
    struct sums s;
    if (add_up(in, &s)) return -1;
    if (s.a2 == 0 || s.b2 == 0)
        return err_invalid(in->ev->err, "Function system.similarity_cosine doesn't support all-zero vectors.");
    return put((1 + (float)(s.dot / sqrt((double)s.a2 * (double)s.b2))) / 2, out);
}

static int call_euclidean(const struct function_in *in, struct buf *out) {
    struct sums s;
    return add_up(in, &s) ? -1 : put(1 / (1 + s.distance), out);
}

static int call_dot_product(const struct function_in *in, struct buf *out) {
    struct sums s;
    return add_up(in, &s) ? -1 : put((1 + s.dot) / 2, out);
}

static const struct {
    const char *name;
    function_fn call;
} rows[] = {{"similarity_cosine", call_cosine},
            {"similarity_euclidean", call_euclidean},
            {"similarity_dot_product", call_dot_product}};

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
    static const char *const takes = "vector<float, n>, vector<float, n>";
    for (uint32_t i = 0; i < 2; i++) types[i] = type_of(c, args, i, to);
    if (c->err->set) return -1;
    if (!types[0] && !types[1]) {
        struct slice text = args->text(args->arg, 0);
        return err_invalid(
            c->err,
            "Cannot infer type of argument %.*s in call to function system.%s(%s): use type casts to disambiguate",
            SLICE_FMT(text), name, takes);
    }
    for (uint32_t i = 0; i < 2; i++)
        if (!types[i]) types[i] = types[!i];
    for (uint32_t i = 0; i < 2; i++) {
        if (types[i]->id == CQL_VECTOR && types[i]->args[0]->id == CQL_FLOAT) continue;
        struct slice text = args->text(args->arg, i);
        struct buf type;
        buf_init(&type, 4096);
        cql_type_print(types[i], &type);
        err_invalid(c->err,
                    "Function system.%s requires a float vector argument, but found argument %.*s of type %.*s", name,
                    SLICE_FMT(text), SLICE_FMT(buf_slice(&type)));
        buf_fini(&type);
        return -1;
    }
    return types[0]->dimension == types[1]->dimension
               ? 0
               : err_invalid(c->err, "All arguments must have the same vector dimensions");
}

int function_resolve_vector(struct compile *c, const char *name, const struct function_args *args,
                            const struct receiver *to, const struct function **out) {
    size_t row = 0;
    const struct cql_type *types[2];
    while (row < ARRAY_LEN(rows) && strcmp(rows[row].name, name) != 0) row++;
    if (row == ARRAY_LEN(rows)) return 0;
    *out = NULL;
    if (args->n != 2) {
        err_invalid(c->err, "Invalid number of arguments for function system.%s(vector<float, n>, vector<float, n>)",
                    name);
        return 1;
    }
    if (find_types(c, name, args, to, types) == 0)
        *out = function_new(c, rows[row].name, cql_type_scalar(CQL_FLOAT), types, 2, rows[row].call);
    return 1;
}
