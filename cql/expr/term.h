/* Terms: expressions of a statement, compiled once into a tree, evaluated per execution or per row.
 *
 * One tree and one compiler serve the values, conditions and assignments of a statement, which are
 * compiled against a receiver (a column and its type), and the select list, whose terms also read a
 * row (compile.scope, selector.h). A prepared statement keeps the tree in its arena; term_eval
 * returns a bound value or a column's in place (no copy, no allocation) or builds one in the
 * evaluation's arena. Bind markers record their receiver, which becomes the metadata of PREPARED.
 */
#pragma once

#include "cql/request/compile.h"

struct aggregate;
struct aggregate_op;
struct evaluation;
struct function;
struct row_view;

enum term_kind {
    TERM_CONSTANT, TERM_BIND,
    /* args: the items of a collection, tuple, vector or user type, of a map keys and values in
     * turn; NULL if a field that was not given */
    TERM_ITEMS,
    TERM_CALL,    /* args: the function's */
    TERM_ELEMENT, /* args: a map or set, a key */
    TERM_SLICE,   /* args: a map or set, from, to; either of them may be NULL */
    TERM_FIELD,   /* args: a value of a user type */
    /* of a row */
    TERM_COLUMN,
    TERM_WRITETIME, TERM_MAX_WRITETIME, TERM_TTL,   /* args: the key of an element, or none */
    TERM_AGGREGATE,                                 /* args: the value to add, or none: rows are counted */
};

struct term {
    enum term_kind kind;
    uint32_t n_args;
    struct term **args;
    const struct cql_type *type;
    union {
        struct value value;               /* CONSTANT */
        struct {
            int32_t bind; /* BIND: the marker's index */
            bool settles; /* term_settles of its type */
        };
        const struct function *function;  /* CALL */
        uint32_t field;                   /* FIELD: its index */
        struct {
            const char *of_name;               /* ELEMENT, SLICE: the name of the collection */
            struct term *next_subscript; /* in the select list's; a run checks their keys as it begins */
        };
        bool nulls;                       /* ITEMS: of a list; there may be null ones */
        struct {
            const struct schema_column *column; /* COLUMN, WRITETIME, MAX_WRITETIME, TTL */
            const struct term *next_latch;      /* of the select list's */
            uint32_t latch;                     /* of a time outside of aggregates: its slot in term_context.latched */
            bool of_field;                      /* a time of this field of a non-frozen user type */
            uint16_t time_field;
            const struct term *field_value;     /* a time of any field: the field */
        };
        struct {
            const struct aggregate_op *aggregate;
            uint32_t slot; /* in term_context.aggregates */
        };
    };
};

/* The inputs of an evaluation; all but ev may be NULL when there is no row. */
struct term_context {
    struct evaluation *ev;
    const struct row_view *view;
    const struct value *values;   /* by ordinal: the view's, or those of a group's first row */
    struct aggregate *aggregates; /* by slot; NULL except at the end of a group */
    const struct value *latched;  /* by latch: of the row that opened the group; NULL if the row is view's */
};

/* NULL and ERR_INVALID, in Cassandra's words, when the expression cannot be a value of the
 * receiver. In a select list to->type may be NULL: the term has the expression's own type then. */
struct term *term_compile(struct compile *c, const struct ast_expr *x, const struct receiver *to) MUST_CHECK;
/* Returns NULL if memory is exhausted. */
struct term *term_new(struct compile *c, enum term_kind kind, const struct cql_type *type, uint32_t n_args) MUST_CHECK;
/* Resolves a type as written. */
const struct cql_type *compile_type(struct compile *c, const struct ast_type *t) MUST_CHECK;
/* User types are of that keyspace; NULL means of the session's. */
const struct cql_type *compile_type_in(struct compile *c, const char *keyspace, const struct ast_type *t) MUST_CHECK;

/* 0, or -1 with ev->err. out may be null or unset; its bytes live until the request ends.
 * The bytes of bound values are checked against the type. */
int term_eval(const struct term *t, struct evaluation *ev, struct value *out) MUST_CHECK;
/* On a row. */
int term_compute(const struct term *t, const struct term_context *c, struct value *out) MUST_CHECK;
MUST_CHECK static inline int term_eval_in(const struct term *t, const struct term_context *c, struct value *out) {
    if (t->kind != TERM_COLUMN) return term_compute(t, c, out);
    *out = c->values ? c->values[t->column->ordinal] : value_null();
    return 0;
}
/* Whether the value never changes and has no markers, so that one evaluation suffices. */
bool term_is_constant(const struct term *t);
/* The marker's index, or -1: not a bare bind marker. */
int32_t term_bind_index(const struct term *t);

/* Checks the keys of m[key] and m[from..to] with the values of ev, whether or not there is a
 * row. -1 with ev->err: a key is null or invalid. An unset bound counts as open. */
int term_check_subscripts(const struct term *subscripts, struct evaluation *ev) MUST_CHECK;

/* ---- groups: values of rows that are no longer available when a term is evaluated ---- */

/* Computes the times of the row that a group opens with, by latch. -1 with the request's err. */
int term_latch_all(const struct term *latches, const struct term_context *c, struct value *out) MUST_CHECK;
/* Adds the row to the slot of an aggregate. */
int term_add(const struct term *t, struct aggregate *all, const struct term_context *c) MUST_CHECK;
