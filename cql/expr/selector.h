/* What a SELECT gives back for a row: expressions over its columns, compiled once, evaluated per row.
 *
 * Life: selector_compile turns an expression of the select list into a tree in the statement's arena; selector_eval computes it on
 * a row view. Aggregates (COUNT, MIN, MAX, SUM, AVG) are nodes of the tree with a slot in the run's state: every row is
 * added with selector_add, and at the end of a group the tree is evaluated with the results in those nodes' places. By then the row
 * of the group is gone: what needs more of it than its values (WRITETIME, TTL) is latched when the group opens.
 */
#pragma once

#include "cql/expr/aggregate.h"
#include "cql/row/row_view.h"
#include "cql/expr/term.h"

enum selector_kind {
    SELECTOR_COLUMN, SELECTOR_TERM, SELECTOR_FUNCTION, SELECTOR_ELEMENT, SELECTOR_RANGE, SELECTOR_FIELD, SELECTOR_TIMESTAMP, SELECTOR_MAX_TIMESTAMP, SELECTOR_TTL,
    SELECTOR_TOKEN, SELECTOR_AGGREGATE,
};

struct selector {
    enum selector_kind kind;
    const struct cql_type *type;
    const struct schema_column *column; /* COLUMN, TIMESTAMP, TTL */
    struct term *term;                  /* TERM; ELEMENT, TIMESTAMP, TTL: the key; RANGE: its start, or NULL */
    struct term *term2;                 /* RANGE: its end, or NULL */
    const struct function *function;
    uint32_t n_args;
    struct selector **args;
    const struct cql_type **types;      /* of the arguments, as the function wants them */
    uint32_t field;
    const struct schema_table *table; /* TOKEN */
    enum aggregate_kind aggregate;      /* args[0], or none for COUNT(*) */
    uint32_t slot;
    uint32_t latch;                     /* TIMESTAMP, MAX_TIMESTAMP, TTL outside of aggregates: its slot in selector_context.latched */
    const struct selector *next_latch;  /* of the select list's */
};

/* Filled while a select list is compiled. */
struct selection {
    struct compile *compile;
    const struct schema_table *table;
    bool *wanted; /* by ordinal: columns that selectors look at */
    uint32_t n_aggregates;
    const struct selector *aggregates[64];
    bool inside_aggregate;
    uint32_t n_latches;
    const struct selector *latches; /* those whose values groups latch, linked by next_latch */
};

/* NULL with ERR_INVALID in Cassandra's words. to: what the value is for (an argument's type), or NULL. */
struct selector *selector_compile(struct selection *s, const struct ast_expr *x, const struct cql_type *to) MUST_CHECK;
/* The name of a result column without an alias: "system.token(k)", "writetime(v)", "count". NULL: no memory. */
const char *selector_name(struct compile *c, const struct ast_expr *x) MUST_CHECK;
void selector_print_name(const struct ast_expr *x, struct buf *out);

/* -1, with "Undefined column name x in table k.t". */
int selector_undefined(struct compile *c, const struct schema_table *t, const char *name);

struct selector_context {
    struct cql_request *r;
    const struct row_view *view;
    const struct value *values; /* by ordinal: the view's, or those of a group's first row */
    struct aggregate *aggregates; /* by slot; NULL while none is due */
    const struct value *latched; /* by latch: of the row that opened the group; NULL: the row is view's */
};
/* Of any kind but a plain column. */
int selector_compute(const struct selector *s, const struct selector_context *c, struct value *out) MUST_CHECK;
MUST_CHECK static inline int selector_eval(const struct selector *s, const struct selector_context *c, struct value *out) {
    if (s->kind != SELECTOR_COLUMN) return selector_compute(s, c, out);
    *out = c->values ? c->values[s->column->ordinal] : value_null();
    return 0;
}

/* Computes what the list needs of the row that a group opens with, by latch. -1 with the request's err. */
int selector_latch_all(const struct selector *latches, const struct selector_context *c, struct value *out) MUST_CHECK;

/* Room for n; lives until aggregates_fini. */
struct aggregate *aggregates_new(struct arena *a, uint32_t n) MUST_CHECK;
void aggregates_clear(struct aggregate *all, uint32_t n);
void aggregates_fini(struct aggregate *all, uint32_t n);
/* Into the slot of s. */
int selector_add(struct aggregate *all, const struct selector *s, const struct selector_context *c) MUST_CHECK;
