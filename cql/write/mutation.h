/* The changes of a statement or a batch, decided and not yet written: one mutation per partition,
 * each a list of changes.
 *
 * Life: mutations_open makes one empty mutation for every partition that is addressed; every
 * statement adds its changes and records the rows it read to decide them; write.c adds all of them
 * to an engine batch. Checks of a write before it is made (its size limit, its admission)
 * use this list. Everything lives in the request's arena.
 *
 * Rows are read under the partition's lock. A write on a worker holds the stripe itself and may
 * block. A write on an event loop holds it through the loop's batch (eng_batch_try_lock), reads from
 * memory alone, and cannot see the batch's uncommitted writes. For a row with such a write, and for
 * a row too large for a loop, a read returns ENG_INCOMPLETE, and the request starts over on a worker.
 */
#pragma once

#include "cql/request/request.h"
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

/* A stored row or static row that was read under the partition's lock. */
struct mutation_read {
    struct mutation_read *next;
    struct slice ck;
    const struct eng_row *row;
};

/* M1: statements on a table that are written together are compiled for one version of it. */
struct mutation {
    const struct schema_table *table;
    struct eng_part part;
    struct change *first, *last;
    bool written;          /* by an earlier run of the request, which had a conflict elsewhere */
    uint64_t data_bytes; /* of rows and cells as Cassandra's PartitionUpdate.dataSize counts them */
    struct mutation_read *reads; /* newest first */
    const struct row_view_layout *by_cells; /* a statement's, that the rows may be sized with; NULL if none has one */
};

struct mutations {
    struct cql_run *r;
    uint32_t n;
    struct mutation *list;  /* by table, token and key; each partition once */
};

struct mutation_address {
    const struct schema_table *table;
    const struct eng_part *part;
};
/* The n addresses may repeat. m->r is set. */
int mutations_open(struct mutations *m, struct mutation_address *addresses, size_t n) MUST_CHECK;
/* The mutation of a partition that was opened. */
struct mutation *mutations_find(const struct mutations *m, const struct eng_part *part);
/* Appends an empty change. Returns NULL if memory is exhausted. */
struct change *mutation_add(struct mutations *m, struct mutation *to, enum change_kind kind) MUST_CHECK;
/* Takes the newest change out again. last: the change that was added before it, or NULL if none. */
void mutation_drop_newest(struct mutation *of, struct change *last);
/* Whether the request holds the partition's lock. For assertions. */
bool mutation_is_locked(const struct cql_run *r, const struct mutation *m);
/* Reads a row under the lock: as eng_row_get, or ENG_INCOMPLETE. */
int mutation_get(struct cql_run *r, const struct mutation *m, enum eng_row_kind kind, struct slice ck, int64_t now,
                 struct arena *a, struct eng_row *row, struct op_cost *cost) MUST_CHECK;
/* Reads a row into the request's arena, charges the read, and notes the row in m->reads. Returns 1 if it
 * exists, 0 if not, ENG_INCOMPLETE, or -1; *row is set unless negative. */
int mutation_read(struct cql_run *r, struct mutation *m, enum eng_row_kind kind, struct slice ck, int64_t now,
                  struct eng_row **row) MUST_CHECK;
/* counter.c: replaces increments by new values, with all partitions locked; now in seconds. Changes to the
 * same row become one, and all get timestamps above any that the rows have. Returns 0, -1, or
 * ENG_INCOMPLETE. */
int counter_settle(struct mutations *m, int64_t now) MUST_CHECK;
/* row_sizing.c. k: the statement's; a deletion of more rows than Keyspaces allows at once is refused at the
 * first row over the limit. Returns 0, -1, or ENG_INCOMPLETE if a row is not in memory or a range must be
 * scanned. */
int size_by_rows(const struct mutations *m, const struct compat *k) MUST_CHECK;
