/* Fingerprints of statements: the text with ? for every literal, and one ? for a list of literals.
 * Statements that differ only in their values have the same fingerprint. */
#pragma once

#include "base/arena.h"
#include "base/slice.h"
#include "cql/syntax/ast.h"

/* The fingerprint, in the arena. A text that is not CQL is cut at its first error, a long one after
 * its first 4,000 tokens; "..." marks the cut. p NULL: no memory. */
struct slice cql_fingerprint(struct arena *a, struct slice text) MUST_CHECK;
/* The text as it is when it has no literals, else its fingerprint. p NULL: no memory. */
struct slice cql_without_literals(struct arena *a, struct slice text) MUST_CHECK;
/* Whether the text of a statement about roles may contain a password; the text need not be correct CQL.
 * kind: the statement's, or STMT_KINDS when it is not known. */
bool cql_holds_password(enum stmt_kind kind, struct slice text);
/* The text to store and show: its fingerprint if it may contain a password. A 0 follows it. p NULL: no
 * memory. */
struct slice cql_shown(struct arena *a, enum stmt_kind kind, struct slice text) MUST_CHECK;
