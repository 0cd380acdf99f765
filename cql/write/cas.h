/* Compare and set within one partition: the conditions of one statement or of a batch, decided
 * together, and their answer. A batch of several partitions has one for each.
 *
 * Life: cas_init, cas_add for every statement, cas_check_elements; with the partition locked
 * cas_check reads the rows and decides, cas_answer gives the sink [applied] and, when it is false,
 * the rows as they are. Everything lives in the request's arena. On a loop, each function that
 * reads rows may return ENG_INCOMPLETE (cql/write/mutation.h).
 */
#pragma once

#include "base/name_tree.h"
#include "cql/write/modify.h"

struct cas_row {
    struct slice ck;
    bool must_exist, must_not_exist;
    uint32_t n_conditions, capacity;
    struct bound_condition *conditions;
    const struct eng_row *row; /* as the conditions see it; NULL if none */
    const struct eng_row *stored; /* as read; may exist although no column that the conditions read has a value */
    int64_t newest_ts; /* of all that was read */
    bool read;
    bool is_false;     /* of a write that was refused: a condition on it did not hold */
    bool charged;      /* a refused write was charged for it */
};

struct cas {
    struct cql_run *r;
    const struct schema_table *table;
    const struct eng_part *part;
    struct mutation *m; /* of the partition, from cas_check on */
    bool batch, conditional; /* conditional: a write of the partition has conditions */
    bool writes_statics, writes_rows, shows_all;
    int64_t now;
    struct cas_row statics;
    uint32_t n_rows, capacity;
    struct cas_row *rows;   /* in clustering order once checked */
    struct name_tree by_ck; /* their indexes, before that */
    bool *reads;            /* by ordinal: columns that the conditions read */
    uint32_t n_shown;
    const struct schema_column **shown; /* in the answer, in addition to the keys of a batch */
};

int cas_init(struct cas *c, struct cql_run *r, const struct schema_table *t, bool batch) MUST_CHECK;
/* Binds the conditions of a write to at most one row; the request's values are its. */
int cas_add(struct cas *c, const struct modify_write *w) MUST_CHECK;
/* Checks the index or key of each condition: Cassandra reports these after all other faults. */
int cas_check_elements(struct cas *c) MUST_CHECK;
/* Returns 1 if all hold, 0 if not, or -1 on error. Without conditions nothing is read. */
int cas_check(struct cas *c, struct mutation *m) MUST_CHECK;
/* After cas_check returned 0: whether a condition of this write was false, and the rows to charge
 * for: the row that it addresses and, when conditions were on static columns, the static row; NULL
 * if absent, or charged to another write of the batch. Returns 1 if so, 0 if not (also when all are
 * charged), or -1. */
int cas_refused(struct cas *c, const struct modify_write *w, const struct eng_row **row,
                const struct eng_row **statics) MUST_CHECK;
/* After cas_check: raises *newest to the newest timestamp that the rows of the write have, so that
 * it takes effect on them. */
int cas_newest(const struct cas *c, const struct modify_write *w, int64_t *newest) MUST_CHECK;
int cas_answer(struct cas *c, bool applied) MUST_CHECK;
/* [applied] without rows, for a batch over several partitions: AWS does not document more. */
int cas_answer_alone(struct cas *c, bool applied) MUST_CHECK;
