/* What a row adds to the sums that it is charged by (metering/size/op_cost.h), from a view of it. Inside cql only. */
#pragma once

#include "metering/size/op_cost.h"
#include "cql/row/row_view.h"

/* Adds the row that the view is at, with its keys and every column that has a value, under the model and the settings of rules. The view must hold all
 * columns. */
void row_size_add(struct size_parts *p, const struct op_cost *rules, const struct row_view *v);
/* Adds so many markers of deletions of ranges, or of all, of the view's partition: each is its key and what a row adds, with a timestamp. */
void row_size_add_markers(struct size_parts *p, const struct op_cost *rules, const struct row_view *v, uint32_t n);
/* Adds the static values of the view's partition: SIZE_DOCUMENTED_2022 in every model. */
void row_size_add_static(struct size_parts *p, const struct row_view *v);
