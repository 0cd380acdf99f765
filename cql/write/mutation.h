/* The changes of a statement or a batch, decided and not yet written: one mutation per partition,
 * each a list of changes.
 *
 * Life: mutations_open makes one empty mutation for every partition that is addressed; every
 * statement adds its changes and records the rows it read to decide them; mutations_apply adds all
 * of them to an engine batch. Checks of a write before it is made (its size limit, its admission,
 * an index, a view) use this list. Everything lives in the request's arena.
 */
#pragma once

#include "engine/engine.h"
#include "system_schema/objects/schema.h"

struct row_view_layout;

enum change_kind { CHANGE_ROW, CHANGE_RANGE, CHANGE_PARTITION };

struct change {
    struct change *next;
    enum change_kind kind;
    bool counts;            /* ROW: the cells are increments, which counter.c turns into sums */
    struct op_write *cost;  /* the operation it is charged to; NULL for a sum */
    struct change *summed;  /* for a sum: the changes that went into it, linked by next */
    struct eng_row row;     /* ROW: the delta; RANGE, PARTITION: its del_ts and del_at */
    struct eng_slice range; /* RANGE */
};

/* A row or static row that was read under the partition's lock. */
struct mutation_read {
    struct mutation_read *next;
    enum eng_row_kind kind;
    struct slice ck;
    const struct eng_row *row; /* NULL if not there */
};

/* M1: statements on a table that are written together are compiled for one version of it. */
struct mutation {
    const struct schema_table *table;
    struct eng_part part;
    struct change *first, *last;
    bool written;          /* by an earlier run of the request, which met a conflict elsewhere */
    uint64_t data_bytes; /* of rows and cells as Cassandra's PartitionUpdate.dataSize counts them */
    struct mutation_read *reads; /* newest first */
    const struct row_view_layout *by_cells; /* a statement's, that the rows may be sized with; NULL if none has one */
};

struct mutations {
    struct arena *arena;
    struct err *err;
    uint32_t n;
    struct mutation *list;  /* by table, token and key; each partition once */
};

struct mutation_address {
    const struct schema_table *table;
    const struct eng_part *part;
};
/* The n addresses may repeat. m->arena and m->err are set. */
int mutations_open(struct mutations *m, struct mutation_address *addresses, size_t n) MUST_CHECK;
/* The mutation of a partition that was opened. */
struct mutation *mutations_find(const struct mutations *m, const struct eng_part *part);
/* Appends an empty change. Returns NULL if memory is exhausted. */
struct change *mutation_add(struct mutations *m, struct mutation *to, enum change_kind kind) MUST_CHECK;
/* Takes the newest change out again; last: the change that was added before it, NULL: none. */
void mutation_drop_newest(struct mutation *of, struct change *last);
int mutation_note_read(struct mutations *m, struct mutation *of, enum eng_row_kind kind, struct slice ck,
                       const struct eng_row *row) MUST_CHECK;
/* Adds all changes of the first n mutations that are not written yet to b, and their stored bytes to
 * cost. On -1 the caller rolls back to its savepoint. */
int mutations_apply(const struct mutations *m, uint32_t n, struct eng_batch *b, struct op_cost *cost) MUST_CHECK;
