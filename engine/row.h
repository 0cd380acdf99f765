/* A row as the engine keeps it: liveness, deletion and a sorted list of cells; and the
 * reconciliation of two of them.
 *
 * The same form is a stored row, a delta that a statement writes, and a merge operand. Reconciling
 * is Cassandra's (newest timestamp wins; on a tie a tombstone beats a value, the later expiry beats
 * the earlier, the greater value beats the smaller) and is associative, commutative and idempotent:
 * tests/unit/engine proves it. Bytes only: columns are numbers.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "types/value.h"

#define ENG_NO_TS INT64_MIN  /* no timestamp: never written, never deleted */
#define ENG_NO_EXPIRY INT64_MAX
#define ENG_NEVER_EXPIRES INT64_MIN /* a value of now: nothing has expired yet */
#define ENG_COVERED (-1) /* a value of del_at: del_ts is that of a covering deletion, not the row's own */
/* a value of now, for eng_row_get: nothing is dropped; del_ts is the newest deletion of or over the
 * row */
#define ENG_AS_STORED (INT64_MIN + 1)

enum eng_row_kind { ENG_STATIC, ENG_ROW };

enum eng_cell_flags {
    ENG_CELL_TOMBSTONE = 1,        /* deleted at expiry (local deletion time); no value */
    ENG_CELL_EXPIRING = 2,         /* has ttl; gone at expiry */
    /* deletes all elements of the column with ts <= this ts; no path; sorts before them */
    ENG_CELL_COMPLEX_DELETION = 4,
    ENG_CELL_HAS_PATH = 8,         /* element of a non-frozen collection or UDT */
    ENG_CELL_EXPIRED = 16,         /* only in a resolved row, of the cells after n_cells */
};

struct eng_cell {
    uint32_t column; /* schema_column.id: never reused within a table */
    uint8_t flags;
    int64_t ts;      /* microseconds */
    int32_t ttl;     /* seconds; 0 if none */
    int64_t expiry;  /* seconds since 1970: when an expiring cell ends, when a tombstone was made; else ENG_NO_EXPIRY */
    /* list: timeuuid; set: element; map: key (order-preserving form, cql_key_encode); UDT: field
     * index u16 */
    struct slice path;
    struct slice value; /* wire form */
};

struct eng_row {
    enum eng_row_kind kind;
    struct slice ck;        /* clustering key form; empty for the static row */
    /* clustering values as written (each [int length][bytes]), when ck does not decode to them;
     * else p NULL */
    struct slice key_image;
    int64_t live_ts;        /* row marker of INSERT; ENG_NO_TS: none */
    int32_t live_ttl;
    int64_t live_expiry;
    int64_t del_ts; /* row deletion; ENG_NO_TS: none */
    int64_t del_at; /* seconds, when it was made */
    /* In a delta: it sets every column with an id below this, all columns of its writer's schema, so
     * it hides any older write of the row. 0 if it leaves columns out. */
    uint32_t covers_below;
    /* eng_row_get: newest timestamp of all records of the row or covering it, dead or alive;
     * ENG_NO_TS: none */
    int64_t newest_ts;
    /* As decoded: each cell is the value of another column, without a path or a TTL, all with the
     * first one's timestamp. False says nothing. */
    bool plain;
    bool laid_out; /* the values are in an eng_layout, and there are no cells */
    uint32_t n_cells;
    uint32_t n_stored;    /* n_cells as decoded */
    /* of a resolved row: number of expired cells that are still stored; they follow the n_cells
     * others, in order */
    uint32_t n_expired;
    bool marker_expired;  /* the row marker has expired and is still stored */
    /* of a resolved row: number of deletions stored in it that no other covers: of the row, of its
     * columns (a collection with no element left), of elements */
    uint32_t n_deletions;
    /* eng_row_get: number of deletion records that cover the row's position, whether or not there
     * is a row: at most one of the partition and one of a range */
    uint8_t n_markers;
    struct eng_cell *cells; /* sorted by column, then complex deletion first, then path bytes */
};

/* Receives the values of a row of plain cells, as they lie in its bytes, in place of cells. */
struct eng_layout {
    const uint16_t *places;    /* by column id below n_ids: index into values; UINT16_MAX: the column is left out */
    uint32_t n_ids;
    struct value *values;
    uint32_t from, to;         /* the range of values that each row sets: null where the row has none */
    /* For the row laid out last: */
    uint32_t n;                /* number of its values, */
    uint64_t bytes;            /* and of their bytes */
};

/* An initialiser of a row that nothing was written to. */
#define ENG_ROW_EMPTY(of_kind, of_ck)                                                                                  \
    {                                                                                                                  \
        .kind = (of_kind), .ck = (of_ck), .live_ts = ENG_NO_TS, .live_expiry = ENG_NO_EXPIRY, .del_ts = ENG_NO_TS,     \
        .newest_ts = ENG_NO_TS                                                                                         \
    }
static inline void eng_row_init(struct eng_row *r, enum eng_row_kind kind, struct slice ck) {
    *r = (struct eng_row)ENG_ROW_EMPTY(kind, ck);
}
/* For a row from eng_row_get: whether the row has everything that is stored of it and nothing
 * covers it, so that reading it with ENG_AS_STORED would give the same. */
static inline bool eng_row_is_as_stored(const struct eng_row *r) {
    return r->n_cells == r->n_stored && r->del_ts == ENG_NO_TS && !r->n_markers && !r->marker_expired;
}

/* Stored form (drawn in row.c); ck and kind are not in it, they are the key's. Cells must be sorted
 * (eng_row_sort). */
void eng_row_encode(const struct eng_row *r, struct buf *out);
/* Sets all fields but kind and ck. Cells go to the arena; paths and values point into bytes. Returns -1
 * with ERR_SERVER on damage; or the thread's check (base/stop_check.h) has stopped it, and has set its own
 * error. */
int eng_row_decode(struct slice bytes, struct arena *a, struct eng_row *r, struct err *e) MUST_CHECK;
/* Sorts cells; of cells with equal column and path only the winner stays. */
void eng_row_sort(struct eng_row *r);
/* out = reconcile(a, b), directly from and to stored form. Their order matters only for the key's
 * image, which is taken from a, the earlier one. Returns -1 if the bytes are damaged, or it was stopped as
 * eng_row_decode. */
int eng_row_merge(struct slice a, struct slice b, struct buf *out) MUST_CHECK;
/* The same for rows that are decoded but not resolved. The result goes to *out, with its cells in
 * the arena; paths and values stay in the memory of a and b. Returns -1 if memory is exhausted. */
int eng_row_lay(const struct eng_row *a, const struct eng_row *b, struct arena *arena, struct eng_row *out) MUST_CHECK;

/* Drops (except for n_expired) data that is not visible at now (seconds): cells covered by the row deletion
 * or by del_ts (the newest covering range or partition deletion, or ENG_NO_TS), expired and deleted
 * cells, dead liveness. Counts passed tombstones. Returns whether the row is visible: live liveness
 * or at least one live cell (a static row: at least one cell). */
bool eng_row_resolve(struct eng_row *r, int64_t del_ts, int64_t now, uint64_t *tombstones);
