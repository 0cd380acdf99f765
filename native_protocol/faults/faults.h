/* The faults of a server, and whether one of them hits a request.
 *
 * Each request is compared with the faults in the order of their names, until one hits it. A fault
 * counts the requests that it matches. A request counts once, when it is planned and sized, on
 * whichever thread it runs and however many parts it has. Statements on system_control match no
 * fault. Statements on other system keyspaces, which drivers read on their own, match only faults
 * that name the keyspace. A PREPARE matches only faults of opcode PREPARE. Faults are kept in
 * memory only. Any thread.
 */
#pragma once

#include <stdatomic.h>

#include "native_protocol/faults/rule.h"

enum { FAULTS_MAX = 100 };

struct faults;
struct faults *faults_new(struct err *e) MUST_CHECK;
void faults_free(struct faults *f);

/* The number of faults. One load, which each request makes before it calls faults_hit. */
unsigned faults_count(const struct faults *f);
/* Copies the fault of that name. Returns false when there is none. */
bool faults_find(struct faults *f, const char *name, struct fault_rule *out);
/* Adds a checked rule, or replaces the one of its name. ERR_INVALID: there are FAULTS_MAX
 * already. */
int faults_put(struct faults *f, const struct fault_rule *rule, struct err *e) MUST_CHECK;
void faults_remove(struct faults *f, const char *name);
/* Calls fn for each fault, by name and under the lock, until fn returns -1. Returns fn's last
 * result. */
int faults_each(struct faults *f, int (*fn)(void *arg, const struct fault_rule *rule), void *arg) MUST_CHECK;

/* Finds the fault that hits a planned request, and copies it into the request's arena. Returns NULL
 * if no fault hits, or memory is exhausted and the request's error is set. */
const struct fault_rule *faults_hit(struct faults *f, const struct cql_run *q, uint64_t connection) MUST_CHECK;
