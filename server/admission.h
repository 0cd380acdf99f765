/* Admission: the limiter of a server, asked once for every request when its cost is known
 * (cql_admission, native_protocol/sequence.c).
 *
 * It tells the limiter what each table may, now and whenever the schema changes; turns a request's
 * cost into what the limiter is asked; and a refusal into the error that Amazon Keyspaces answers
 * with: a time-out that received 0 responses ("Troubleshooting capacity errors in Amazon
 * Keyspaces"), with the reason behind its text; a batch that breaks a group rule of the guidance is
 * Invalid, for no retry helps. One lock, held for the asking. What the limiter knows of tables it
 * finds in the ledger's file, and leaves there once a second.
 */
#pragma once

#include "cql/request/request.h"
#include "ledger/ledger.h"
#include "limits/limiter.h"

struct admission;

/* NULL: err says why. */
struct admission *admission_new(const struct limiter_options *o, struct catalog *c, struct clock *clock,
                                struct ledger *ledger, struct err *e) MUST_CHECK;
/* Before the catalogue and the ledger are closed. */
void admission_free(struct admission *a);
/* How much tables may be provisioned with: the limits of tables and the account. */
struct catalog_quota admission_quota(const struct limit_values *values);
/* What cql_db_options gets: asks nobody when nothing is limited. */
struct cql_admission admission_of(struct admission *a);

/* A write that it let through has failed after all: what it took comes back. Any thread; arg is the
 * admission (np_options). */
void admission_give_back(void *arg, const struct ledger_claim *claim, struct limit_took took);

/* Calls fn for each table under the lock; -1 ends it and is returned. Any thread. */
typedef int (*admission_table_fn)(void *arg, const struct limit_table *t);
int admission_tables(struct admission *a, admission_table_fn fn, void *arg);
const struct limiter_options *admission_options(const struct admission *a);
