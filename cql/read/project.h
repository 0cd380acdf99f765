/* The select list over a row or a group: one value per column of the result, or one text of JSON. */
#pragma once

#include "cql/read/read.h"

struct select_plan;

struct row_project {
    struct read_op op;
    struct read_op *below;
    struct cql_run *r;
    const struct select_plan *plan;
    struct value *out;  /* of each row of a batch, */
    struct value *json; /* and its text */
};

/* rows: the most that come in a batch. */
int row_project_init(struct row_project *p, struct read_op *below, struct cql_run *r, const struct select_plan *plan,
                     uint32_t rows) MUST_CHECK;
