/* The totals of the other servers on the same store, so that each server can answer for all of them.
 *
 * Each ledger has records in the store (server/fleet.h), under its own id: for each table its
 * total and its newest minutes, in the form of the ledger's file (journal_put_totals), and the sum of
 * dropped tables. A ledger keeps the totals of other servers separate, and adds them up when it is
 * read. The records of a server that has died stay, and count.
 *
 *   E1  one process writes the records of an id, and each write expects the state that the one before
 *       has left (fleet.h). So no two servers overwrite each other's totals.
 *   E2  the totals in the store only grow, except for charges that are reversed: a ledger that has
 *       lost its last charges in a crash restores them from its records before it continues.
 *
 * Not thread-safe: the caller holds the ledger's lock.
 */
#pragma once

#include "metering/ledger/journal.h"
#include "metering/ledger/stats.h"

/* Another server. */
struct server_totals {
    uint64_t id;
    struct stats stats; /* tables with their minutes, and dropped tables */
};

struct store_totals {
    size_t n, cap;
    struct server_totals **servers;
    uint32_t n_hidden;
    uint32_t *hidden; /* objects that are no tables any more, ascending: they count as dropped */
};

enum { TOTALS_DROPPED = UINT32_MAX /* the object of the records of dropped tables */ };

void totals_fini(struct store_totals *s);
/* Replaces an object of a server by what its records contain, or removes it if records.p is NULL.
 * Minutes that the records no longer contain stay. Returns 0, 1 if the records are damaged, or -1 if
 * memory is exhausted. */
int totals_put(struct store_totals *s, uint64_t id, uint32_t object, struct slice records) MUST_CHECK;

/* Finds the lowest object, from `from` on, that any server has and that is not hidden. */
bool totals_next(const struct store_totals *s, uint64_t from, uint32_t *object);
/* The sum of a table over all servers and own (NULL if this server has no such table). Latencies and
 * seconds are own's. Free it with stats_table_free. Returns NULL if memory is exhausted. */
struct table_stats *totals_sum(const struct store_totals *s, const struct table_stats *own, uint32_t object) MUST_CHECK;
/* The sum of dropped and of hidden tables. */
struct figures totals_dropped(const struct store_totals *s);

/* Raises each total of a table to that in the server's own records (E2). Returns as totals_put. */
int totals_recover(struct stats *own, struct slice records) MUST_CHECK;
