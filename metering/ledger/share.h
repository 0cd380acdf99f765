/* Shares: the sums of the other servers on the same store, so that each of them can answer for all.
 *
 * Each ledger has a share in the store (server/fleet.h), under an id of its own: for each table its
 * total and its newest minutes, in the form of the ledger's file (journal_put_share), and the sum of
 * dropped tables. A ledger takes the shares of others as they are, and adds them up when it is read.
 * A share stays when its server dies, and is counted. One that has had no charges for long is
 * folded: added to a share of no server, SHARE_COMMON (server/fleet_fold.c).
 *
 *   E1  a share has one writer at a time, and each write of it depends on the one before (fleet.h).
 *       So no two servers' sums overwrite each other.
 *   E2  a share only grows, but for charges that are reversed: a ledger that has lost its last
 *       charges, after a crash, takes them back from its share before it goes on.
 *   E3  a share is folded by one write, on the condition that it and the common one are as they were
 *       read. The same write keeps its totals as a receipt. A ledger that finds its share gone takes
 *       the receipt off its own totals and begins another share with the rest (share_forget). So each
 *       charge is in one share, whoever dies or comes back when.
 *
 * Not thread-safe: the caller holds the ledger's lock.
 */
#pragma once

#include "metering/ledger/journal.h"
#include "metering/ledger/stats.h"

struct share {
    uint64_t id;
    bool damaged; /* some of its records were, so that its sums are not complete */
    struct stats stats; /* tables with their minutes, and dropped */
};

struct shares {
    size_t n, cap;
    struct share **items;
    uint32_t n_hidden;
    uint32_t *hidden; /* objects that are no tables any more, ascending: they count as dropped */
};

enum { SHARE_DROPPED = UINT32_MAX /* the object of the records of dropped tables */ };
enum { SHARE_COMMON = 0 /* the id of the common share */ };

void shares_fini(struct shares *s);
/* The share with that id, which is made. NULL: no memory. */
struct share *shares_open(struct shares *s, uint64_t id) MUST_CHECK;
/* Replaces the object in a share by that of its records. Minutes that the records no longer have
 * stay. 0; 1: the records are damaged; -1: no memory. */
int share_take(struct share *s, uint32_t object, struct slice records) MUST_CHECK;
/* Removes an object: its server has dropped it. */
void share_remove(struct share *s, uint32_t object);

/* The lowest object from `from` on that any share has and that is not hidden. */
bool shares_next(const struct shares *s, uint64_t from, uint32_t *object);
/* The sum of a table in all shares and of own (NULL: none). Latencies and seconds are own's. Free it
 * with stats_table_free. NULL: no memory. */
struct table_stats *shares_sum(const struct shares *s, const struct table_stats *own, uint32_t object) MUST_CHECK;
/* The sum of what shares have of dropped and of hidden tables. */
struct figures shares_dropped(const struct shares *s);

/* Forgets a share that is not in the store any more. */
void shares_close(struct shares *s, uint64_t id);
/* The newest minute with charges; 0: there is none. */
uint32_t share_newest(const struct stats *s);
/* Calls fn with the records that the common share has of each object of the share, and of dropped
 * tables, once the share is folded; records.p NULL: none. Hidden tables count as dropped from then
 * on. -1: no memory, or fn's result. */
typedef int (*share_fn)(void *arg, uint32_t object, struct slice records);
int shares_fold(struct shares *s, uint64_t id, share_fn fn, void *arg) MUST_CHECK;
/* Puts the totals of a share, as a receipt. */
void share_put_totals(const struct stats *s, struct buf *out);
/* Takes a receipt off the ledger's totals (E3), which are raised to it first (E2). Minutes before
 * `minute`, whose charges the receipt may have, go. 0, 1, -1 as share_take. */
int share_forget(struct stats *own, struct slice receipt, uint32_t minute) MUST_CHECK;

/* Raises each total of a table to that in the records of its own share (E2). 0, 1, -1 as share_take. */
int share_recover(struct stats *own, struct slice records) MUST_CHECK;
