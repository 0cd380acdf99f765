/* One event loop's part of the ledger: what its requests did since the running second began, its
 * connections, its heaviest partitions and statements.
 *
 * Written by the loop's thread, its owner, read by whoever looks, both under the shard's lock,
 * which nobody else holds for long: a request is posted with about a dozen additions. Counts of
 * tables go to the book when their second is over (book.h).
 *
 * Nearly all requests are reads by a prepared statement, many of them one behind the other on their
 * connection. Those stand in a queue, without the lock, and are posted together, when the code and
 * the cells that it takes are at hand: when the queue is full, when the owner settles (before an
 * answer leaves), when a request of another kind is posted, when the owner looks.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "ledger/book.h"
#include "ledger/heavy.h"
#include "ledger/order.h"
#include "ledger/usage.h"
#include "metering/size/op_cost.h"

enum ledger_outcome { LEDGER_OK, LEDGER_THROTTLED, LEDGER_USER_ERROR, LEDGER_SYSTEM_ERROR };

/* What a client says of its driver, shared by its connection and the copies that
 * ledger_connections makes. Texts; "": not said. */
struct ledger_driver {
    atomic_uint refs;
    const char *name, *version;
    char bytes[];
};

/* Keeps LEDGER_DRIVER_TEXT bytes of each text at most. NULL: both are empty, or there is no
 * memory. */
enum { LEDGER_DRIVER_TEXT = 1024 };
struct ledger_driver *ledger_driver_new(struct slice name, struct slice version);
void ledger_driver_unref(struct ledger_driver *d);

/* A client connection; in its owner's memory, and in the shard's list between ledger_connect and ledger_disconnect. */
struct ledger_connection {
    struct ledger_connection *next, *prev;
    uint64_t id;
    char address[46]; /* numeric */
    char role[64];
    int64_t opened_us;
    struct { /* what the client said of itself at STARTUP; version 0: nothing yet */
        uint8_t version; /* of the protocol */
        uint16_t port;
        char compression[8];
        struct ledger_driver *driver; /* NULL: it said nothing of its driver */
        char cipher[64], tls[16]; /* empty: not encrypted */
    } client;
    struct usage usage; /* each subquery of an IN is a request */
};

/* A request whose outcome is known. */
struct ledger_request {
    const struct op_cost *cost;  /* with what charge_compute made of its parts */
    enum operation operation;    /* OTHER: counted only when it failed */
    enum ledger_outcome outcome;
    bool stands;                 /* though it failed, what it did stands and is charged: a fault that comes after */
    /* Of THROTTLED, or of a request that would have been in enforce mode: by what. */
    bool throttled, read_throttled, by_connection, by_partition;
    bool guidance;               /* the partition guidance finds fault with it */
    uint32_t statements;         /* that it counts as on its connection: subqueries of an IN, else 1 */
    int64_t now_us, took_us;     /* when it began, wall clock; how long it took */
    struct ledger_connection *connection;
    uint64_t statement_id;       /* a hash; 0: there is none */
    struct slice text;           /* of the statement */
};

/* What a write that was posted is taken back by, when its commit fails after all: write by write,
 * of whatever tables and partitions. */
struct ledger_claim_part {
    uint32_t object;
    int64_t token;
    uint32_t read_halves, write_units, static_units, entities;
    bool condition_failed;
};
struct ledger_claim {
    enum operation operation;
    uint64_t statement_id; /* as posted */
    uint32_t n;            /* 0: it is no write */
    struct ledger_claim_part first, *others; /* others: n - 1, on the heap */
};
/* Of a request that succeeds, as it is posted. Without memory it is a claim to the first part alone. */
struct ledger_claim ledger_claim_of(const struct op_cost *cost, enum operation operation, uint64_t statement_id);
/* Copies share what it holds: one of them is ended. */
void ledger_claim_fini(struct ledger_claim *c);

struct shard_table {
    uint32_t object;
    char keyspace[BOOK_NAME], name[BOOK_NAME];
    bool active; /* cell is not empty */
    struct cell cell;
    struct order order; /* of the partition keys that are written */
};

enum { SHARD_RUNS = 64, SHARD_ASKERS = 64, SHARD_KEYS = 64, SHARD_KEY = 64 };

/* What is known of a heavy partition since it has been kept. */
struct shard_partition {
    uint32_t object, key_n;
    int64_t token;
    uint8_t key[SHARD_KEY]; /* its beginning */
    struct usage usage;
};
struct shard_statement {
    struct usage usage;
    uint64_t rows_read, rows_returned;
    uint32_t object;
    enum query_class class;
    char *text;
};

/* Reads by a prepared statement that went well and about which there is nothing else to say, until
 * they are posted: those that stand one behind the other and are alike in all but who asked, how
 * long they took, the bytes that they read, and their partitions. */
struct shard_run {
    uint64_t statement_id; /* which the shard keeps */
    int64_t second_us;     /* when their second began */
    uint32_t object, halves;
    uint64_t rows_read /* entities, too */, rows_returned;
    uint8_t class;
    bool one_partition;
    /* of all; those that are not timed yet were put last */
    uint32_t n, n_timed, n_askers, n_keys;
    uint64_t bytes_read, took_us;
    struct span latency; /* without their number */
};
/* Who asked for those of a run from the from-th on. */
struct shard_asker {
    struct ledger_connection *connection;
    uint32_t from;
};
/* The partition of one of them that may be heavy; others are in its cells already. */
struct shard_key {
    int64_t token;
    uint32_t n, at; /* length of the key; where its beginning is */
};

enum { SHARD_PARTITION_SETS = 64, SHARD_STATEMENT_SETS = 32, SHARD_TEXT = 1000 };

struct shard {
    pthread_mutex_t lock;
    uint32_t second; /* of the cells */
    uint32_t n_tables, cap_tables; /* cap: a power of two, or 0 */
    struct shard_table **tables;   /* by hash of the object */
    struct shard_table *last;      /* that was looked for; NULL: none */
    struct shard_table *actives[64]; /* whose cells are not empty; when there are more, all are looked at */
    uint32_t n_actives;
    struct heavy partitions, statements;
    struct shard_partition *partition_infos;
    struct shard_statement *statement_infos;
    struct ledger_connection *connections;
    _Atomic pthread_t owner; /* who queued last */
    /* the owner's alone */
    uint32_t n_runs, n_askers, n_keys, n_key_bytes;
    struct shard_run *run; /* the last one; NULL: none */
    struct shard_run runs[SHARD_RUNS];
    struct shard_asker askers[SHARD_ASKERS];
    struct shard_key keys[SHARD_KEYS];
    uint8_t key_bytes[SHARD_KEYS * SHARD_KEY];
};

static inline uint64_t shard_partition_id(uint32_t object, int64_t token) { return (uint64_t)token * 31 + object; }

int shard_init(struct shard *s) MUST_CHECK;
void shard_fini(struct shard *s);
/* Under the lock. A request whose memory cannot be had is not counted. */
void shard_post(struct shard *s, uint32_t second, const struct ledger_request *q);
/* Without the lock, the owner (shard_queue.c): of a request that is one read and nothing else,
 * whose entities are its rows_read (op_cost_count_rows). False: it is not queued, and has to be
 * posted. */
bool shard_read_put(struct shard *s, struct ledger_connection *c, uint64_t statement_id, const struct op_cost *cost,
                    int64_t now_us) MUST_CHECK;
/* The same of another one of the connection, the statement and the second of the last that was put,
 * since which nothing was posted or thrown away. */
bool shard_read_again(struct shard *s, const struct op_cost *cost) MUST_CHECK;
/* How long each took of those that were put since the last time; before they are posted. */
void shard_reads_time(struct shard *s, int64_t took_us);
static inline bool shard_reads_are_timed(const struct shard *s) { return !s->run || s->run->n_timed == s->run->n; }
/* Under the lock, the owner: a run, with the first of its askers and of its keys. cell: of its table. */
void shard_run_post(struct shard *s, uint32_t second, const struct shard_run *run, const struct shard_asker *askers,
                    const struct shard_key *keys, struct cell *cell);
/* The owner: what is queued is posted, or going to be thrown away. */
static inline void shard_reads_clear(struct shard *s) {
    s->n_runs = s->n_askers = s->n_keys = s->n_key_bytes = 0;
    s->run = NULL;
}
/* Under the lock, for that. The table's cell, which is going to be added to; NULL: it is not here
 * and has no name (keyspace NULL), or there is no memory. */
struct cell *shard_cell(struct shard *s, uint32_t object, const char *keyspace, const char *table);
void shard_partition_add(struct shard *s, uint32_t second, uint32_t object, int64_t token, struct slice key,
                         const struct usage_window *u);
/* Of a statement that is kept. */
struct shard_statement *shard_statement_add(struct shard *s, uint64_t id, uint64_t load);
/* Units of no request. */
void shard_ttl_delete(struct shard *s, uint32_t object, const char *keyspace, const char *table, uint64_t units);
/* Under the lock, and the book's: empties the cells into it. */
void shard_drain(struct shard *s, struct book *b);
void shard_drop(struct shard *s, uint32_t object);
/* Under the lock, and the book's; shard_drain was called. of: whose it was, the connection's or,
 * once that is closed, its role's. */
void shard_take_back(struct shard *s, struct book *b, uint32_t second, const struct ledger_claim *claim,
                     struct usage *of);
/* Under the lock: partitions and statements as bytes (shard_state.c), and those of bytes added to
 * the shard's; what is damaged, and behind it, is left out. */
void shard_put(const struct shard *s, struct buf *out);
void shard_take(struct shard *s, struct slice bytes);
enum order_pattern shard_pattern(const struct shard *s, uint32_t object);
