/* The parts of the one compiler of terms, for each other: term.c values, term_type.c types,
 * term_fit.c what an expression may be, term_call.c functions, term_row.c what looks at a row.
 *
 * The rule is Cassandra's (FunctionResolver, AssignmentTestable): what has a type of its own, a
 * column, a call, a cast, keeps it; a literal, a marker, a collection takes the type that is
 * wanted, as far as it fits it. Where a row is looked at (compile.scope) calls and operators are
 * decided from their arguments alone; among the values of a statement also from what the value is
 * for.
 */
#pragma once

#include "cql/expr/function.h"

struct term;

/* Each step looks at one expression of the tree against one type. A literal is looked at once for
 * each collection around it, and each has a byte of text, at least; calls within calls are looked
 * at again and again. */
enum { TERM_DEPTH_MAX = 200, TERM_STEPS = 1 << 16, TERM_STEPS_PER_BYTE = 16, TERM_MEMO = 1024 };

/* One search for the types of a term: the steps left, so that hostile nesting ends, and how calls
 * fitted types, by both: an operator asks each of its operands about a dozen types, so that a chain
 * of them would be a tree of questions. */
struct term_search {
    uint64_t steps;
    bool remembers; /* memo is set */
    uint32_t hints, untyped; /* we are so deep within type hints; within values whose type is that of their parts */
    struct {
        const struct ast_expr *x;
        uint32_t type;
        enum match match;
    } memo[TERM_MEMO];
};

/* bytes: of the text that the search is for, which says what it may cost. */
static inline void cqli_search_init(struct term_search *s, size_t bytes) {
    s->steps = TERM_STEPS + TERM_STEPS_PER_BYTE * (uint64_t)bytes;
    s->remembers = false;
    s->hints = s->untyped = 0;
}
/* In the place of whatever error: the steps are used up. */
void cqli_search_refuse(struct compile *c);

/* Any expression. to->type may be NULL where a row is looked at: nothing says what it is for. NULL with err. */
struct term *cqli_term(struct compile *c, const struct ast_expr *x, const struct receiver *to,
                       uint32_t depth) MUST_CHECK;
/* Evaluates what can be evaluated now. What fails is left as it is, and fails when it is run. NULL with err. */
struct term *cqli_term_fold(struct compile *c, struct term *t) MUST_CHECK;

/* ---- term_type.c ---- */

/* The type that a literal is first of all (Constants.Type.getPreferedTypeFor): the narrowest of
 * int, bigint and varint, double unless digits were lost, ascii unless it is none. */
const struct cql_type *cqli_literal_type(const struct ast_expr *literal);

/* ---- term_fit.c ---- */

bool cqli_is_operator(enum ast_expr_kind k);
/* Has it a type of its own, whatever it is for? */
bool cqli_has_own_type(const struct compile *c, const struct ast_expr *x);
/* The type that an expression has where nothing says what it is for. loosely: a literal counts as
 * what it is first of all (Cassandra's compatible type, for arguments of functions of any type);
 * otherwise only what has one of its own (its exact type). NULL: none. */
const struct cql_type *cqli_type_of(struct compile *c, const struct ast_expr *x, const struct receiver *near,
                                    bool loosely, uint32_t depth);
/* How it fits a type. near: the table and keyspace around it. */
enum match cqli_fits(struct compile *c, const struct ast_expr *x, const struct cql_type *t, const struct receiver *near,
                     uint32_t depth);
enum match cqli_fits_type(const struct cql_type *t, const struct cql_type *from);
/* -1 and ERR_INVALID: a set of durations, or a map by durations, within the type. */
int cqli_check_durations(struct compile *c, const struct cql_type *t) MUST_CHECK;
/* For errors: an expression, a type, both in the statement's arena. */
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

/* A column, a part of a value, the time of a column: what is only there where a row is looked at. */
bool cqli_is_of_row(const struct ast_expr *x);
/* false: it is no call of WRITETIME, MAXWRITETIME or TTL. */
bool cqli_term_time(struct compile *c, const struct ast_expr *x, uint32_t depth, struct term **out) MUST_CHECK;
/* WRITETIME or TTL of an element or field of what is not frozen. */
bool cqli_is_time_of_part(const struct term *t);
struct term *cqli_term_of_row(struct compile *c, const struct ast_expr *x, uint32_t depth) MUST_CHECK;
