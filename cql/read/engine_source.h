/* Rows of the engine, piece by piece: the source of path_keys and path_tokens.
 *
 * A path yields one piece after another: a row by its key, or a scan of one partition or of a range
 * of tokens. The source reads it, assembles rows (row_view), charges them (meter) and returns
 * the visible ones, in batches of rows of one partition. Its state is its position in the
 * partition, where the next page continues. A scan stays open between the parts of a long read; a
 * part is bounded in the rows and the bytes that the engine reads.
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
    /* the rows that match the range's excluded bound, of which the first is read after the piece; NULL if none */
    const struct eng_slice *bound;
};

/* The path's next piece, in *out. Returns 1, 0 if none is left or the page ends here (engine_source_end_page),
 * -1 on error, or ENG_INCOMPLETE. keys: the path's state. */
typedef int engine_piece_fn(struct engine_source *s, void *keys, struct piece *out);

enum source_state { AT_NEXT_PIECE, AT_POINT, AT_SCAN, AT_HELD /* item was read, and is next */, AT_BOUND, AT_END };

/* The scan of a piece; made when the first piece needs one. */
struct piece_scan {
    struct eng_scan *open; /* NULL if it is closed */
    struct eng_scan_spec spec;
    struct kept_key resume_key;
    struct eng_item item;
    uint32_t passed;       /* rows skipped, of a partition of which no more are wanted */
    struct eng_row statics; /* of the partition; the scan owns its cells, until it leaves the partition */
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
    bool static_row_due;        /* only static values are visible so far, and they were not returned yet */
    uint32_t quarters_seen;     /* of the token ring: bits */
    /* the position in it */
    const struct eng_row *row;  /* returned last; NULL means static values only; invalid after the next scan step */
    struct slice row_ck;        /* its clustering key, until the next pull */
    bool row_out;               /* row was returned and is not passed yet */
    struct kept_key ck;         /* of the row passed last, where the page may need it */
    bool in_row;                /* ck is set */
    bool before;                /* the page ends before the partition's first row */
};

/* For a path's open. rows: the maximum of a piece, or READ_BATCH. single: there is at most one row. */
struct read_source *engine_source_new(const struct read_spec *spec, const struct access_path *path,
                                      engine_piece_fn *next_piece, void *keys, uint32_t rows, bool single) MUST_CHECK;
/* Returns 1 if anything is stored between two tokens, both included, 0 if not, -1 on error, or ENG_INCOMPLETE. The
 * read is not charged. */
int engine_source_probe(struct engine_source *s, int64_t from, int64_t to) MUST_CHECK;
/* The page ends after the partition or subquery of key. Returns 0, or -1 with the request's err. */
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
