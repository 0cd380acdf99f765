/* Encoded sizes of values, as capacity units are computed from ("Estimate row size",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/calculating-row-size.html).
 *
 * The size models differ in the size of a value (size.c) and in what a row adds to its values (struct
 * size_rule). cql adds each row that a request reads or writes to a struct size_sum, and metering
 * charges by the bytes in it.
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

/* The overhead of a row in addition to the sizes of its values, in bytes. */
struct size_rule {
    enum size_model values;                     /* the model that its values are sized by */
    uint32_t row, pk_column, ck_column, column; /* for the row, and for each of its columns by their kind */
    uint32_t keys;                              /* how often the bytes of keys count */
    bool ck_fifths;                             /* clustering columns: one byte more for each started five */
    uint32_t ttl;                               /* for a row with a TTL, and for each of its columns and elements */
};
struct size_rule size_rule_of_current(uint32_t table_columns); /* only for size_rule_of */
/* table_columns: of the table, since the size of a column's id depends on their number. */
static inline struct size_rule size_rule_of(enum size_model model, uint32_t table_columns) {
    if (UNLIKELY(model == SIZE_CURRENT)) return size_rule_of_current(table_columns);
    /* the reference on Amazon Keyspaces, section 0, generation 1 */
    return (struct size_rule){.values = model, .row = 100, .pk_column = 3, .ck_column = 4, .keys = 1};
}
/* For static data: alike in both models, because the newer one does not describe it. */
struct size_rule size_rule_of_statics(void);

/* These add to the sum: a row without its columns, and one column of the kind. */
static inline void size_add_row(struct size_sum *to, const struct size_rule *rule) {
    to->rows++;
    to->bytes += rule->row;
}
static inline void size_add_partition_key(struct size_sum *to, const struct size_rule *rule, const struct cql_type *t,
                                          struct value v) {
    to->bytes += rule->pk_column + rule->keys * cql_value_size(t, rule->values, v);
}
static inline void size_add_clustering(struct size_sum *to, const struct size_rule *rule, const struct cql_type *t,
                                       struct value v) {
    uint64_t size = cql_value_size(t, rule->values, v);
    to->bytes += rule->ck_column + rule->keys * size + (rule->ck_fifths ? (size + 4) / 5 : 0);
}
/* v may be null: a write sets it. */
static inline void size_add_column(struct size_sum *to, const struct size_rule *rule, const struct cql_type *t,
                                   struct value v) {
    uint64_t size = rule->column + cql_value_size(t, rule->values, v);
    to->bytes += size;
    to->n_columns++;
    if (!value_is_null(v)) return;
    to->n_nulls++;
    to->null_bytes += size;
}
/* A TTL of a row with this number of columns and elements, keys included; timestamps of this number of
 * bytes. */
static inline void size_add_ttl(struct size_sum *to, const struct size_rule *rule, uint64_t cells) {
    to->bytes += rule->ttl * (1 + cells);
    to->ttl = true;
}
static inline void size_add_timestamps(struct size_sum *to, uint64_t bytes) {
    to->bytes += bytes;
    to->timestamps |= bytes > 0;
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

/* The bytes that the rows are billed for as stored data; size_sum.bytes counts for throughput. */
uint64_t size_storage_bytes(enum size_model model, const struct size_sum *rows);
/* The size that stays stored after a write. A null is not stored, and static data of nulls alone
 * leaves nothing. */
struct size_sum size_row_without_nulls(const struct size_sum *written);
struct size_sum size_statics_without_nulls(const struct size_sum *written);
