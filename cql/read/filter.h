/* Passes the rows that match what WHERE could not seek by, and as many of each partition as are wanted. */
#pragma once

#include "cql/read/access_path.h"
#include "cql/where/restrictions.h"

struct row_filter {
    struct read_op op;
    struct read_op *below;
    struct read_source *source;
    const struct where_filters *filters; /* NULL: every row matches */
    bool counts; /* rows that pass count towards the partition's limit; else groups do */
    bool first_only; /* DISTINCT: one row of a partition */
};

void row_filter_init(struct row_filter *f, struct read_op *below, struct read_source *source);
