/* Values as JSON and from JSON (AbstractType.toJSONString, fromJSONObject). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "types/decimal.h"
#include "types/family.h"
#include "types/json_text.h"

/* ---- writing ---- */

static void put_scalar(const struct cql_type *t, struct slice v, struct buf *out) {
    switch (t->id) {
    case CQL_ASCII:
    case CQL_TEXT: buf_json_str(out, v); return;
    case CQL_BLOB:
        buf_put_str(out, "\"0x");
        cql_value_text(t, v, out);
        buf_u8(out, '"');
        return;
    default: break;
    }
    if (v.n == 0) {
        buf_put_str(out, "\"\"");
        return;
    }
    if (t->id == CQL_FLOAT || t->id == CQL_DOUBLE) {
        size_t from = out->n;
        cql_value_text(t, v, out);
        /* JSON has no NaN and no infinities. */
        if (!buf_failed(out) &&
            (memchr(out->p + from, 'N', out->n - from) || memchr(out->p + from, 'I', out->n - from))) {
            out->n = from;
            buf_put_str(out, "null");
        }
    } else if (t->id == CQL_DECIMAL) {
        mpz_t n;
        int32_t scale;
        mpz_init(n);
        cql_decimal_read(v, n, &scale);
        cql_decimal_text(n, scale, false, out);
        mpz_clear(n);
    } else if (t->id == CQL_TIMESTAMP || t->id == CQL_DATE || t->id == CQL_TIME || t->id == CQL_UUID ||
               t->id == CQL_TIMEUUID || t->id == CQL_LEXICAL_UUID || t->id == CQL_LEGACY_TIMEUUID ||
               t->id == CQL_INET || t->id == CQL_DURATION) {
        struct buf text;
        buf_init(&text, 0);
        if (t->id == CQL_TIMESTAMP && v.n)
            cqlt_timestamp_text((int64_t)load_u64(v.p), ' ', &text);
        else
            cql_value_text(t, v, &text);
        buf_json_str(out, buf_slice(&text));
        buf_fini(&text);
    } else {
        cql_value_text(t, v, out);
    }
}

static void put_items(const struct cql_type *t, struct slice v, struct buf *out) {
    struct cql_elems it;
    struct value item;
    bool object = t->id == CQL_MAP || t->id == CQL_UDT;
    if (cql_elems_open(t, v, &it) < 0) {
        buf_put_str(out, "null");
        return;
    }
    buf_u8(out, object ? '{' : '[');
    for (uint32_t i = 0; t->id == CQL_TUPLE || t->id == CQL_UDT ? i < t->n_args : true; i++) {
        if (!cql_elems_next(&it, &item)) {
            if (t->id != CQL_TUPLE && t->id != CQL_UDT) break;
            item = value_null();
        }
        bool is_value = t->id == CQL_MAP && i % 2;
        if (i) buf_put_str(out, is_value ? ": " : ", ");
        struct buf text;
        buf_init(&text, 0);
        if (t->id == CQL_UDT) {
            bool lower = true;
            for (const char *p = t->field_names[i]; *p; p++) lower = lower && !(*p >= 'A' && *p <= 'Z');
            buf_printf(&text, lower ? "%s" : "\"%s\"", t->field_names[i]);
            buf_json_str(out, buf_slice(&text));
            buf_put_str(out, ": ");
        }
        const struct cql_type *item_type = t->id == CQL_TUPLE || t->id == CQL_UDT ? t->args[i] : t->args[i % t->n_args];
        if (t->id == CQL_MAP && !is_value) {
            /* A key of a JSON object is a string whatever the type of the map's key is. */
            cql_value_json(item_type, item, &text);
            if (text.n && text.p[0] == '"') buf_put_slice(out, buf_slice(&text));
            else buf_json_str(out, buf_slice(&text));
        } else {
            cql_value_json(item_type, item, out);
        }
        buf_fini(&text);
    }
    buf_u8(out, object ? '}' : ']');
}

void cql_value_json(const struct cql_type *t, struct value v, struct buf *out) {
    if (v.n < 0) {
        buf_put_str(out, "null");
    } else if (t->id == CQL_VECTOR) {
        struct rd r = rd_of(value_slice(v));
        struct slice element;
        buf_u8(out, '[');
        for (uint32_t i = 0; i < t->dimension && cql_vector_next(t, &r, &element) == 0; i++) {
            if (i) buf_put_str(out, ", ");
            cql_value_json(t->args[0], value_of_slice(element), out);
        }
        buf_u8(out, ']');
    } else if (t->n_args && !cql_type_is_custom(t)) {
        put_items(t, value_slice(v), out);
    } else {
        put_scalar(t, value_slice(v), out);
    }
}

/* ---- reading ---- */

typedef const struct json_value *json;

static const char *const kinds[] = {
    [JSON_NULL] = "null",       [JSON_FALSE] = "a boolean", [JSON_TRUE] = "a boolean",  [JSON_NUMBER] = "a number",
    [JSON_STRING] = "a string", [JSON_ARRAY] = "an array",  [JSON_OBJECT] = "an object"};

static void put_shown(json j, struct buf *out) {
    switch (j->kind) {
    case JSON_STRING: buf_json_str(out, j->text); return;
    case JSON_NUMBER: buf_put_slice(out, j->text); return;
    case JSON_NULL: buf_put_str(out, "null"); return;
    case JSON_FALSE: buf_put_str(out, "false"); return;
    case JSON_TRUE: buf_put_str(out, "true"); return;
    case JSON_ARRAY:
    case JSON_OBJECT: break;
    }
    bool array = j->kind == JSON_ARRAY;
    json item = j + 1;
    buf_u8(out, array ? '[' : '{');
    for (uint32_t i = 0; i < j->n; i++, item = cql_json_next(item)) {
        if (i) buf_put_str(out, ", ");
        if (!array) {
            buf_json_str(out, item++->text);
            buf_put_str(out, ": ");
        }
        put_shown(item, out);
    }
    buf_u8(out, array ? ']' : '}');
}

/* Sets an error: before, the value (a string without quotes), after. */
static int refuse(const char *before, const char *after, json j, struct err *e) {
    struct buf text;
    buf_init(&text, 0);
    if (j->kind == JSON_STRING) buf_put_slice(&text, j->text);
    else put_shown(j, &text);
    struct slice s = buf_slice(&text);
    err_invalid(e, "%s%.*s%s", before, CQLT_QUOTE(s), after);
    buf_fini(&text);
    return -1;
}

static int expected(const char *what, json j, struct err *e) {
    char before[160];
    snprintf(before, sizeof before, "Expected %s, but got %s: ", what, kinds[j->kind]);
    return refuse(before, "", j, e);
}

static bool has_json(const struct cql_type *t) {
    return t->id != CQL_PARTITION_ORDER && t->id != CQL_COMPOSITE && t->id != CQL_DYNAMIC_COMPOSITE;
}

bool cql_type_has_json(const struct cql_type *t) {
    bool has = has_json(t);
    for (uint32_t i = 0; i < t->n_args && has; i++) has = cql_type_has_json(t->args[i]);
    return has;
}

static const char *const wanted[CQL_TYPES] = {
    [CQL_ASCII] = "an ascii string",
    [CQL_BIGINT] = "a bigint value",
    [CQL_BOOLEAN] = "a boolean value",
    [CQL_COUNTER] = "a bigint value",
    [CQL_DOUBLE] = "a double value",
    [CQL_FLOAT] = "a float value",
    [CQL_INT] = "an int value",
    [CQL_TIMESTAMP] = "a long or a datestring representation of a timestamp value",
    [CQL_UUID] = "a string representation of a uuid",
    [CQL_TEXT] = "a UTF-8 string",
    [CQL_TIMEUUID] = "a string representation of a timeuuid",
    [CQL_LEXICAL_UUID] = "a string representation of a uuid",
    [CQL_LEGACY_TIMEUUID] = "a string representation of a timeuuid",
    [CQL_INET] = "a string representation of an inet value",
    [CQL_DATE] = "a string representation of a date value",
    [CQL_TIME] = "a string representation of a time value",
    [CQL_SMALLINT] = "a short value",
    [CQL_TINYINT] = "a byte value",
    [CQL_DURATION] = "a string representation of a duration",
};

static bool is_whole(json number) {
    for (size_t i = 0; i < number->text.n; i++)
        if (strchr(".eE", number->text.p[i])) return false;
    return true;
}

static bool takes_number(const struct cql_type *t, json j) {
    int64_t v;
    bool whole = is_whole(j), is_64 = whole && cqlt_parse_int64(j->text, &v) == 0;
    bool is_32 = is_64 && v == (int32_t)v;
    switch (t->id) {
    case CQL_FLOAT:
    case CQL_DOUBLE:
    case CQL_DECIMAL:
    case CQL_TINYINT:
    case CQL_SMALLINT: return true;
    case CQL_INT: return is_32;
    case CQL_BIGINT:
    case CQL_COUNTER: return is_64;
    case CQL_TIMESTAMP: return is_64 && !is_32; /* Cassandra refuses smaller numbers */
    case CQL_VARINT: return whole;
    default: return false;
    }
}

static int read_blob(json j, struct buf *out, struct err *e) {
    if (j->kind != JSON_STRING) return refuse("Value '", "' is not a valid blob representation: it is no string", j, e);
    struct slice s = j->text;
    if (s.n < 2 || s.p[0] != '0' || s.p[1] != 'x')
        return err_invalid(
            e,
            "Value '%.*s' is not a valid blob representation: String representation of blob is missing 0x prefix: %.*s",
            CQLT_QUOTE(s), CQLT_QUOTE(s));
    struct err inner = {0};
    if (cqlt_text.parse(cql_type_scalar(CQL_BLOB), slice_of(s.p + 2, s.n - 2),
                        (struct cql_reading){0}, out, &inner) == 0)
        return 0;
    return err_invalid(e, "Value '%.*s' is not a valid blob representation: %s", CQLT_QUOTE(s), inner.text);
}

/* Parses a number. Cassandra reads a decimal outside of a string as a double first. */
static int parse_number(const struct cql_type *t, json j, struct cql_reading how, struct buf *out, struct err *e) {
    const struct cql_type *real = cql_type_scalar(CQL_DOUBLE);
    struct slice text = j->text;
    struct err ignored = {0};
    struct buf wire, rounded;
    if (t->id != CQL_DECIMAL || is_whole(j))
        return cqlt_family(t)->parse(t, text, how, out, e);
    buf_init(&wire, 64);
    buf_init(&rounded, 0);
    if (cqlt_real.parse(real, text, (struct cql_reading){0}, &wire, &ignored) == 0 && wire.n == 8) {
        cql_value_text(real, buf_slice(&wire), &rounded);
        text = buf_slice(&rounded);
    }
    int rc = cqlt_family(t)->parse(t, text, how, out, e);
    buf_fini(&rounded);
    buf_fini(&wire);
    return rc;
}

static int read_scalar(const struct cql_type *t, json j, struct cql_reading how, struct buf *out, struct err *e) {
    struct err inner = {0};
    if (t->id == CQL_BLOB) return read_blob(j, out, e);
    if (!has_json(t)) return err_set(e, ERR_SERVER, "java.lang.UnsupportedOperationException");
    bool any_number = t->id == CQL_DECIMAL || t->id == CQL_VARINT, string = j->kind == JSON_STRING;
    struct slice text = j->text;
    if (t->id == CQL_BOOLEAN && ((string && text.n == 0) || j->kind == JSON_TRUE || j->kind == JSON_FALSE)) {
        buf_u8(out, j->kind == JSON_TRUE);
        return 0;
    }
    if (string && !(t->id == CQL_VARINT && text.n == 0)) {
        if (cqlt_family(t)->parse(t, text, how, out, &inner) == 0) return 0;
        if (!any_number) return err_set(e, inner.code, "%s", inner.text);
    } else if (j->kind == JSON_NUMBER && takes_number(t, j)) {
        if (parse_number(t, j, how, out, &inner) == 0) return 0;
        if (!any_number) return err_set(e, inner.code, "%s", inner.text);
    }
    if (inner.no_memory) return err_nomem(e);
    if (t->id == CQL_EMPTY) return refuse("Expected an empty string, but got: ", "", j, e);
    if (any_number)
        return refuse("Value '",
                      t->id == CQL_VARINT ? "' is not a valid representation of a varint value"
                                          : "' is not a valid representation of a decimal value",
                      j, e);
    return expected(wanted[t->id], j, e);
}

static int read_json(const struct cql_type *t, json j, struct cql_reading how, struct buf *out, struct err *e);
static int read_document(const struct cql_type *t, struct slice text, bool in_string, struct cql_reading how,
                         struct buf *out, struct err *e);

static int read_item(const struct cql_type *t, json j, struct cql_reading how, struct buf *out, struct err *e) {
    size_t at = out->n;
    buf_u32(out, 0);
    if (read_json(t, j, how, out, e) < 0) return -1;
    if (buf_failed(out)) return err_nomem(e);
    buf_patch_u32(out, at, (uint32_t)(out->n - at - 4));
    return 0;
}

struct json_entry {
    struct buf key, value;
    size_t at;
};

static int by_key(const void *a, const void *b, void *type) {
    const struct json_entry *x = a, *y = b;
    int c = cql_value_compare(type, buf_slice(&x->key), buf_slice(&y->key));
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* Reads a set or a map: sorts by the order of its type, and keeps the last of equal keys. */
static int read_sorted(const struct cql_type *t, json j, struct cql_reading how, struct buf *out, struct err *e) {
    bool map = t->id == CQL_MAP;
    size_t n = j->n, at = out->n;
    struct json_entry *all = calloc(n + 1, sizeof *all);
    int rc = all ? 0 : err_nomem(e);
    for (size_t i = 0; all && i < n; i++) {
        all[i].at = i;
        buf_init(&all[i].key, 0);
        buf_init(&all[i].value, 0);
    }
    json item = j + 1;
    for (size_t i = 0; rc == 0 && i < n; i++, item = cql_json_next(item)) {
        json key = item;
        if (map) item++;
        const struct cql_type *of = t->args[0];
        if (item->kind == JSON_NULL) {
            rc = err_invalid(e, map ? "Invalid null value in map" : "Invalid null element in set");
        } else if (map && of->n_args && !cql_type_is_custom(of)) {
            /* A key of a type with parameters is JSON within the string. */
            rc = cql_value_from_json(of, key->text, how, &all[i].key, e);
            if (rc == 1) rc = err_invalid(e, "Invalid null key in map");
        } else {
            rc = map ? read_scalar(of, key, how, &all[i].key, e) : read_json(of, item, how, &all[i].key, e);
        }
        if (rc == 0 && map) rc = read_json(t->args[1], item, how, &all[i].value, e);
        if (rc == 0 && (buf_failed(&all[i].key) || buf_failed(&all[i].value))) rc = err_nomem(e);
    }
    uint32_t kept = 0;
    if (rc == 0) qsort_r(all, n, sizeof *all, by_key, (void *)(uintptr_t)t->args[0]);
    buf_u32(out, 0);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (i + 1 < n && cql_value_compare(t->args[0], buf_slice(&all[i].key), buf_slice(&all[i + 1].key)) == 0)
            continue;
        cql_elem_put(value_of_slice(buf_slice(&all[i].key)), out);
        if (map) cql_elem_put(value_of_slice(buf_slice(&all[i].value)), out);
        kept++;
    }
    if (!buf_failed(out)) buf_patch_u32(out, at, kept);
    for (size_t i = 0; all && i < n; i++) {
        buf_fini(&all[i].key);
        buf_fini(&all[i].value);
    }
    free(all);
    return rc;
}

static int read_list(const struct cql_type *t, json j, struct cql_reading how, struct buf *out, struct err *e) {
    json item = j + 1;
    buf_u32(out, j->n);
    for (uint32_t i = 0; i < j->n; i++, item = cql_json_next(item)) {
        if (item->kind == JSON_NULL) return err_invalid(e, "Invalid null element in list");
        if (read_item(t->args[0], item, how, out, e) < 0) return -1;
    }
    return 0;
}

static int read_tuple(const struct cql_type *t, json j, struct cql_reading how, struct buf *out, struct err *e) {
    char before[80];
    if (j->n != t->n_args) {
        snprintf(before, sizeof before,
                 j->n > t->n_args ? "Tuple contains extra items (expected %u): "
                                            : "Tuple is missing items (expected %u): ",
                 t->n_args);
        return refuse(before, "", j, e);
    }
    json item = j + 1;
    for (uint32_t i = 0; i < t->n_args; i++, item = cql_json_next(item)) {
        if (item->kind == JSON_NULL)
            cql_elem_put(value_null(), out);
        else if (read_item(t->args[i], item, how, out, e) < 0)
            return -1;
    }
    return 0;
}

/* Names become lower case unless they are in quotes within the string. */
static struct slice field_name(struct slice key, struct buf *lower) {
    if (key.n >= 2 && key.p[0] == '"' && key.p[key.n - 1] == '"') return slice_of(key.p + 1, key.n - 2);
    buf_clear(lower, key.n + 1);
    for (size_t i = 0; i < key.n; i++)
        buf_u8(lower, (uint8_t)(key.p[i] >= 'A' && key.p[i] <= 'Z' ? key.p[i] | 32 : key.p[i]));
    return buf_slice(lower);
}

static int read_udt(const struct cql_type *t, json j, struct cql_reading how, struct buf *out, struct err *e) {
    json *fields = calloc(t->n_args + 1, sizeof *fields);
    struct buf lower;
    buf_init(&lower, 0);
    int rc = fields ? 0 : err_nomem(e);
    json member = j + 1;
    for (uint32_t k = 0; rc == 0 && k < j->n; k++, member = cql_json_next(member)) {
        struct slice name = field_name(member++->text, &lower);
        uint32_t i = buf_failed(&lower) ? t->n_args : cql_type_field(t, name);
        if (i == t->n_args)
            rc = err_invalid(e, "Unknown field '%.*s' in value of user defined type %s", CQLT_QUOTE(name), t->name);
        else fields[i] = member;
    }
    for (uint32_t i = 0; rc == 0 && i < t->n_args; i++) {
        if (!fields[i] || fields[i]->kind == JSON_NULL) cql_elem_put(value_null(), out);
        else rc = read_item(t->args[i], fields[i], how, out, e);
    }
    buf_fini(&lower);
    free(fields);
    return rc;
}

static int read_vector(const struct cql_type *t, json j, struct cql_reading how, struct buf *out, struct err *e) {
    char before[96];
    if (j->n != t->dimension) {
        snprintf(before, sizeof before, "List had incorrect size: expected %u but given %u; ", t->dimension, j->n);
        return refuse(before, "", j, e);
    }
    json item = j + 1;
    for (uint32_t i = 0; i < t->dimension; i++, item = cql_json_next(item)) {
        if (item->kind == JSON_NULL) return err_invalid(e, "Invalid null element in list");
        struct buf element;
        buf_init(&element, out->limit);
        int rc = read_json(t->args[0], item, how, &element, e);
        if (rc == 0) cql_vector_put(t, buf_slice(&element), out);
        buf_fini(&element);
        if (rc < 0) return -1;
    }
    return 0;
}

static int read_json(const struct cql_type *t, json j, struct cql_reading how, struct buf *out, struct err *e) {
    if (t->n_args == 0 || cql_type_is_custom(t)) return read_scalar(t, j, how, out, e);
    if (j->kind == JSON_STRING) return read_document(t, j->text, true, how, out, e);
    bool object = t->id == CQL_MAP || t->id == CQL_UDT;
    if (j->kind != (object ? JSON_OBJECT : JSON_ARRAY)) {
        const char *what = object               ? "a map"
                           : t->id == CQL_SET   ? "a list (representing a set)"
                           : t->id == CQL_TUPLE ? "a list representation of a tuple"
                                                : "a list";
        return expected(what, j, e);
    }
    switch (t->id) {
    case CQL_LIST: return read_list(t, j, how, out, e);
    case CQL_TUPLE: return read_tuple(t, j, how, out, e);
    case CQL_UDT: return read_udt(t, j, how, out, e);
    case CQL_VECTOR: return read_vector(t, j, how, out, e);
    default: return read_sorted(t, j, how, out, e);
    }
}

/* Reads a document. in_string: a collection that is JSON within a string. */
static int read_document(const struct cql_type *t, struct slice text, bool in_string, struct cql_reading how,
                         struct buf *out, struct err *e) {
    struct json_tree tree;
    struct err inner = {0};
    int rc = cql_json_parse(text, &tree, &inner);
    json j = tree.values;
    if (rc < 0 && inner.no_memory) rc = err_nomem(e);
    else if (rc < 0 && in_string) rc = err_invalid(e, "Error decoding JSON string: %s", inner.text);
    else if (rc < 0) rc = err_invalid(e, "Could not decode JSON string '%.*s': %s", CQLT_QUOTE(text), inner.text);
    else if (in_string && (j->kind == JSON_STRING || j->kind == JSON_NULL)) rc = expected("a JSON value", j, e);
    else rc = j->kind == JSON_NULL ? 1 : read_json(t, j, how, out, e);
    cql_json_fini(&tree);
    return rc;
}

int cql_value_from_json(const struct cql_type *t, struct slice text, struct cql_reading how, struct buf *out,
                        struct err *e) {
    int rc = read_document(t, text, false, how, out, e);
    return rc == 0 && buf_failed(out) ? err_nomem(e) : rc;
}
