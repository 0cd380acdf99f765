/* CQL types: the valid values of each type, their text and wire forms, and their order.
 *
 * A type is an immutable tree in the arena of its creator (a schema snapshot, a prepared
 * statement); the scalars are static and shared. Values are in wire form (value.h). Every function
 * here is pure and may run on any thread. Error texts are Cassandra's.
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

/* Limits of how deep types are nested, and of how many types one is made. Cassandra fails on values
 * of more than about 140 tuples in each other. The depth bounds every recursion over a type, the
 * number of parts every loop. */
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
/* A collection or UDT whose elements are stored as single cells. */
static inline bool cql_type_is_multicell(const struct cql_type *t) {
    return !t->frozen && (cql_type_is_collection(t) || t->id == CQL_UDT);
}
/* Is the type named only by a class in quotes? Literals of every kind fit such a type, except EMPTY
 * and LEGACY_TIMEUUID (cql_type_takes_text). */
static inline bool cql_type_is_custom(const struct cql_type *t) { return t->id > CQL_VECTOR; }
static inline bool cql_type_takes_text(const struct cql_type *t) {
    return cql_type_is_custom(t) && t->id != CQL_EMPTY && t->id != CQL_LEGACY_TIMEUUID;
}
/* Is the type the given one, or made of it at any depth? */
bool cql_type_contains(const struct cql_type *t, enum cql_type_id id);
bool cql_type_eq(const struct cql_type *a, const struct cql_type *b); /* frozen-ness counts */

/* Makes a list, set, map, tuple or vector of args (copied; n_args as the type needs, dimension for
 * a vector only). The arguments of a frozen type become frozen, too, except the element of a
 * vector. NULL and ERR_INVALID: an argument is not frozen but must be, or the type exceeds a limit.
 * Every type that is made can be printed and parsed again. */
const struct cql_type *cql_type_new(struct arena *a, enum cql_type_id id, bool frozen,
                                    const struct cql_type *const *args, uint32_t n_args, uint32_t dimension,
                                    struct err *e) MUST_CHECK;
/* Makes a dynamic composite with these aliases. Their names are not copied and must live as long as
 * the type. NULL as above. */
const struct cql_type *cql_type_new_dynamic(struct arena *a, const char *const *aliases,
                                            const struct cql_type *const *types, uint32_t n, struct err *e) MUST_CHECK;
/* The frozen form of a type: t itself when it is frozen already, or a scalar. NULL without
 * memory. */
const struct cql_type *cql_type_freeze(struct arena *a, const struct cql_type *t) MUST_CHECK;
/* Makes a user type, not frozen. The fields are copied; their names are not and must live as long.
 * NULL and ERR_INVALID: the type exceeds a limit. */
const struct cql_type *cql_type_new_user(struct arena *a, const char *keyspace, const char *name,
                                         const struct cql_type *const *fields, const char *const *field_names,
                                         uint32_t n_fields, struct err *e) MUST_CHECK;
/* Copies a type with all types and names in it to another arena. NULL without memory. */
const struct cql_type *cql_type_copy(struct arena *a, const struct cql_type *t) MUST_CHECK;
/* The index of a field of a user type; n_args: it has no field of that name. */
uint32_t cql_type_field(const struct cql_type *t, struct slice name);
/* Is the type the user type of that name, or made of it at any depth? */
bool cql_type_uses(const struct cql_type *t, const char *user_type);
/* A scalar by its name in CQL, in any case ("varchar" is text); NULL if there is none. */
const struct cql_type *cql_type_by_name(struct slice name);
/* A type by the name of Cassandra's class, with or without the package: Int32Type,
 * ListType(UTF8Type), FrozenType(...). The type lives in the arena. Returns NULL with ERR_SYNTAX in
 * Cassandra's words, or ERR_INVALID for a class that is no type of CQL. (class_name.c) */
const struct cql_type *cql_type_by_class(struct arena *a, struct slice text, struct err *e) MUST_CHECK;
/* Prints the name of a class as Cassandra does: each class with its package, without blanks. */
void cql_class_print(struct slice text, struct buf *out);
/* Is the class a ReversedType, the type of a clustering column in descending order? */
bool cql_class_is_reversed(struct slice text);
/* The generic type of that name, in any case: list, set, map, tuple, vector; CQL_TYPES: none. */
enum cql_type_id cql_type_generic(struct slice name);
/* The number of parameters of a generic type; 0 for one or more. */
uint32_t cql_type_parameters(enum cql_type_id generic);

/* ---- names ---- */

/* Finds a user type of a keyspace for cql_type_parse. The result must live as long as the arena, in
 * which it may be allocated. Returns NULL if there is none (the parser then sets the error), or the
 * error is set. */
typedef const struct cql_type *(*cql_udt_find_fn)(void *arg, struct arena *a, const char *keyspace, const char *name,
                                                  struct err *e);
/* A find function that gives a user type without fields for any name. */
const struct cql_type *cql_udt_by_name(void *arg, struct arena *a, const char *keyspace, const char *name,
                                       struct err *e);

/* Can values of the type be JSON? False for composites and PartitionerDefinedOrder, and for types
 * that contain one. */
bool cql_type_has_json(const struct cql_type *t);

/* Parses a type as CQL writes it, in any case: "map<text, frozen<list<int>>>", also classes in
 * quotes. keyspace: where unqualified user types are looked up; may be NULL. NULL and ERR_INVALID
 * ("Unknown type ks.name", "Non-frozen collections are not allowed inside collections: ..."). */
const struct cql_type *cql_type_parse(struct arena *a, struct slice text, const char *keyspace, cql_udt_find_fn find,
                                      void *arg, struct err *e) MUST_CHECK;
/* Prints an identifier as CQL writes it: in quotes unless it is in lower case and is_free. is_free:
 * it is not a reserved word. */
void cql_identifier_print(const char *name, bool is_free, struct buf *out);
/* Prints a type as CQL writes it: "frozen<map<text, int>>". */
void cql_type_print(const struct cql_type *t, struct buf *out);
/* The same, in the arena; NULL if memory is exhausted. */
const char *cql_type_text(const struct cql_type *t, struct arena *a) MUST_CHECK;
/* As cql_type_print, but the text parses back to the same type: a type for which CQL has no word,
 * or one that also means another type, is printed as its class in quotes. */
void cql_type_print_stored(const struct cql_type *t, struct buf *out);
/* As cql_type_print, but without the outermost frozen<>, as error texts of Cassandra name types. */
void cql_type_print_bare(const struct cql_type *t, struct buf *out);
/* As cql_type_print, with user types as ks.name. */
void cql_type_print_qualified(const struct cql_type *t, struct buf *out);
/* Prints the class of a type, "org.apache.cassandra.db.marshal.MapType(...)", for custom options
 * and for clients that ask for it. */
void cql_type_print_marshal(const struct cql_type *t, struct buf *out);
/* Writes the protocol's [option] of a type. version: 3, 4 or 5. A type that is newer than the
 * version goes as a custom one. */
void cql_type_write_option(const struct cql_type *t, uint8_t version, struct buf *out);

/* ---- values ---- */

/* Replaces each byte that is not part of a well-formed UTF-8 sequence with a question mark. */
void cql_utf8_clean(char *text);
/* Checks wire bytes: lengths, UTF-8, ranges, every nested element. n == 0 is the legal "empty"
 * value of most types. ERR_INVALID in the words of Cassandra's serializers ("Expected 4 or 0 byte
 * int (3)"). */
int cql_value_validate(const struct cql_type *t, struct slice v, struct err *e) MUST_CHECK;

/* Scalars of which one value has several encodings, and the encoding that Cassandra writes
 * (canonical.c). v is valid. */
bool cql_type_has_forms(const struct cql_type *t);
bool cql_value_is_canonical(const struct cql_type *t, struct slice v);
void cql_value_canonical(const struct cql_type *t, struct slice v, struct buf *out);

/* Cassandra's order of two values of one type (AbstractType.compare): <0, 0, >0. Both must be
 * valid. */
int cql_value_compare(const struct cql_type *t, struct slice a, struct slice b);

/* Kinds of literals in a query text (cql/syntax/ast.h has the same names). */
enum cql_literal { LIT_STRING, LIT_INTEGER, LIT_FLOAT, LIT_BOOLEAN, LIT_UUID, LIT_HEX, LIT_DURATION };

/* Whether the type accepts a literal of this kind. (Constants.Literal.testAssignment) */
bool cql_literal_fits(const struct cql_type *t, enum cql_literal kind);

/* Context for reading the text of a literal. */
struct cql_reading {
    int64_t now_us;   /* the time of the timestamp "now" */
    bool fixed_zones; /* keyspaces mode: names of time zones are read as in Cassandra 3.11 (docs/types.md) */
};

/* Converts the text of a literal (unquoted, as the user wrote it) to wire bytes appended to out.
 * receiver names the column in the error: "Invalid STRING constant (abc) for \"v\" of type int",
 * "Unable to make int from 'abc'", ... */
int cql_literal_parse(const struct cql_type *t, enum cql_literal kind, struct slice text, const char *receiver,
                      struct cql_reading how, struct buf *out, struct err *e) MUST_CHECK;

/* Prints a value as a CQL literal ('it''s', 0xcafe, {'a': 1}); Cassandra's
 * AbstractType.toCQLString. */
void cql_value_print(const struct cql_type *t, struct slice v, struct buf *out);
/* Prints a value without quotes (AbstractType.getString). */
void cql_value_text(const struct cql_type *t, struct slice v, struct buf *out);
/* Prints a value as JSON, as SELECT JSON and toJson give it. */
void cql_value_json(const struct cql_type *t, struct value v, struct buf *out);
/* Converts JSON text to wire bytes, as INSERT JSON and fromJson take it. Returns 0 for a value, 1
 * for a JSON null, or -1 with an error in Cassandra's words. */
int cql_value_from_json(const struct cql_type *t, struct slice json, struct cql_reading how, struct buf *out,
                        struct err *e) MUST_CHECK;

/* ---- key form ---- */

/* Appends the order-preserving form of one clustering value: byte order is the order of
 * cql_value_compare (reversed when desc), no form is a prefix of another, the empty value has
 * another form than all values, and forms of successive columns follow one another. Sets *exact to false when
 * decoding gives an equal value with other bytes (decimal 1.0 and 1.00), otherwise leaves it alone;
 * the row then keeps the original (struct eng_row.key_image). */
int cql_key_encode(const struct cql_type *t, bool desc, struct slice v, struct buf *out, bool *exact,
                   struct err *e) MUST_CHECK;
/* cql_key_decode for a key that consists of one int. false: the key is anything else, or the int is
 * empty. */
MUST_CHECK static inline bool cql_key_decode_int(bool desc, struct slice key, uint8_t out[4]) {
    uint32_t flip = desc ? UINT32_MAX : 0;
    if (key.n != 5 || key.p[0] != (uint8_t)(1 ^ flip)) return false;
    store_u32(out, load_u32(key.p + 1) ^ flip ^ 0x80000000);
    return true;
}
/* Reads one form from key and appends its wire bytes to out. Returns -1 if the bytes are no such
 * form. */
int cql_key_decode(const struct cql_type *t, bool desc, struct rd *key, struct buf *out) MUST_CHECK;

/* ---- elements of collections, tuples and UDTs ---- */

/* Walks a serialised list, set, map (key and value alternate), tuple or UDT. */
struct cql_elems {
    struct rd rd;
    uint32_t left; /* items left; a map entry counts two */
};
int cql_elems_open(const struct cql_type *t, struct slice v, struct cql_elems *it); /* -1 if malformed */
bool cql_elems_next(struct cql_elems *it, struct value *item);
/* The next key and value of a map; of others the next item as both. */
static inline bool cql_entries_next(const struct cql_type *t, struct cql_elems *it, struct value *k, struct value *v) {
    if (!cql_elems_next(it, k)) return false;
    *v = *k;
    return t->id != CQL_MAP || cql_elems_next(it, v);
}
/* Does CONTAINS match an element of a collection, or a value of a map? In a collection that is not
 * frozen values match when they compare as equal. A frozen one is searched with the equals of Java,
 * as Cassandra does: decimals must have the same scale, tuples the same bytes. */
bool cql_collection_finds(const struct cql_type *collection, const struct cql_type *of, struct value element,
                          struct value wanted);
/* Writes the header of a collection of n elements (map: n entries); cql_elem_put follows for each
 * item. */
void cql_collection_begin(uint32_t n, struct buf *out);
void cql_elem_put(struct value item, struct buf *out);

/* Reads the next element of a vector. An element of a fixed size (cqlt_type_fixed) has no length;
 * others follow an unsigned variable-length integer. Returns -1 if malformed. */
int cql_vector_next(const struct cql_type *t, struct rd *r, struct slice *element);
void cql_vector_put(const struct cql_type *t, struct slice element, struct buf *out);
