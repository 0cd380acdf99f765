/* What a function is once it was found, and calling it. */
#include "cql/expr/function.h"

bool function_type_fits(const struct cql_type *to, const struct cql_type *from) {
    if (cql_type_eq(to, from)) return true;
    switch (to->id) {
    case CQL_BLOB: return from->n_args == 0 && from->id != CQL_COUNTER;
    case CQL_TEXT: return from->id == CQL_ASCII;
    case CQL_UUID: return from->id == CQL_TIMEUUID;
    case CQL_BIGINT: return from->id == CQL_TIMESTAMP;
    case CQL_TIMESTAMP: return from->id == CQL_BIGINT;
    case CQL_VARINT: return from->id == CQL_INT || from->id == CQL_BIGINT;
    default: return false;
    }
}

struct function *function_new(struct compile *c, const char *name, const struct cql_type *result, const struct cql_type *const *args,
                                    uint32_t n_args, function_fn call) {
    struct function *f = ARENA_NEW(c->arena, struct function);
    const struct cql_type **copy = ARENA_ARRAY(c->arena, n_args, const struct cql_type *);
    if (!f || !copy) {
        err_nomem(c->err);
        return NULL;
    }
    for (uint32_t i = 0; i < n_args; i++) copy[i] = args[i];
    *f = (struct function){.name = name, .result = result, .n_args = n_args, .args = copy, .call = call, .pure = true};
    return f;
}

int function_call(const struct function *f, struct cql_request *r, const struct value *args, uint32_t n_args, struct value *out) {
    *out = value_null();
    for (uint32_t i = 0; i < n_args; i++) {
        bool empty = args[i].n == 0 && f->args[i]->id != CQL_TEXT && f->args[i]->id != CQL_ASCII && f->args[i]->id != CQL_BLOB;
        if (value_is_unset(args[i])) return err_invalid(r->err, "Invalid unset value for argument in call to function %s", f->name);
        if ((args[i].n < 0 || empty) && !f->takes_null) return 0;
    }
    struct function_in in = {.f = f, .r = r, .args = args, .n_args = n_args};
    struct buf b;
    buf_init(&b, 16 << 20);
    int rc = f->call(&in, &b);
    if (rc == 0 && buf_failed(&b)) rc = err_nomem(r->err);
    if (rc == 0) {
        struct slice copy = arena_dup(r->arena, buf_slice(&b));
        if (!copy.p) rc = err_nomem(r->err);
        *out = value_of_slice(copy);
    }
    buf_fini(&b);
    return rc < 0 ? -1 : 0;
}
