/* The ledger: what was charged, to whom, and what was refused; kept across restarts.
 *
 * Every event loop has a shard and posts each request there when its outcome is known; it settles
 * before an answer leaves, so whoever has been answered is in the ledger. Nobody waits for another
 * loop: shards are brought together when somebody looks, and once a second by the ledger's thread,
 * which writes what has changed to the ledger's file (journal.h): kill -9 costs the last second of
 * the bill, a power cut the last minute. Memory is bounded: a table has some kilobytes, partitions
 * and statements are the heaviest of very many (heavy.h), connections are those that are open,
 * roles the first LEDGER_ROLES.
 *
 * Seconds never go back, whatever the clock does.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "ledger/roles.h"
#include "ledger/shard.h"

struct ledger;
struct ledger_options {
    struct clock *clock;
    unsigned n_shards;
    const char *path; /* of its file; NULL: it is kept in memory only, and has no thread */
};

/* NULL: err says why. */
struct ledger *ledger_open(const struct ledger_options *o, struct err *e) MUST_CHECK;
/* Writes and syncs what has not been. */
void ledger_close(struct ledger *l);

/* The shard's owner, one thread. */
void ledger_post(struct ledger *l, unsigned shard, const struct ledger_request *q);
/* The same of a SELECT that went well, by a prepared statement, of which there is nothing to say
 * but its cost: one read, of no system table. It may stand in a queue (shard.h) until the owner
 * settles, which it does before others hear of what it did. It sees it itself at once. False: it is
 * not posted, and is for ledger_post. */
bool ledger_post_read(struct ledger *l, unsigned shard, struct ledger_connection *c, uint64_t statement_id,
                      const struct op_cost *cost, int64_t now_us, int64_t took_us) MUST_CHECK;
/* The same in two steps, for reads that end together: what each did, and how long each took of all
 * that were put since, before anything else is posted. What was put stands in the shard that is
 * returned, which takes another one by shard_read_again; NULL: it is not put. */
struct shard *ledger_put_read(struct ledger *l, unsigned shard, struct ledger_connection *c, uint64_t statement_id,
                              const struct op_cost *cost, int64_t now_us) MUST_CHECK;
void ledger_time_reads(struct ledger *l, unsigned shard, int64_t took_us);
void ledger_settle(struct ledger *l, unsigned shard);
/* A write that was posted has failed after all: it is free, and an error of the system's. Every
 * table, partition and statement that it was posted to gets it back, and its connection, or, when
 * that is not open any more, its role. */
void ledger_take_back(struct ledger *l, unsigned shard, int64_t now_us, const struct ledger_claim *claim,
                      struct ledger_connection *c, bool open);
/* TTL deletes: units of no request. Any thread. */
void ledger_ttl_delete(struct ledger *l, int64_t now_us, uint32_t object, const char *keyspace, const char *table,
                       uint64_t units);
/* c->id, address, role and opened_us are set; the id is made here. */
void ledger_connect(struct ledger *l, unsigned shard, struct ledger_connection *c);
void ledger_disconnect(struct ledger *l, unsigned shard, struct ledger_connection *c);
/* The table is gone; what it was charged stays in the sum of dropped tables. */
void ledger_drop(struct ledger *l, uint32_t object);

/* ---- what the limiter knows of tables, kept in the ledger's file ---- */

/* Called by the ledger's thread once a second, before it writes; fn NULL: nobody is, and nobody is
 * being called any more. */
void ledger_each_second(struct ledger *l, void (*fn)(void *arg), void *arg);
/* Any thread. Without memory what was noted before stays. */
void ledger_note_limits(struct ledger *l, uint32_t object, const char *keyspace, const char *table, struct slice state);
/* Calls fn for each table of which something is noted, under the ledger's lock; -1 ends it and is returned. */
typedef int (*ledger_limits_fn)(void *arg, const struct book_table *t, struct slice state);
int ledger_limits(struct ledger *l, ledger_limits_fn fn, void *arg) MUST_CHECK;

/* ---- to be looked at; any thread ---- */

/* What is posted until now, of every table: called under the ledger's lock, so it copies what it
 * wants. The running second; -1 ends it and is returned. */
typedef int (*ledger_table_fn)(void *arg, const struct book_table *t, uint32_t second);
int ledger_tables(struct ledger *l, ledger_table_fn fn, void *arg);
/* The same of tables that are dropped: of them, minutes are kept and nothing else. */
int ledger_gone(struct ledger *l, ledger_table_fn fn, void *arg);
struct figures ledger_dropped(struct ledger *l);

/* Of all shards together, heaviest first. Freed by free(); NULL and *n 0: there are none, or no memory. */
struct ledger_partition {
    struct shard_partition p;
    char keyspace[BOOK_NAME], table[BOOK_NAME];
    /* in halves of read units, a write unit counting as six; true load is from load - error to load */
    uint64_t load, error;
    double share;         /* of the load of all partitions */
    enum order_pattern pattern; /* of the keys that its table's writes go to */
};
struct ledger_partition *ledger_partitions(struct ledger *l, size_t *n);

struct ledger_statement {
    struct shard_statement s; /* but for its text */
    uint64_t id, load, error;
    char keyspace[BOOK_NAME], table[BOOK_NAME];
    char text[SHARD_TEXT + 1];
};
struct ledger_statement *ledger_statements(struct ledger *l, size_t *n);
/* Free with ledger_connections_free. */
struct ledger_connection *ledger_connections(struct ledger *l, size_t *n);
void ledger_connections_free(struct ledger_connection *all, size_t n);

/* NULL: no memory. */
struct roles *ledger_roles(struct ledger *l);
/* Append-only or prepend-only, if any shard's writes of the table are. */
enum order_pattern ledger_pattern(struct ledger *l, uint32_t object);
