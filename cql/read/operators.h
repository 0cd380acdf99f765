/* The operators of a SELECT above its source, in the order of the chain that select_run.c builds:
 * filter, group, project, order, page. Each pulls the one below (read.h). */
#pragma once

#include "cql/read/access_path.h"
#include "cql/where/restrictions.h"

struct select_plan;
struct sorted_row;

/* ---- filter ---- */

/* Passes the rows that match what WHERE could not seek by, and as many of each partition as are wanted. */
struct row_filter {
    struct read_op op;
    struct read_op *below;
    struct read_source *source;
    const struct where_filters *filters; /* NULL means every row matches */
    bool counts; /* rows that pass count towards the partition's limit; else groups do */
    bool first_only; /* DISTINCT: one row of a partition */
};

void row_filter_init(struct row_filter *f, struct read_op *below, struct read_source *source);

/* ---- group ---- */

/* Rows to groups: aggregates over all rows, or GROUP BY over runs of rows with the same leading key
 * columns, or the same value of a function of the last of these.
 *
 * A group is handed on when the first row of the next one came up, which is then pending; a page
 * that ends there gives it back to the source. The operator keeps only the first row of a group:
 * the values that the select list uses, and their timestamps and TTLs where it needs them. So
 * memory does not grow with the rows.
 */
struct row_group {
    struct read_op op;
    struct read_op *below;
    struct read_source *source;
    struct cql_run *r;
    const struct select_plan *plan;
    uint64_t partition_limit;    /* groups wanted of a partition; UINT64_MAX: all */
    struct aggregate *aggregates;
    struct arena keep;           /* of the group's first row: */
    struct value *first, *latched;
    struct value *times;         /* room to compute latched in; nulls, as of no row, until then */
    struct buf key, next_key;    /* values of the columns that it is grouped by, or of the function of the last */
    struct read_batch rows;      /* from below; */
    uint32_t at, most;           /* the current one; how many may be pulled at a time */
    bool open, pending, ended;
};

int row_group_init(struct row_group *g, struct read_op *below, struct read_source *source, struct cql_run *r,
                   const struct select_plan *plan, const struct read_spec *spec) MUST_CHECK;
void row_group_fini(struct row_group *g);

/* ---- project ---- */

/* The select list over a row or a group: one value per column of the result, or one text of JSON. */
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

/* ---- order ---- */

/* ORDER BY over several partitions: takes all rows of the page, sorts them by the columns named,
 * and hands them on. Rows that are equal there stay in the order they came in; a row of static
 * values only has no clustering key and comes before all others, or last in reverse. The memory for
 * the rows is bounded; a statement that would need more fails.
 */
struct row_order {
    struct read_op op;
    struct read_op *below;
    struct cql_run *r;
    const struct select_plan *plan;
    struct arena keep;
    struct sorted_row *rows;
    size_t n, cap, at;
    bool sorted;
};

void row_order_init(struct row_order *o, struct read_op *below, struct cql_run *r, const struct select_plan *plan);
void row_order_fini(struct row_order *o);

/* ---- page ---- */

/* Counts the rows of the result: LIMIT, the page size, and where the next page goes on.
 *
 * In keyspaces mode LIMIT does not end a page: rows are read on to the page's end, and not returned (cql/read/meter.h).
 */
struct result_page {
    struct read_op op;
    struct read_op *below;
    struct read_source *source;
    const struct row_group *group; /* NULL if rows are not grouped */
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
