/* Names of types: CQL text both ways, marshal classes, protocol options. */
#include <strings.h>

#include "types/family.h"

#define MARSHAL_PACKAGE "org.apache.cassandra.db.marshal."
#define PARTITIONER_CLASS "org.apache.cassandra.dht.Murmur3Partitioner"

/* A level of a type prints as at most two levels of text, "frozen<tuple<". With this limit every
 * printed type can be parsed again. */
enum { TEXT_DEPTH_MAX = 2 * CQL_TYPE_DEPTH_MAX };

/* ---- reading ---- */

static bool same_word(struct slice a, const char *b) {
    return b && a.n == strlen(b) && strncasecmp((const char *)a.p, b, a.n) == 0;
}

const struct cql_type *cql_type_by_name(struct slice name) {
    if (same_word(name, "varchar")) return cql_type_scalar(CQL_TEXT);
    for (int id = 0; id < CQL_LIST; id++)
        if (same_word(name, cqlt_type_info(id)->cql)) return cql_type_scalar(id);
    return NULL;
}

enum cql_type_id cql_type_generic(struct slice name) {
    int id = CQL_LIST;
    while (id <= CQL_VECTOR && !same_word(name, cqlt_type_info(id)->cql)) id++;
    return id <= CQL_VECTOR ? id : CQL_TYPES;
}

uint32_t cql_type_parameters(enum cql_type_id id) { return id == CQL_MAP ? 2 : id == CQL_TUPLE ? 0 : 1; }

struct parser {
    struct arena *arena;
    struct slice rest, whole;
    const char *keyspace;
    cql_udt_find_fn find;
    void *arg;
    struct err *err;
    uint32_t frozen; /* how many frozen<> and tuple<> are open */
};

static void skip_spaces(struct parser *p) {
    while (p->rest.n && (p->rest.p[0] == ' ' || p->rest.p[0] == '\t' || p->rest.p[0] == '\n'))
        p->rest = slice_of(p->rest.p + 1, p->rest.n - 1);
}

static bool take(struct parser *p, char c) {
    skip_spaces(p);
    if (p->rest.n == 0 || p->rest.p[0] != (uint8_t)c) return false;
    p->rest = slice_of(p->rest.p + 1, p->rest.n - 1);
    return true;
}

static const struct cql_type *syntax(struct parser *p) {
    return err_null(err_set(p->err, ERR_SYNTAX, "Failed parsing type: '%.*s'", CQLT_QUOTE(p->whole)));
}

/* The length of the word or "quoted" name at the beginning of the text. Returns 0 if there is none,
 * or its closing quote is missing. */
static size_t name_end(struct slice s) {
    size_t i = 0;
    if (s.n && s.p[0] == '"') {
        for (i = 1; i < s.n; i++) {
            if (s.p[i] != '"') continue;
            if (i + 1 == s.n || s.p[i + 1] != '"') return i + 1;
            i++;
        }
        return 0;
    }
    for (; i < s.n; i++) {
        uint8_t c = s.p[i], lower = c | 32;
        if ((lower < 'a' || lower > 'z') && (c < '0' || c > '9') && c != '_') break;
    }
    return i;
}

/* Reads a word, which becomes lower case, or a "quoted" name as it is. Empty: there is neither. */
static char *take_name(struct parser *p) {
    skip_spaces(p);
    size_t end = name_end(p->rest), n = 0;
    char *out = arena_alloc(p->arena, end + 1);
    if (!out) return err_null(err_nomem(p->err));
    const uint8_t *s = p->rest.p;
    bool quoted = end && s[0] == '"';
    for (size_t i = quoted; i < end && !(quoted && i + 1 == end); i++) {
        if (quoted && s[i] == '"') i++;
        out[n++] = (char)(!quoted && s[i] >= 'A' && s[i] <= 'Z' ? s[i] | 32 : s[i]);
    }
    out[n] = 0;
    p->rest = slice_of(s + end, p->rest.n - end);
    return out;
}

static const struct cql_type *parse_type(struct parser *p, uint32_t depth);

static const struct cql_type *parse_user_type(struct parser *p, const char *name) {
    const char *keyspace = p->keyspace;
    if (take(p, '.')) {
        keyspace = name;
        name = take_name(p);
        if (!name) return NULL;
    }
    const struct cql_type *t = p->find ? p->find(p->arg, p->arena, keyspace, name, p->err) : NULL;
    if (!t && !p->err->set)
        err_invalid(p->err, "Unknown type %s%s%s", keyspace ? keyspace : "", keyspace ? "." : "", name);
    if (t && p->frozen) t = cql_type_freeze(p->arena, t);
    if (!t && !p->err->set) err_nomem(p->err);
    return t;
}

static const struct cql_type *parse_vector(struct parser *p, uint32_t depth) {
    uint32_t frozen = p->frozen;
    p->frozen = 0;
    const struct cql_type *element = parse_type(p, depth + 1);
    p->frozen = frozen;
    if (!element) return NULL;
    if (!take(p, ',')) return syntax(p);
    char *number = take_name(p);
    int64_t dimension;
    if (!number) return NULL;
    if (cqlt_parse_int64(slice_str(number), &dimension) < 0 || dimension < 1 || dimension > INT32_MAX || !take(p, '>'))
        return syntax(p);
    return cql_type_new(p->arena, CQL_VECTOR, true, &element, 1, (uint32_t)dimension, p->err);
}

static const struct cql_type *parse_args(struct parser *p, enum cql_type_id id, uint32_t depth) {
    const struct cql_type *args[64], **all = args;
    uint32_t n = 0, cap = ARRAY_LEN(args);
    do {
        if (n == cap) {
            if (cap >= CQL_TYPE_PARTS_MAX) return syntax(p);
            const struct cql_type **more = ARENA_ARRAY(p->arena, cap * 2, const struct cql_type *);
            if (!more) return err_null(err_nomem(p->err));
            memcpy(more, all, n * sizeof *all);
            all = more;
            cap *= 2;
        }
        all[n] = parse_type(p, depth + 1);
        if (!all[n++]) return NULL;
    } while (take(p, ','));
    if (!take(p, '>') || (id != CQL_TUPLE && n != cql_type_parameters(id))) return syntax(p);
    return cql_type_new(p->arena, id, p->frozen > 0, all, n, 0, p->err);
}

static const struct cql_type *parse_frozen(struct parser *p, uint32_t depth) {
    p->frozen++;
    const struct cql_type *t = parse_type(p, depth + 1);
    p->frozen--;
    if (!t) return NULL;
    if (!take(p, '>')) return syntax(p);
    if (t->n_args == 0 && t->id != CQL_UDT) {
        struct buf text;
        buf_init(&text, 4096);
        buf_put_str(&text, "frozen<> is only allowed on collections, tuples, and user-defined types (got ");
        cql_type_print(t, &text);
        buf_u8(&text, ')');
        return err_null(err_set_buf(p->err, ERR_SYNTAX, &text));
    }
    t = cql_type_freeze(p->arena, t);
    if (!t) err_nomem(p->err);
    return t;
}

static const struct cql_type *parse_type(struct parser *p, uint32_t depth) {
    if (depth > TEXT_DEPTH_MAX) return syntax(p);
    if (take(p, '\'')) { /* a class; its name contains no quotes */
        const uint8_t *end = memchr(p->rest.p, '\'', p->rest.n);
        if (!end) return syntax(p);
        struct slice class = slice_of(p->rest.p, (size_t)(end - p->rest.p));
        p->rest = slice_of(end + 1, p->rest.n - class.n - 1);
        return cql_type_by_class(p->arena, class, p->err);
    }
    bool quoted = p->rest.n && p->rest.p[0] == '"';
    char *name = take_name(p);
    if (!name) return NULL;
    if (!*name) return syntax(p);
    if (quoted) return parse_user_type(p, name);
    if (!take(p, '<')) {
        const struct cql_type *scalar = cql_type_by_name(slice_str(name));
        return scalar ? scalar : parse_user_type(p, name);
    }
    if (strcmp(name, "frozen") == 0) return parse_frozen(p, depth);
    enum cql_type_id id = cql_type_generic(slice_str(name));
    if (id == CQL_TYPES) return syntax(p);
    if (id == CQL_VECTOR) return parse_vector(p, depth);
    p->frozen += id == CQL_TUPLE;
    const struct cql_type *t = parse_args(p, id, depth);
    p->frozen -= id == CQL_TUPLE;
    return t;
}

const struct cql_type *cql_type_parse(struct arena *a, struct slice text, const char *keyspace, cql_udt_find_fn find,
                                      void *arg, struct err *e) {
    struct parser p = {
        .arena = a, .rest = text, .whole = text, .keyspace = keyspace, .find = find, .arg = arg, .err = e};
    const struct cql_type *t = parse_type(&p, 0);
    skip_spaces(&p);
    return t && p.rest.n ? syntax(&p) : t;
}

/* ---- writing ---- */

void cql_identifier_print(const char *name, bool is_free, struct buf *out) {
    bool plain = is_free && *name >= 'a' && *name <= 'z';
    for (const char *p = name; *p && plain; p++)
        plain = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '_';
    if (!plain) buf_u8(out, '"');
    for (const char *p = name; *p; p++) {
        if (*p == '"') buf_u8(out, '"');
        buf_u8(out, (uint8_t)*p);
    }
    if (!plain) buf_u8(out, '"');
}

/* qualified: user types have their keyspaces. stored: the text parses back to the same type. */
struct naming {
    bool qualified, stored;
};

static void print(const struct cql_type *t, struct naming how, struct buf *out);

static void print_bare(const struct cql_type *t, struct naming how, struct buf *out) {
    if (t->id == CQL_UDT) {
        if (how.qualified) buf_printf(out, "%s.", t->keyspace);
        /* CQL needs quotes around a name that is also a word for a type. */
        struct slice word = slice_str(t->name);
        bool is_free = !slice_is(word, "frozen") && !cql_type_by_name(word) && cql_type_generic(word) == CQL_TYPES;
        cql_identifier_print(t->name, is_free, out);
        return;
    }
    const char *name = cqlt_type_info(t->id)->cql;
    if (cql_type_is_custom(t) && (how.stored || !name)) {
        buf_u8(out, '\'');
        cql_type_print_marshal(t, out);
        buf_u8(out, '\'');
        return;
    }
    buf_put_str(out, name);
    if (t->n_args == 0) return;
    buf_u8(out, '<');
    for (uint32_t i = 0; i < t->n_args; i++) {
        if (i) buf_put_str(out, ", ");
        print(t->args[i], how, out);
    }
    if (t->id == CQL_VECTOR) buf_printf(out, ", %u", t->dimension);
    buf_u8(out, '>');
}

static void print(const struct cql_type *t, struct naming how, struct buf *out) {
    bool frozen = t->frozen && t->id < CQL_VECTOR;
    if (frozen) buf_put_str(out, "frozen<");
    print_bare(t, how, out);
    if (frozen) buf_u8(out, '>');
}

void cql_type_print(const struct cql_type *t, struct buf *out) { print(t, (struct naming){0}, out); }
const char *cql_type_text(const struct cql_type *t, struct arena *a) {
    struct buf b;
    buf_init(&b, 0);
    cql_type_print(t, &b);
    struct slice text = buf_failed(&b) ? slice_of(NULL, 0) : arena_dup(a, buf_slice(&b));
    buf_fini(&b);
    return (const char *)text.p;
}
void cql_type_print_stored(const struct cql_type *t, struct buf *out) {
    print(t, (struct naming){.stored = true}, out);
}
void cql_type_print_bare(const struct cql_type *t, struct buf *out) { print_bare(t, (struct naming){0}, out); }
void cql_type_print_qualified(const struct cql_type *t, struct buf *out) {
    print(t, (struct naming){.qualified = true}, out);
}

/* FrozenType(...) is printed once, around the outermost frozen type, but never around tuples and
 * vectors. The fields of a tuple count as inside a frozen type. The element of a vector counts so
 * only when the vector does. */
static void print_marshal(const struct cql_type *t, bool in_frozen, struct buf *out) {
    bool frozen = t->frozen && !in_frozen && (cql_type_is_collection(t) || t->id == CQL_UDT);
    if (frozen) buf_put_str(out, MARSHAL_PACKAGE "FrozenType(");
    buf_printf(out, MARSHAL_PACKAGE "%s", cqlt_type_info(t->id)->marshal);
    if (t->id == CQL_PARTITION_ORDER) buf_put_str(out, "(" PARTITIONER_CLASS ")");
    if (t->n_args || t->id == CQL_UDT || t->id == CQL_DYNAMIC_COMPOSITE) {
        buf_u8(out, '(');
        if (t->id == CQL_UDT) {
            buf_printf(out, "%s,", t->keyspace);
            cql_value_text(cql_type_scalar(CQL_BLOB), slice_str(t->name), out);
        }
        for (uint32_t i = 0; i < t->n_args; i++) {
            if (i || t->id == CQL_UDT) buf_u8(out, ',');
            if (t->id == CQL_UDT) {
                cql_value_text(cql_type_scalar(CQL_BLOB), slice_str(t->field_names[i]), out);
                buf_u8(out, ':');
            }
            if (t->id == CQL_DYNAMIC_COMPOSITE) buf_printf(out, "%s=>", t->field_names[i]);
            print_marshal(t->args[i], in_frozen || (t->frozen && t->id < CQL_VECTOR), out);
        }
        if (t->id == CQL_VECTOR) buf_printf(out, " , %u", t->dimension);
        buf_u8(out, ')');
    }
    if (frozen) buf_u8(out, ')');
}

void cql_type_print_marshal(const struct cql_type *t, struct buf *out) { print_marshal(t, false, out); }

static void put_string(const char *s, struct buf *out) {
    size_t n = strlen(s);
    buf_u16(out, (uint16_t)n);
    buf_put(out, s, n);
}

void cql_type_write_option(const struct cql_type *t, uint8_t version, struct buf *out) {
    uint16_t option = cqlt_type_info(t->id)->option;
    bool since_v4 = t->id == CQL_DATE || t->id == CQL_TIME || t->id == CQL_SMALLINT || t->id == CQL_TINYINT;
    if (option == 0 || version < 3 || (since_v4 && version < 4) || (t->id == CQL_DURATION && version < 5)) {
        struct buf class;
        buf_init(&class, UINT16_MAX);
        cql_type_print_marshal(t, &class);
        if (buf_failed(&class)) out->failed = true;
        buf_u16(out, 0);
        buf_u16(out, (uint16_t)class.n);
        buf_put_slice(out, buf_slice(&class));
        buf_fini(&class);
        return;
    }
    buf_u16(out, option);
    if (t->id == CQL_UDT) {
        put_string(t->keyspace, out);
        put_string(t->name, out);
    }
    if (t->id == CQL_UDT || t->id == CQL_TUPLE) buf_u16(out, (uint16_t)t->n_args);
    for (uint32_t i = 0; i < t->n_args; i++) {
        if (t->id == CQL_UDT) put_string(t->field_names[i], out);
        cql_type_write_option(t->args[i], version, out);
    }
}
