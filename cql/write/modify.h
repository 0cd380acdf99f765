/* INSERT, UPDATE and DELETE: the plan that compiling makes, and one execution of it.
 *
 * Life of a write: modify_bind, modify_bind_rows and modify_bind_times evaluate keys, row targets
 * and attributes into a struct modify_write; modify_add turns it into changes of mutations and into
 * the op_cost. write.c runs both for a statement as for a batch, under the partitions' locks when
 * something reads before it writes; cas.c decides the conditions, counter.c adds up. Inside cql
 * only; a plan is immutable, a write is one request's.
 */
#pragma once

#include "cql/row/row_view.h"
#include "cql/write/condition.h"
#include "cql/write/multicell.h"
#include "cql/write/mutation.h"
#include "cql/where/restrictions.h"
#include "cql/request/statement.h"
#include "metering/size/size.h"

enum modify_op_kind {
    MODIFY_SET,
    MODIFY_ADD,
    MODIFY_PREPEND,
    MODIFY_SUBTRACT,
    MODIFY_PUT,
    MODIFY_LIST_SET,
    MODIFY_FIELD,
    MODIFY_COUNT,    /* counter + value */
    MODIFY_INCREASE, /* stored value + value */
    MODIFY_DELETE, /* from here on: of DELETE */
    MODIFY_DISCARD,
    MODIFY_LIST_DELETE,
    MODIFY_FIELD_DELETE,
};

struct modify_op {
    enum modify_op_kind kind;
    const struct schema_column *column;
    const struct term *value, *element;
    const struct cql_type *value_type; /* of value */
    uint32_t position; /* in the statement */
    uint16_t field;
    bool negative; /* MODIFY_COUNT: minus */
    bool sets_cell;    /* MODIFY_SET of a column that has one cell */
    bool repeats;      /* it adds to a static list that is not frozen (static_times) */
    bool checks_items; /* some elements of the list that is bound cannot be written */
    const struct function *sum; /* MODIFY_INCREASE: of two values of the column's type */
};

struct modify_plan {
    enum op_write_kind kind;
    const struct schema_table *table;
    bool static_only; /* addresses the static row: no clustering key */
    bool conditional, if_exists, if_not_exists;
    bool reads;       /* some operation needs the current row */
    bool counter;     /* of a counter table */
    bool has_ttl, has_timestamps; /* the table has TTL, client-side timestamps */
    uint16_t regions;             /* of the keyspace */
    /* keyspaces mode, no client-side timestamps: the driver's own time is not used */
    bool server_times;
    uint32_t n_conditions;
    struct condition **conditions;
    const struct term *timestamp, *ttl;
    const struct term **keys; /* INSERT: by ordinal of the key columns */
    const struct where_plan *where; /* UPDATE, DELETE */
    const struct term *json;  /* INSERT JSON: keys and operations take their values from it */
    bool json_unset;          /* DEFAULT UNSET */
    bool repeats;             /* two operations on one column */
    bool whole;               /* gives every regular column of the row a value, and either all static columns or none */
    /* of INSERT: a row that sets every regular column is all that readers see, whatever the row was */
    bool hides_older;
    uint32_t n_ops, n_static_ops; /* of static columns first, each part in the order of column ids */
    struct modify_op *ops;
    /* to size rows; NULL if the statement writes the whole row, so the stored one is not read */
    const struct row_view_layout *by_cells;
};

/* One execution. */
struct modify_write {
    struct cql_run *r;
    const struct modify_plan *plan;
    bool whole;                 /* replaces the whole row and static row */
    struct size_rule rule;      /* of its row */
    int64_t ts, now;            /* microseconds; seconds */
    int64_t deletion_ts;
    int32_t ttl;
    uint32_t n_parts;
    struct eng_part *parts;
    bool rows_by_key;         /* keys, else slices */
    uint32_t n_keys;
    struct row_key *keys;
    uint32_t n_slices;
    struct eng_slice *slices;
    const struct value *key_values; /* INSERT: by ordinal */
    const struct value *json;       /* by ordinal; unset where DEFAULT UNSET left it */
    struct mutations *mutations;    /* that modify_add adds to */
    uint32_t n_given;               /* operations that modify_add has run; one whose value is unset does not run */
};

/* One statement to be run. */
struct write_item {
    const struct cql_statement *statement; /* INSERT, UPDATE or DELETE */
    uint32_t n_values;
    const struct value *values; /* of its markers, in their order */
};

static inline const struct modify_plan *modify_plan_of(const struct cql_statement *s) { return s->plan; }
/* Whether the partition's lock is needed. */
static inline bool modify_needs_lock(const struct modify_plan *p) { return p->conditional || p->reads || p->counter; }
static inline bool modify_writes_rows(const struct modify_plan *p) {
    return !p->static_only && (p->kind != OP_UPDATE || p->n_ops > p->n_static_ops);
}

/* modify_compile.c: a statement_ops.compile for each kind. */
int modify_compile_insert(struct compile *c, const struct ast_stmt *stmt, struct cql_statement *out) MUST_CHECK;
int modify_compile_update(struct compile *c, const struct ast_stmt *stmt, struct cql_statement *out) MUST_CHECK;
int modify_compile_delete(struct compile *c, const struct ast_stmt *stmt, struct cql_statement *out) MUST_CHECK;
/* USING of a statement, or of a batch (p NULL). */
int modify_compile_using(struct compile *c, const struct modify_plan *p, const struct ast_using *using,
                         const struct term **timestamp, const struct term **ttl) MUST_CHECK;

/* Sources of a write's timestamp when the statement gives none: the first that is not ENG_NO_TS. */
struct modify_times {
    int64_t batch;    /* USING TIMESTAMP of the batch */
    int64_t protocol; /* the driver's; not for tables whose times are the server's */
    int64_t server;   /* of the write clock; ENG_NO_TS: not asked yet */
};

/* Checks that the value bound as timestamp is one. */
int modify_check_timestamp(struct cql_run *r, const struct modify_plan *p) MUST_CHECK;
/* Refuses USING TIMESTAMP and TTL on counters: after the whole statement or batch compiled. */
int modify_check_counter(const struct modify_plan *p, struct err *e) MUST_CHECK;
/* A write of one statement, which nothing is bound of yet. The values are those of its markers. */
void modify_begin(struct modify_write *w, struct cql_run *r, const struct modify_plan *p, const struct value *values,
                  uint32_t n_values);
/* modify_bind.c: partitions, then rows, then timestamp and TTL, in Cassandra's order. The request's
 * values are those of the statement while they run. */
int modify_bind(struct modify_write *w) MUST_CHECK;
int modify_bind_rows(struct modify_write *w) MUST_CHECK;
int modify_bind_times(struct modify_write *w, struct modify_times *times) MUST_CHECK;
/* USING TIMESTAMP of a statement or a batch: 1 and *out, 0: not given, -1. */
int modify_timestamp(struct cql_run *r, const struct term *t, int64_t *out) MUST_CHECK;

/* Sets the write's timestamps under the lock. conditional: its deletions lose to its own cells and
 * those of the same batch (Cassandra's PartitionUpdate.updateAllTimestamp), except the deletion of
 * one row. */
void modify_order(struct modify_write *w, bool conditional, int64_t ts);

/* Values by ordinal of the table's columns. */
int modify_json_values(struct cql_run *r, const struct modify_plan *p, const struct value **out) MUST_CHECK;

/* modify_change.c: adds changes for all rows of the write to the mutations of its partitions, and their
 * cost to the request's op_cost. */
int modify_add(struct modify_write *w, struct mutations *to) MUST_CHECK;
/* For a conditional write that was not applied: charges the existing rows, which may be NULL. */
int modify_cost_failed(struct modify_write *w, const struct eng_part *part, const struct eng_row *row,
                       const struct eng_row *statics) MUST_CHECK;
