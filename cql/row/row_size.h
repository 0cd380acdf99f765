/* Adds a row, seen through a view of it, to the sums that it is charged by
 * (metering/size/op_cost.h). Inside cql only. */
#pragma once

#include "metering/size/op_cost.h"
#include "cql/row/row_view.h"

/* Nearly every row: one without a TTL, in a layout that is sized_as_sent, under another model than
 * SIZE_CURRENT. In this case every byte counts the same, of keys, of values and of what the model
 * adds to them, so they are summed up as bytes of columns. */
static inline bool row_size_is_sent(const struct op_cost *rules, const struct row_view *v) {
    const struct eng_row *r = v->row;
    if (UNLIKELY(!v->layout->sized_as_sent || rules->size_model == SIZE_CURRENT)) return false;
    /* what is measured has no cell with a TTL */
    return r->laid_out || (v->measured && !((uint32_t)r->live_ttl | r->marker_expired | r->n_expired));
}
/* The bytes of its clustering key, an int, and of its values; and n such rows, whose values have so
 * many bytes together, and their clustering keys as many as the view's. */
static inline uint64_t row_size_sent(const struct row_view *v) {
    return (uint64_t)v->values[v->layout->table->n_partition_key].n /* 4; of an empty one, 0 */ + v->regular_bytes;
}
static inline void row_size_add_sent(struct size_parts *p, const struct row_view *v, uint64_t n, uint64_t value_bytes) {
    p->rows += n;
    p->column_bytes += n * (v->layout->around_keys + v->key_bytes + row_size_sent(v) - v->regular_bytes) + value_bytes;
}

/* Adds the row that the view is at, with its keys and every column that has a value, under the
 * model and the settings of rules. The view must hold all columns. */
void row_size_add_any(struct size_parts *p, const struct op_cost *rules, const struct row_view *v);
static inline void row_size_add(struct size_parts *p, const struct op_cost *rules, const struct row_view *v) {
    if (LIKELY(row_size_is_sent(rules, v))) row_size_add_sent(p, v, 1, v->regular_bytes);
    else row_size_add_any(p, rules, v);
}
/* Adds so many markers of deletions of ranges, or of all, of the view's partition: each is its key
 * and what a row adds, with a timestamp. */
void row_size_add_markers(struct size_parts *p, const struct op_cost *rules, const struct row_view *v, uint32_t n);
/* Adds the static values of the view's partition: SIZE_DOCUMENTED_2022 in every model. */
void row_size_add_static(struct size_parts *p, const struct row_view *v);
