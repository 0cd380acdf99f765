/* Encoded sizes of values: "Estimate row size",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/calculating-row-size.html. */
#include "metering/size/size.h"

#include <stdlib.h>

#include "types/decimal.h"
#include "types/family.h"

/* Bytes of a value that is set to null, under SIZE_CURRENT ("Estimate row size"). */
enum { SIZE_CURRENT_NULL = 1 };

/* "Approximately one byte for two significant digits, and one": zeros at either end are not significant. */
static uint64_t digits_size(const char *digits, size_t n) {
    while (n > 1 && digits[n - 1] == '0') n--;
    return (n + 1) / 2 + 1;
}

static uint64_t number_size(struct slice v) {
    if (v.n == 0) return 1;
    if (v.n <= 8) {
        int64_t small = (int8_t)v.p[0];
        for (size_t i = 1; i < v.n; i++) small = (int64_t)((uint64_t)small << 8 | v.p[i]);
        uint64_t magnitude = small < 0 ? -(uint64_t)small : (uint64_t)small;
        char text[20];
        size_t at = sizeof text;
        do text[--at] = (char)('0' + magnitude % 10);
        while (magnitude /= 10);
        return digits_size(text + at, sizeof text - at);
    }
    mpz_t n;
    mpz_init(n);
    cql_varint_read(v, n);
    mpz_abs(n, n);
    char *digits = malloc(mpz_sizeinbase(n, 10) + 2);
    uint64_t size = v.n;
    if (digits) {
        mpz_get_str(digits, 10, n);
        size = digits_size(digits, strlen(digits));
    }
    free(digits);
    mpz_clear(n);
    return size;
}

uint64_t cql_items_size(enum size_model model) { return model == SIZE_CURRENT ? 3 : 0; }

uint64_t cql_item_size(const struct cql_type *t, enum size_model model, uint32_t i, struct value item) {
    bool current = model == SIZE_CURRENT;
    if (t->id == CQL_UDT) {
        if (i >= t->n_args) return 0;
        const struct cql_type *field = t->args[i];
        if (!current) return cql_value_size(field, model, item);
        /* A field's id grows with the number of fields, as a column's id does with the number of columns. */
        uint64_t id = t->n_args > 124 ? 3 : t->n_args > 62 ? 2 : 1;
        /* A frozen collection inside a UDT is 4 bytes an element and its bytes: its wire form without the count. */
        bool without_count = field->frozen && cql_type_is_collection(field) && item.n >= 4;
        return id + 1 + (without_count ? (uint64_t)item.n - 4 : cql_value_size(field, SIZE_CURRENT, item));
    }
    bool map_value = t->id == CQL_MAP && i % 2;
    return cql_value_size(t->args[map_value], model, item) + (current && !map_value);
}

uint64_t cqlt_value_size(const struct cql_type *t, enum size_model model, struct value v) {
    if (v.n < 0) return model == SIZE_CURRENT && v.n == VALUE_NULL ? SIZE_CURRENT_NULL : 0;
    struct slice s = value_slice(v);
    if (cql_type_is_collection(t) || t->id == CQL_UDT) {
        if (model == SIZE_CURRENT && t->frozen) return s.n;
        struct cql_elems it;
        struct value item;
        uint64_t size = cql_items_size(model);
        if (cql_elems_open(t, s, &it) < 0) return s.n;
        for (uint32_t i = 0; cql_elems_next(&it, &item); i++) size += cql_item_size(t, model, i, item);
        return size;
    }
    if (model != SIZE_CURRENT) return s.n;
    switch (t->id) {
    case CQL_TINYINT:
    case CQL_SMALLINT:
    case CQL_INT:
    case CQL_BIGINT:
    case CQL_COUNTER:
    case CQL_VARINT: return number_size(s);
    case CQL_DECIMAL: return s.n < 4 ? s.n : number_size(slice_of(s.p + 4, s.n - 4));
    default: return s.n;
    }
}

/* ---- the overhead of rows, and the size that stays stored ("Estimate row size", and "Static columns",
 * static-columns-metering.html of the same guide) ---- */

enum { ROW_STORAGE_CURRENT = 100, COLUMNS_PER_ID_BYTE = 62 };

/* Section 1.1. A column's id has 1 byte in a table of up to 62 columns, and one more for each further 62. */
struct size_rule size_rule_of_current(uint32_t table_columns) {
    uint32_t id = table_columns ? (table_columns - 1) / COLUMNS_PER_ID_BYTE + 1 : 1;
    return (struct size_rule){.values = SIZE_CURRENT,
                              .pk_column = id + 3,
                              .ck_column = id,
                              .column = id,
                              .keys = 2,
                              .ck_fifths = true,
                              .ttl = 8};
}

/* Section 1.2. */
struct size_rule size_rule_of_statics(void) {
    return (struct size_rule){.values = SIZE_DOCUMENTED_2022, .row = 104, .pk_column = 3, .keys = 1};
}

uint64_t size_storage_bytes(enum size_model model, const struct size_sum *rows) {
    return rows->bytes + (model == SIZE_CURRENT ? ROW_STORAGE_CURRENT * rows->rows : 0);
}

struct size_sum size_row_without_nulls(const struct size_sum *written) {
    struct size_sum rest = *written;
    rest.bytes -= rest.null_bytes;
    rest.n_columns -= rest.n_nulls;
    rest.null_bytes = rest.n_nulls = 0;
    return rest;
}

struct size_sum size_statics_without_nulls(const struct size_sum *written) {
    bool any = written->n_nulls < written->n_columns || !written->n_columns;
    return any ? size_row_without_nulls(written) : (struct size_sum){0};
}
