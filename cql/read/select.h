/* SELECT: inside of cql only. A plan is made once (select.c), run per request (select_run.c, select_virtual.c); select_out.c
 * takes the rows that a run passes and turns them into result rows: filters, limits, pages, groups, order, projection. */
#pragma once

#include "cql/read/paging.h"
#include "cql/where/restrictions.h"
#include "cql/expr/selector.h"
#include "cql/request/statement.h"

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
    uint32_t n_latches;
    const struct selector *latches; /* what groups keep of the row that opens them, beside its values */
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
    struct value *first, *latched; /* of the group's first row */
    struct value *times;           /* room to compute latched in; nulls, as of no row, until then */
    struct buf group_key;
    struct sorted_rows *sorted;  /* ORDER BY over several partitions */
    /* limits */
    bool has_limit;
    uint64_t limit_left, partition_limit, given; /* partition_limit 0: none */
    uint64_t page_left;          /* UINT64_MAX: no paging */
    uint64_t read_start;         /* cost->bytes_read when the page began */
    bool as_keyspaces;           /* a page ends by what was read, and LIMIT is applied to what it holds (reference/keyspaces.md 1.4, 1.5) */
    bool paged;                  /* the result may be cut into pages */
    bool limit_reached;          /* as_keyspaces: rows are read on, to the page's end, and not returned */
    uint64_t page_rows;          /* read for this page, */
    uint64_t rows_read, bytes_read; /* and the cost's counts with the last of them */
    uint64_t earlier_bytes;      /* encoded, of this page's reads but the current one */
    /* where the page is */
    uint32_t partition;          /* index among the partitions of an IN, or among its subqueries; virtual tables: result rows of earlier pages and this one */
    uint32_t skip;               /* virtual tables: result rows to pass over, given in earlier pages */
    struct buf key, ck;          /* of the row just passed */
    bool in_row;                 /* ck is set */
    bool before;                 /* the page ended before the partition's first row */
    bool page_full, done;        /* no further row wanted: the page, or the whole result, is complete */
    bool partition_open;         /* key is that of a partition of this page */
    bool partition_done;         /* no further row of this partition wanted */
    uint64_t rows_seen;          /* of this partition, in this page or before it */
    bool count_read_rows;        /* a page ends after so many rows read, not returned, and LIMIT does not end it (Keyspaces) */
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
/* A row that has expired: read, and not returned. */
int select_out_expired(struct select_state *run, const struct eng_row *row) MUST_CHECK;
/* A row at the excluded bound of a range: read, and not returned. */
int select_out_bound(struct select_state *run, const struct eng_row *row) MUST_CHECK;
/* The partition (or subquery) of the key is done: where a page would go on. */
int select_out_done(struct select_state *run, struct slice key) MUST_CHECK;
/* A row whose values are in the view already (virtual tables). */
int select_out_values(struct select_state *run) MUST_CHECK;
/* No more rows: closes groups, sorts, sets the paging state. */
int select_out_end(struct select_state *run) MUST_CHECK;

/* select_read.c: reads of the engine. Each returns 0, -1 or ENG_INCOMPLETE. */
struct quarters { /* of the token ring: a new table has four storage partitions, and a scan pays for empty ones */
    uint32_t first, seen;
};
/* Begins to sum up a read that is rounded to units on its own. */
int select_read_new(struct select_state *run) MUST_CHECK;
int select_read_point(struct select_state *run, const struct eng_part *part, struct slice ck) MUST_CHECK;
/* Fills in what the run decides of the spec. q may be NULL. */
int select_read_scan(struct select_state *run, struct eng_scan_spec *spec, const struct paging_state *resume, struct quarters *q) MUST_CHECK;
/* The first of the rows that match an excluded bound. */
int select_read_bound(struct select_state *run, const struct eng_part *part, const struct eng_slice *bound) MUST_CHECK;
uint32_t select_quarter(int64_t token);

/* select_keys.c: partitions by key: what the statement names with its values, in the request's arena, and reading it. */
struct key_plan;
int select_keys_eval(struct select_state *run, const struct key_plan **out) MUST_CHECK;
bool select_keys_none(const struct key_plan *k); /* not even a range that might have rows */
int select_keys_run(struct select_state *run, const struct key_plan *k, const struct paging_state *resume) MUST_CHECK;

enum cql_outcome select_run(struct cql_request *r, const struct cql_statement *s);
int select_virtual(struct select_state *run) MUST_CHECK;

extern const struct statement_ops select_ops;
