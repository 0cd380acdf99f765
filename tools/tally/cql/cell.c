#include "tools/tally/cql/cell.h"

#include <arpa/inet.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

enum { DIGITS = 5 };

static void put(const struct cql_type *t, struct value v, bool quote, struct buf *out);

void cell_put_text(struct slice text, bool quote, struct buf *out) {
    if (quote) buf_u8(out, '\'');
    for (size_t i = 0, n = 1; i < text.n; i += n) {
        /* control characters are 0x00 to 0x1F and 0x7F, and in UTF-8 two bytes 0x80 to 0xA0 */
        uint8_t c = text.p[i], second = i + 1 < text.n && c == 0xC2 ? text.p[i + 1] : 0xFF;
        n = second <= 0xA0 ? 2 : 1;
        if (c == '\n') buf_put_str(out, "\\n");
        else if (c == '\t') buf_put_str(out, "\\t");
        else if (c == '\r') buf_put_str(out, "\\r");
        else if (n == 2 || c < 0x20 || c == 0x7F) buf_printf(out, "\\x%02x", n == 2 ? second : c);
        else if (c == '\\') buf_put_str(out, "\\\\");
        else if (quote && c == '\'') buf_put_str(out, "''");
        else buf_u8(out, c);
    }
    if (quote) buf_u8(out, '\'');
}

/* Prints a number as cqlsh does: one that %g prints without an exponent gets as many more digits as
 * its integer part has. */
static void put_real(double v, struct buf *out) {
    if (isnan(v) || isinf(v)) {
        buf_put_str(out, isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
        return;
    }
    int digits = DIGITS, exponent = fabs(v) > DBL_EPSILON ? (int)log10(fabs(v)) : INT32_MIN;
    if (exponent >= -4 && exponent < digits) digits += exponent + 1;
    buf_printf(out, "%.*g", digits, v);
}

/* Prints a decimal as Python's str does: plain up to six zeros after the point, else with an
 * exponent. */
static void put_decimal(struct slice v, struct buf *out) {
    struct buf number;
    if (v.n < 5) return;
    int32_t exponent = -(int32_t)load_u32(v.p);
    buf_init(&number, 0);
    cql_value_text(cql_type_scalar(CQL_VARINT), slice_of(v.p + 4, v.n - 4), &number);
    struct slice digits = buf_slice(&number);
    if (digits.n && *digits.p == '-') buf_u8(out, '-'), digits = slice_of(digits.p + 1, digits.n - 1);
    int64_t left = (int64_t)exponent + (int64_t)digits.n, dot = exponent <= 0 && left > -6 ? left : 1;
    if (dot <= 0) buf_put_str(out, "0.");
    for (int64_t i = dot; i < 0; i++) buf_u8(out, '0');
    for (size_t i = 0; i < digits.n; i++) {
        if (i && (int64_t)i == dot) buf_u8(out, '.');
        buf_u8(out, digits.p[i]);
    }
    if (left != dot) buf_printf(out, "E%+lld", (long long)(left - dot));
    buf_fini(&number);
}

static void put_scalar(const struct cql_type *t, struct slice v, bool quote, struct buf *out) {
    uint64_t bits = v.n == 8 ? load_u64(v.p) : 0;
    uint32_t word = v.n == 4 ? load_u32(v.p) : 0;
    double real;
    float single;
    switch ((int)t->id) {
    case CQL_TEXT:
    case CQL_ASCII: cell_put_text(v, quote, out); return;
    case CQL_BOOLEAN: buf_put_str(out, v.p[0] ? "True" : "False"); return;
    case CQL_FLOAT:
        memcpy(&single, &word, sizeof(single));
        put_real((double)single, out);
        return;
    case CQL_DOUBLE:
        memcpy(&real, &bits, sizeof(real));
        put_real(real, out);
        return;
    case CQL_TIMESTAMP: {
        int64_t ms = (int64_t)bits, seconds = ms >= 0 ? ms / 1000 : -((999 - ms) / 1000);
        time_t at = (time_t)seconds;
        struct tm utc;
        if (quote) buf_u8(out, '\'');
        if (!gmtime_r(&at, &utc) || utc.tm_year + 1900 < 1 || utc.tm_year + 1900 > 9999)
            buf_printf(out, "%lld", (long long)ms);
        else
            buf_printf(out, "%04d-%02d-%02d %02d:%02d:%02d.%06d+0000", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                       utc.tm_hour, utc.tm_min, utc.tm_sec, (int)(ms - seconds * 1000) * 1000);
        if (quote) buf_u8(out, '\'');
        return;
    }
    case CQL_BLOB:
        buf_put_str(out, "0x");
        for (size_t i = 0; i < v.n; i++) buf_printf(out, "%02x", v.p[i]);
        return;
    case CQL_INET: {
        char address[INET6_ADDRSTRLEN];
        if (quote) buf_u8(out, '\'');
        buf_put_str(out, inet_ntop(v.n == 16 ? AF_INET6 : AF_INET, v.p, address, sizeof(address)));
        if (quote) buf_u8(out, '\'');
        return;
    }
    case CQL_DECIMAL: put_decimal(v, out); return;
    case CQL_VECTOR: cql_value_print(t, v, out); return;
    default: cql_value_text(t, v, out);
    }
}

static void put(const struct cql_type *t, struct value v, bool quote, struct buf *out) {
    const char *brackets = t->id == CQL_LIST ? "[]" : t->id == CQL_TUPLE ? "()" : "{}";
    if (v.n < 0) {
        buf_put_str(out, "null");
    } else if (cql_type_is_collection(t) || t->id == CQL_TUPLE || t->id == CQL_UDT) {
        bool each = t->id == CQL_TUPLE || t->id == CQL_UDT;
        struct cql_elems it;
        struct value item;
        buf_u8(out, (uint8_t)brackets[0]);
        bool open = !cql_elems_open(t, value_slice(v), &it);
        for (uint32_t i = 0; open && cql_elems_next(&it, &item); i++) {
            bool is_value = t->id == CQL_MAP && i % 2;
            if (i) buf_put_str(out, is_value ? ": " : ", ");
            if (t->id == CQL_UDT && i < t->n_args) {
                cell_put_text(slice_str(t->field_names[i]), false, out);
                buf_put_str(out, ": ");
            }
            put(t->args[each ? i : is_value], item, true, out);
        }
        buf_u8(out, (uint8_t)brackets[1]);
    } else if (v.n || t->id == CQL_BLOB || t->id == CQL_TEXT ||
               t->id == CQL_ASCII) { /* empty values of other types show nothing */
        put_scalar(t, value_slice(v), quote, out);
    }
}

void cell_put(const struct cql_type *t, struct value v, struct buf *out) { put(t, v, false, out); }
