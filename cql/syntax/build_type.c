/* Nodes of types. */
#include "cql/syntax/build.h"

bool cqli_type_is_native(const char *name) { return cql_type_by_name(slice_str(name)) != NULL; }

/* The name of a user type: without quotes not every word is one. */
static void check_user_type(struct parse *p, const char *name, struct token t) {
    static const char *const taken[] = {"ttl", "count", "writetime", "maxwritetime", "json", "cast", "distinct"};
    if (t.text.n && t.text.p[t.text.n - 1] == '"') return;
    static const char *const reserved[] = {"byte", "complex", "enum", "interval", "macaddr", "bitstring"};
    bool is_taken = cqli_type_is_native(name), is_reserved = false;
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) is_taken = is_taken || !strcmp(taken[i], name);
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++) is_reserved = is_reserved || !strcmp(reserved[i], name);
    if (is_reserved) cqli_note(p, "Invalid (reserved) user type name %s", name);
    if (is_taken) cqli_reject(p, t);
}

struct ast_type *cqli_type(struct parse *p, const char *keyspace, const char *name, struct token t) {
    struct ast_type *x = NEW(p, struct ast_type);
    *x = (struct ast_type){.name = name, .keyspace = keyspace, .source = t.text};
    if (keyspace || !cqli_type_is_native(name)) check_user_type(p, name, t);
    return x;
}

struct ast_type *cqli_native_type(struct parse *p, struct token t) {
    struct ast_type *x = NEW(p, struct ast_type);
    *x = (struct ast_type){.name = cqli_ident(p, t), .source = t.text};
    if (!cqli_type_is_native(x->name) || *t.text.p == '"') cqli_reject(p, t);
    return x;
}

struct ast_name cqli_user_type(struct parse *p, const char *keyspace, struct token t) {
    const char *name = cqli_ident(p, t);
    check_user_type(p, name, t);
    return cqli_name(keyspace, name);
}

struct ast_type *cqli_type_class(struct parse *p, struct token t) {
    struct ast_type *x = NEW(p, struct ast_type);
    struct err e = {0};
    *x = (struct ast_type){.name = cqli_exact(p, t), .quoted_class = true, .source = t.text};
    if (p->failed || p->rejected || cql_type_by_class(p->arena, slice_str(x->name), &e)) return x;
    if (e.code == ERR_SYNTAX) cqli_note(p, "%s", e.text);
    return x;
}

struct ast_type *cqli_type_args(struct parse *p, struct token name, struct seq *args, struct token open) {
    struct ast_type *x = NEW(p, struct ast_type);
    *x = (struct ast_type){.name = cqli_ident(p, name), .source = name.text};
    bool frozen = cqli_token_is(name, "frozen");
    enum cql_type_id generic = cql_type_generic(name.text);
    if (!frozen && generic == CQL_TYPES) cqli_reject(p, open);
    if (p->rejected || p->failed) return x;
    const struct type_arg *a = args->p;
    uint32_t want = frozen ? 1 : cql_type_parameters(generic);
    if (!want) want = args->n;
    if (args->n != want + (generic == CQL_VECTOR)) {
        cqli_reject(p, args->n > want ? a[want].comma : p->prev);
        /* 3.11 has no vectors, so its parser can name the missing token in map<text>. */
        if (args->n < want && !p->cassandra_words) p->expected = "','";
        return x;
    }
    x->args = cqli_new(p, want * sizeof(*x->args));
    for (uint32_t i = 0; i < want && !p->failed && !p->rejected; i++) {
        if (!a[i].type) cqli_reject(p, a[i].number);
        x->args[x->n_args++] = a[i].type;
    }
    const struct ast_type *inner = frozen && x->n_args ? x->args[0] : NULL;
    if (inner && (inner->quoted_class || (!inner->keyspace && !inner->n_args && cqli_type_is_native(inner->name)))) {
        /* Cassandra reports it while it parses, before any check that needs the schema; of a class
         * whatever it is, a collection, too. */
        static const char words[] =
            "frozen<> is only allowed on collections, tuples, and user-defined types (got %s%.*s%s)";
        struct buf class;
        buf_init(&class, ERR_TEXT_MAX);
        if (inner->quoted_class) cql_class_print(slice_str(inner->name), &class);
        if (inner->quoted_class) cqli_note(p, words, "'", SLICE_FMT(buf_slice(&class)), "'");
        else cqli_note(p, words, inner->name, 0, "", "");
        buf_fini(&class);
    }
    if (generic != CQL_VECTOR || p->failed || p->rejected) return x;
    if (a[want].type) {
        cqli_reject(p, (struct token){.code = 1, .text = a[want].type->source});
        return x;
    }
    /* A Java int. A dimension of 0 or less is not refused here but with the type's other faults. */
    struct slice number = a[want].number.text;
    bool negative = number.p[0] == '-';
    uint64_t n = 0, max = (uint64_t)INT32_MAX + negative;
    for (size_t i = negative; i < number.n && n <= max; i++) n = n * 10 + (number.p[i] - '0');
    if (n > max)
        cqli_refuse(p, "Failed parsing statement: [%.*s] reason: NumberFormatException For input string: \"%.*s\"",
                    SLICE_FMT(p->text), SLICE_FMT(number));
    x->dimension = negative ? -(uint32_t)n : (uint32_t)n;
    return x;
}
