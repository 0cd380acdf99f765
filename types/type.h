/* CQL types: what a value of each type may be, how it reads and writes, and how it orders.
 *
 * A type is an immutable tree, allocated in the arena of whoever made it (a schema snapshot, a prepared statement); the
 * scalars are static and shared. Values are wire form (value.h). Every function here is pure and may run on any thread.
 * Texts of errors are Cassandra's.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "types/value.h"

enum cql_type_id {
#define TYPE(id, option, cql, marshal, wire, fixed, family) CQL_##id,
#include "types/type.def"
#undef TYPE
    CQL_TYPES
};

/* In how many others a type may be: Cassandra reads and writes values of about 140 tuples in each
 * other, and fails beyond. Every recursion over a type is bounded by that, every loop by how many
 * types it is made of. */
enum { CQL_TYPE_DEPTH_MAX = 128, CQL_TYPE_PARTS_MAX = 4096 };

struct cql_type {
    enum cql_type_id id;
    bool frozen; /* written frozen<...>; tuples and vectors are always frozen */
    /* list, set: 1; map: key, value; tuple, UDT: one per field; vector: 1; composite: one per
     * component; dynamic composite: one per alias */
    uint32_t n_args;
    const struct cql_type *const *args;
    uint32_t dimension; /* vector */
    /* UDT */
    const char *keyspace, *name;
    const char *const *field_names; /* of a dynamic composite: its aliases, one letter each */
    const uint16_t *by_name; /* indexes of the fields in the order of their names */
};

/* The shared instance of a scalar type. */
const struct cql_type *cql_type_scalar(enum cql_type_id id);

static inline bool cql_type_is_collection(const struct cql_type *t) {
    return t->id == CQL_LIST || t->id == CQL_SET || t->id == CQL_MAP;
}
/* A collection or UDT whose elements are cells of their own. */
static inline bool cql_type_is_multicell(const struct cql_type *t) {
    return !t->frozen && (cql_type_is_collection(t) || t->id == CQL_UDT);
}
/* Does only a class in quotes name it? Literals of every kind may be given for such a type, but for
 * those that look like another one's to CQL (EMPTY and LEGACY_TIMEUUID). */
static inline bool cql_type_is_custom(const struct cql_type *t) { return t->id > CQL_VECTOR; }
static inline bool cql_type_takes_text(const struct cql_type *t) {
    return cql_type_is_custom(t) && t->id != CQL_EMPTY && t->id != CQL_LEGACY_TIMEUUID;
}
/* Is it of that type, or made of it at any depth? */
bool cql_type_contains(const struct cql_type *t, enum cql_type_id id);
bool cql_type_eq(const struct cql_type *a, const struct cql_type *b); /* frozen-ness counts */

/* A list, set, map, tuple or vector of args (copied; n_args as the type asks, dimension for a
 * vector only). What is inside a frozen type is frozen too, but a vector takes its element as it is
 * written. NULL and ERR_INVALID when an argument is not frozen but must be, and above the limits:
 * every type that is made can be printed and read again. */
const struct cql_type *cql_type_new(struct arena *a, enum cql_type_id id, bool frozen,
                                    const struct cql_type *const *args, uint32_t n_args, uint32_t dimension,
                                    struct err *e) MUST_CHECK;
/* A dynamic composite with these aliases (their names are the caller's and live as long). As above. */
const struct cql_type *cql_type_new_dynamic(struct arena *a, const char *const *aliases,
                                            const struct cql_type *const *types, uint32_t n, struct err *e) MUST_CHECK;
/* The frozen form of a type: t itself when it is frozen already or a scalar. NULL without memory. */
const struct cql_type *cql_type_freeze(struct arena *a, const struct cql_type *t) MUST_CHECK;
/* A user type, not frozen, of fields (copied; their names are the caller's and live as long). NULL
 * and ERR_INVALID above the limits. */
const struct cql_type *cql_type_new_user(struct arena *a, const char *keyspace, const char *name,
                                         const struct cql_type *const *fields, const char *const *field_names,
                                         uint32_t n_fields, struct err *e) MUST_CHECK;
/* The type with everything that it is made of, names too, in another arena. NULL without memory. */
const struct cql_type *cql_type_copy(struct arena *a, const struct cql_type *t) MUST_CHECK;
/* The index of a user type's field, n_args: it has none of that name. */
uint32_t cql_type_field(const struct cql_type *t, struct slice name);
/* Is it the user type of that name, or made of it at any depth? */
bool cql_type_uses(const struct cql_type *t, const char *user_type);
/* A scalar by its name in CQL, in any case ("varchar" is text); NULL: none. */
const struct cql_type *cql_type_by_name(struct slice name);
/* By the name of Cassandra's class, with or without the package: Int32Type, ListType(UTF8Type),
 * FrozenType(...). Lives in the arena. NULL with ERR_SYNTAX in Cassandra's words, or ERR_INVALID
 * for a class that is no type of CQL. (class_name.c) */
const struct cql_type *cql_type_by_class(struct arena *a, struct slice text, struct err *e) MUST_CHECK;
/* A class as Cassandra writes it: with the package of each, without blanks. */
void cql_class_print(struct slice text, struct buf *out);
/* Is it a ReversedType: of a clustering column, in descending order? */
bool cql_class_is_reversed(struct slice text);
/* The kind of types made of others that has the name, in any case: list, set, map, tuple, vector; CQL_TYPES: none. */
enum cql_type_id cql_type_generic(struct slice name);
/* Of how many types one is made; 0: of one or more. */
uint32_t cql_type_parameters(enum cql_type_id generic);

/* ---- names ---- */


/* Finds a user type of a keyspace for cql_type_parse, whose arena it may use: what it gives must
 * live as long as that. NULL when there is none (the parser then says so), or with the error set. */
typedef const struct cql_type *(*cql_udt_find_fn)(void *arg, struct arena *a, const char *keyspace, const char *name,
                                                  struct err *e);
/* As a find function: a user type of any name, without fields. */
const struct cql_type *cql_udt_by_name(void *arg, struct arena *a, const char *keyspace, const char *name,
                                       struct err *e);

/* Can its values be JSON? Those of composites and of a partitioner's order cannot, wherever they are. */
bool cql_type_has_json(const struct cql_type *t);

/* "map<text, frozen<list<int>>>", case-insensitive, as CQL writes it, classes in quotes, too.
 * keyspace: where unqualified user types are looked up; may be NULL. NULL and ERR_INVALID ("Unknown
 * type ks.name", "Non-frozen collections are not allowed inside collections: ..."). */
const struct cql_type *cql_type_parse(struct arena *a, struct slice text, const char *keyspace, cql_udt_find_fn find,
                                      void *arg, struct err *e) MUST_CHECK;
/* An identifier as CQL writes it: in quotes unless it is lower case, or when it is a word that is
 * not free for names. */
void cql_identifier_print(const char *name, bool is_free, struct buf *out);
/* As CQL writes it: "frozen<map<text, int>>". */
void cql_type_print(const struct cql_type *t, struct buf *out);
/* The same where the text must lead back to the type: what CQL names by a word that is not, or not
 * only, its own, is named by its class in quotes. */
void cql_type_print_stored(const struct cql_type *t, struct buf *out);
/* As above, but without the outermost frozen<>, as Cassandra names types in error texts. */
void cql_type_print_bare(const struct cql_type *t, struct buf *out);
/* With user types as ks.name. */
void cql_type_print_qualified(const struct cql_type *t, struct buf *out);
/* "org.apache.cassandra.db.marshal.MapType(...)", for custom options and clients that ask for it. */
void cql_type_print_marshal(const struct cql_type *t, struct buf *out);
/* The protocol's [option]. version: 3, 4 or 5 (a type newer than the version goes as custom). */
void cql_type_write_option(const struct cql_type *t, uint8_t version, struct buf *out);

/* ---- values ---- */

/* Checks wire bytes: lengths, UTF-8, ranges, every nested element. n == 0 is the legal "empty" value of most types.
 * ERR_INVALID in the words of Cassandra's serializers ("Expected 4 or 0 byte int (3)"). */
int cql_value_validate(const struct cql_type *t, struct slice v, struct err *e) MUST_CHECK;

/* Scalars whose values can be written in several ways, and the way in which Cassandra writes them
 * (canonical.c). v is valid. */
bool cql_type_has_forms(const struct cql_type *t);
bool cql_value_is_canonical(const struct cql_type *t, struct slice v);
void cql_value_canonical(const struct cql_type *t, struct slice v, struct buf *out);

/* Cassandra's order of two values of one type (AbstractType.compare): <0, 0, >0. Both must be valid. */
int cql_value_compare(const struct cql_type *t, struct slice a, struct slice b);

/* Literals that a query text can hold (cql/syntax/ast.h names the kinds alike). */
enum cql_literal { LIT_STRING, LIT_INTEGER, LIT_FLOAT, LIT_BOOLEAN, LIT_UUID, LIT_HEX, LIT_DURATION };

/* May a literal of this kind be given where the type is wanted? (Constants.Literal.testAssignment) */
bool cql_literal_fits(const struct cql_type *t, enum cql_literal kind);
/* Text of a literal (unquoted, as the user wrote it) to wire bytes appended to out; now_us is what
 * the timestamp "now" is. receiver names the column in the error: "Invalid STRING constant (abc)
 * for \"v\" of type int", "Unable to make int from 'abc'", ... */
int cql_literal_parse(const struct cql_type *t, enum cql_literal kind, struct slice text, const char *receiver,
                      int64_t now_us, struct buf *out, struct err *e) MUST_CHECK;

/* As a CQL literal ('it''s', 0xcafe, {'a': 1}); Cassandra's AbstractType.toCQLString. */
void cql_value_print(const struct cql_type *t, struct slice v, struct buf *out);
/* The unquoted form (AbstractType.getString). */
void cql_value_text(const struct cql_type *t, struct slice v, struct buf *out);
/* JSON as SELECT JSON and toJson give it. */
void cql_value_json(const struct cql_type *t, struct value v, struct buf *out);
/* JSON text to wire bytes, as INSERT JSON and fromJson take it; now_us as above: 0 a value, 1 a
 * JSON null, -1 error in Cassandra's words. */
int cql_value_from_json(const struct cql_type *t, struct slice json, int64_t now_us, struct buf *out,
                        struct err *e) MUST_CHECK;

/* ---- key form ---- */

/* Appends the order-preserving form of one clustering value: byte order is cql_value_compare's
 * order (reversed when desc), no form is a prefix of another, the empty value has a form of its
 * own, and forms of successive columns simply follow one another. *exact is set to false when
 * decoding gives an equal but differently written value (decimal 1.0 and 1.00), otherwise left
 * alone; the row then keeps the original (struct eng_row.key_image). */
int cql_key_encode(const struct cql_type *t, bool desc, struct slice v, struct buf *out, bool *exact,
                   struct err *e) MUST_CHECK;
/* Reads one form from key and appends its wire bytes to out; 0, or -1 when the bytes are no such form. */
/* The same of a key that is one int and nothing else; false: it is an empty one, or not that. */
MUST_CHECK static inline bool cql_key_decode_int(bool desc, struct slice key, uint8_t out[4]) {
    uint32_t flip = desc ? UINT32_MAX : 0;
    if (key.n != 5 || key.p[0] != (uint8_t)(1 ^ flip)) return false;
    store_u32(out, load_u32(key.p + 1) ^ flip ^ 0x80000000);
    return true;
}
int cql_key_decode(const struct cql_type *t, bool desc, struct rd *key, struct buf *out) MUST_CHECK;

/* ---- elements of collections, tuples and UDTs ---- */

/* Walks a serialised list, set, map (key and value alternate), tuple or UDT. */
struct cql_elems {
    struct rd rd;
    uint32_t left; /* items still to come; a map entry counts two */
};
int cql_elems_open(const struct cql_type *t, struct slice v, struct cql_elems *it); /* -1: malformed */
bool cql_elems_next(struct cql_elems *it, struct value *item);
/* Whether CONTAINS finds an element of a collection, or a value of a map: one that compares as
 * equal, but in a frozen one the very same (decimals with their scales, tuples byte by byte), for
 * Cassandra asks Java's collections there. */
bool cql_collection_finds(const struct cql_type *collection, const struct cql_type *of, struct value element,
                          struct value wanted);
/* Header of a collection of n elements (map: n entries), to be followed by cql_elem_put for each item. */
void cql_collection_begin(uint32_t n, struct buf *out);
void cql_elem_put(struct value item, struct buf *out);
