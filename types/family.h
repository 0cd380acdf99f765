/* The functions that each type family implements; inside types only.
 *
 * A family has one table of functions (type.def names the family of each type), reached through
 * cqlt_type_info. Every value given to compare, text and key_encode is valid. An empty value (n ==
 * 0) reaches every function; a family that refuses it does so in validate.
 */
#pragma once

#include "types/type.h"

/* Reads the bytes of a key form, which are inverted when the column is descending. */
struct key_rd {
    struct rd *rd;
    uint8_t flip; /* 0xFF when descending, else 0 */
};

struct cql_family {
    int (*validate)(const struct cql_type *t, struct slice v, struct err *e);
    int (*compare)(const struct cql_type *t, struct slice a, struct slice b);
    /* Converts the text of a literal to wire bytes (AbstractType.fromString). NULL if the family
     * has no literals of one token. */
    int (*parse)(const struct cql_type *t, struct slice text, struct cql_reading how, struct buf *out, struct err *e);
    void (*text)(const struct cql_type *t, struct slice v, struct buf *out);  /* unquoted */
    /* NULL if the result of text, in quotes where the type needs them */
    void (*print)(const struct cql_type *t, struct slice v, struct buf *out);
    int (*key_encode)(const struct cql_type *t, struct slice v, struct buf *out, bool *exact,
                      struct err *e); /* ascending */
    int (*key_decode)(const struct cql_type *t, struct key_rd *key, struct buf *out);
};

extern const struct cql_family cqlt_text, cqlt_integer, cqlt_decimal, cqlt_real, cqlt_datetime, cqlt_uuid, cqlt_inet,
    cqlt_duration, cqlt_collection, cqlt_tuple, cqlt_vector, cqlt_custom, cqlt_composite;

struct cql_type_info {
    const char *id; /* upper case, as in enum cql_type_id */
    uint16_t option;
    const char *cql, *marshal;
    int wire;
    bool fixed;
    const struct cql_family *family;
};
const struct cql_type_info *cqlt_type_info(enum cql_type_id id);
static inline const struct cql_family *cqlt_family(const struct cql_type *t) { return cqlt_type_info(t->id)->family; }

/* The size in bytes of every value of the type; -1 means sizes differ (type.def, fixed). Vectors of
 * fixed-size elements are fixed, too. */
int64_t cqlt_type_fixed(const struct cql_type *t);

/* Milliseconds since 1970 as 2011-02-03T04:05:06.789Z, or with another separator than T. */
void cqlt_timestamp_text(int64_t ms, char separator, struct buf *out);

/* Is it an IPv4 address in the form of an IPv6 one? */
bool cqlt_inet_is_mapped(struct slice v);

/* ---- families in byte order, and key forms ---- */

int cqlt_compare_bytes(const struct cql_type *t, struct slice a, struct slice b);
uint8_t cqlt_key_u8(struct key_rd *k);
uint64_t cqlt_key_uint(struct key_rd *k, size_t bytes);
/* Key form of any bytes: 0x00 becomes 0x00 0xFF, and 0x00 0x00 ends the form. So the order is kept,
 * and no form is a prefix of another. */
int cqlt_key_encode_bytes(const struct cql_type *t, struct slice v, struct buf *out, bool *exact, struct err *e);
int cqlt_key_decode_bytes(const struct cql_type *t, struct key_rd *k, struct buf *out);

/* ---- text ---- */

/* Reads decimal digits with an optional sign. Returns -1 if the text is no such number, or the
 * number does not fit. */
int cqlt_parse_int64(struct slice text, int64_t *out);
bool cqlt_is_digits(struct slice text); /* at least one, digits only */
static inline int cqlt_hex_digit(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; /* -1 for other characters */
}
/* For "%.*s" in error messages: at most the first 512 bytes of a text. */
#define CQLT_QUOTE(s) ((s).n > 512 ? 512 : (int)(s).n), (const char *)(s).p
