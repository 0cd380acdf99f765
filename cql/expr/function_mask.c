/* mask_null, _default, _replace, _inner, _outer and _hash (MaskingFcts). */
#include <openssl/evp.h>
#include <strings.h>

#include "cql/expr/function.h"
#include "cql/expr/md2.h"

enum { PARAMETERS_MAX = 4 };

/* Types that a parameter accepts: any; any, or the receiver's for an argument without a type; the
 * type of the first argument; a string; an int; a text. */
enum parameter { ANY, RECEIVED, SAME, STRING, INT, TEXT };

static int call_null(const struct function_in *in, struct buf *out) {
    (void)in;
    (void)out;
    return 1;
}

/* ---- mask_default: a fixed value of each type ---- */

static void put_default(const struct cql_type *t, struct buf *out) {
    static const uint8_t zeros[16] = {0}, timeuuid[16] = {0x13, 0x81, 0x40, 0,    0x1d, 0xd2, 0x11, 0xb2,
                                                          0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    static const uint8_t date[4] = {0x80, 0, 0, 0}; /* 1970-01-01 */
    bool vector = t->id == CQL_VECTOR;
    uint32_t n_parts = vector ? t->dimension : t->n_args;
    switch (t->id) {
    case CQL_ASCII: case CQL_TEXT: buf_put_str(out, "****"); return;
    case CQL_BLOB: return;
    case CQL_DATE: buf_put(out, date, sizeof date); return;
    case CQL_EMPTY: return;
    case CQL_LEGACY_TIMEUUID: case CQL_TIMEUUID: buf_put(out, timeuuid, sizeof timeuuid); return;
    case CQL_VARINT: buf_put(out, zeros, 1); return;
    case CQL_DURATION: buf_put(out, zeros, 3); return;
    case CQL_DECIMAL: buf_put(out, zeros, 5); return; /* no scale, and 0 */
    case CQL_INET: buf_put(out, zeros, 4); return;
    case CQL_LIST: case CQL_SET: case CQL_MAP: cql_collection_begin(0, out); return;
    case CQL_TUPLE: case CQL_UDT: case CQL_VECTOR:
        for (uint32_t i = 0; i < n_parts; i++) {
            struct buf part;
            buf_init(&part, 1 << 20);
            put_default(t->args[vector ? 0 : i], &part);
            if (vector) {
                cql_vector_put(t, buf_slice(&part), out);
            } else {
                buf_u32(out, part.n);
                buf_put_slice(out, buf_slice(&part));
            }
            buf_fini(&part);
        }
        return;
    case CQL_BOOLEAN: case CQL_TINYINT: buf_put(out, zeros, 1); return;
    case CQL_SMALLINT: buf_put(out, zeros, 2); return;
    case CQL_INT: case CQL_FLOAT: buf_put(out, zeros, 4); return;
    case CQL_LEXICAL_UUID: case CQL_UUID: buf_put(out, zeros, 16); return;
    default: buf_put(out, zeros, 8); return;
    }
}

static int call_default(const struct function_in *in, struct buf *out) {
    put_default(in->f->args[0], out);
    return 0;
}

static int call_replace(const struct function_in *in, struct buf *out) {
    if (value_is_null(in->args[1])) return 1;
    buf_put_slice(out, value_slice(in->args[1]));
    return 0;
}

/* ---- mask_inner, mask_outer ---- */

/* The length in bytes of one UTF-8 character. *chars: its length in Java chars, 16 bits each. */
static size_t character(struct slice s, size_t at, uint32_t *chars) {
    size_t n = s.p[at] < 0x80 ? 1 : s.p[at] < 0xE0 ? 2 : s.p[at] < 0xF0 ? 3 : 4;
    *chars = n == 4 ? 2 : 1;
    return n < s.n - at ? n : s.n - at;
}

static int64_t count_chars(struct slice s) {
    int64_t n = 0;
    uint32_t chars;
    for (size_t at = 0; at < s.n; n += chars) at += character(s, at, &chars);
    return n;
}

static int64_t read_margin(struct value v) { return v.n == 4 ? (int32_t)load_u32(v.p) : 0; }

static int call_part(const struct function_in *in, struct buf *out) {
    bool inner = strcmp(in->f->name, "mask_inner") == 0;
    struct slice s = value_slice(in->args[0]), padding = slice_str("*");
    if (value_is_null(in->args[0])) return 1;
    if (in->n_args == 4 && !value_is_null(in->args[3])) {
        padding = value_slice(in->args[3]);
        int64_t length = count_chars(padding);
        if (length != 1)
            return err_invalid(in->ev->err,
                               "The padding argument for function system.%s should be single-character, but '%.*s' "
                               "has %lld characters.", in->f->name, SLICE_FMT(padding), (long long)length);
        if (in->f->result->id == CQL_ASCII && padding.p[0] & 0x80) padding = slice_str("?");
    }
    int64_t n = count_chars(s), first = read_margin(in->args[1]), last = n - read_margin(in->args[2]), at = 0;
    for (size_t byte = 0; byte < s.n;) {
        uint32_t chars;
        bool masked[2], any = false;
        size_t bytes = character(s, byte, &chars);
        for (uint32_t i = 0; i < chars; i++, at++) {
            masked[i] = (at >= first && at < last) == inner;
            any = any || masked[i];
        }
        if (!any) buf_put_slice(out, slice_of(s.p + byte, bytes));
        /* When only one of a character's two chars is masked, the other one becomes a question mark. */
        for (uint32_t i = 0; any && i < chars; i++) buf_put_slice(out, masked[i] ? padding : slice_str("?"));
        byte += bytes;
    }
    return 0;
}

/* ---- mask_hash ---- */

static bool is_named(struct slice name, const char *java) {
    return strlen(java) == name.n && strncasecmp(java, (const char *)name.p, name.n) == 0;
}

/* Names of Java's providers, in capitals, and OpenSSL's names; md2.c implements MD2. */
static const EVP_MD *digest_named(struct slice name) {
    static const struct {
        const char *java, *openssl;
    } names[] = {
        {"MD5", "MD5"}, {"SHA", "SHA1"}, {"SHA1", "SHA1"}, {"SHA-1", "SHA1"},
        {"SHA224", "SHA224"}, {"SHA-224", "SHA224"}, {"SHA256", "SHA256"}, {"SHA-256", "SHA256"},
        {"SHA384", "SHA384"}, {"SHA-384", "SHA384"}, {"SHA512", "SHA512"}, {"SHA-512", "SHA512"},
        {"SHA512/224", "SHA512-224"}, {"SHA-512/224", "SHA512-224"},
        {"SHA512/256", "SHA512-256"}, {"SHA-512/256", "SHA512-256"},
        {"SHA3-224", "SHA3-224"}, {"SHA3-256", "SHA3-256"}, {"SHA3-384", "SHA3-384"}, {"SHA3-512", "SHA3-512"},
        {"1.3.14.3.2.26", "SHA1"}, {"1.2.840.113549.2.5", "MD5"},
        {"2.16.840.1.101.3.4.2.1", "SHA256"}, {"2.16.840.1.101.3.4.2.2", "SHA384"},
        {"2.16.840.1.101.3.4.2.3", "SHA512"}, {"2.16.840.1.101.3.4.2.4", "SHA224"},
        {"2.16.840.1.101.3.4.2.5", "SHA512-224"}, {"2.16.840.1.101.3.4.2.6", "SHA512-256"},
        {"2.16.840.1.101.3.4.2.7", "SHA3-224"}, {"2.16.840.1.101.3.4.2.8", "SHA3-256"},
        {"2.16.840.1.101.3.4.2.9", "SHA3-384"}, {"2.16.840.1.101.3.4.2.10", "SHA3-512"},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (is_named(name, names[i].java)) return EVP_get_digestbyname(names[i].openssl);
    return NULL;
}

static int call_hash(const struct function_in *in, struct buf *out) {
    struct slice asked = in->n_args < 2 || value_is_null(in->args[1]) ? slice_str("SHA-256") : value_slice(in->args[1]),
                 name = asked;
    struct slice v = value_slice(in->args[0]);
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    bool md2 = is_named(name, "MD2");
    if (name.n > 4 && strncasecmp((const char *)name.p, "OID.", 4) == 0) name = slice_of(name.p + 4, name.n - 4);
    const EVP_MD *md = digest_named(name);
    if (!md && !md2) return err_invalid(in->ev->err, "Hash algorithm not found: %.*s", SLICE_FMT(asked));
    if (value_is_null(in->args[0])) return 1;
    if (md2) {
        md2_digest(v, digest);
        buf_put(out, digest, MD2_BYTES);
        return 0;
    }
    if (EVP_Digest(v.p, v.n, digest, &n, md, NULL) != 1)
        return err_set(in->ev->err, ERR_SERVER, "The hash %.*s has failed", SLICE_FMT(name));
    buf_put(out, digest, n);
    return 0;
}

/* ---- finding them ---- */

static const struct mask {
    const char *name, *takes;
    uint32_t least, most;
    enum parameter parameters[PARAMETERS_MAX];
    function_fn call;
} masks[] = {
    {"mask_null", "any", 1, 1, {ANY}, call_null},
    {"mask_default", "any", 1, 1, {ANY}, call_default},
    {"mask_replace", "any, any", 2, 2, {RECEIVED, SAME}, call_replace},
    {"mask_inner", "[text|varchar|ascii], int, int, [text]", 3, 4, {STRING, INT, INT, TEXT}, call_part},
    {"mask_outer", "[text|varchar|ascii], int, int, [text]", 3, 4, {STRING, INT, INT, TEXT}, call_part},
    {"mask_hash", "any, [text]", 1, 2, {ANY, TEXT}, call_hash},
};

/* The type of an argument: its own, or the parameter's for an argument without a type. */
static int find_type(struct compile *c, const struct mask *mask, const struct function_args *args, uint32_t i,
                     const struct receiver *to, const struct cql_type **types) {
    enum parameter p = mask->parameters[i];
    const struct cql_type *own = args->type(args->arg, i), *text = cql_type_scalar(CQL_TEXT),
                          *number = cql_type_scalar(CQL_INT);
    switch (p) {
    case ANY: case RECEIVED:
        types[i] = own ? own : p == RECEIVED && to ? to->type : NULL;
        return types[i] ? 0 : function_refuse_untyped(c, mask->name, mask->takes, args, i);
    case SAME: types[i] = types[0]; return 0;
    case INT:
        types[i] = number;
        if (!own || function_type_fits(number, own)) return 0;
        return function_refuse_type(c, mask->name, "an argument of type int", args, i, own);
    default:
        types[i] = p == STRING && own && own->id == CQL_ASCII ? own : text;
        if (!own || function_type_fits(text, own)) return 0;
        return function_refuse_type(c, mask->name, p == STRING ? "an argument of type [text|varchar|ascii]"
                                                               : "an argument of type text", args, i, own);
    }
}

int function_resolve_mask(struct compile *c, const char *name, const struct function_args *args,
                          const struct receiver *to, const struct function **out) {
    const struct cql_type *types[PARAMETERS_MAX];
    size_t at = 0;
    while (at < ARRAY_LEN(masks) && strcmp(masks[at].name, name) != 0) at++;
    if (at == ARRAY_LEN(masks)) return 0;
    const struct mask *mask = &masks[at];
    *out = NULL;
    if (args->n < mask->least || args->n > mask->most) {
        function_refuse_number(c, name, mask->takes);
        return 1;
    }
    for (uint32_t i = 0; i < args->n; i++)
        if (find_type(c, mask, args, i, to, types)) return 1;
    const struct cql_type *result = types[0];
    if (mask->call == call_hash) result = cql_type_scalar(CQL_BLOB);
    /* In Cassandra the default value of a timeuuid is of the older class. */
    else if (mask->call == call_default && result->id == CQL_TIMEUUID) result = cql_type_scalar(CQL_LEGACY_TIMEUUID);
    struct function *f = function_new(c, mask->name, result, types, args->n, mask->call);
    if (f) f->takes_null = f->raw = true;
    *out = f;
    return 1;
}
