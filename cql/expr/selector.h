/* What a SELECT gives back for a row: the expressions of its select list, which look at a row.
 *
 * Life: with a scope in its compile, term_compile turns an expression of the select list into a
 * term in the statement's arena; term_eval_in computes it on a row view. Aggregates are nodes of
 * the tree with a slot in the run's state: every row is added with term_add, and at the end of a
 * group the tree is evaluated with the results in those nodes' places. By then the row of the group
 * is gone: what needs more of it than its values (WRITETIME, TTL) is latched when the group opens.
 */
#pragma once

#include "cql/request/compile.h"

struct term;

/* The row that expressions look at, and what of it they turn out to need. */
struct term_scope {
    const struct schema_table *table;
    bool *wanted; /* by ordinal: columns that are looked at */
    uint32_t n_aggregates;
    const struct term *aggregates[64];
    /* an aggregate's arguments are compiled; there was another one among them */
    bool inside_aggregate, nests_aggregate;
    uint32_t n_latches;
    const struct term *latches; /* those whose values groups latch, linked by next_latch */
    struct term *subscripts;    /* whose keys a run checks as it begins; by next_subscript, the last one first */
    bool names_fault;           /* what is wrong is a name or a call: told before anything is said of WHERE */
};

/* The name of a result column without an alias: "system.token(k)", "writetime(v)", "count". NULL: no memory. */
const char *selector_name(struct compile *c, const struct ast_expr *x) MUST_CHECK;
void selector_print_name(const struct ast_expr *x, struct buf *out);

/* Marks the columns that an expression names as wanted, which is wrong for another reason. -1: one
 * of them is unknown, and that is told. */
int selector_want_names(struct compile *c, const struct ast_expr *x) MUST_CHECK;
/* -1, with "Undefined column name x in table k.t". */
int selector_undefined(struct compile *c, const struct schema_table *t, const char *name);
