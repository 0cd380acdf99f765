/* Types by the names of Cassandra's classes, as quoted type names contain them: 'Int32Type',
 * 'ListType(UTF8Type)' (TypeParser). A class of a type that has a name in CQL gives that type. */
#include "types/family.h"

#include <ctype.h>

#define PACKAGE "org.apache.cassandra.db.marshal."

struct reader {
    struct arena *arena;
    struct slice text;
    size_t at;
};

static void skip_blanks(struct reader *r) {
    while (r->at < r->text.n && isspace(r->text.p[r->at])) r->at++;
}

static bool take(struct reader *r, char c) {
    skip_blanks(r);
    bool there = r->at < r->text.n && r->text.p[r->at] == c;
    r->at += there;
    return there;
}

static struct slice read_word(struct reader *r) {
    skip_blanks(r);
    size_t from = r->at;
    while (r->at < r->text.n && (isalnum(r->text.p[r->at]) || memchr("-+._&", r->text.p[r->at], 5))) r->at++;
    return slice_of(r->text.p + from, r->at - from);
}

static struct slice without_package(struct slice name) {
    size_t n = strlen(PACKAGE);
    return name.n > n && memcmp(name.p, PACKAGE, n) == 0 ? slice_of(name.p + n, name.n - n) : name;
}

/* DateType is an older name of TimestampType. An empty name means bytes. */
static const struct cql_type *scalar_of(struct slice class) {
    if (slice_is(class, "DateType")) return cql_type_scalar(CQL_TIMESTAMP);
    if (!class.n) return cql_type_scalar(CQL_BLOB);
    for (int id = 0; id < CQL_COMPOSITE; id++)
        if ((id < CQL_LIST || id > CQL_VECTOR) && slice_is(class, cqlt_type_info(id)->marshal))
            return cql_type_scalar(id);
    return NULL;
}

enum { ARGS_MAX = 64 };

static const struct cql_type *read_type(struct reader *r, uint32_t depth, struct err *e);

/* In place of the error of an argument, as Cassandra does. */
static const struct cql_type *refuse_definition(struct slice class, struct err *e) {
    if (e->set && e->no_memory) return NULL;
    err_clear(e);
    return err_null(err_set(e, ERR_SYNTAX, "Invalid definition for comparator " PACKAGE "%.*s.", SLICE_FMT(class)));
}

/* Reads "(A,B)" into args, which has room for ARGS_MAX. Returns the number of types, or -1. */
static int read_args(struct reader *r, enum cql_type_id kind, const struct cql_type **args, uint32_t *dimension,
                     uint32_t depth, struct err *e) {
    int n = 0;
    *dimension = 0;
    if (!take(r, '(')) return -1;
    do {
        if (kind == CQL_VECTOR && n == 1) {
            struct slice digits = read_word(r);
            int64_t size;
            if (!cqlt_is_digits(digits) || cqlt_parse_int64(digits, &size) || size < 1 || size > INT32_MAX) return -1;
            *dimension = (uint32_t)size;
            continue;
        }
        struct reader ahead = *r;
        bool reversed = kind == CQL_COMPOSITE && slice_is(without_package(read_word(&ahead)), "ReversedType");
        const struct cql_type *t = n < ARGS_MAX && !reversed ? read_type(r, depth + 1, e) : NULL;
        if (!t) return -1;
        args[n] = kind >= CQL_COMPOSITE ? t : cql_type_freeze(r->arena, t);
        if (!args[n++]) return -1;
    } while (take(r, ','));
    return take(r, ')') ? n : -1;
}

/* A class with types as its arguments. kind CQL_TYPES: FrozenType(X) or ReversedType(X). A reversed
 * X is an X here, because the order belongs to the column. */
static const struct cql_type *read_generic(struct reader *r, struct slice class, enum cql_type_id kind, uint32_t depth,
                                           struct err *e) {
    const struct cql_type *args[ARGS_MAX];
    bool any = kind == CQL_TUPLE || kind == CQL_COMPOSITE;
    uint32_t dimension, wanted = kind == CQL_MAP ? 2 : 1;
    int n = read_args(r, kind, args, &dimension, depth, e);
    bool fits = n > 0 && (any || (uint32_t)n == wanted) && (kind != CQL_VECTOR || dimension);
    if (!fits) return refuse_definition(class, e);
    if (slice_is(class, "FrozenType")) return cql_type_freeze(r->arena, args[0]);
    if (kind == CQL_TYPES) return args[0];
    return cql_type_new(r->arena, kind, kind == CQL_COMPOSITE, args, (uint32_t)n, dimension, e);
}

/* a=>A: a letter as the alias of a type. The last type given for a letter counts. */
struct alias {
    char letter[2];
    const struct cql_type *type;
};

/* Reads one alias into all, which is sorted by letter and has room for one more. */
static bool read_alias(struct reader *r, struct alias *all, uint32_t *n, uint32_t depth, struct err *e) {
    struct slice word = read_word(r);
    if (word.n != 1 || !take(r, '=') || r->at == r->text.n || r->text.p[r->at++] != '>') return false;
    struct alias read = {.letter = {(char)word.p[0]}, .type = read_type(r, depth + 1, e)};
    if (!read.type) return false;
    uint32_t at = 0;
    while (at < *n && all[at].letter[0] < read.letter[0]) at++;
    if (at == *n || all[at].letter[0] != read.letter[0]) {
        memmove(all + at + 1, all + at, (*n - at) * sizeof(*all));
        (*n)++;
    }
    all[at] = read;
    return true;
}

/* DynamicCompositeType(a=>A, b=>B), or the name alone. */
static const struct cql_type *read_dynamic(struct reader *r, struct slice class, uint32_t depth, struct err *e) {
    struct alias all[ARGS_MAX];
    const struct cql_type *types[ARGS_MAX];
    uint32_t n = 0;
    bool ok = true;
    if (take(r, '(') && !take(r, ')')) {
        do {
            ok = n < ARGS_MAX && read_alias(r, all, &n, depth, e);
        } while (ok && take(r, ','));
        ok = ok && take(r, ')');
    }
    if (!ok) return refuse_definition(class, e);
    const char **letters = ARENA_ARRAY(r->arena, n + 1, const char *);
    for (uint32_t i = 0; letters && i < n; i++) {
        types[i] = all[i].type;
        if (!(letters[i] = arena_strdup(r->arena, all[i].letter))) letters = NULL;
    }
    if (letters) return cql_type_new_dynamic(r->arena, letters, types, n, e);
    return err_null(err_nomem(e));
}

/* Reads a name that is written as hexadecimal digits of its bytes. */
static const char *read_hex(struct reader *r) {
    struct err ignored = {0};
    struct buf name;
    buf_init(&name, UINT16_MAX);
    int rc = cqlt_text.parse(cql_type_scalar(CQL_BLOB), read_word(r), (struct cql_reading){0}, &name, &ignored);
    bool ok = rc == 0 && name.n && !buf_failed(&name) && !memchr(name.p, 0, name.n);
    const char *copy = ok ? (const char *)arena_dup(r->arena, buf_slice(&name)).p : NULL;
    buf_fini(&name);
    return copy;
}

/* UserType(keyspace, name, field:A, ...). */
static const struct cql_type *read_user(struct reader *r, struct slice class, uint32_t depth, struct err *e) {
    const struct cql_type *types[ARGS_MAX];
    const char *names[ARGS_MAX];
    uint32_t n = 0;
    struct slice keyspace = take(r, '(') ? arena_dup(r->arena, read_word(r)) : (struct slice){0};
    const char *name = keyspace.n && take(r, ',') ? read_hex(r) : NULL;
    bool ok = name;
    while (ok && take(r, ',')) {
        ok = n < ARGS_MAX && (names[n] = read_hex(r)) && take(r, ':') && (types[n] = read_type(r, depth + 1, e));
        n += ok;
    }
    if (!ok || !take(r, ')')) return refuse_definition(class, e);
    const char **kept = ARENA_ARRAY(r->arena, n + 1, const char *);
    if (!kept) return err_null(err_nomem(e));
    memcpy(kept, names, n * sizeof *kept);
    return cql_type_new_user(r->arena, (const char *)keyspace.p, name, types, kept, n, e);
}

static const struct cql_type *read_type(struct reader *r, uint32_t depth, struct err *e) {
    struct slice name = read_word(r), class = without_package(name);
    if (depth > CQL_TYPE_DEPTH_MAX)
        return err_null(err_set(e, ERR_INVALID, "Types may not be nested more than %d deep", CQL_TYPE_DEPTH_MAX));
    const struct cql_type *scalar = depth && !name.n ? NULL : scalar_of(class);
    struct reader ahead = *r;
    /* PartitionerDefinedOrder takes one argument or no parentheses at all. */
    bool none = scalar && scalar->id == CQL_PARTITION_ORDER && take(&ahead, '(') && take(&ahead, ')');
    if (none) return refuse_definition(class, e);
    if (scalar) {
        /* Skips the parentheses after a class that takes no arguments, whatever is in them. */
        int open = 0;
        skip_blanks(r);
        if (r->at == r->text.n || r->text.p[r->at] != '(') return scalar;
        do {
            open += r->text.p[r->at] == '(' ? 1 : r->text.p[r->at] == ')' ? -1 : 0;
            r->at++;
        } while (open && r->at < r->text.n);
        return scalar;
    }
    static const enum cql_type_id generics[] = {CQL_LIST, CQL_SET, CQL_MAP, CQL_TUPLE, CQL_VECTOR, CQL_COMPOSITE};
    enum cql_type_id kind = CQL_TYPES;
    for (size_t i = 0; i < ARRAY_LEN(generics); i++)
        if (slice_is(class, cqlt_type_info(generics[i])->marshal)) kind = generics[i];
    if (kind != CQL_TYPES || slice_is(class, "FrozenType") || slice_is(class, "ReversedType"))
        return read_generic(r, class, kind, depth, e);
    if (slice_is(class, "DynamicCompositeType")) return read_dynamic(r, class, depth, e);
    if (slice_is(class, "UserType")) return read_user(r, class, depth, e);
    err_set(e, ERR_SYNTAX, "Unable to find abstract-type class '%s%.*s'", memchr(name.p, '.', name.n) ? "" : PACKAGE,
            SLICE_FMT(name));
    return NULL;
}

void cql_class_print(struct slice text, struct buf *out) {
    bool vectors[CQL_TYPE_DEPTH_MAX + 1] = {false};
    uint32_t depth = 0;
    struct slice name = {0};
    for (struct reader r = {.text = text}; skip_blanks(&r), r.at < r.text.n;) {
        struct slice word = without_package(read_word(&r));
        if (word.n) {
            struct reader ahead = r;
            bool class = isupper(word.p[0]) && !take(&ahead, '='); /* "a => Type" begins with a letter, not a class */
            name = word;
            if (class) buf_put_str(out, PACKAGE);
            buf_put(out, word.p, word.n);
            if (!class || take(&ahead, '(')) continue;
            /* A class without arguments gets those of Cassandra. */
            if (slice_is(word, "DynamicCompositeType")) buf_put_str(out, "()");
            if (slice_is(word, "PartitionerDefinedOrder"))
                buf_put_str(out, "(org.apache.cassandra.dht.Murmur3Partitioner)");
            continue;
        }
        char sign = (char)r.text.p[r.at++];
        if (sign == '(' && depth < CQL_TYPE_DEPTH_MAX) vectors[++depth] = slice_is(name, "VectorType");
        if (sign == ')' && depth) depth--;
        if (sign == ',' && vectors[depth]) buf_put_str(out, " , ");
        else buf_u8(out, (uint8_t)sign);
    }
}

bool cql_class_is_reversed(struct slice text) {
    struct reader r = {.text = text};
    return slice_is(without_package(read_word(&r)), "ReversedType");
}

const struct cql_type *cql_type_by_class(struct arena *a, struct slice text, struct err *e) {
    struct reader r = {.arena = a, .text = text};
    struct err why = {0};
    const struct cql_type *t = read_type(&r, 0, &why);
    if (t) return t;
    if (why.code == ERR_SYNTAX) err_set(e, ERR_SYNTAX, "Error setting type %.*s: %s", SLICE_FMT(text), why.text);
    else if (why.set) err_set(e, why.code, "%s", why.text);
    else err_nomem(e);
    return NULL;
}
