/* Counts what a read is charged for, the rows and encoded bytes that it passes whether it returns
 * them or not, and ends pages by these counts.
 *
 * A source reports every row to the meter before it hands the row on. In keyspaces mode a page ends
 * before the row that does not fit it, and that row counts as not read; in cassandra mode it ends
 * behind the row with which enough was read ("Paginate results",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/paginating-results.html).
 */
#pragma once

#include "base/hot.h"
#include "cql/row/row_view.h"
#include "metering/size/op_cost.h"

enum { READ_PAGE_BYTES = 1 << 20 };

struct read_meter {
    struct op_cost *cost;
    struct op_read *read; /* rounded to units on its own; NULL until read_meter_new */
    bool before_row;      /* pages end before the row that does not fit (keyspaces), else behind */
    bool paged;           /* pages end by what is read at all */
    bool may_undo;        /* the last row may be given back */
    uint64_t rows_left;   /* of the page; UINT64_MAX: not counted here */
    uint64_t page_rows;   /* counted for this page, */
    uint64_t rows_read, bytes_read;           /* the cost's counts with the last of them, */
    uint64_t rows_read_before, bytes_read_before; /* and without it */
    struct size_parts rows_before;
    struct {
        struct size_parts rows, statics;
        uint64_t markers;
    } entered; /* what was counted when the partition was entered, of which the page may end before the first row */
    uint64_t bytes_start;   /* of the cost, when the page began */
    uint64_t earlier_bytes; /* encoded, of this page's reads but the current one */
    /* While rows follow one another that are laid out and sized as sent, or not sized: */
    bool steady;
    uint64_t bytes;         /* encoded, of the page so far */
    uint64_t bare_row;      /* encoded, of a row without the bytes of its clustering key and its values */
};

/* Sums of steady rows under a key of one int, kept outside the meter; read_meter_run_end adds them
 * to it. */
struct read_meter_run {
    uint32_t rows;
    uint64_t column_bytes;
    uint64_t bytes, most; /* encoded, of the page so far; that it may have */
    uint64_t each, sized; /* of a row without its values; of those: all bits, or none when nothing is sized */
    uint64_t rows_read, bytes_read;
};

/* Begins to sum up a read that is rounded to units on its own, of a partition or (NULL) of a range
 * of tokens. NULL: no memory. */
struct op_read *read_meter_new(struct read_meter *m, const struct schema_table *t,
                               const struct eng_part *part) MUST_CHECK;
/* A partition begins; and, when the page ends before its first row, is left to the next one. */
void read_meter_enter(struct read_meter *m);
void read_meter_leave(struct read_meter *m);
/* The static values of the partition that the view is at. */
void read_meter_static(struct read_meter *m, const struct row_view *v);
/* Markers of deletions of the partition that the view is at. */
void read_meter_markers(struct read_meter *m, const struct row_view *v, uint32_t n);
/* The row that the view is at; has_row false: a row of static values, which are counted already.
 * False: the page is full without it. */
bool read_meter_row(struct read_meter *m, const struct row_view *v, bool has_row) MUST_CHECK;
/* The row that the view is at matches an excluded bound: read for nothing. */
void read_meter_bound(struct read_meter *m, const struct row_view *v);
/* The row counted last is read on the next page. */
void read_meter_undo(struct read_meter *m);
/* A row was handed on and is done. True: the page ends with it. */
bool read_meter_passed(struct read_meter *m) MUST_CHECK;
/* The same of a row after which others may come: false, and nothing has changed, when the page ends with it. */
static inline bool read_meter_goes_on(struct read_meter *m) {
    if (!m->before_row && m->paged && m->cost->bytes_read - m->bytes_start >= READ_PAGE_BYTES) return false;
    if (m->paged && m->rows_left != UINT64_MAX) m->rows_left--;
    return true;
}

/* Lowers *rows to what the page has room for behind the row that was handed on. */
struct read_meter_run read_meter_run_begin(const struct read_meter *m, uint64_t *rows);
/* Another row of the run, which is laid out. False: the page is full without it, and it is not counted. */
static inline bool read_meter_run_row(const struct read_meter *m, struct read_meter_run *run,
                                      const struct eng_layout *laid) {
    uint64_t bytes = run->bytes + run->each + (laid->bytes & run->sized);
    if (UNLIKELY(bytes > run->most)) return false;
    run->bytes = bytes;
    run->rows++;
    run->column_bytes += laid->bytes;
    run->rows_read = m->cost->rows_read;
    run->bytes_read = m->cost->bytes_read;
    return true;
}
void read_meter_run_end(struct read_meter *m, const struct row_view *v, const struct read_meter_run *run);
