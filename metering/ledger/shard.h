/* One event loop's part of the ledger: the counts of its requests since the running second began,
 * its connections, its heaviest partitions and statements.
 *
 * The owner, the loop's thread, writes the shard; any thread reads it. Both hold the shard's lock,
 * and readers hold it only briefly. Posting a request takes about a dozen additions. Counts of
 * tables go to the statistics when their second is over (stats.h).
 *
 * Nearly all requests are reads by a prepared statement, many of them in sequence on their
 * connection. These reads go to a queue, without the lock, and are posted together, with the code
 * and the cells still in the processor's cache. Posting happens when the queue is full, when the
 * owner settles (before an answer leaves), when a request of another kind is posted, and when the
 * owner reads the ledger.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/ip_address.h"
#include "metering/ledger/stats.h"
#include "metering/ledger/heavy.h"
#include "metering/ledger/order.h"
#include "metering/ledger/usage.h"
#include "metering/size/op_cost.h"

enum ledger_outcome { LEDGER_OK, LEDGER_THROTTLED, LEDGER_USER_ERROR, LEDGER_SYSTEM_ERROR };

/* A client's description of its driver, shared by its connection and the copies that
 * ledger_connections makes. Texts; "": not given. */
struct ledger_driver {
    atomic_uint refs;
    const char *name, *version;
    char bytes[];
};

/* Keeps LEDGER_DRIVER_TEXT bytes of each text at most. NULL if both are empty, or memory is
 * exhausted. */
enum { LEDGER_DRIVER_TEXT = 1024 };
struct ledger_driver *ledger_driver_new(struct slice name, struct slice version);
void ledger_driver_unref(struct ledger_driver *d);

/* A client connection. Its memory is the owner's; the shard lists it between ledger_connect and
 * ledger_disconnect. */
struct ledger_connection {
    struct ledger_connection *next, *prev;
    uint64_t id;
    char address[IP_ADDRESS_TEXT]; /* numeric */
    char role[64];
    int64_t opened_us;
    struct { /* from the STARTUP message; version 0: none yet */
        uint8_t version; /* of the protocol */
        uint16_t port;
        char compression[8];
        struct ledger_driver *driver; /* NULL if STARTUP did not name its driver */
        char cipher[64], tls[16]; /* empty: not encrypted */
    } client;
    struct usage usage; /* each subquery of an IN is a request */
};

/* A request whose outcome is known. */
struct ledger_request {
    const struct op_cost *cost;  /* with the charges that charge_compute has set in its parts */
    enum operation operation;    /* OTHER: counted only when it failed */
    enum ledger_outcome outcome;
    bool applied;                /* its writes took effect and are charged, although it failed afterwards */
    /* The limits that throttled the request, or that would throttle it in enforce mode. */
    bool throttled, read_throttled, by_connection, by_partition;
    bool guidance;               /* it violates the partition guidance */
    uint32_t statements;         /* number of requests it counts as on its connection: subqueries of an IN, else 1 */
    int64_t now_us, took_us;     /* when it began, wall clock; how long it took */
    struct ledger_connection *connection;
    uint64_t statement_id;       /* a hash; 0 if there is none */
    uint64_t rules;              /* that its charge names: struct charge */
    struct slice text;           /* of the statement */
};

/* The record by which a posted write is reversed when its commit fails: the charge items of its writes.
 * It outlives the schema snapshot that the items' names point into, so these are not read. */
struct ledger_posting {
    enum operation operation;
    uint64_t statement_id; /* as posted */
    uint32_t n;            /* 0 if it is no write */
    struct charge_item first, *others; /* others: n - 1, on the heap */
};
/* The posting of a successful request. Without memory it covers the first
 * write only. */
struct ledger_posting ledger_posting_of(const struct op_cost *cost, enum operation operation, uint64_t statement_id);
/* Copies share the heap memory: call this for one of them. */
void ledger_posting_fini(struct ledger_posting *c);

struct shard_table {
    uint32_t object;
    char keyspace[STATS_NAME], name[STATS_NAME];
    bool active; /* cell is not empty */
    struct cell cell;
    struct order order; /* of the partition keys of its writes */
};

enum { SHARD_BATCHES = 64, SHARD_SEGMENTS = 64, SHARD_KEYS = 64, SHARD_KEY = 64 };

/* Counts of a watched table by range of tokens, which wrap: range i has the tokens whose highest
 * byte, with its first bit turned over, is i. The owner alone adds to them; any thread reads them
 * without the lock. */
enum { SHARD_RANGES = 256, SHARD_WATCHED = 16 };
enum range_figure { RANGE_READ_HALVES, RANGE_WRITE_UNITS, RANGE_THROTTLES, RANGE_ENTITIES, RANGE_FIGURES };
struct shard_ranges {
    _Atomic uint32_t n[SHARD_RANGES][RANGE_FIGURES];
};
static inline uint32_t shard_range(int64_t token) { return (uint32_t)((uint64_t)token >> 56) ^ 0x80; }
static inline void shard_range_add(struct shard_ranges *r, int64_t token, enum range_figure f, uint32_t n) {
    _Atomic uint32_t *at = &r->n[shard_range(token)][f];
    atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + n, memory_order_relaxed);
}
/* Adds a successful read of one partition. */
static inline void shard_range_read(struct shard_ranges *r, const struct charge_item *of) {
    shard_range_add(r, of->token, RANGE_READ_HALVES, (uint32_t)of->read_halves);
    shard_range_add(r, of->token, RANGE_ENTITIES, (uint32_t)of->entities);
}

/* What partitions record of a request: its statement, the role of its connection, and why it was
 * throttled. */
enum throttle_reason {
    THROTTLE_PARTITION,
    THROTTLE_CONNECTION,
    THROTTLE_TABLE, /* or account */
    THROTTLE_GUIDANCE,
    THROTTLE_REASONS
};
struct shard_origin {
    uint64_t statement_id; /* 0 if none */
    const char *role;      /* "": none */
    uint32_t reasons;      /* bit set of enum throttle_reason */
};
enum { SHARD_ORIGIN_STATEMENTS = 3, SHARD_ORIGIN_ROLES = 2 };

/* The data of a partition that heavy.h keeps, since it was first kept. */
struct shard_partition {
    uint32_t object, key_n;
    int64_t token;
    uint8_t key[SHARD_KEY]; /* its first bytes */
    struct usage usage;
};
/* The origins of requests to a kept partition, without its first one unless that was throttled:
 * most partitions are seen once and replaced by the next. They are apart from the partition's data,
 * so that such a partition does not touch them. The statements and roles that use the partition
 * most are counted as heavy.h counts keys, in one set: a new one replaces the lightest and inherits
 * its count. */
struct shard_origins {
    uint32_t object; /* object and token: the partition */
    int64_t token;
    uint64_t throttles[THROTTLE_REASONS];
    struct {
        uint64_t id, n;
    } statements[SHARD_ORIGIN_STATEMENTS];
    struct {
        char name[64];
        uint64_t n;
    } roles[SHARD_ORIGIN_ROLES];
};
struct shard_statement {
    struct usage usage;
    uint64_t rows_read, rows_returned;
    uint64_t rules; /* named by its charges since the start, without those of queued reads */
    uint32_t object;
    enum query_class class;
    enum guidance_class guidance;
    char *text;
};

/* A batch: consecutive queued reads that differ only in connection, duration, bytes read
 * and partition. */
struct shard_batch {
    uint64_t statement_id; /* a statement that the shard keeps */
    int64_t second_us;     /* when their second began */
    uint32_t object, halves;
    uint64_t rows_read, rows_returned, entities;
    uint8_t class, guidance;
    bool one_partition;
    /* n: the reads of the batch; the first n_timed of them have a duration */
    uint32_t n, n_timed, n_segments, n_keys;
    uint64_t bytes_read, took_us;
    struct shard_ranges *ranges; /* NULL if the table is not watched */
    struct span latency; /* without their number */
};
/* The connection of a batch's reads from the from-th on, up to the next segment's first. */
struct shard_segment {
    struct ledger_connection *connection;
    uint32_t from;
};
/* The partition of a queued read that may be heavy. Reads of light partitions are counted in the
 * cells of heavy.h already. */
struct shard_key {
    int64_t token;
    uint32_t n, at; /* length of the key; position of its first bytes in key_bytes */
};

enum { SHARD_PARTITION_SETS = 64, SHARD_STATEMENT_SETS = 32, SHARD_TEXT = 1000 };

struct shard {
    pthread_mutex_t lock;
    uint32_t second; /* of the cells */
    uint32_t n_tables, cap_tables; /* cap: a power of two, or 0 */
    struct shard_table **tables;   /* by hash of the object */
    struct shard_table *last;      /* found last; NULL if none */
    struct shard_table *actives[64]; /* tables whose cells are not empty; if there are more, all tables are checked */
    uint32_t n_actives;
    /* The watched tables; object 0: the slot is free. Any thread sets an object, under the lock. A
     * batch that is open meanwhile counts in the ranges of the previous table. */
    _Atomic uint32_t watched[SHARD_WATCHED];
    _Atomic uint32_t watched_end;  /* all slots from here on are free */
    struct shard_ranges *ranges; /* SHARD_WATCHED */
    struct heavy partitions, statements;
    struct shard_partition *partition_infos;
    struct shard_origins *partition_origins;
    struct shard_statement *statement_infos;
    struct ledger_connection *connections;
    _Atomic pthread_t owner; /* the thread that queued last */
    /* accessed by the owner only */
    uint32_t n_batches, n_segments, n_keys, n_key_bytes;
    int64_t began_us;          /* Q1. The queued reads without a duration began at this moment */
    struct shard_batch *batch; /* the last one; NULL if none */
    struct shard_batch batches[SHARD_BATCHES];
    struct shard_segment segments[SHARD_SEGMENTS];
    struct shard_key keys[SHARD_KEYS];
    uint8_t key_bytes[SHARD_KEYS * SHARD_KEY];
};

static inline uint64_t shard_partition_id(uint32_t object, int64_t token) { return (uint64_t)token * 31 + object; }

int shard_init(struct shard *s) MUST_CHECK;
void shard_fini(struct shard *s);
/* Posts a request. The caller holds the lock. Without memory the request is not counted. */
void shard_post(struct shard *s, uint32_t second, const struct ledger_request *q);
/* Queues a read (shard_queue.c). Called by the owner without the lock, for a request that is one
 * read and nothing else. Returns false when the read is not queued; post it then. */
bool shard_read_put(struct shard *s, struct ledger_connection *c, uint64_t statement_id, const struct op_cost *cost,
                    int64_t began_us) MUST_CHECK;
/* The reads queued since the last call have ended at now_us. Every read gets a duration before it
 * is posted. */
void shard_reads_time(struct shard *s, int64_t now_us);
static inline bool shard_reads_are_timed(const struct shard *s) {
    return !s->batch || s->batch->n_timed == s->batch->n;
}
/* Posts a batch, given with the first of its segments and of its keys, and its table's cell. Called
 * by the owner, under the lock. */
void shard_batch_post(struct shard *s, uint32_t second, const struct shard_batch *batch,
                      const struct shard_segment *segments, const struct shard_key *keys, struct cell *cell);
/* Empties the queue, after posting or to discard it. Called by the owner. */
static inline void shard_reads_clear(struct shard *s) {
    s->n_batches = s->n_segments = s->n_keys = s->n_key_bytes = 0;
    s->batch = NULL;
}
/* The table's cell, for posting a batch; called under the lock. Returns NULL if the shard does not
 * have the table and keyspace is NULL, or memory is exhausted. */
struct cell *shard_cell(struct shard *s, uint32_t object, const char *keyspace, const char *table);
void shard_partition_add(struct shard *s, uint32_t second, uint32_t object, int64_t token, struct slice key,
                         const struct usage_window *u, const struct shard_origin *origin);
/* Adds the counts of the same partition in another shard. */
void shard_origins_add(struct shard_origins *to, const struct shard_origins *from);
/* The origins of the i-th kept partition; all zero if none are recorded. */
struct shard_origins shard_origins_of(const struct shard *s, uint32_t i);
/* The ranges of a watched table; NULL if the table is not watched. Called by the owner. */
struct shard_ranges *shard_ranges_of(struct shard *s, uint32_t object);
/* Adds load to a statement that the shard keeps. */
struct shard_statement *shard_statement_add(struct shard *s, uint64_t id, uint64_t load);
/* Adds units of TTL deletes, which belong to no request. */
void shard_ttl_delete(struct shard *s, uint32_t object, const char *keyspace, const char *table, uint64_t units);
/* Moves the cells' counts to the statistics. The caller holds the shard's lock and the
 * statistics'. */
void shard_drain(struct shard *s, struct stats *b);
void shard_drop(struct shard *s, uint32_t object);
/* Reverses a posting. The caller holds the shard's lock and the statistics', and has called
 * shard_drain. of: the usage of the connection, or of its role when the connection is closed. */
void shard_reverse(struct shard *s, struct stats *b, uint32_t second, const struct ledger_posting *posting,
                     struct usage *of);
/* shard_put writes partitions and statements as bytes (shard_state.c); shard_take adds such bytes
 * to the shard, up to the first damaged item. The caller holds the lock. */
void shard_put(const struct shard *s, struct buf *out);
void shard_take(struct shard *s, struct slice bytes);
enum order_pattern shard_pattern(const struct shard *s, uint32_t object);
