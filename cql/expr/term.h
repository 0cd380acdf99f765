/* Terms: values of a statement, compiled once against the type of what they are for, evaluated per execution.
 *
 * Life: analysis calls term_compile with a receiver (the column, and its type); a prepared statement keeps the result in its
 * arena; each execution calls term_eval, which returns a bound value in place (no copy, no allocation) or builds one in
 * the request's arena. Bind markers note their receiver, which becomes the metadata of PREPARED.
 */
#pragma once

#include "cql/request/compile.h"

struct cql_request;
struct term;

/* NULL and ERR_INVALID, in Cassandra's words, when the expression cannot be a value of the receiver. */
struct term *term_compile(struct compile *c, const struct ast_expr *x, const struct receiver *to) MUST_CHECK;
/* The type that a literal has where nothing says what it is for (Constants.Type.getPreferedTypeFor): the narrowest of int, bigint and varint,
 * double unless digits were lost, ascii unless it is none. */
const struct cql_type *term_literal_type(const struct ast_expr *literal);
/* Resolves a type as written. */
const struct cql_type *compile_type(struct compile *c, const struct ast_type *t) MUST_CHECK;

/* 0, or -1 with the request's err. out may be null or unset. What it points to lives until the request ends. Validated:
 * wire bytes of bound values are checked against the type. */
int term_eval(const struct term *t, struct cql_request *r, struct value *out) MUST_CHECK;
/* The same every time and without markers: may be evaluated once. */
bool term_is_constant(const struct term *t);
/* The marker's index, or -1: not a bare bind marker. */
int32_t term_bind_index(const struct term *t);

/* ---- functions on values (function.def): now(), toTimestamp(x), token(...), blobAsInt(x), CAST ... ---- */

struct function;
/* Of scalar native functions. NULL: no such function for these argument types, with Cassandra's ERR_INVALID. arg types may
 * hold NULL (unknown: null or a bind marker). */
const struct function *function_find(struct compile *c, const char *keyspace, const char *name, const struct cql_type *const *args,
                                     uint32_t n_args, const struct cql_type *want) MUST_CHECK;
const struct cql_type *function_result(const struct function *f, const struct cql_type *const *args);
/* CAST(x AS type): NULL with ERR_INVALID when there is no such cast. */
const struct function *function_cast(struct compile *c, const struct cql_type *from, const struct cql_type *to) MUST_CHECK;
int function_call(const struct function *f, struct cql_request *r, const struct cql_type *const *types, const struct value *args,
                  uint32_t n_args, struct value *out) MUST_CHECK;
