/* A row as CQL sees it: one value per column, assembled from the partition key, the static row and the row.
 *
 * Life: a statement's compile makes a layout, which names the columns that its runs read; each run
 * has a view of that layout, and calls row_view_partition per partition and row_view_row per row.
 * Non-frozen collections and UDTs are put together from their cells (cql/row/cell_form.h describes
 * the cells). One thread.
 *
 * A value points into the key, the static row or the row that the caller gave, or into the view's
 * arena; the view copies none of the three. Values of the key and of static columns are valid until
 * the next row_view_partition, those of a row until the next call of either, and no longer than the
 * memory that the caller gave. A caller that looks at static values after their row's memory is gone
 * calls row_view_keep_statics before.
 */
#pragma once

#include "engine/engine.h"
#include "system_schema/objects/schema.h"

/* Where the cells of a column go. */
struct row_view_place {
    uint16_t ordinal; /* UINT16_MAX: no such column */
    bool multicell, assembled; /* assembled: of several cells, a value is put together */
};

/* Immutable, in the statement's arena. */
struct row_view_layout {
    const struct schema_table *table;
    uint32_t n_ids;       /* column ids are below this */
    bool has_ttl, has_timestamps; /* the table has TTL, client-side timestamps */
    bool flat;            /* every regular column's value is one cell, and no collection or UDT */
    uint32_t around_keys; /* what sizes add to those of the keys' values, where a row is sized_as_sent */
    /* the clustering key is an int, no part of the partition key is a collection or UDT, and
     * nothing is added for TTL and timestamps */
    bool sized_as_sent;
    struct row_view_place *places; /* by column id */
    uint16_t *ordinals;   /* the same alone, for the engine */
    bool key_is_int;      /* the clustering key is an int */
};

/* The cells of a column: they follow one another. */
struct row_view_run {
    uint32_t first, n;
};

struct row_view {
    const struct row_view_layout *layout;
    struct arena *arena;   /* what the current row needs is taken from it and given back at the next row */
    struct arena_mark mark, row_mark; /* where the arena is when a partition, and when a row of it, begins */
    struct value *values;  /* by ordinal; null where the row has none */
    const struct eng_row *statics, *row; /* NULL: none */
    struct row_view_run *runs;           /* by ordinal, in statics or row */
    unsigned row_flags;                  /* of any cell of row */
    /* Set for a row of plain cells in a flat layout; else measured is false. */
    bool measured;
    uint32_t n_regular;      /* columns that have a value, */
    uint64_t regular_bytes;  /* and the bytes of those values */
    uint64_t key_bytes;      /* of the partition key's values */
    struct eng_layout laid;  /* where the engine may lay rows out, when the layout is flat and the read uses no cells */
    uint8_t key_room[4];
};

/* A column's timestamp and TTL, for WRITETIME and TTL. */
struct row_view_time {
    bool present;   /* has a live value */
    int64_t ts;     /* microseconds; of several cells, the newest */
    int32_t ttl;    /* seconds as written; 0: none */
    int64_t expiry; /* seconds since 1970; ENG_NO_EXPIRY: none */
};

/* wanted: by ordinal; NULL: every column. A non-frozen collection or UDT that is not wanted has
 * cells only, and its value is null, so that a large one costs nothing. NULL when memory is out. */
const struct row_view_layout *row_view_layout_new(const struct schema_table *t, const bool *wanted,
                                                  struct arena *a) MUST_CHECK;
/* The layout for a view that measures rows: collections by their cells. */
const struct row_view_layout *row_view_layout_of_cells(const struct schema_table *t, struct arena *a) MUST_CHECK;
/* Nothing may be allocated from the arena between two rows and be expected to outlive the next row_view_row. */
int row_view_init(struct row_view *v, const struct row_view_layout *layout, struct arena *a, struct err *e) MUST_CHECK;
/* A new partition: fills the partition key columns and, for all its rows, the static ones; statics may be NULL. */
int row_view_partition(struct row_view *v, struct slice key, const struct eng_row *statics, struct err *e) MUST_CHECK;
/* Copies the static row into the arena, and takes static values and cells from the copy: they no
 * longer depend on the row that row_view_partition was given. The values of the last row end. */
int row_view_keep_statics(struct row_view *v, struct err *e) MUST_CHECK;
/* The next row of the partition; NULL for the row that a partition with static values only has. */
int row_view_row(struct row_view *v, const struct eng_row *row, struct err *e) MUST_CHECK;
/* Fills in the clustering key of a row, where it is one int. False: it is empty, or is not what the
 * key was written as. */
static inline bool row_view_int_key(struct row_view *v, const struct eng_row *row) {
    const struct schema_table *t = v->layout->table;
    if (row->key_image.p || !cql_key_decode_int(schema_clustering(t, 0)->desc, row->ck, v->key_room)) return false;
    v->values[t->n_partition_key] = value_of(v->key_room, sizeof(v->key_room));
    return true;
}
/* The times of a static or regular column of the current row; for collections: of all their cells
 * together. */
struct row_view_time row_view_time(const struct row_view *v, const struct schema_column *c);
/* The cells of a static or regular column of the current row, first to last; *n 0: none. */
const struct eng_cell *row_view_cells(const struct row_view *v, const struct schema_column *c, uint32_t *n);
