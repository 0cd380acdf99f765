/* Rows of the engine, piece by piece: the source of path_keys and path_tokens.
 *
 * A path names one piece after another: a row by its key, or a scan of one partition or of a range
 * of tokens. The source reads it, puts rows together (row_view), charges them (meter) and hands on
 * the visible ones, in batches of rows of one partition. Its state is its position in the
 * partition, where the next page continues. A scan stays open between the parts of a long read; a
 * part is bounded in the rows and the bytes that the engine passes.
 */
#pragma once

#include "cql/read/read.h"
#include "cql/read/kept_key.h"
#include "cql/read/meter.h"

struct engine_source;

enum piece_kind { PIECE_POINT, PIECE_SCAN, PIECE_EMPTY /* charged as a read that finds nothing */ };

struct piece {
    enum piece_kind kind;
    const struct eng_part *part;       /* NULL means tokens */
    struct slice ck;                   /* POINT */
    const struct eng_slice *slices;    /* SCAN */
    uint32_t n_slices;
    int64_t token_from, token_to;
    int (*wants)(void *source, const struct eng_part *part, struct err *e); /* eng_scan_spec.wants */
    const struct paging_state *resume; /* inside of this piece */
    /* after it: the rows that match the range's excluded bound, of which the first is read; NULL if none */
    const struct eng_slice *bound;
};

/* A path's own. Returns 1 if *out is read next, 0 if none is left, or the page ends here
 * (engine_source_end_page), or -1 on error, ENG_INCOMPLETE. */
typedef int engine_piece_fn(struct engine_source *s, void *keys, struct piece *out);

enum source_state { AT_NEXT_PIECE, AT_POINT, AT_SCAN, AT_HELD /* item is looked at next */, AT_BOUND, AT_END };

/* The scan of a piece; made when the first piece needs one. */
struct piece_scan {
    struct eng_scan *open; /* NULL if it is closed */
    struct eng_scan_spec spec;
    struct kept_key resume_key;
    struct eng_item item;
    uint32_t passed;       /* rows of a partition that is done */
    struct eng_row statics; /* of the partition: its cells are the scan's until it moves on from it */
    bool statics_kept;     /* the view has a copy of them */
};

struct engine_source {
    struct read_source base;
    struct read_spec spec;
    engine_piece_fn *next_piece;
    void *keys;
    struct read_meter meter;
    struct row_view view;
    struct piece piece;
    enum source_state state;
    struct piece_scan *scan;    /* NULL if all pieces so far were points */
    /* points */
    uint32_t points_left;       /* pieces of this part */
    bool had_point;
    struct arena_mark point_mark; /* before the last one's row */
    /* the partition */
    struct kept_key key;
    uint32_t index;             /* among the partitions of an IN, or among its subqueries */
    uint64_t rows_seen;         /* of it, in this page or before */
    bool partition_open;        /* key is that of a partition of this page */
    bool static_row_due;        /* nothing visible yet but its static values, which are not given yet */
    uint32_t quarters_seen;     /* of the token ring: bits */
    /* the place in it */
    const struct eng_row *row;  /* handed on last; NULL means static values only; another one once the scan moved on */
    struct slice row_ck;        /* its clustering key, until the next pull */
    bool row_out;               /* row was handed on and not passed yet */
    struct kept_key ck;         /* of the row passed last, where it may be asked for */
    bool in_row;                /* ck is set */
    bool before;                /* the page ends before the partition's first row */
};

/* For a path's open, and its piece function. rows: the most that a piece can have, or READ_BATCH.
 * single: at most one row comes. */
struct read_source *engine_source_new(const struct read_spec *spec, const struct access_path *path,
                                      engine_piece_fn *next_piece, void *keys, uint32_t rows, bool single) MUST_CHECK;
/* Whether anything is stored between two tokens, both included: 1, 0, -1, ENG_INCOMPLETE. Reading
 * it is part of no cost. */
int engine_source_probe(struct engine_source *s, int64_t from, int64_t to) MUST_CHECK;
/* The page ends behind the partition or subquery of key. 0 / -1. */
int engine_source_end_page(struct engine_source *s, struct slice key) MUST_CHECK;

/* Functions for struct access_path. */
void engine_source_begin_part(struct read_source *s);
void engine_source_unread(struct read_source *s);
void engine_source_position(const struct read_source *s, struct paging_state *out);
void engine_source_close(struct read_source *s);

/* The ring's quarter that a token is in: a new table has four storage partitions, and a scan pays for empty ones. */
static inline uint32_t path_tokens_quarter(int64_t token) {
    return (uint32_t)(((uint64_t)token ^ (uint64_t)1 << 63) >> 62);
}
static inline int64_t path_tokens_quarter_start(uint32_t quarter) {
    return (int64_t)((uint64_t)quarter << 62 ^ (uint64_t)1 << 63);
}
static inline int64_t path_tokens_quarter_end(uint32_t quarter) {
    return (int64_t)(((uint64_t)quarter << 62 | (~(uint64_t)0 >> 2)) ^ (uint64_t)1 << 63);
}
