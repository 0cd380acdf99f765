/* Finds functions, casts and the negation by Cassandra's rules (FunctionResolver). */
#include "cql/expr/aggregate.h"
#include "cql/expr/term_compile.h"
#include "cql/row/ring.h"

struct native {
    const char *name, *alias, *args;
    enum cql_type_id result;
    function_fn call;
    bool pure, monotonic, only_keyspaces;
};

static const struct native natives[] = {
#define NATIVE(name_, alias_, result_, args_, call_, pure_, monotonic_, keyspaces) \
    {.name = name_, \
     .alias = alias_, \
     .args = args_, \
     .result = CQL_##result_, \
     .call = function_##call_, \
     .pure = pure_, \
     .monotonic = monotonic_, \
     .only_keyspaces = keyspaces},
#define FUNCTION(...) NATIVE(__VA_ARGS__, false)
#define FUNCTION_311(...) NATIVE(__VA_ARGS__, true)
#include "cql/expr/function.def"
#undef FUNCTION
#undef FUNCTION_311
#undef NATIVE
};

/* ---- candidates ---- */

static const char NEGATION[] = "_negate";

enum { CANDIDATES_MAX = 32, NATIVE_ARGS_MAX = 3 };

struct candidates {
    struct compile *c;
    const char *name; /* as in the statement */
    uint32_t n;
    const struct function *all[CANDIDATES_MAX];
};

static struct function *add(struct candidates *k, const struct cql_type *result, const struct cql_type *const *args,
                            uint32_t n_args, function_fn call) {
    struct function *f = k->n < CANDIDATES_MAX ? function_new(k->c, k->name, result, args, n_args, call) : NULL;
    if (f) k->all[k->n++] = f;
    return f;
}

static void add_natives(struct candidates *k) {
    for (size_t i = 0; i < ARRAY_LEN(natives); i++) {
        const struct native *r = &natives[i];
        if (strcmp(r->name, k->name) != 0 && (!r->alias || strcmp(r->alias, k->name) != 0)) continue;
        if (r->only_keyspaces && (!k->c->schema || k->c->schema->cassandra_mode)) continue;
        const struct cql_type *args[NATIVE_ARGS_MAX];
        uint32_t n = 0;
        for (const char *at = r->args; *at; n++) { /* names of types, separated by commas */
            size_t length = strcspn(at, ",");
            args[n] = cql_type_by_name(slice_of(at, length));
            at += length + strspn(at + length, ", ");
        }
        struct function *f = add(k, cql_type_scalar(r->result), args, n, r->call);
        if (!f) return;
        f->pure = r->pure;
        f->monotonic = r->monotonic;
    }
}

static const struct cql_type *type_between(const char *name, const char *before, const char *after) {
    size_t n = strlen(name), b = strlen(before), a = strlen(after);
    if (n <= a + b || memcmp(name, before, b) != 0 || memcmp(name + n - a, after, a) != 0) return NULL;
    struct slice word = slice_of(name + b, n - a - b);
    return slice_is(word, "empty") ? cql_type_scalar(CQL_EMPTY) : cql_type_by_name(word);
}

static bool casts(enum cql_type_id from, enum cql_type_id to) {
    const struct cql_type *f = cql_type_scalar(from), *t = cql_type_scalar(to);
    if (function_is_number(t)) return function_is_number(f) && from != to && to != CQL_COUNTER;
    if (to == CQL_TEXT || to == CQL_ASCII)
        return function_is_number(f) || from == CQL_BOOLEAN || from == CQL_TIMESTAMP || from == CQL_DATE ||
               from == CQL_TIME || from == CQL_UUID || from == CQL_TIMEUUID || from == CQL_INET ||
               (from == CQL_ASCII && to == CQL_TEXT);
    if (to == CQL_DATE) return from == CQL_TIMESTAMP || from == CQL_TIMEUUID;
    return to == CQL_TIMESTAMP && (from == CQL_DATE || from == CQL_TIMEUUID);
}

/* To blobs, from blobs, and casts. */
static void add_conversions(struct candidates *k) {
    const struct cql_type *blob = cql_type_scalar(CQL_BLOB), *t = type_between(k->name, "", "_as_blob");
    if (!t) t = type_between(k->name, "", "asblob");
    if (t && t->id != CQL_BLOB) add(k, blob, &t, 1, function_as_blob);
    t = type_between(k->name, "blob_as_", "");
    if (!t) t = type_between(k->name, "blobas", "");
    if (t && t->id != CQL_BLOB) add(k, t, &blob, 1, function_from_blob);
    t = type_between(k->name, "cast_as_", "");
    function_fn call = function_cast_number;
    if (t && (t->id == CQL_TEXT || t->id == CQL_ASCII)) call = function_to_text;
    if (t && t->id == CQL_DATE) call = function_to_date;
    if (t && t->id == CQL_TIMESTAMP) call = function_to_timestamp;
    for (int id = 0; t && id < CQL_LIST; id++) {
        const struct cql_type *from = cql_type_scalar(id);
        if (casts(id, t->id)) add(k, t, &from, 1, call);
    }
}

/* Adds a candidate from T to T for each number type T. */
static void add_for_numbers(struct candidates *k, function_fn call, const struct aggregate_op *aggregate) {
    for (int id = 0; id < CQL_LIST; id++) {
        const struct cql_type *t = cql_type_scalar(id);
        struct function *f = function_is_number(t) ? add(k, t, &t, 1, call) : NULL;
        if (f) f->aggregate = aggregate;
    }
}

/* ---- texts ---- */

void function_print(const struct function *f, uint32_t constants, uint32_t reversed, struct buf *out) {
    const char *quote = f->name[0] == '_' ? "\"" : "";
    buf_printf(out, "system.%s%s%s : (", quote, f->name, quote);
    for (uint32_t i = 0; i < f->n_args; i++) {
        if (i) buf_put_str(out, ", ");
        struct cql_type bare = *f->args[i];
        if (bare.id == CQL_TUPLE && !(reversed >> i & 1)) bare.frozen = false; /* as it is written */
        cql_type_print(&bare, out);
        if (constants >> i & 1) buf_put_str(out, "(constant)");
    }
    buf_put_str(out, ") -> ");
    cql_type_print(f->result, out);
}

static const struct function *refuse(const struct candidates *k, const char *keyspace, bool ambiguous) {
    struct buf list;
    buf_init(&list, 4096);
    for (uint32_t i = 0; i < k->n; i++) {
        if (i) buf_put_str(&list, ", ");
        function_print(k->all[i], 0, 0, &list);
    }
    struct slice s = buf_slice(&list);
    const char *dot = keyspace ? "." : "";
    if (!keyspace) keyspace = "";
    if (ambiguous && strcmp(k->name, NEGATION) == 0)
        err_invalid(k->c->err, "Ambiguous negation: use type casts to disambiguate");
    else if (ambiguous)
        err_invalid(k->c->err,
                    "Ambiguous call to function %s%s%s (can be matched by following signatures: %.*s): use type casts "
                    "to disambiguate", keyspace, dot, k->name, SLICE_FMT(s));
    else
        err_invalid(k->c->err,
                    "Invalid call to function %s%s%s, none of its type signatures match (known type signatures: %.*s)",
                    keyspace, dot, k->name, SLICE_FMT(s));
    buf_fini(&list);
    return NULL;
}

int function_refuse_number(struct compile *c, const char *name, const char *takes) {
    return err_invalid(c->err, "Invalid number of arguments for function system.%s(%s)", name, takes);
}

int function_refuse_untyped(struct compile *c, const char *name, const char *takes, const struct function_args *args,
                            uint32_t i) {
    struct slice text = args->text(args->arg, i);
    return err_invalid(c->err,
                       "Cannot infer type of argument %.*s in call to function system.%s(%s): use type casts to "
                       "disambiguate", SLICE_FMT(text), name, takes);
}

int function_refuse_type(struct compile *c, const char *name, const char *wants, const struct function_args *args,
                         uint32_t i, const struct cql_type *is) {
    struct slice text = args->text(args->arg, i), type = cqli_type_text(c, is);
    return err_invalid(c->err, "Function system.%s requires %s, but found argument %.*s of type %.*s", name, wants,
                       SLICE_FMT(text), SLICE_FMT(type));
}

static const struct function *refuse_argument(struct compile *c, const struct function *f,
                                              const struct function_args *args, uint32_t i) {
    struct slice text = args->text(args->arg, i), type = cqli_type_text(c, f->args[i]);
    return err_null(err_invalid(c->err,
                                "Type error: %.*s cannot be passed as argument %u of function system.%s of type %.*s",
                                SLICE_FMT(text), i, f->name, SLICE_FMT(type)));
}

static const struct function *check_only(struct compile *c, const struct function *f,
                                         const struct function_args *args) {
    if (args->n != f->n_args) return err_null(err_invalid(c->err,
        "Invalid number of arguments in call to function system.%s: %u required but %u provided", f->name, f->n_args,
        args->n));
    for (uint32_t i = 0; i < args->n; i++)
        if (args->fits(args->arg, i, f->args[i]) == MATCH_NO) return refuse_argument(c, f, args, i);
    return f;
}

static const struct function *pick_best(const struct candidates *k, const char *keyspace,
                                        const struct function_args *args, const struct receiver *to) {
    struct candidates weak = {.c = k->c, .name = k->name};
    for (uint32_t i = 0; i < k->n; i++) {
        if (to && to->type && !function_type_fits(to->type, k->all[i]->result)) continue;
        const struct function *f = k->all[i];
        enum match worst = f->n_args == args->n ? MATCH_EXACT : MATCH_NO;
        for (uint32_t a = 0; a < args->n && worst; a++) {
            enum match m = args->fits(args->arg, a, f->args[a]);
            if (m < worst) worst = m;
        }
        if (worst == MATCH_EXACT) return f;
        if (worst == MATCH_WEAK) weak.all[weak.n++] = f;
    }
    if (weak.n == 1) return weak.all[0];
    return weak.n ? refuse(&weak, keyspace, true) : refuse(k, keyspace, false);
}

/* token(partition key): the parameters are the partition key columns of the receiver's table. */
static const struct function *resolve_token(struct compile *c, const char *name, const struct function_args *args,
                                            const struct receiver *to) {
    const struct cql_type *types[FUNCTION_ARGS_MAX];
    const struct schema_table *t = c->schema && to && to->keyspace && to->table
                                       ? schema_table_any(c->schema, to->keyspace, to->table)
                                       : NULL;
    uint32_t n = t ? t->n_partition_key : args->n;
    if (n > FUNCTION_ARGS_MAX) n = FUNCTION_ARGS_MAX;
    for (uint32_t i = 0; i < n; i++) {
        types[i] = t ? schema_partition_key(t, i)->type : args->type(args->arg, i);
        if (types[i]) continue;
        struct slice text = args->text(args->arg, i);
        return err_null(err_invalid(c->err,
            "Cannot infer type of argument %.*s in call to function system.token: use type casts to disambiguate",
            SLICE_FMT(text)));
    }
    struct function *f = function_new(c, name, ring_token_type(c->partitioner), types, n, function_token);
    if (f) f->raw = true;
    return f ? check_only(c, f, args) : NULL;
}

/* min and max. */
static int resolve_best(struct compile *c, const char *name, const struct function_args *args,
                        const struct function **out) {
    const struct aggregate_op *op = aggregate_find(name);
    if (!op || op->numbers || op->counts_rows) return 0;
    const struct cql_type *t = args->n == 1 ? args->type(args->arg, 0) : NULL;
    struct function *f = t ? function_new(c, name, t, &t, 1, NULL) : NULL;
    if (args->n != 1) function_refuse_number(c, name, "any");
    else if (!t) function_refuse_untyped(c, name, "any", args, 0);
    if (f) f->aggregate = op;
    *out = f;
    return 1;
}

/* Functions of any argument type. 1 when name is one of them (then *out, or NULL with an error). */
static int resolve_json(struct compile *c, const char *name, const struct function_args *args,
                        const struct receiver *to, const struct function **out) {
    bool to_json = strcmp(name, "tojson") == 0 || strcmp(name, "to_json") == 0;
    bool from_json = strcmp(name, "fromjson") == 0 || strcmp(name, "from_json") == 0;
    if (!to_json && !from_json) return 0;
    *out = NULL;
    const struct cql_type *text = cql_type_scalar(CQL_TEXT);
    if (args->n != 1) {
        function_refuse_number(c, name, to_json ? "any" : "text");
    } else if (to_json) {
        const struct cql_type *t = args->type(args->arg, 0);
        struct function *f = t ? function_new(c, name, text, &t, 1, function_to_json) : NULL;
        if (!t) function_refuse_untyped(c, name, "any", args, 0);
        if (f) f->takes_null = true;
        *out = f ? check_only(c, f, args) : NULL;
    } else if (!to || !to->type) {
        err_invalid(c->err, "%s() cannot be used in the selection clause of a SELECT statement", name);
    } else {
        const struct function *f = function_new(c, name, to->type, &text, 1, function_from_json);
        const struct cql_type *own = args->type(args->arg, 0);
        if (own && !function_type_fits(text, own))
            function_refuse_type(c, name, "an argument of type text", args, 0, own);
        else *out = f && args->fits(args->arg, 0, text) == MATCH_NO ? refuse_argument(c, f, args, 0) : f;
    }
    return 1;
}

bool function_is_unknown(const struct err *e) { return strncmp(e->text, "Unknown function ", 17) == 0; }

const struct function *function_resolve(struct compile *c, const char *keyspace, const char *name,
                                        const struct function_args *args, const struct receiver *to) {
    struct candidates k = {.c = c, .name = name};
    const struct function *f;
    if (!keyspace || strcmp(keyspace, "system") == 0) {
        if (strcmp(k.name, "token") == 0) return resolve_token(c, k.name, args, to);
        if (resolve_json(c, k.name, args, to, &f) || function_resolve_collection(c, k.name, args, &f)) return f;
        if (resolve_best(c, k.name, args, &f)) return f;
        if (function_resolve_vector(c, k.name, args, to, &f)) return f ? check_only(c, f, args) : NULL;
        if (function_resolve_mask(c, k.name, args, to, &f)) return f ? check_only(c, f, args) : NULL;
        const struct aggregate_op *op = aggregate_find(name);
        if (op && op->numbers) add_for_numbers(&k, NULL, op);
        if (op && op->counts_rows) {
            const struct cql_type *blob = cql_type_scalar(CQL_BLOB);
            struct function *count = add(&k, cql_type_scalar(CQL_BIGINT), &blob, 1, NULL);
            if (count) count->aggregate = op;
        }
        add_natives(&k);
        add_conversions(&k);
        static const char *const math[] = {"abs", "exp", "log", "log10", "round"};
        for (size_t i = 0; i < ARRAY_LEN(math); i++)
            if (strcmp(math[i], name) == 0) add_for_numbers(&k, function_math, NULL);
        if (strcmp(NEGATION, name) == 0) add_for_numbers(&k, function_negate, NULL);
    }
    if (k.n == 0) return err_null(err_invalid(c->err, "Unknown function %s%s%s called", keyspace ? keyspace : "",
                                              keyspace ? "." : "", k.name));
    return k.n == 1 ? check_only(c, k.all[0], args) : pick_best(&k, keyspace, args, to);
}
