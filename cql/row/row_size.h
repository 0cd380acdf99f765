/* What a row adds to the sums that it is charged by (metering/size/op_cost.h), from a view of it. Inside cql only. */
#pragma once

#include "metering/size/op_cost.h"
#include "cql/row/row_view.h"

/* Adds the row that the view is at, with its keys and every column that has a value, under the model and the settings of rules. The view must hold all
 * columns. */
void row_size_add(struct size_parts *p, const struct op_cost *rules, const struct row_view *v);
/* The bytes of its clustering key, an int, and of its values; and what row_size_add comes to for nearly every row: one without a TTL, in a layout that is
 * sized_as_sent, under another model than SIZE_CURRENT. */
static inline uint64_t row_size_sent(const struct row_view *v) {
    return (uint64_t)v->values[v->layout->table->n_partition_key].n /* 4; of an empty one, 0 */ + v->regular_bytes;
}
/* n of those, whose clustering keys have as many bytes as that of the view's. */
static inline void row_size_add_sent(struct size_parts *p, const struct row_view *v, uint64_t n, uint64_t columns, uint64_t column_bytes) {
    uint64_t key = row_size_sent(v) - v->regular_bytes;
    p->rows += n;
    p->n_pk += n * v->layout->table->n_partition_key;
    p->pk_bytes += n * v->key_bytes;
    p->n_ck += n;
    p->ck_bytes += n * key;
    p->ck_fifths += n * ((key + 4) / 5);
    p->n_columns += columns;
    p->column_bytes += column_bytes;
}
/* Adds so many markers of deletions of ranges, or of all, of the view's partition: each is its key and what a row adds, with a timestamp. */
void row_size_add_markers(struct size_parts *p, const struct op_cost *rules, const struct row_view *v, uint32_t n);
/* Adds the static values of the view's partition: SIZE_DOCUMENTED_2022 in every model. */
void row_size_add_static(struct size_parts *p, const struct row_view *v);
