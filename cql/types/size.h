/* Encoded sizes of values, as capacity units are computed from (reference/keyspaces.md, section 1.1).
 *
 * The size models differ in how a value is measured (size.c) and in what a row adds (size_row.c). What cql adds up while it works are
 * struct size_parts; they are turned into bytes by metering, and by cql where a page ends after so many bytes.
 */
#pragma once

#include "base/op_cost.h"
#include "cql/types/type.h"

/* Bytes of a value's data under a model: documented-2022 counts the data of the value (int 4, text its UTF-8 bytes, a collection
 * its elements); current counts numbers by their digits and adds 3 bytes a collection and 1 an element. Null counts as the model says. */
uint64_t cql_value_size(const struct cql_type *t, enum size_model model, struct value v);

/* Add one column of the kind to the parts of one row. */
void size_add_partition_key(struct size_parts *p, enum size_model model, const struct cql_type *t, struct value v);
void size_add_clustering(struct size_parts *p, enum size_model model, const struct cql_type *t, struct value v);
void size_add_column(struct size_parts *p, enum size_model model, const struct cql_type *t, struct value v);

/* Encoded bytes of what the parts sum up: for throughput, and for storage. */
uint64_t size_row_bytes(enum size_model model, uint16_t table_columns, const struct size_parts *p);
uint64_t size_row_storage_bytes(enum size_model model, uint16_t table_columns, const struct size_parts *p);
/* The same in both models; the parts are summed under SIZE_DOCUMENTED_2022. */
uint64_t size_static_bytes(const struct size_parts *p);
