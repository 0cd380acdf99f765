/* The overhead of rows, and the size that stays stored ("Estimate row size",
 * calculating-row-size.html, and "Static columns", static-columns-metering.html of
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/). */
#include "metering/size/size.h"

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
