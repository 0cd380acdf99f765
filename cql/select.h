/* SELECT: inside of cql only. A plan is made once (select.c), run per request (select_run.c, select_virtual.c); select_out.c
 * takes the rows that a run passes and turns them into result rows: filters, limits, pages, groups, order, projection. */
#pragma once

#include "cql/paging.h"
#include "cql/restrictions.h"
#include "cql/selector.h"
#include "cql/statement.h"

struct select_plan {
    const struct schema_table *table;
    struct where_plan *where;
    const struct row_view_layout *layout;
    uint32_t n_selectors;
    struct selector **selectors;
    const char **json_names; /* JSON: the selectors' names, quoted for JSON */
    bool json, distinct, reversed, ordered; /* ordered: ORDER BY was given */
    bool wants_statics; /* reads static rows */
    bool static_only_rows; /* a partition with static values only yields a row */
    struct term *limit, *partition_limit;
    uint32_t n_aggregates;
    const struct selector *const *aggregates;
    uint32_t n_group; /* leading primary key columns that GROUP BY names */
    bool grouped;
    uint32_t salt; /* of paging states */
};

/* One run. */
struct select_state {
    struct cql_request *r;
    const struct cql_statement *s;
    const struct select_plan *plan;
    struct row_view view;
    struct where_filters *filters;
    struct value *out;           /* one result row */
    struct aggregate *aggregates;
    bool group_open;
    struct arena keep;           /* what outlives a row: first row of a group, rows to sort */
    struct value *first;         /* of the group */
    struct buf group_key;
    struct sorted_rows *sorted;  /* ORDER BY over several partitions */
    /* limits */
    bool has_limit;
    uint64_t limit_left, partition_limit, given; /* partition_limit 0: none */
    uint64_t page_left;          /* UINT64_MAX: no paging */
    uint64_t read_start;         /* cost->bytes_read when the page began */
    /* where the page is */
    uint32_t partition;          /* index among the partitions of an IN; virtual tables: result rows of earlier pages and this one */
    uint32_t skip;               /* virtual tables: result rows to pass over, given in earlier pages */
    struct buf key, ck;          /* of the row just passed */
    bool in_row;                 /* ck is set */
    bool page_full, done;        /* no further row wanted: the page, or the whole result, is complete */
    bool partition_done;         /* no further row of this partition wanted */
    uint64_t rows_seen;          /* of this partition, in this page or before it */
    bool count_read_rows;        /* a page ends after so many rows read, not returned (Keyspaces) */
    struct arena_mark partition_mark; /* where the request's arena was when a partition began */
    struct op_read *read;        /* sums up what is processed */
};

enum { PAGE_BYTES = 1 << 20 };

int select_out_begin(struct select_state *run) MUST_CHECK;
void select_out_fini(struct select_state *run);
/* A partition begins: the view has its values; key is copied. */
int select_out_partition(struct select_state *run, struct slice key, const struct eng_row *statics) MUST_CHECK;
/* A row of it (NULL: a partition with static values only). Sets page_full or done when no more is wanted. */
int select_out_row(struct select_state *run, const struct eng_row *row) MUST_CHECK;
/* A row whose values are in the view already (virtual tables). */
int select_out_values(struct select_state *run) MUST_CHECK;
/* No more rows: closes groups, sorts, sets the paging state. */
int select_out_end(struct select_state *run) MUST_CHECK;

enum cql_outcome select_run(struct cql_request *r, const struct cql_statement *s);
int select_virtual(struct select_state *run) MUST_CHECK;
