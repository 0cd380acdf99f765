/* Counts what a read is charged for, the rows and encoded bytes that it passes whether it returns
 * them or not, and ends pages by these counts.
 *
 * A source reports every row to the meter before it hands the row on. In keyspaces mode a page ends
 * before the row that does not fit it, and that row counts as not read; in cassandra mode it ends
 * after the row with which enough was read ("Paginate results",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/paginating-results.html).
 */
#pragma once

#include "base/hot.h"
#include "cql/row/row_size.h"
#include "metering/size/op_cost.h"

enum { READ_PAGE_BYTES = 1 << 20 };

struct read_meter {
    struct op_cost *cost;
    struct op_read *read; /* rounded to units on its own; NULL until read_meter_new */
    struct row_sizer sizer; /* of the view whose rows are reported */
    bool before_row;      /* pages end before the row that does not fit (keyspaces), else after it */
    bool paged;           /* pages end by the bytes read */
    bool may_undo;        /* the last row may be returned to the source */
    uint64_t rows_left;   /* of the page; UINT64_MAX: not counted here */
    uint64_t page_rows;   /* counted for this page, */
    uint64_t rows_read, bytes_read;               /* the cost's counts with the last of them, */
    uint64_t rows_read_before, bytes_read_before; /* and without it */
    struct size_sum rows_before;                  /* with may_undo */
    struct {
        struct size_sum rows, statics;
        uint64_t markers;
    } entered; /* the counts at the start of the partition; the page may end before its first row */
    uint64_t bytes_start;   /* of the cost, when the page began */
    uint64_t earlier_bytes; /* encoded, of this page's reads but the current one */
};

static inline bool read_meter_may_end(const struct read_meter *m) { return m->before_row && m->paged && m->page_rows; }
/* Begins to sum up a read that is rounded to units on its own, of a partition or (NULL) of a range
 * of tokens. Returns NULL if memory is exhausted. */
MUST_CHECK static inline struct op_read *read_meter_new(struct read_meter *m, const struct schema_table *t,
                                                        const struct eng_part *part) {
    if (m->read) m->earlier_bytes += m->read->rows.bytes + m->read->statics.bytes;
    m->read = op_cost_read(m->cost);
    if (!m->read) return NULL;
    m->read->item.keyspace = t->keyspace->name;
    m->read->item.table = t->name;
    m->read->item.object = t->object;
    m->read->item.one_partition = part != NULL;
    if (part) m->read->item.token = part->token;
    if (part) m->read->key = part->key;
    return m->read;
}
/* The view is at a new partition. read_meter_leave: the page ends before its first row. */
static inline void read_meter_enter(struct read_meter *m) {
    row_sizer_partition(&m->sizer);
    if (!read_meter_may_end(m)) return;
    m->entered.rows = m->read->rows;
    m->entered.statics = m->read->statics;
    m->entered.markers = m->read->markers;
}
static inline void read_meter_leave(struct read_meter *m) {
    m->read->rows = m->entered.rows;
    m->read->statics = m->entered.statics;
    m->read->markers = m->entered.markers;
}
/* The static values of the partition. */
static inline void read_meter_static(struct read_meter *m) { row_size_add_static(&m->read->statics, m->sizer.view); }
/* Markers of deletions of the partition. */
static inline void read_meter_markers(struct read_meter *m, uint32_t n) {
    if (m->cost->unmetered) return;
    row_size_add_markers(&m->read->rows, &m->sizer, n);
    m->read->markers += n;
}
/* The row counted last is read on the next page. */
static inline void read_meter_undo(struct read_meter *m) {
    m->read->rows = m->rows_before;
    m->cost->rows_read = m->rows_read_before;
    m->cost->bytes_read = m->bytes_read_before;
    m->page_rows--;
}

/* Counts the row that the view is at. has_row false: a row of static values, which are counted already.
 * Returns false if the page is full without it. */
MUST_CHECK static inline bool read_meter_row(struct read_meter *m, bool has_row) {
    struct size_sum *rows = &m->read->rows;
    const struct size_sum before = *rows;
    if (has_row && LIKELY(!m->cost->unmetered)) row_size_add(rows, &m->sizer);
    uint64_t page_bytes = m->earlier_bytes + rows->bytes + m->read->statics.bytes;
    if (UNLIKELY(read_meter_may_end(m) && (m->rows_left == 0 || page_bytes > READ_PAGE_BYTES))) {
        *rows = before;
        m->cost->rows_read = m->rows_read;
        m->cost->bytes_read = m->bytes_read;
        return false;
    }
    if (UNLIKELY(m->may_undo)) {
        m->rows_before = before;
        m->rows_read_before = m->rows_read;
        m->bytes_read_before = m->bytes_read;
    }
    m->page_rows++;
    m->rows_read = m->cost->rows_read;
    m->bytes_read = m->cost->bytes_read;
    return true;
}

/* Sums of the rows that follow a row that was counted, in the same partition and batch. They are
 * added to the meter at the end. */
struct read_meter_batch {
    struct size_sum rows;
    uint32_t n;
    uint64_t rows_read, bytes_read;
    uint64_t most;   /* encoded bytes that the page has room for */
    uint64_t enough; /* of the cost's bytes_read: the page ends with the row that reaches it */
};

/* Lowers *rows, the rows of the batch and the first of them, to what the page has room for. */
static inline struct read_meter_batch read_meter_batch_begin(const struct read_meter *m, uint32_t *rows) {
    uint64_t page_bytes = m->earlier_bytes + m->read->rows.bytes + m->read->statics.bytes;
    uint64_t room = page_bytes < READ_PAGE_BYTES ? READ_PAGE_BYTES - page_bytes : 0;
    bool before = m->paged && m->before_row, after = m->paged && !m->before_row;
    if (m->paged && m->rows_left < *rows) *rows = (uint32_t)m->rows_left;
    return (struct read_meter_batch){.rows_read = m->rows_read,
                                     .bytes_read = m->bytes_read,
                                     .most = before ? room : UINT64_MAX,
                                     .enough = after ? m->bytes_start + READ_PAGE_BYTES : UINT64_MAX};
}
/* Counts the row that the view is at. Returns false if the page is full without it. */
MUST_CHECK static inline bool read_meter_batch_row(struct read_meter *m, struct read_meter_batch *sum) {
    const uint64_t rows = sum->rows.rows, bytes = sum->rows.bytes;
    if (LIKELY(!m->cost->unmetered)) row_size_add(&sum->rows, &m->sizer);
    if (UNLIKELY(sum->rows.bytes > sum->most)) {
        sum->rows.rows = rows;
        sum->rows.bytes = bytes;
        m->cost->rows_read = sum->rows_read;
        m->cost->bytes_read = sum->bytes_read;
        return false;
    }
    sum->n++;
    sum->rows_read = m->cost->rows_read;
    sum->bytes_read = m->cost->bytes_read;
    return true;
}
/* All of them but the last are done (read_meter_passed). */
static inline void read_meter_batch_end(struct read_meter *m, const struct read_meter_batch *sum) {
    size_sum_add(&m->read->rows, &sum->rows);
    m->page_rows += sum->n;
    if (m->paged && m->rows_left != UINT64_MAX) m->rows_left -= sum->n;
    m->rows_read = sum->rows_read;
    m->bytes_read = sum->bytes_read;
}

/* A row was returned and is done. Returns true if the page ends with it. */
MUST_CHECK static inline bool read_meter_passed(struct read_meter *m) {
    if (!m->paged) return false;
    if (m->rows_left != UINT64_MAX) m->rows_left--;
    return !m->before_row && m->cost->bytes_read - m->bytes_start >= READ_PAGE_BYTES;
}
