/* The encoded size of a row that is seen through a view (metering/size/size.h has the rule). Inside
 * cql only. */
#pragma once

#include "cql/row/row_view.h"
#include "metering/size/size.h"

/* Sizes the rows of a view, partition by partition. */
struct row_sizer {
    const struct row_view *view; /* of all columns */
    struct size_rule rule;
    uint32_t timestamp_size;
    bool as_sent;    /* the values and keys of plain rows count with their encoded bytes */
    uint64_t around; /* for each row of the partition and its partition key */
    uint64_t plain_around; /* likewise, and for the columns of its clustering key, without their bytes */
};

/* rules: the model and the size of a timestamp. */
void row_sizer_init(struct row_sizer *s, const struct row_view *view, const struct op_cost *rules);
/* Called after each row_view_partition. */
void row_sizer_partition(struct row_sizer *s);

/* Adds the row that the view is at: its keys and every column that has a value. */
void row_size_add_any(struct size_sum *to, const struct row_sizer *s);
static inline void row_size_add(struct size_sum *to, const struct row_sizer *s) {
    const struct row_view *v = s->view;
    if (UNLIKELY(!s->as_sent || !v->measured)) {
        row_size_add_any(to, s);
        return;
    }
    to->rows++;
    to->bytes += s->plain_around + v->ck_bytes + v->regular_bytes;
}
/* Adds n deletions of ranges, or of all, of the view's partition: each counts as its key and a row,
 * with a timestamp. */
void row_size_add_markers(struct size_sum *to, const struct row_sizer *s, uint32_t n);
/* Adds the static values of the view's partition. */
void row_size_add_static(struct size_sum *to, const struct row_view *v);
