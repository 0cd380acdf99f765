/* The expressions of a select list, which are evaluated on a row.
 *
 * Life: with a scope in its compile, term_compile turns an expression of the select list into a
 * term in the statement's arena; term_eval_in computes it on a row view. Aggregates are nodes of
 * the tree with a slot in the run's state: every row is added with term_add, and at the end of a
 * group the tree is evaluated with the results in those nodes' places. The group's row is no longer
 * available then, so WRITETIME and TTL, which need more than its values, are latched when the group
 * opens.
 */
#pragma once

#include "cql/request/compile.h"

struct term;

/* The table whose rows the expressions use, and the parts of a row that they need. */
struct term_scope {
    const struct schema_table *table;
    bool *wanted; /* by ordinal: columns that are used */
    uint32_t n_aggregates;
    const struct term *aggregates[64];
    /* an aggregate's arguments are compiled; there was another one among them */
    bool inside_aggregate, nests_aggregate;
    uint32_t n_latches;
    const struct term *latches; /* those whose values groups latch, linked by next_latch */
    struct term *subscripts;    /* whose keys a run checks as it begins; by next_subscript, the last one first */
    bool names_fault;           /* the error is a wrong name or call, which is reported before errors of WHERE */
};

/* The name of a result column without an alias. Returns NULL if memory is exhausted. */
const char *selector_name(struct compile *c, const struct ast_expr *x) MUST_CHECK;

/* Marks the columns of an expression as wanted, after the expression failed for another reason.
 * Returns -1 if a column is unknown; that error replaces the first. */
int selector_want_names(struct compile *c, const struct ast_expr *x) MUST_CHECK;
/* -1, with "Undefined column name x in table k.t". */
int selector_undefined(struct compile *c, const struct schema_table *t, const char *name);
