/* Counts the rows of the result: LIMIT, the page size, and where the next page goes on.
 *
 * In keyspaces mode LIMIT does not end a page: rows are read on to the page's end, and not returned (cql/read/meter.h).
 */
#pragma once

#include "cql/read/group.h"

struct result_page {
    struct read_op op;
    struct read_op *below;
    struct read_source *source;
    const struct row_group *group; /* NULL: rows are not grouped */
    bool has_limit;
    uint64_t limit_left;
    uint64_t rows_left;  /* of the page; UINT64_MAX: it does not end by its rows */
    bool reads_on;       /* behind LIMIT */
    bool whole;          /* the rows were sorted as a whole: no page follows */
    bool limit_reached, full, ended;
};

void result_page_init(struct result_page *p, struct read_op *below, struct read_source *source);
/* True when a page follows; *out is then the position where it continues. */
bool result_page_next(const struct result_page *p, struct paging_state *out) MUST_CHECK;
