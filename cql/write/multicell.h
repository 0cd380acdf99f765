/* From CQL values to the cells of a row: plain columns, and the elements of non-frozen lists, sets,
 * maps and UDTs.
 *
 * Life: one cell_writer per row that a statement writes; each operation of the statement appends
 * its cells; cells_finish sorts them if needed and moves them into an eng_row. cql/row/cell_form.h
 * shows the form of the cells. Everything lives in the request's arena.
 * Operations on list indexes and list - value need the row's current cells. One thread.
 */
#pragma once

#include "engine/engine.h"
#include "system_schema/objects/schema.h"

/* A list as the operations of one statement see it: the stored list with the statement's earlier
 * operations applied. A statement with one operation on a list uses none. */
struct list_view {
    const struct schema_column *column;
    struct eng_cell *cells; /* live, by path */
    uint32_t n, capacity;
    uint32_t seen;          /* how many of the writer's cells were applied */
    uint64_t moved;         /* cells moved by all operations together */
};

struct cell_writer {
    struct arena *arena;
    struct err *err;
    struct eng *eng;    /* gives the list ticks */
    int64_t now_us;     /* for list ticks */
    int64_t ts;         /* of cells */
    int64_t overwrite_ts; /* of deletions before an overwrite: ts - 1 */
    int64_t now;        /* seconds: when tombstones are made */
    int32_t ttl;        /* seconds; 0 if none */
    bool unsorted;
    bool repeats;       /* two operations may be on one column */
    struct list_view list; /* of the last list that was read; column is NULL if none */
    uint32_t n, capacity;
    struct eng_cell *cells;
    /* Their size as Cassandra counts it: of the path of an element it counts the bytes of the value,
     * and not those of the key form, which may be longer. */
    uint64_t data_bytes;
    const struct schema_column *complex; /* the last column of several cells that data_bytes has */
};

/* Allocates space for capacity cells; it grows as needed. */
int cells_init(struct cell_writer *w, uint32_t capacity) MUST_CHECK;
/* Sorts if needed and moves the cells into the row. */
void cells_finish(struct cell_writer *w, struct eng_row *row);

/* column = v, which has one cell; null deletes. v must not be unset. */
int cells_set(struct cell_writer *w, const struct schema_column *c, struct value v) MUST_CHECK;
/* Likewise for a column of several cells, all of which are replaced. */
int cells_replace(struct cell_writer *w, const struct schema_column *c, struct value v) MUST_CHECK;
/* DELETE column. */
int cells_delete(struct cell_writer *w, const struct schema_column *c) MUST_CHECK;
/* column = column + v: list append, set union, map put. prepend: column = v + column, lists only. Null does
 * nothing. */
int cells_add(struct cell_writer *w, const struct schema_column *c, struct value v, bool prepend) MUST_CHECK;
/* column = column - v: elements of a set, keys of a map (v is a set of them), values of a list
 * (current needed). */
int cells_subtract(struct cell_writer *w, const struct schema_column *c, struct value v,
                   const struct eng_row *current) MUST_CHECK;
/* map[key] = v; null deletes the entry. */
int cells_put(struct cell_writer *w, const struct schema_column *c, struct value key, struct value v) MUST_CHECK;
/* Removes one element of a set or one key of a map. */
int cells_discard(struct cell_writer *w, const struct schema_column *c, struct value key) MUST_CHECK;
/* list[index] = v; null deletes. current: the row's live cells, or NULL. "List index 7 out of
 * bound, list has size 3". */
int cells_list_set(struct cell_writer *w, const struct schema_column *c, struct value index, struct value v,
                   const struct eng_row *current, bool deleting) MUST_CHECK;
/* udt.field = v; null deletes. */
int cells_field(struct cell_writer *w, const struct schema_column *c, uint16_t field, struct value v) MUST_CHECK;

/* Returns the live cells of a column in a resolved row, or NULL with *n 0 if none. row may be NULL. */
const struct eng_cell *cells_of(const struct eng_row *row, const struct schema_column *c, uint32_t *n);
