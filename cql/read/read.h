/* A SELECT at work: operators over an access path.
 *
 *   access path -> source -> filter -> group -> project -> order -> page -> the request's sink
 *
 * The path is chosen when the statement is compiled; its source yields the rows:
 *
 *   path_keys      partitions that = and IN name, with their rows and slices (over engine_source.h)
 *   path_tokens    a range of tokens, or the ring (over engine_source.h)
 *   path_virtual   a system table, which yields its rows from memory
 *
 * Each operator is a struct that begins with a read_op, points to the operator below it, and keeps its own state. A
 * chain has only the operators that its statement needs. select_run.c builds it and pulls the page; a pull goes down
 * the chain until a batch of rows comes up. Rows are sorted after they are projected, as in Cassandra, so that the
 * rows that are kept are the rows that are sent.
 *
 * Every row that a source returns is charged. So a pull limits the number of rows, and no operator pulls more from
 * below than it may return: LIMIT, pages and groups end where they would if rows came one by one.
 *
 * A pull may end before the rows do: with AGAIN after a bounded part (the caller pulls again, all state is kept), or
 * with INCOMPLETE when the data is not in memory (the read starts over on a thread that may block). One thread at a
 * time.
 */
#pragma once

#include "cql/expr/term.h"
#include "cql/read/paging.h"
#include "cql/request/request.h"
#include "cql/row/row_view.h"
#include "cql/where/restrictions.h"
#include "metering/size/op_cost.h"

enum read_pull {
    READ_AGAIN = -3,
    READ_INCOMPLETE = ENG_INCOMPLETE,
    READ_FAILED = -1 /* err is set */,
    READ_END = 0,
    READ_ROWS = 1
};

enum { READ_BATCH = 64 };

/* Rows on their way up. The rows, and what they point to, are valid until the next pull. */
struct read_batch {
    uint32_t most; /* rows wanted: 1 to READ_BATCH; the caller of a pull sets it */
    uint32_t n;    /* rows in the batch: at least one with READ_ROWS */
    const struct row_view *view;  /* of a batch of one row: its cells; NULL if no operator reads cells */
    const struct value *latched;  /* of a group: the values computed from its first row (term_latch_all) */
    struct aggregate *aggregates; /* of a group */
    const struct value *values[READ_BATCH]; /* of each row by column; of a group: its first row's */
    const struct value *out[READ_BATCH];    /* projected: one per result column */
};

struct read_op {
    enum read_pull (*next)(struct read_op *op, struct read_batch *batch);
};

static inline enum read_pull read_next(struct read_op *op, struct read_batch *batch) { return op->next(op, batch); }

/* ---- sources ---- */

struct select_plan;
struct access_path;

/* The parameters that one execution of a SELECT sets for its source. */
struct read_spec {
    struct cql_run *r;
    const struct select_plan *plan;
    bool as_keyspaces;        /* a page ends by the bytes read, before the row that does not fit (cql/read/meter.h) */
    bool paged;               /* pages end by the bytes read */
    bool may_unread;          /* unread may be called */
    uint64_t page_rows;       /* the page size; UINT64_MAX: none */
    /* the page size counts rows read, not returned, and LIMIT does not end the page (keyspaces) */
    bool count_read_rows;
    uint64_t limit;           /* UINT64_MAX: none */
    uint64_t partition_limit; /* rows wanted of a partition; UINT64_MAX: all */
    const struct paging_state *resume; /* NULL means from the start */
};

struct read_source {
    struct read_op op; /* first */
    const struct access_path *path;
    uint32_t most;            /* rows of a batch */
    struct op_read *read;     /* the cost of the current read; NULL if it is free */
    /* rows or groups of the partition so far, on earlier pages too; the filter or the group
     * operator counts */
    uint64_t given;
    uint64_t partition_limit; /* set from above before the first pull; UINT64_MAX: none */
    bool skip_partition;      /* set from above: no further row of this partition is wanted */
    bool last_query;          /* set from above: LIMIT is reached, no further subquery is wanted */
    bool single;              /* there is at most one row: no page follows */
    bool page_end;            /* READ_END was returned because the page is full */
    bool exhausted;           /* READ_END was returned because there are no more rows */
};

struct access_path {
    enum cql_work_class work_class;
    /* Evaluates the bound values and makes a source in the request's arena. Returns NULL with the request's err.
     * *none: there is nothing to read. The source copies spec; the objects to which spec points must live as
     * long as the source. */
    struct read_source *(*open)(const struct read_spec *spec, bool *none);
    /* Allows the source to read another bounded part. NULL: no part of it is bounded. */
    void (*begin_part)(struct read_source *s);
    /* Returns the last row to the source: the next page begins with it. */
    void (*unread)(struct read_source *s);
    /* The position at which the next page continues; its slices live as long as the source. */
    void (*position)(const struct read_source *s, struct paging_state *out);
    /* The read is complete. May be NULL. */
    void (*end)(struct read_source *s);
    /* Releases what is not in the request's arena. */
    void (*close)(struct read_source *s);
};

extern const struct access_path path_keys, path_tokens, path_virtual;

/* ---- filter ---- */

/* Passes the rows that match the restrictions of WHERE that no key serves, and at most the wanted number of each
 * partition. */
struct row_filter {
    struct read_op op;
    struct read_op *below;
    struct read_source *source;
    const struct where_filters *filters; /* NULL means every row matches */
    bool counts; /* rows that pass count towards the partition's limit; else groups do */
    bool first_only; /* DISTINCT: one row of a partition */
};

enum read_pull row_filter_next(struct read_op *op, struct read_batch *batch);

/* ---- group ---- */

/* Rows to groups: aggregates over all rows, or GROUP BY over consecutive rows with the same leading key
 * columns, or the same value of a function of the last of these.
 *
 * A group is returned when the first row of the next one has been read, which is then pending; a page
 * that ends there returns that row to the source. The operator keeps only the first row of a group:
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

/* rows: the maximum in a batch. */
int row_project_init(struct row_project *p, struct read_op *below, struct cql_run *r, const struct select_plan *plan,
                     uint32_t rows) MUST_CHECK;

/* ---- order ---- */

/* ORDER BY over several partitions: reads all rows of the page, sorts them by the columns named,
 * and returns them. Rows that are equal there keep the order in which they were read; a row of static
 * values only has no clustering key and sorts before all others, or last in reverse. The memory for
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

/* ---- page (select_run.c) ---- */

/* Counts the rows of the result: LIMIT, the page size, and where the next page continues.
 *
 * In keyspaces mode LIMIT does not end a page: the rest of the page is read, and not returned (cql/read/meter.h).
 */
struct result_page {
    struct read_op op;
    struct read_op *below;
    struct read_source *source;
    const struct row_group *group; /* NULL if rows are not grouped */
    bool has_limit;
    uint64_t limit_left;
    uint64_t rows_left;  /* of the page; UINT64_MAX: it does not end by its rows */
    bool reads_on;       /* after LIMIT */
    bool whole;          /* the rows were sorted as a whole: no page follows */
    bool limit_reached, full, ended;
};

enum read_pull result_page_pull(struct read_op *op, struct read_batch *batch);
/* Returns true if a page follows; *out is then the position where it continues. */
bool result_page_next(const struct result_page *p, struct paging_state *out) MUST_CHECK;
