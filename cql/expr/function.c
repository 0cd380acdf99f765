/* Functions after function_resolve found them: their types, and calling them. */
#include "cql/expr/function.h"
#include "cql/expr/term_sort.h"

bool function_type_fits(const struct cql_type *to, const struct cql_type *from) {
    if (cql_type_eq(to, from)) return true;
    switch (to->id) {
    case CQL_BLOB: return true;
    case CQL_TUPLE: /* part by part; from may have fewer */
        if (from->id != CQL_TUPLE || from->n_args > to->n_args) return false;
        for (uint32_t i = 0; i < from->n_args; i++)
            if (!function_type_fits(to->args[i], from->args[i])) return false;
        return true;
    case CQL_TEXT: return from->id == CQL_ASCII;
    case CQL_TIMEUUID: return from->id == CQL_LEGACY_TIMEUUID;
    case CQL_LEGACY_TIMEUUID: return from->id == CQL_TIMEUUID;
    case CQL_UUID: return from->id == CQL_TIMEUUID;
    case CQL_BIGINT: return from->id == CQL_TIMESTAMP;
    case CQL_TIMESTAMP: return from->id == CQL_BIGINT;
    case CQL_TIME: return from->id == CQL_BIGINT;
    case CQL_DATE: return from->id == CQL_INT;
    case CQL_VARINT: return from->id == CQL_INT || from->id == CQL_BIGINT || from->id == CQL_TIMESTAMP;
    default: return false;
    }
}

struct function *function_new(struct compile *c, const char *name, const struct cql_type *result,
                              const struct cql_type *const *args, uint32_t n_args, function_fn call) {
    struct function *f = ARENA_NEW(c->arena, struct function);
    const struct cql_type **copy = ARENA_ARRAY(c->arena, n_args, const struct cql_type *);
    if (!f || !copy) return err_null(err_nomem(c->err));
    for (uint32_t i = 0; i < n_args; i++) copy[i] = args[i];
    *f = (struct function){.name = name, .result = result, .n_args = n_args, .args = copy, .call = call, .pure = true};
    return f;
}

int function_call(const struct function *f, struct evaluation *ev, const struct value *args, uint32_t n_args,
                  struct value *out) {
    *out = value_null();
    for (uint32_t i = 0; i < n_args; i++) {
        /* An empty value is null for a type that has none. */
        enum cql_type_id id = f->args[i]->id;
        bool has_empty = id == CQL_TEXT || id == CQL_ASCII || id == CQL_BLOB || id == CQL_EMPTY ||
                         id == CQL_PARTITION_ORDER || id == CQL_COMPOSITE || id == CQL_DYNAMIC_COMPOSITE;
        bool empty = args[i].n == 0 && !f->raw && !has_empty;
        if (value_is_unset(args[i]))
            return err_invalid(ev->err, "Invalid unset value for argument in call to function %s", f->name);
        if ((args[i].n < 0 || empty) && !f->takes_null) return 0;
    }
    struct function_in in = {.f = f, .ev = ev, .args = args, .n_args = n_args};
    struct buf b;
    buf_init(&b, 16 << 20);
    int rc = f->call(&in, &b);
    if (rc == 0) return term_keep(ev, &b, out);
    buf_fini(&b);
    return rc < 0 ? -1 : 0;
}
