/* Encoded bytes of rows and static rows from the sums that cql took ("Estimate row size",
 * calculating-row-size.html, and "Static columns", static-columns-metering.html of
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/). */
#include "metering/size/size.h"

enum {
    STATIC_ROW = 104,                                 /* section 1.2 */
    PK_COLUMN_CURRENT = 3, ROW_STORAGE_CURRENT = 100, /* section 1.1 */
    TTL_BYTES = 8,
    COLUMNS_PER_ID_BYTE = 62,
};

uint64_t size_row_bytes(enum size_model model, uint16_t table_columns, const struct size_parts *p) {
    if (model == SIZE_DOCUMENTED_2022) {
        uint64_t around = SIZE_2022_ROW * p->rows + SIZE_2022_PK_COLUMN * p->n_pk + SIZE_2022_CK_COLUMN * p->n_ck;
        return around + p->pk_bytes + p->ck_bytes + p->column_bytes + p->timestamp_bytes;
    }
    /* A column's id has 1 byte in a table of up to 62 columns, and one more for each further 62. */
    uint64_t id = table_columns ? (uint64_t)(table_columns - 1) / COLUMNS_PER_ID_BYTE + 1 : 1;
    return 2 * p->pk_bytes + (id + PK_COLUMN_CURRENT) * p->n_pk + 2 * p->ck_bytes + p->ck_fifths + id * p->n_ck +
           p->column_bytes + id * p->n_columns + p->timestamp_bytes + TTL_BYTES * (p->ttl_rows + p->ttl_cells);
}

uint64_t size_row_storage_bytes(enum size_model model, uint16_t table_columns, const struct size_parts *p) {
    return size_row_bytes(model, table_columns, p) + (model == SIZE_CURRENT ? ROW_STORAGE_CURRENT * p->rows : 0);
}

/* Only the current model gives a null that is written any bytes: 1, and its column's id. */
struct size_parts size_row_without_nulls(enum size_model model, const struct size_parts *p) {
    struct size_parts rest = *p;
    rest.n_columns -= p->n_nulls;
    if (model == SIZE_CURRENT) rest.column_bytes -= SIZE_CURRENT_NULL * p->n_nulls;
    rest.n_nulls = 0;
    return rest;
}

struct size_parts size_statics_without_nulls(const struct size_parts *p) {
    bool any = p->n_nulls < p->n_columns || !p->n_columns;
    return any ? size_row_without_nulls(SIZE_DOCUMENTED_2022, p) : (struct size_parts){0};
}

uint64_t size_static_bytes(const struct size_parts *p) {
    return p->pk_bytes + SIZE_2022_PK_COLUMN * p->n_pk + p->column_bytes + STATIC_ROW * p->rows;
}
