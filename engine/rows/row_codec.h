/* The stored form of a row, cell by cell: what encoding, decoding and merging share. Private to
 * engine/.
 *
 *   [u8 version = 1][u8 flags][i64 base timestamp] LIVE:      [zigzag ts - base]  and with
 *   LIVE_TTL: [uvarint ttl][zigzag expiry] DELETED:   [zigzag ts - base][zigzag local deletion
 *   time] KEY_IMAGE: [uvarint n][n bytes] [uvarint number of cells], then each cell: [u8 flags: 4
 *   bits of eng_cell_flags, SAME_TS, SAME_TTL][uvarint column - previous column] [zigzag ts - base]
 *   unless SAME_TS [uvarint ttl][zigzag expiry]  expiring, unless SAME_TTL (as the row's liveness);
 *   a deletion has the expiry alone [uvarint n][path]             HAS_PATH [uvarint n][value]
 *   unless it is a deletion
 *
 * The base is the liveness timestamp, else the row deletion's, else the first cell's, so that the
 * cells of one statement cost no timestamp at all. The number of cells may be padded (0x85 0x00),
 * so that a merge can write it before it has counted the cells.
 */
#pragma once

#include "engine/row.h"

struct rowi_head {
    int64_t base;
    int64_t live_ts, live_expiry;
    int64_t del_ts, del_at;
    int32_t live_ttl;
    uint32_t n_cells;
    struct slice key_image;
};

/* Reads cells one at a time; r.bad is sticky. */
struct rowi_reader {
    struct rd r;
    struct rowi_head head;
    uint32_t left, column;
};

/* 0, or -1 when the head is damaged. */
int rowi_open(struct rowi_reader *rd, struct slice bytes) MUST_CHECK;
/* Returns 1 if *cell was filled (it points into the bytes), 0 if there is no more, or -1 if damaged. */
int rowi_next(struct rowi_reader *rd, struct eng_cell *cell) MUST_CHECK;
/* Reads cells while they are short values of one column each with the row's timestamp and nothing
 * else; most rows consist only of these. Returns their number; rowi_next reads the rest. */
uint32_t rowi_plain(struct rowi_reader *rd, struct eng_cell *cells) MUST_CHECK;

enum { ROWI_SHAPE_CELLS = 32 };

/* The form of the row that was laid out last, if it has a marker: for each cell the bytes before its
 * value, and the value's offset from the first in units of its alignment. */
struct rowi_shape {
    uint32_t n; /* 0 if it says nothing */
    struct {
        uint16_t head, at;
    } cells[ROWI_SHAPE_CELLS];
};

/* Lays out the values of a row that is not deleted, has only plain cells, and no marker with a TTL,
 * and fills in r. Returns false for any other row, or a damaged one; the values are then undefined.
 * shape and r come from the call before, or r is not laid_out. */
bool rowi_lay_out(struct slice bytes, struct eng_layout *to, struct rowi_shape *shape, struct eng_row *r) MUST_CHECK;

struct rowi_writer {
    struct buf *out;
    struct rowi_head head;
    size_t count_at, count_len;
    uint32_t column, written;
    bool head_written;
};

/* head.n_cells is the most that will be written; head.base is set by the writer. */
void rowi_begin(struct rowi_writer *w, struct buf *out, const struct rowi_head *head);
void rowi_put(struct rowi_writer *w, const struct eng_cell *cell);
void rowi_put_all(struct rowi_writer *w, const struct eng_cell *cells, uint32_t n);
void rowi_end(struct rowi_writer *w);

/* By column, complex deletion first, path bytes. */
int rowi_cell_order(const struct eng_cell *a, const struct eng_cell *b);
/* Ranks two cells of the same column and path: > 0 when a wins, < 0 when b wins, 0 when they are
 * the same. A total order. */
int rowi_cell_rank(const struct eng_cell *a, const struct eng_cell *b);

/* The deletions of a row against which its cells are checked. */
struct rowi_shadow {
    int64_t row_ts;    /* the row deletion's timestamp */
    int64_t column_ts; /* the complex deletion's of column; start with ENG_NO_TS */
    uint32_t column;
};

/* Whether a deletion of the same row covers the cell; cells come in order. Dropping it keeps
 * merging associative: whatever the cell would have beaten later has no newer timestamp, so the
 * same deletion covers that too. */
bool rowi_shadowed(struct rowi_shadow *s, const struct eng_cell *c);

static inline bool rowi_is_deletion(const struct eng_cell *c) {
    return c->flags & (ENG_CELL_TOMBSTONE | ENG_CELL_COMPLEX_DELETION);
}
