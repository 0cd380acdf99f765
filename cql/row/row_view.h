/* A row as CQL sees it: one value per column, assembled from the partition key, the static row and the row.
 *
 * Life: a statement's compile makes a layout, which names the columns that its runs read; each run
 * has a view of that layout, and calls row_view_partition per partition and row_view_row per row. A
 * run that keeps several rows at a time calls row_view_next before each but the first of them, so that the
 * values of the rows before it stay.
 * Non-frozen collections and UDTs are assembled from their cells (cql/row/cell_form.h describes
 * the cells). One thread.
 *
 * A value points into the key, the static row or the row that the caller gave, or into the view's
 * arena; the view copies none of the three. Values of the key and of static columns are valid until
 * the next row_view_partition, those of a row until the next row_view_partition or row_view_row without
 * row_view_next, and no longer than the memory that the caller gave. A caller that needs static values after
 * their row's memory is freed calls row_view_keep_statics before.
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
    bool flat_keys;       /* no column of the keys is a collection or UDT */
    struct row_view_place *places; /* by column id */
    uint16_t *ordinals;   /* the same alone, for the engine */
    bool key_is_int, key_desc; /* the clustering key is an int; in descending order */
};

/* The cells of a column: they follow one another. */
struct row_view_run {
    uint32_t first, n;
};

struct row_view {
    const struct row_view_layout *layout;
    struct arena *arena;   /* what the current row needs is taken from it and given back at the next row */
    struct arena_mark mark, row_mark; /* where the arena is when a partition, and when a row of it, begins */
    struct value *values;  /* of the current row, by ordinal; null where it has none */
    struct value *room;    /* the values of all kept rows, one row after the other, and their int keys */
    struct value *end;     /* of room */
    uint32_t stride;       /* from row to row */
    struct value *first;   /* the values of the first row that is kept: one of those in room */
    const struct eng_row *statics, *row; /* NULL if none */
    struct row_view_run *runs;           /* by ordinal, in statics or row */
    unsigned row_flags;                  /* of any cell of row */
    /* Set for a row of plain cells in a flat layout; else measured is false. */
    bool measured;
    uint64_t regular_bytes;  /* of the values of regular columns */
    uint64_t ck_bytes;       /* of the clustering key's values */
    struct eng_layout laid;  /* where the engine may lay rows out, when the layout is flat and the read uses no cells */
};

/* A column's timestamp and TTL, for WRITETIME and TTL. */
struct row_view_time {
    bool present;   /* has a live value */
    int64_t ts;     /* microseconds; of several cells, the newest */
    int32_t ttl;    /* seconds as written; 0 if none */
    int64_t expiry; /* seconds since 1970; ENG_NO_EXPIRY: none */
};

/* wanted: by ordinal; NULL means every column. A non-frozen collection or UDT that is not wanted
 * has cells only, and its value is null, so that a large one costs nothing. NULL when memory is
 * out. */
const struct row_view_layout *row_view_layout_new(const struct schema_table *t, const bool *wanted,
                                                  struct arena *a) MUST_CHECK;
/* The layout for a view that measures rows: collections by their cells. */
const struct row_view_layout *row_view_layout_of_cells(const struct schema_table *t, struct arena *a) MUST_CHECK;
/* rows: the number that the view keeps at a time. Allocations from the arena between two rows end with the next
 * row_view_row. */
int row_view_init(struct row_view *v, const struct row_view_layout *layout, uint32_t rows, struct arena *a,
                  struct err *e) MUST_CHECK;
/* A new partition: fills the partition key columns and, for all its rows, the static ones; statics may be NULL. */
int row_view_partition(struct row_view *v, struct slice key, const struct eng_row *statics, struct err *e) MUST_CHECK;
/* Copies the static row into the arena, and takes static values and cells from the copy: they no
 * longer depend on the row that row_view_partition was given. The values of the last row end. */
int row_view_keep_statics(struct row_view *v, struct err *e) MUST_CHECK;
/* Drops the rows kept so far; the next row is the first. laid_out: the engine has laid out the next row already. */
static inline void row_view_first(struct row_view *v, bool laid_out) {
    if (laid_out) v->first = v->values;
    else v->values = v->laid.values = v->first;
}
/* Keeps the current row, too, if the view has room for another one. Called before the engine lays out the next row. */
static inline void row_view_next(struct row_view *v) {
    const struct schema_table *t = v->layout->table;
    const struct value *before = v->values;
    struct value *to = v->values + v->stride;
    if (UNLIKELY(to == v->end)) to = v->room;
    to[0] = before[0];
    for (uint32_t i = 1; i < t->n_partition_key; i++) to[i] = before[i];
    for (uint32_t n = t->n_static, i = t->n_columns - t->n_regular - n; n; n--, i++) to[i] = before[i];
    v->values = v->laid.values = to;
}
/* Sets the clustering key of a row, if it is one int. Returns false if it is empty, or was not written in this form. */
MUST_CHECK static inline bool row_view_int_key(struct row_view *v, const struct eng_row *row) {
    const struct row_view_layout *l = v->layout;
    uint8_t *room = (uint8_t *)(v->values + v->stride - 1);
    if (!l->key_is_int || row->key_image.p || !cql_key_decode_int(l->key_desc, row->ck, room)) return false;
    v->values[l->table->n_partition_key] = value_of(room, sizeof(int32_t));
    v->ck_bytes = sizeof(int32_t);
    return true;
}
/* row_view_row for a row after the first that is laid out under a key of one int, as most are in a slice. Returns
 * false, and does nothing, for any other row. */
MUST_CHECK static inline bool row_view_laid_out(struct row_view *v, const struct eng_row *row) {
    if (!row->laid_out || !row_view_int_key(v, row)) return false;
    v->regular_bytes = v->laid.bytes;
    v->measured = true;
    return true;
}
/* The next row of the partition; NULL for the row that a partition with static values only has. */
int row_view_row(struct row_view *v, const struct eng_row *row, struct err *e) MUST_CHECK;
/* The times of a static or regular column of the current row; for collections: of all their cells
 * together. */
struct row_view_time row_view_time(const struct row_view *v, const struct schema_column *c);
/* The cells of a static or regular column of the current row, first to last; *n 0: none. */
const struct eng_cell *row_view_cells(const struct row_view *v, const struct schema_column *c, uint32_t *n);
