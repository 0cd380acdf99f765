/* Checks a request's consistency level: by one table (consistency.def) in cassandra mode, by
 * Keyspaces' refusals in keyspaces mode.
 *
 * One node holds every replica of the keyspace, so QUORUM and ALL
 * are always reached; TWO and THREE are if the replication factor is that high.
 */
#pragma once

#include "cql/request/request.h"

/* Uses of a level: a read; a single INSERT, UPDATE or DELETE; one of counters; a batch; a statement
 * with conditions. */
enum consistency_use {
    CONSISTENCY_READ,
    CONSISTENCY_WRITE,
    CONSISTENCY_COUNTER,
    CONSISTENCY_BATCH,
    CONSISTENCY_CONDITION
};

/* k: the statement's. ERR_INVALID if the level, or the serial consistency of a condition, does not apply to the use. */
int consistency_check(const struct cql_run *r, enum consistency_use use, const struct schema_table *t,
                      const struct compat *k) MUST_CHECK;
/* ERR_UNAVAILABLE: the keyspace has fewer replicas than the level asks for. */
int consistency_reach(const struct cql_run *r, const struct schema_keyspace *ks) MUST_CHECK;
const char *consistency_name(uint16_t level);
