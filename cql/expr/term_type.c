/* Types as written in a statement, resolved against the schema, and types of literals. */
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "cql/expr/term.h"
#include "cql/expr/term_compile.h"
#include "keyspaces/ddl_error.h"

/* Levels as written; frozen<> counts as one. */
enum { AST_TYPE_DEPTH_MAX = 2 * CQL_TYPE_DEPTH_MAX };

static const struct cql_type *resolve(struct compile *c, const struct ast_type *t, bool frozen, uint32_t depth);

/* ---- non-frozen types inside collections ---- */

static bool is_frozen_of(const struct ast_type *t) {
    return !t->keyspace && !t->quoted_class && t->n_args == 1 && strcasecmp(t->name, "frozen") == 0;
}

static enum cql_type_id kind_of(const struct ast_type *t) {
    return t->keyspace || t->quoted_class || !t->n_args ? CQL_TYPES : cql_type_generic(slice_str(t->name));
}

static bool is_collection(enum cql_type_id kind) { return kind == CQL_LIST || kind == CQL_SET || kind == CQL_MAP; }

/* A name of no other type is a user type's, whether that exists or not. */
static bool is_user_type(const struct ast_type *t) {
    return !t->quoted_class && !t->n_args && (t->keyspace || !cql_type_by_name(slice_str(t->name)));
}

/* As in Cassandra's parser errors: types within a frozen type are frozen; a tuple never shows it. */
static void print_read(const struct ast_type *t, bool frozen, struct buf *out) {
    enum cql_type_id kind = kind_of(t);
    if (is_frozen_of(t)) {
        print_read(t->args[0], true, out);
        return;
    }
    bool shown = frozen && (is_collection(kind) || is_user_type(t));
    if (shown) buf_put_str(out, "frozen<");
    if (kind == CQL_TYPES) ast_print_type(t, out);
    else buf_printf(out, "%s<", t->name);
    for (uint32_t i = 0; kind != CQL_TYPES && i < t->n_args; i++) {
        if (i) buf_put_str(out, ", ");
        print_read(t->args[i], (frozen && kind != CQL_VECTOR) || kind == CQL_TUPLE, out);
    }
    if (kind == CQL_VECTOR) buf_printf(out, ", %u", t->dimension);
    if (kind != CQL_TYPES) buf_u8(out, '>');
    if (shown) buf_u8(out, '>');
}

/* ---- types as written ---- */

/* shown: the type, which is freed. */
static int refuse_type(struct compile *c, enum ddl_error_id id, struct buf *shown) {
    buf_u8(shown, 0);
    ddl_error(c->err, c->schema->cassandra_mode, id, buf_failed(shown) ? "..." : (const char *)shown->p);
    buf_fini(shown);
    return -1;
}

static const struct cql_type *resolve_made(struct compile *c, const struct ast_type *t, enum cql_type_id kind,
                                           bool frozen, uint32_t depth) {
    bool inner = frozen || kind == CQL_TUPLE;
    uint32_t wanted = cql_type_parameters(kind);
    const struct cql_type **args = ARENA_ARRAY(c->arena, t->n_args, const struct cql_type *);
    if (!args) return err_null(err_nomem(c->err));
    if (wanted && t->n_args != wanted)
        return err_null(ddl_error(c->err, c->schema->cassandra_mode, DDL_TYPE_PARAMETERS, t->name));
    for (uint32_t i = 0; !frozen && is_collection(kind) && i < t->n_args; i++) {
        bool collection = is_collection(kind_of(t->args[i]));
        if (!collection && !is_user_type(t->args[i])) continue;
        struct buf text; /* shows the outermost such collection */
        buf_init(&text, 4096);
        print_read(t, false, &text);
        return err_null(refuse_type(c, collection ? DDL_COLLECTION_INSIDE : DDL_USER_TYPE_INSIDE, &text));
    }
    for (uint32_t i = 0; i < t->n_args; i++) {
        args[i] = resolve(c, t->args[i], (inner || t->args[i]->quoted_class) && kind != CQL_VECTOR, depth + 1);
        if (!args[i]) return NULL;
    }
    return cql_type_new(c->arena, kind, inner, args, t->n_args, t->dimension, c->err);
}

/* The fields that a class name gives for a user type must be the type's. Cassandra does not check
 * this, and cannot read such a table's definition again. */
static int check_user_types(struct compile *c, const struct cql_type *t) {
    for (uint32_t i = 0; i < t->n_args; i++)
        if (check_user_types(c, t->args[i])) return -1;
    if (t->id != CQL_UDT) return 0;
    const struct schema_type *found = schema_type_find(c->schema, t->keyspace, t->name);
    const struct cql_type *was = found ? cql_type_freeze(c->arena, found->type) : NULL,
                          *is = cql_type_freeze(c->arena, t);
    bool same = was && is && c->keyspace && strcmp(t->keyspace, c->keyspace) == 0 && cql_type_eq(was, is);
    return same ? 0 : ddl_error(c->err, c->schema->cassandra_mode, DDL_TYPE_OF_CLASS, t->keyspace, t->name);
}

static const struct cql_type *resolve(struct compile *c, const struct ast_type *t, bool frozen, uint32_t depth) {
    if (depth > AST_TYPE_DEPTH_MAX)
        return err_null(ddl_error(c->err, c->schema->cassandra_mode, DDL_TYPE_DEPTH, CQL_TYPE_DEPTH_MAX));
    if (t->quoted_class) {
        const struct cql_type *class = cql_type_by_class(c->arena, slice_str(t->name), c->err);
        if (!class || check_user_types(c, class)) return NULL;
        if (frozen && !(class = cql_type_freeze(c->arena, class))) err_nomem(c->err);
        return class;
    }
    if (is_frozen_of(t)) {
        const struct cql_type *inner = resolve(c, t->args[0], true, depth + 1);
        if (!inner || inner->n_args || inner->id == CQL_UDT) return inner;
        return err_null(ddl_error(c->err, c->schema->cassandra_mode, DDL_FROZEN_SCALAR, t->args[0]->name));
    }
    enum cql_type_id generic = t->keyspace || !t->n_args ? CQL_TYPES : cql_type_generic(slice_str(t->name));
    if (generic != CQL_TYPES) return resolve_made(c, t, generic, frozen, depth);
    const struct cql_type *scalar = t->keyspace || t->n_args ? NULL : cql_type_by_name(slice_str(t->name));
    if (scalar) return scalar;
    const char *keyspace = t->keyspace ? t->keyspace : c->keyspace;
    const struct schema_type *found = keyspace ? schema_type_find(c->schema, keyspace, t->name) : NULL;
    if (!found) {
        bool cassandra = c->schema->cassandra_mode;
        const char *shown = keyspace && cassandra ? arena_printf(c->arena, "%s.%s", keyspace, t->name) : t->name;
        return err_null(shown ? ddl_error(c->err, cassandra, DDL_UNKNOWN_TYPE, shown) : err_nomem(c->err));
    }
    const struct cql_type *u = cql_type_copy(c->arena, found->type); /* a prepared statement outlives the snapshot */
    if (u && frozen) u = cql_type_freeze(c->arena, u);
    if (!u) err_nomem(c->err);
    return u;
}

/* ---- types of literals ---- */

static enum cql_type_id integer_type(struct slice text) {
    char digits[24];
    size_t sign = text.n && (text.p[0] == '-' || text.p[0] == '+'), zeros = sign;
    while (zeros + 1 < text.n && text.p[zeros] == '0') zeros++;
    size_t n = text.n - zeros;
    if (n + 2 > sizeof digits) return CQL_VARINT;
    digits[0] = sign && text.p[0] == '-' ? '-' : '+';
    memcpy(digits + 1, text.p + zeros, n);
    digits[n + 1] = 0;
    errno = 0;
    long long v = strtoll(digits, NULL, 10);
    if (errno) return CQL_VARINT;
    return v >= INT32_MIN && v <= INT32_MAX ? CQL_INT : CQL_BIGINT;
}

/* Whether the shortest text of the double is the same number. */
static bool is_whole_in_double(struct slice text) {
    const struct cql_type *decimal = cql_type_scalar(CQL_DECIMAL), *real = cql_type_scalar(CQL_DOUBLE);
    struct buf exact, bits, shortest, back;
    struct err ignored = {0};
    buf_init(&exact, 0);
    buf_init(&bits, 0);
    buf_init(&shortest, 0);
    buf_init(&back, 0);
    bool same = cql_literal_parse(real, LIT_FLOAT, text, "", (struct cql_reading){0}, &bits, &ignored) == 0;
    if (same && cql_literal_parse(decimal, LIT_FLOAT, text, "", (struct cql_reading){0}, &exact, &ignored) == 0) {
        cql_value_text(real, buf_slice(&bits), &shortest);
        same = cql_literal_parse(decimal, LIT_FLOAT, buf_slice(&shortest), "",
                                 (struct cql_reading){0}, &back, &ignored) == 0 &&
               cql_value_compare(decimal, buf_slice(&exact), buf_slice(&back)) == 0;
    }
    buf_fini(&exact);
    buf_fini(&bits);
    buf_fini(&shortest);
    buf_fini(&back);
    return same; /* NaN and the infinities, too, which are no decimals */
}

const struct cql_type *cqli_literal_type(const struct ast_expr *literal) {
    switch (literal->literal) {
    case LIT_INTEGER: return cql_type_scalar(integer_type(literal->text));
    case LIT_FLOAT: return cql_type_scalar(is_whole_in_double(literal->text) ? CQL_DOUBLE : CQL_DECIMAL);
    case LIT_BOOLEAN: return cql_type_scalar(CQL_BOOLEAN);
    case LIT_UUID: return cql_type_scalar(CQL_UUID);
    case LIT_HEX: return cql_type_scalar(CQL_BLOB);
    case LIT_DURATION: return cql_type_scalar(CQL_DURATION);
    case LIT_STRING: break;
    }
    bool ascii = true;
    for (size_t i = 0; i < literal->text.n; i++) ascii = ascii && !(literal->text.p[i] & 0x80);
    return cql_type_scalar(ascii ? CQL_ASCII : CQL_TEXT);
}

/* ---- types as written ---- */

static int refuse_durations(struct compile *c, const struct cql_type *t) {
    if ((t->id != CQL_SET && t->id != CQL_MAP) || t->args[0]->id != CQL_DURATION) return 0;
    struct buf text;
    buf_init(&text, 4096);
    cql_type_print(t, &text);
    return refuse_type(c, t->id == CQL_SET ? DDL_DURATION_IN_SET : DDL_DURATION_AS_KEY, &text);
}

int cqli_check_durations(struct compile *c, const struct cql_type *t) {
    for (uint32_t i = 0; i < t->n_args; i++)
        if (cqli_check_durations(c, t->args[i])) return -1;
    return refuse_durations(c, t);
}

/* Refuses counters and durations inside a collection or tuple, at any depth; the error shows the
 * collection (CQL3Type.Raw). Types that are given as classes are not checked. */
static int check_inside(struct compile *c, const struct ast_type *x, const struct cql_type *t) {
    while (is_frozen_of(x)) x = x->args[0];
    for (uint32_t i = 0; i < x->n_args; i++) {
        bool counter = t->args[i]->id == CQL_COUNTER && !x->args[i]->quoted_class && t->id != CQL_VECTOR;
        if (counter && !cql_type_is_collection(t))
            return ddl_error(c->err, c->schema->cassandra_mode, DDL_COUNTER_IN_TUPLE);
        if (counter) {
            struct buf text;
            buf_init(&text, 4096);
            cql_type_print(t, &text);
            return refuse_type(c, DDL_COUNTER_INSIDE, &text);
        }
        if (check_inside(c, x->args[i], t->args[i])) return -1;
    }
    return x->n_args && !x->args[0]->quoted_class ? refuse_durations(c, t) : 0;
}

const struct cql_type *compile_type(struct compile *c, const struct ast_type *t) {
    const struct cql_type *type = resolve(c, t, false, 0);
    return type && check_inside(c, t, type) == 0 ? type : NULL;
}

const struct cql_type *compile_type_in(struct compile *c, const char *keyspace, const struct ast_type *t) {
    struct compile there = *c;
    if (keyspace) there.keyspace = keyspace;
    return compile_type(&there, t);
}
