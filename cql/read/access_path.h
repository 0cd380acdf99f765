/* Where the rows of a SELECT come from: chosen when the statement is compiled, one table of
 * functions each.
 *
 *   path_keys      partitions that = and IN name, with their rows and slices
 *   path_tokens    a range of tokens, or the ring
 *   path_virtual   a system table, which yields its rows from memory
 *
 * Life: eval finds what the bound values name, before anything is answered; open makes a source,
 * which the operators pull; close gives back what the request's arena does not hold. The first
 * two are engine_source.h's.
 */
#pragma once

#include "cql/read/paging.h"
#include "cql/read/read.h"
#include "cql/request/request.h"
#include "metering/size/op_cost.h"

struct select_plan;
struct access_path;

/* The parameters that one execution of a SELECT sets for its source. */
struct read_spec {
    struct cql_run *r;
    const struct select_plan *plan;
    bool as_keyspaces;        /* pages end by what is read, and before the row that does not fit (cql/read/meter.h) */
    bool paged;               /* pages end by what is read */
    bool may_unread;          /* unread will be called */
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
    struct op_read *read;     /* sums up what is processed now; NULL if it is free */
    /* rows or groups of the partition so far, on earlier pages too; the filter or the group
     * operator counts */
    uint64_t given;
    uint64_t partition_limit; /* set from above before the first pull; UINT64_MAX: none */
    bool skip_partition;      /* set from above: no further row of this partition is wanted */
    bool last_query;          /* set from above: LIMIT is reached, no further subquery is wanted */
    bool single;              /* at most one row comes: no page follows */
    bool page_end;            /* READ_END was answered because the page is full */
    bool exhausted;           /* READ_END was answered for lack of rows */
};

struct access_path {
    enum cql_work_class work_class;
    /* *keys: what is named, in the request's arena; *none: there is nothing to read. 0 / -1. */
    int (*eval)(const struct read_spec *spec, void **keys, bool *none);
    /* NULL with the request's err. spec is copied, what it points to must live as long as the source. */
    struct read_source *(*open)(const struct read_spec *spec, void *keys);
    /* Another bounded part may be read. */
    void (*begin_part)(struct read_source *s);
    /* Gives back the last row: the next page begins with it. */
    void (*unread)(struct read_source *s);
    /* The position at which the next page continues; its slices live as long as the source. */
    void (*place)(const struct read_source *s, struct paging_state *out);
    /* The read is complete; NULL means nothing is to be done. */
    void (*end)(struct read_source *s);
    void (*close)(struct read_source *s);
};

extern const struct access_path path_keys, path_tokens, path_virtual;
