/* The faults of a server, and whether one of them hits a request.
 *
 * Faults are asked in the order of their names; each counts the requests that it matches, and a
 * request that one hits is not seen by those behind it. A request counts once, when it is planned
 * and sized: whatever thread it runs on, and however many parts it has. Statements on
 * system_control match none; those on other system keyspaces, which drivers read for themselves,
 * only faults that name their keyspace; a PREPARE only faults that name it. In memory only. Any
 * thread.
 */
#pragma once

#include <stdatomic.h>

#include "faults/rule.h"

enum { FAULTS_MAX = 100 };

struct faults;
struct faults *faults_new(struct err *e) MUST_CHECK;
void faults_free(struct faults *f);

/* The number of faults: what a request looks at first. */
unsigned faults_count(const struct faults *f);
/* The fault of that name; false: there is none. */
bool faults_find(struct faults *f, const char *name, struct fault_rule *out);
/* A checked rule in the place of the one of its name. ERR_INVALID: there are too many. */
int faults_put(struct faults *f, const struct fault_rule *rule, struct err *e) MUST_CHECK;
void faults_remove(struct faults *f, const char *name);
/* Calls fn for a copy of each, by name, until it says -1, which is returned. */
int faults_each(struct faults *f, int (*fn)(void *arg, const struct fault_rule *rule), void *arg) MUST_CHECK;

/* The fault that hits a request which is planned, in its arena; NULL: none, or no memory and the error is set. */
const struct fault_rule *faults_hit(struct faults *f, const struct cql_request *q, uint64_t connection) MUST_CHECK;
