/* Admission: connects the server's requests with its limiter. Each request passes it once, when its
 * cost is known (cql_admission, native_protocol/dispatch.c).
 *
 * Admission gives the limiter the capacity of each table, at the start and after each change of
 * the schema. It turns a request's cost into a question to the limiter. It turns a refusal into
 * the error that Amazon Keyspaces answers with: a timeout that received 0 responses
 * ("Troubleshooting capacity errors in Amazon Keyspaces"), with the reason after its text. A
 * batch that breaks a group rule of the guidance gets Invalid instead, because a retry cannot
 * help. One lock protects the limiter; it is held for each question. The limiter's state is read
 * from the ledger's file at the start and saved there once a second.
 */
#pragma once

#include "cql/request/request.h"
#include "metering/ledger/ledger.h"
#include "metering/limits/limiter.h"

struct admission;

/* Returns NULL if memory is exhausted. */
struct admission *admission_new(const struct limiter_options *o, struct catalog *c, struct clock *clock,
                                struct ledger *ledger, struct err *e) MUST_CHECK;
/* Call it before the catalogue and the ledger are closed. */
void admission_free(struct admission *a);
/* The limits of tables and of the account that the catalogue applies to DDL. */
struct catalog_quota admission_quota(const struct limit_values *values);
/* The callbacks for cql_db_options. They are NULL when neither limits nor guidance apply. */
struct cql_admission admission_of(struct admission *a);

/* Returns to the limiter the capacity that an admitted write took, because the write failed. Any
 * thread; arg is the admission (np_options). */
void admission_reverse(void *arg, const struct ledger_posting *posting, struct limit_took took);

/* Calls fn for each table, under the lock, until fn returns -1. Returns fn's last result. Any
 * thread. */
typedef int (*admission_table_fn)(void *arg, const struct limit_table *t);
int admission_tables(struct admission *a, admission_table_fn fn, void *arg);
/* Copies the state of one table. false: it is not defined. Any thread. */
bool admission_table(struct admission *a, uint32_t object, struct limit_table *out);
/* The functions of struct fleet_limits (server/fleet.h); arg is the admission. */
int admission_demands(void *arg, struct limit_demands *out) MUST_CHECK;
void admission_divide(void *arg, struct limit_demand *others, size_t n);
const struct limiter_options *admission_options(const struct admission *a);
