/* Internal interface of the term compiler's files: term.c values, term_type.c types, term_fit.c
 * which types an expression fits, term_call.c functions, term_row.c columns and their parts.
 *
 * The rule is Cassandra's (FunctionResolver, AssignmentTestable): an expression with its own
 * type (a column, a call, a cast) keeps it; a literal, a marker or a collection takes the receiver's
 * type if it fits. In a select list (compile.scope) calls and operators are resolved by their
 * arguments alone; among the values of a statement also by the receiver.
 */
#pragma once

#include "cql/expr/function.h"

struct term;

/* One step checks one expression of the tree against one type. A literal is checked once for each
 * collection around it, and each of these has at least one byte of text. Nested calls are checked
 * repeatedly, which the limit bounds. */
enum { TERM_DEPTH_MAX = 200, TERM_STEPS = 1 << 16, TERM_STEPS_PER_BYTE = 16, TERM_MEMO = 1024 };

/* One search for the types of a term: the steps left, so that hostile nesting ends, and a memo of
 * which calls fit which types. Without the memo a chain of operators would cost exponential time,
 * because each operator checks its operands against a dozen types. */
struct term_search {
    uint64_t steps;
    bool remembers; /* memo is set */
    uint32_t hints, untyped; /* depth within type hints; within values whose parts determine the type */
    struct {
        const struct ast_expr *x;
        uint32_t type;
        enum match match;
    } memo[TERM_MEMO];
};

/* bytes: length of the expression's text, which sets the number of steps. */
static inline void cqli_search_init(struct term_search *s, size_t bytes) {
    s->steps = TERM_STEPS + TERM_STEPS_PER_BYTE * (uint64_t)bytes;
    s->remembers = false;
    s->hints = s->untyped = 0;
}
/* Replaces any error by the one for a search that used up its steps. */
void cqli_search_refuse(struct compile *c);

/* Any expression. In a select list to->type may be NULL: no type is wanted. NULL with err. */
struct term *cqli_term(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                       uint32_t depth) MUST_CHECK;
/* Makes the term a constant if it can be evaluated now. A call that fails stays a call, and fails
 * when it is run. NULL with err. */
struct term *cqli_term_fold(struct compile *c, struct term *t) MUST_CHECK;

/* ---- term_type.c ---- */

/* The preferred type of a literal (Constants.Type.getPreferedTypeFor): the narrowest of int, bigint
 * and varint; double, or decimal if digits would be lost; ascii, or text. */
const struct cql_type *cqli_literal_type(const struct ast_expr *literal);

/* ---- term_fit.c ---- */

bool cqli_is_operator(enum ast_expr_kind k);
/* Whether it has its own type, independent of the receiver. */
bool cqli_has_own_type(const struct compile *c, const struct ast_expr *x);
/* The type of an expression without a receiver. loosely: a literal has its preferred type
 * (Cassandra's compatible type, for arguments of functions of any type); otherwise only expressions
 * with their own type have one (the exact type). Returns NULL if there is none. */
const struct cql_type *cqli_type_of(struct compile *c, const struct ast_expr *x, const struct receiver *near,
                                    bool loosely, uint32_t depth);
/* How it fits a type. near: the table and keyspace around it. */
enum match cqli_fits(struct compile *c, const struct ast_expr *x, const struct cql_type *t, const struct receiver *near,
                     uint32_t depth);
enum match cqli_fits_type(const struct cql_type *t, const struct cql_type *from);
/* -1 and ERR_INVALID: a set of durations, or a map by durations, within the type. */
int cqli_check_durations(struct compile *c, const struct cql_type *t) MUST_CHECK;
/* The expression within the parentheses that x may be. */
const struct ast_expr *cqli_inside(const struct ast_expr *x);
/* For errors: the bytes of a buffer, which it frees; an expression; a type; in the statement's arena. */
struct slice cqli_text(struct compile *c, struct buf *b);
struct slice cqli_expr_text(struct compile *c, const struct ast_expr *x);
struct slice cqli_type_text(struct compile *c, const struct cql_type *t);

/* ---- term_call.c ---- */

/* The function of a call, cast, negation or operator. known: types of arguments that are compiled
 * already, or NULL. NULL with err. */
const struct function *cqli_find_call(struct compile *c, const struct ast_expr *x, const struct cql_type *const *known,
                                      const struct receiver *to, uint32_t depth) MUST_CHECK;
struct term *cqli_term_call(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                            uint32_t depth) MUST_CHECK;

/* ---- term_row.c ---- */

/* Whether it is a column or a part of a value, which only a select list can use. */
bool cqli_is_of_row(const struct ast_expr *x);
/* Returns false if it is no call of WRITETIME, MAXWRITETIME or TTL. */
bool cqli_term_time(struct compile *c, const struct ast_expr *x, uint32_t depth, struct term **out) MUST_CHECK;
/* Whether it is WRITETIME or TTL of an element or field of a non-frozen value. */
bool cqli_is_time_of_part(const struct term *t);
struct term *cqli_term_of_row(struct compile *c, const struct ast_expr *x, uint32_t depth) MUST_CHECK;
