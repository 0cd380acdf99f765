/* The servers on one store report their charges, and their demand on the limits
 * that they share (metering/limits/division.h).
 *
 *   share/head/<id: 16 hex digits>               [u64 incarnation][u64 sequence][u64 sequence of the tables][demands]
 *   share/table/<id>/<object: 8 hex digits>      a table's records (metering/ledger/totals.h)
 *
 * Each server writes records under its ledger's id and reads those of the other servers, on its own
 * thread. It writes changed tables at most every FLEET_TABLES_US; they and the head are one
 * write. It reads the tables of another server when that server's head has a new sequence of tables.
 * The records of a server stay in the store when the server does not return, because its charges
 * still count.
 *
 * The head also reports demand, every FLEET_ROUND_US while there is any. The demand of a server
 * counts until its head has not changed for FLEET_LEASE_US by the reader's own monotonic clock; then
 * the other servers divide its part of the limits.
 *
 * Life: fleet_open reads the server's own records first, because the ledger may have lost its last
 * charges (E2), and then those of the others. fleet_start starts the thread. fleet_close writes the
 * last charges.
 *
 * Each write expects the head that this process has written, or has found when it started (E1). A
 * process that finds another incarnation in the head under its own id continues under a new id,
 * because its data folder was copied.
 */
#pragma once

#include "base/clock.h"
#include "engine/engine.h"
#include "metering/ledger/ledger.h"
#include "metering/limits/division.h"

enum { FLEET_ROUND_US = 1000000, FLEET_TABLES_US = 3000000, FLEET_LEASE_US = 5000000 };

/* The limits that the servers share. */
struct fleet_limits {
    /* Ends a round, and returns this server's demand (limiter_demands). */
    int (*demands)(void *arg, struct limit_demands *out);
    /* Receives the demand of the others (limiter_divide). */
    void (*divide)(void *arg, struct limit_demand *others, size_t n);
    void *arg;
};

struct fleet;
struct fleet_options {
    struct eng *eng;
    struct ledger *ledger;
    struct clock *clock; /* its machine's time */
};

/* Blocks. Returns NULL with e set on error. */
struct fleet *fleet_open(const struct fleet_options *o, struct err *e) MUST_CHECK;
/* Also shares the limits. Called before fleet_start. */
void fleet_share_limits(struct fleet *f, const struct fleet_limits *limits);
/* exists: whether the catalogue has an object. The thread calls it and the functions of the limits
 * until fleet_stop. Returns 0, or -1 with e set. */
int fleet_start(struct fleet *f, bool (*exists)(void *arg, uint32_t object), void *arg, struct err *e) MUST_CHECK;
/* Ends the thread. f may be NULL. */
void fleet_stop(struct fleet *f);
/* Stops, writes all changes, and frees f, which may be NULL. Nothing may be posted any more. */
void fleet_close(struct fleet *f);

/* One round: writes the own records (tables: even if they are not due) and reads those of the others.
 * Returns 0, or -1 with e set if the store has failed; the next round tries again. */
int fleet_round(struct fleet *f, bool tables, struct err *e) MUST_CHECK;
/* Frees f without a write, like a server that is killed. For tests. */
void fleet_abandon(struct fleet *f);
