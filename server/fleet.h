/* The fleet: what servers on one store tell each other about their charges, and about their demand on
 * limits that they share (metering/limits/division.h).
 *
 *   share/head/<id: 16 hex digits>                  [u64 incarnation][u64 sequence][u64 of the tables][demands]
 *   share/table/<id>/<object: 8 hex digits>         a table's records (metering/ledger/share.h)
 *   share/folded/<id>                               [u64 microseconds since 1970][totals]: the receipt of a fold
 *
 * Each server writes its own share, named by its ledger's id, and reads those of the others, on a
 * thread of its own. It writes at most every FLEET_TABLES_US, and only when something has changed;
 * the tables that changed and the head are one write. It reads the tables of a share when the head
 * names another sequence of them.
 *
 * Demand is told with the head every FLEET_ROUND_US while there is any. The demand of a server counts
 * until its head has not changed for FLEET_LEASE_US by the reader's own monotonic clock; then its
 * fraction goes to the others.
 *
 * Life: fleet_open reads the own share first, because the ledger may have lost its last charges
 * (E2), and then the others'. fleet_start begins the thread. fleet_close writes the last charges.
 *
 * Shares of servers that do not come back are folded (E3), so that neither the records nor the reading
 * of them grow with every server that ever was. Whether the server is gone need not be known: one that
 * is alive, and idle, finds its share gone in its next round and begins another one. A ledger that comes
 * back after its receipt was removed begins at zero: the last seconds that it had not shared are not
 * counted.
 *
 * E1 is kept by a condition: each write expects the head that this process has written or, at its
 * start, taken over. A process that finds another incarnation in the head of its own share, because
 * somebody has copied its data folder, continues under a new id. */
#pragma once

#include "base/clock.h"
#include "engine/engine.h"
#include "metering/ledger/ledger.h"
#include "metering/limits/division.h"

#define FLEET_OLD_US INT64_C(86400000000)   /* a share without charges for so long is folded, */
#define FLEET_SILENT_US (FLEET_OLD_US / 24) /* if its head has not changed for so long */
#define FLEET_KEEP_US (30 * FLEET_OLD_US)   /* receipts stay for so long */
enum { FLEET_ROUND_US = 1000000, FLEET_TABLES_US = 3000000, FLEET_LEASE_US = 5000000 };

/* The limits that the servers share. */
struct fleet_limits {
    /* Ends a round, and gives this server's demand (limiter_demands). */
    int (*demands)(void *arg, struct limit_demands *out);
    /* Takes the others' (limiter_divide). */
    void (*divide)(void *arg, struct limit_demand *others, size_t n);
    void *arg;
};

struct fleet;
struct fleet_options {
    struct eng *eng;
    struct ledger *ledger;
    struct clock *clock; /* its machine's time */
};

/* Blocks. NULL: e says why. */
struct fleet *fleet_open(const struct fleet_options *o, struct err *e) MUST_CHECK;
/* Shares the limits, too. Before fleet_start. */
void fleet_share_limits(struct fleet *f, const struct fleet_limits *limits);
/* exists: whether the catalogue has an object. The limits and it are called on the fleet's thread until
 * fleet_stop. */
int fleet_start(struct fleet *f, bool (*exists)(void *arg, uint32_t object), void *arg, struct err *e) MUST_CHECK;
/* Ends the thread. f may be NULL. */
void fleet_stop(struct fleet *f);
/* Stops, writes what has changed, and frees f, which may be NULL. Nothing is posted any more. */
void fleet_close(struct fleet *f);

/* One round: writes the share (writes: even if it is not due), reads the others. -1: the store has
 * failed, and the next round tries again. */
int fleet_round(struct fleet *f, bool writes, struct err *e) MUST_CHECK;
/* Frees f and writes nothing, as a server does that is killed. For tests. */
void fleet_abandon(struct fleet *f);
