/* Encoded sizes of values, as capacity units are computed from ("Estimate row size",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/calculating-row-size.html).
 *
 * The size models differ in the size of a value (size.c) and in the overhead of a row (size_row.c).
 * cql sums struct size_parts while it works. Metering turns them into bytes; so does cql where a
 * page ends after a number of bytes.
 */
#pragma once

#include "metering/size/op_cost.h"
#include "types/type.h"

/* Bytes of a value's data under a model: documented-2022 counts the data of the value (int 4, text
 * its UTF-8 bytes, a collection its elements); current counts numbers by their digits and adds 3
 * bytes a collection and 1 an element. The bytes of a null depend on the model. */
uint64_t cqlt_value_size(const struct cql_type *t, enum size_model model, struct value v);
static inline uint64_t cql_value_size(const struct cql_type *t, enum size_model model, struct value v) {
    bool as_sent = v.n >= 0 &&
                   (t->id == CQL_TEXT || (model != SIZE_CURRENT && !cql_type_is_collection(t) && t->id != CQL_UDT));
    return LIKELY(as_sent) ? (uint64_t)v.n : cqlt_value_size(t, model, v);
}

/* Sizes a collection or UDT item by item: cql_items_size is the overhead of the value around its
 * items, cql_item_size the bytes of item i (keys and values of a map alternate). */
uint64_t cql_items_size(enum size_model model);
uint64_t cql_item_size(const struct cql_type *t, enum size_model model, uint32_t i, struct value item);

/* Add one column of the kind to the parts of one row. */
static inline void size_add_partition_key(struct size_parts *p, enum size_model model, const struct cql_type *t,
                                          struct value v) {
    p->n_pk++;
    p->pk_bytes += cql_value_size(t, model, v);
}
static inline void size_add_clustering(struct size_parts *p, enum size_model model, const struct cql_type *t,
                                       struct value v) {
    uint64_t size = cql_value_size(t, model, v);
    p->n_ck++;
    p->ck_bytes += size;
    p->ck_fifths += (size + 4) / 5;
}
static inline void size_add_column(struct size_parts *p, enum size_model model, const struct cql_type *t,
                                   struct value v) {
    p->n_columns++;
    p->column_bytes += cql_value_size(t, model, v);
}

/* Write units are counted in started KiB ("Read/write capacity modes",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/ReadWriteCapacityMode.html). */
enum { SIZE_WRITE_STEP = 1024 };
static inline uint64_t size_write_steps(uint64_t bytes) { return (bytes + SIZE_WRITE_STEP - 1) / SIZE_WRITE_STEP; }

/* Read units in started 4 KiB (same page). */
enum { SIZE_READ_STEP = 4096 };
static inline uint64_t size_read_steps(uint64_t bytes) { return (bytes + SIZE_READ_STEP - 1) / SIZE_READ_STEP; }

/* Rows and bytes of a stored table. */
struct table_size {
    uint64_t rows, static_rows, bytes;
};

/* Bytes of a value that is set to null, under SIZE_CURRENT ("Estimate row size"). */
enum { SIZE_CURRENT_NULL = 1 };
/* Overhead of a row and of its key columns under SIZE_DOCUMENTED_2022 (the reference on Amazon
 * Keyspaces, section 0, generation 1). */
enum { SIZE_2022_PK_COLUMN = 3, SIZE_2022_CK_COLUMN = 4, SIZE_2022_ROW = 100 };
/* Encoded bytes of the rows that the parts sum up: for throughput, and for storage. */
uint64_t size_row_bytes(enum size_model model, uint16_t table_columns, const struct size_parts *p);
uint64_t size_row_storage_bytes(enum size_model model, uint16_t table_columns, const struct size_parts *p);
/* The parts that remain stored after a write of all of them. A null is not stored, and static data
 * of nulls alone leaves nothing. */
struct size_parts size_row_without_nulls(enum size_model model, const struct size_parts *p);
struct size_parts size_statics_without_nulls(const struct size_parts *p);
/* Encoded bytes of static data: alike in both models; the parts are summed under
 * SIZE_DOCUMENTED_2022. */
uint64_t size_static_bytes(const struct size_parts *p);
