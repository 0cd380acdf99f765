/* The ledger: the record of charges and refusals, by table, partition, statement, connection and
 * role. It survives restarts.
 *
 * Every event loop has a shard, and posts each request there when its outcome is known. The loop
 * settles before an answer leaves, so every request that was answered is in the ledger. No loop
 * waits for another loop: a reader merges the shards when it reads, and the ledger's thread merges
 * them once a second and writes the changes to the ledger's file (journal.h). A kill -9 loses the
 * last second of charges, a power cut the last minute. Memory is bounded: a table has some
 * kilobytes, partitions and statements are kept for the heaviest only (heavy.h), connections while
 * they are open, and roles up to LEDGER_ROLES.
 *
 * The ledger's seconds never go back, even when the clock does.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "metering/ledger/usage.h"
#include "metering/ledger/shard.h"
#include "metering/ledger/totals.h"

struct ledger;
struct ledger_options {
    struct clock *clock;
    unsigned n_shards;
    const char *path; /* of its file; NULL if the ledger is in memory only, and has no thread */
};

/* Returns NULL with e set. */
struct ledger *ledger_open(const struct ledger_options *o, struct err *e) MUST_CHECK;
/* Writes and syncs all changes, and frees the ledger. */
void ledger_close(struct ledger *l);

/* These are called by one thread, the shard's owner. */
void ledger_post(struct ledger *l, unsigned shard, const struct ledger_request *q);
/* Queues the most frequent request (shard.h) instead of posting it: a successful SELECT by a
 * prepared statement that is one read, of no system table, with nothing to record but its cost. It
 * began at began_us. Its end is the next call of ledger_time_reads, or the moment when the queue is
 * posted, if that comes first. The owner posts the queue (ledger_settle) before other threads can
 * see the answer; the owner itself sees a queued read at once. Returns false when the request does
 * not qualify; call ledger_post then. */
bool ledger_queue_read(struct ledger *l, unsigned shard, struct ledger_connection *c, uint64_t statement_id,
                       const struct op_cost *cost, int64_t began_us) MUST_CHECK;
/* The reads that were queued since the last call have ended at now_us. Called before a read that
 * began at another moment is queued. */
void ledger_time_reads(struct ledger *l, unsigned shard, int64_t now_us);
void ledger_settle(struct ledger *l, unsigned shard);
/* Reverses a posted write whose commit failed: the write costs nothing and counts as a system
 * error. Its charge is subtracted from every table, partition and statement that it was posted to,
 * and from its connection, which must not have been disconnected: a pending acknowledgement holds a
 * reference to the connection, also when its client is gone. */
void ledger_reverse(struct ledger *l, unsigned shard, int64_t now_us, const struct ledger_posting *posting,
                      struct ledger_connection *c);
/* Posts the units of TTL deletes, which belong to no request. Any thread. */
void ledger_ttl_delete(struct ledger *l, int64_t now_us, uint32_t object, const char *keyspace, const char *table,
                       uint64_t units);
/* The caller has set c->address, role and opened_us; ledger_connect sets c->id. */
void ledger_connect(struct ledger *l, unsigned shard, struct ledger_connection *c);
void ledger_disconnect(struct ledger *l, unsigned shard, struct ledger_connection *c);
/* Removes a dropped table; its sums are added to the sum of dropped tables. */
void ledger_drop(struct ledger *l, uint32_t object);

/* ---- the limiter's state of tables, kept in the ledger's file ---- */

/* Sets the function that the ledger's thread calls once a second, before it writes. fn NULL: none;
 * no call is running any more when this returns. */
void ledger_each_second(struct ledger *l, void (*fn)(void *arg), void *arg);
/* Stores the limiter's state of a table. Any thread. Without memory the earlier state stays. */
void ledger_note_limits(struct ledger *l, uint32_t object, const char *keyspace, const char *table, struct slice state);
/* Calls fn, under the ledger's lock, for each table with stored state. A result of -1 from fn ends
 * the loop and is returned. */
typedef int (*ledger_limits_fn)(void *arg, const struct table_stats *t, struct slice state);
int ledger_limits(struct ledger *l, ledger_limits_fn fn, void *arg) MUST_CHECK;

/* ---- several servers on one store (totals.h); any thread ---- */

/* The id of this ledger's records in the store. If the ledger has none, it is made, and is on disk when
 * this returns, so that the records have the charges of one ledger. Returns 0, or -1 with e set. */
int ledger_id(struct ledger *l, uint64_t *id, struct err *e) MUST_CHECK;
/* Gives the ledger another id, because another process uses the present one. Returns as ledger_id. */
int ledger_renew_id(struct ledger *l, uint64_t *id, struct err *e) MUST_CHECK;
/* Restores (E2) what the ledger has lost from its own records, before anything is posted. Returns 0,
 * 1 if the records are damaged, or -1 if memory is exhausted. */
int ledger_recover(struct ledger *l, struct slice records) MUST_CHECK;
/* Calls fn, under the ledger's lock, with the records of each table that has changed since the last
 * call (all: of each table), and then with those of dropped tables (TOTALS_DROPPED). A caller that
 * fails to write them passes all the next time. Returns 0, -1 if memory is exhausted, or fn's result. */
typedef int (*ledger_totals_fn)(void *arg, uint32_t object, struct slice records);
int ledger_own_totals(struct ledger *l, bool all, ledger_totals_fn fn, void *arg) MUST_CHECK;
/* Whether the ledger has the table. */
bool ledger_has(struct ledger *l, uint32_t object);
/* Stores the records of an object of another server; records.p is NULL if that server has dropped it.
 * Returns as ledger_recover. */
int ledger_put_totals(struct ledger *l, uint64_t id, uint32_t object, struct slice records) MUST_CHECK;
/* Calls exists, without a lock, for every object of the other servers. Objects that do not exist count
 * as dropped until the next call. */
void ledger_hide_dropped(struct ledger *l, bool (*exists)(void *arg, uint32_t object), void *arg);

/* ---- reading; any thread ---- */

/* Calls fn for every table, with all that is posted so far and the running second. Totals and
 * minutes are those of all servers on the store, seconds and latencies are this one's. fn runs under
 * the ledger's lock, so it copies the data it wants. A result of -1 from fn ends the loop and is
 * returned. */
typedef int (*ledger_table_fn)(void *arg, const struct table_stats *t, uint32_t second);
int ledger_tables(struct ledger *l, ledger_table_fn fn, void *arg);
/* Likewise, with the counts of this server alone. */
int ledger_own_tables(struct ledger *l, ledger_table_fn fn, void *arg);
/* Likewise for dropped tables, of which only the minutes are kept. */
int ledger_gone(struct ledger *l, ledger_table_fn fn, void *arg);
/* Calls fn, as ledger_tables does, for the tables that were posted to since the last call, at most
 * STATS_TOUCHED of them. One caller at a time. */
int ledger_touched(struct ledger *l, ledger_table_fn fn, void *arg);
struct figures ledger_dropped(struct ledger *l);
/* Whether a request to the table was counted, by any server on the store. */
bool ledger_counted(struct ledger *l, uint32_t object);

/* Counts the requests to a table by range of tokens, in slot i (below SHARD_WATCHED), from now
 * on. object 0 frees the slot. */
void ledger_watch(struct ledger *l, uint32_t i, uint32_t object);
/* Adds the counts of a slot over all shards; they wrap, and continue those of the previous table. */
void ledger_ranges(struct ledger *l, uint32_t i, uint32_t out[SHARD_RANGES][RANGE_FIGURES]);

/* The kept partitions of all shards, merged, heaviest first. Free with free(). NULL and *n 0: there
 * are none, or there is no memory. */
struct ledger_partition {
    /* load: in halves of read units, a write unit counting as six; load - error <= true load <= load */
    struct heavy_item kept; /* first */
    struct shard_partition p;
    struct shard_origins origins;
    char keyspace[STATS_NAME], table[STATS_NAME];
    double share;         /* the fraction of the load of all partitions, kept or not */
    enum order_pattern pattern; /* of the keys that its table's writes go to */
};
struct ledger_partition *ledger_partitions(struct ledger *l, size_t *n);
/* Likewise, without names and patterns: those take locks for each partition, which costs too much for a
 * caller that reads every second. */
struct ledger_partition *ledger_partition_usage(struct ledger *l, size_t *n);

struct ledger_statement {
    struct heavy_item kept;   /* first; key: the statement's id */
    struct shard_statement s; /* s.text is NULL */
    char keyspace[STATS_NAME], table[STATS_NAME];
    char text[SHARD_TEXT + 1];
};
struct ledger_statement *ledger_statements(struct ledger *l, size_t *n);
/* Free with ledger_connections_free. */
struct ledger_connection *ledger_connections(struct ledger *l, size_t *n);
void ledger_connections_free(struct ledger_connection *all, size_t n);

/* Returns NULL if memory is exhausted. */
struct roles *ledger_roles(struct ledger *l);
/* Append-only or prepend-only, if any shard's writes of the table are. */
enum order_pattern ledger_pattern(struct ledger *l, uint32_t object);
