/* Requests, sessions and results as the folders of cql see them; cql/cql.h passes them down.
 *
 * The caller fills a cql_request, which stays as it is, and a cql_run; the statement that runs hands rows to its sink
 * as it finds them, and leaves all else in the cql_answer.
 */
#pragma once

#include <stdatomic.h>

#include "base/ip_address.h"
#include "base/clock.h"
#include "cql/syntax/ast.h"
#include "engine/engine.h"
#include "keyspaces/compat.h"
#include "system_schema/catalog.h"
#include "types/value.h"

struct cql_run;
struct limit_connection; /* metering/limits/limiter.h */
struct limit_verdict;
struct access_control;

/* admit is called once in a run, when its cost (r->cost) is known and before it writes. It returns 0,
 * or -1 with the error that refuses the request. NULL allows all. It runs on the request's
 * thread. */
struct cql_admission {
    /* Called before a SELECT reads a table, on every thread that runs it. Returns -1 if it would be
     * refused at any cost. May be NULL. */
    int (*begin)(void *arg, struct cql_run *r, const struct schema_table *t, struct err *e);
    int (*admit)(void *arg, struct cql_run *r, struct err *e);
    void *arg;
};

/* The database that requests run on; one per process, shared by all threads. */
struct cql_db;
struct cql_db_options {
    struct eng *eng;
    struct catalog *catalog;
    struct clock *clock;
    enum tally_mode mode;
    struct compat compat; /* what to do with statements that Amazon Keyspaces refuses; zero: nothing */
    enum size_model size_model;
    enum write_size write_size;
    uint32_t timestamp_size;
    bool unmetered; /* nothing is sized or charged: for measuring what that costs */
    struct {
        schema_ttl_delete_fn fn; /* NULL if TTL deletes are not reported */
        void *arg;
    } ttl_delete;
    size_t prepared_bytes; /* limit of the prepared-statement cache; 0 means default 64 MiB */
    uint64_t max_row_bytes; /* 0 for no bound */
    struct cql_admission admission;
    /* roles and permissions (access/access.h); NULL if clients do not log in, and may do everything */
    struct access_control *access;
};

/* The state of a connection that outlives a request. One thread at a time. */
struct cql_session {
    char keyspace[64]; /* of USE; empty: none */
    uint8_t protocol_version;
    enum partitioner_id partitioner; /* in force when the session began */
    char local_address[IP_ADDRESS_TEXT]; /* numeric, what the client connected to */
    uint16_t local_port;
    const char *role; /* the role that has logged in; NULL if none */
    const char *client_address; /* numeric; NULL means the server itself sends the request */
    struct {          /* cache of the newest permission check: the role's permissions on a table, by the table's id */
        uint64_t generation;
        uint32_t permissions;
        uint8_t table[16];
    } permitted;
    /* the admission's state for the connection; NULL if the session is outside all limits, and its requests are
     * not admitted */
    struct limit_connection *limit;
};

enum { CQL_SENT_MAX = 64 };

/* A connection before v5 in the cache of prepared statements (cql_client_open). */
struct cql_client {
    struct prepared_cache *cache; /* NULL if it was never opened */
    struct cql_client *older, *newer;
    uint64_t opened; /* the number of statements that had lost their columns then */
    /* A ring of CQL_SENT_MAX statements whose changed columns the client has got; NULL if none. Statements that
     * are no longer in it are sent with their columns. */
    struct cql_sent_columns {
        uint8_t id[16];
        uint64_t change; /* result_meta.change of the columns */
    } *sent;
    unsigned n_sent; /* so far */
    bool closed;        /* sent stays NULL: responses in progress may outlive the connection */
};

/* ---- results ---- */

struct result_column {
    const char *keyspace, *table, *name;
    const struct cql_type *type;
};
struct result_meta {
    uint32_t n;
    const struct result_column *columns;
    uint8_t id[16]; /* of a prepared statement: result_metadata_id of v5, a hash of names and types */
    bool always;    /* sent with the rows even if the client asked to leave it out */
    /* The number of the change that gave the prepared statement these columns in place of others; 0 if none did. */
    uint64_t change;
};

/* Receives the rows of a SELECT (and of LWT, DESCRIBE). Provided by the caller; all calls are made before cql_run
 * returns. */
struct row_sink {
    /* Called once, before the rows. meta and its data outlive the request. Returns 0, or -1 on error. */
    int (*begin)(struct row_sink *s, const struct result_meta *meta);
    /* Copies n rows of meta->n values each. Returns -1 if the response is too large. */
    int (*rows)(struct row_sink *s, const struct value *const *rows, uint32_t n);
    /* Drops the rows received, and begin: the request starts over on another thread. */
    void (*restart)(struct row_sink *s);
    /* Bytes of the rows received so far, to end a page that grows too large. */
    size_t (*bytes)(const struct row_sink *s);
};
MUST_CHECK static inline int row_sink_row(struct row_sink *s, const struct value *values) {
    return s->rows(s, &values, 1);
}

enum cql_result_kind { RESULT_VOID = 1, RESULT_ROWS, RESULT_SET_KEYSPACE, RESULT_PREPARED, RESULT_SCHEMA_CHANGE };

struct cql_prepared; /* refcounted; one arena */

struct cql_statement;

/* A prepared statement: the contents of a PREPARED response, and what it was made from. Valid while the reference is
 * held. */
struct prepared_info {
    uint8_t id[16];
    const struct cql_statement *statement;
    struct slice query, shown; /* the text, and (cql_shown) the text to store and show; a 0 follows each */
    const char *keyspace;      /* the default keyspace when it was prepared; NULL if there is none */
    struct result_meta binds;
    uint32_t n_pk; /* binds that make up the whole partition key, in key order; 0 when not all are bound */
    const uint16_t *pk_indexes;
    struct result_meta result; /* n 0 when the statement returns no rows */
};

struct cql_result {
    enum cql_result_kind kind;
    struct slice paging_state;      /* ROWS: p NULL when there is no further page */
    const struct result_meta *meta; /* ROWS; as given to the sink */
    bool meta_changed;              /* EXECUTE on v5: the client's result_metadata_id is stale */
    const char *keyspace;           /* SET_KEYSPACE */
    struct cql_prepared *prepared;  /* PREPARED: a reference that the caller drops */
    const struct schema_change *change; /* SCHEMA_CHANGE; in the request's arena */
};

/* ---- requests ---- */

enum cql_consistency {
#define CONSISTENCY(id, replicas) CL_##id,
#define CONSISTENCY_REFUSED(...)
#include "cql/request/consistency.def"
#undef CONSISTENCY
#undef CONSISTENCY_REFUSED
};

/* <query_parameters> of QUERY and EXECUTE (v5 specification, section 4.1.4). */
struct cql_params {
    uint16_t consistency, serial_consistency;
    uint32_t n_values;
    const struct value *values;
    const struct slice *names; /* by-name values, or NULL */
    int32_t page_size;         /* <= 0: none asked */
    struct slice paging_state; /* p NULL: first page */
    bool has_timestamp, has_now;
    int64_t timestamp;         /* microseconds */
    int32_t now_seconds;       /* v5 */
    struct slice keyspace;     /* v5; p NULL: the session's */
    struct slice result_metadata_id; /* v5 EXECUTE */
};

enum cql_request_kind { REQUEST_QUERY, REQUEST_PREPARE, REQUEST_EXECUTE, REQUEST_BATCH };

struct cql_batch_item {
    struct slice query;       /* text, or p NULL and id */
    struct slice prepared_id; /* 16 bytes */
    uint32_t n_values;
    const struct value *values;
};

/* Classes of requests that leave the loop; each has its own workers:
 *
 *   READ    may wait for the disk, and is short: a row, a slice, a few partitions
 *   UPDATE  reads before it writes, under a partition's lock: conditions, counters, list indexes
 *   SCAN    as long as its data: token ranges, whole tables, aggregates over them
 *   DDL     waits for the catalogue
 */
enum cql_work_class { WORK_READ, WORK_UPDATE, WORK_SCAN, WORK_DDL, WORK_CLASSES };

/* DONE and FAILED end a request. COMMIT: as DONE, but the response may be sent only when the writes are
 * durable. OFFLOAD, on a loop only: nothing was done; run it again on a thread of its
 * work_class. AGAIN, on such a thread only: a bounded part is done and the batch is empty;
 * cql_run_more does the next one, there or on another thread that may block. CONFLICT, from cql_apply
 * on such a thread only: another server has written to the same partitions at the same time. The
 * caller restarts the request, with this run's list of written partitions, or fails it with
 * the error that is set. */
enum cql_outcome { CQL_DONE, CQL_COMMIT, CQL_OFFLOAD, CQL_AGAIN, CQL_CONFLICT, CQL_FAILED };

/* A partition that a run has written before it ended with CQL_CONFLICT. In the request's arena. */
struct cql_written {
    const struct cql_written *next;
    struct eng_part part;
};

/* A decoded request of a client. Nothing changes it while it runs. */
struct cql_request {
    enum cql_request_kind kind;
    struct cql_params params;
    struct slice query;       /* QUERY, PREPARE */
    /* QUERY: a statement made without a text; query is its name in reports. NULL if query is parsed */
    struct ast_stmt *tree;
    struct slice prepared_id; /* EXECUTE */
    enum ast_batch_kind batch_kind;
    uint32_t n_items;
    const struct cql_batch_item *items;
};

/* The inputs of terms: bound values and times. values: of the statement's bind markers,
 * in their order. An evaluation allocates in arena and reports its error in err. db: for functions like now(),
 * which read the clock at each call. */
struct evaluation {
    struct cql_db *db;
    struct arena *arena;
    struct err *err;
    uint32_t n_values;
    const struct value *values;
    struct cql_reading reading; /* of JSON; now_us: the run's */
    int64_t now_s;              /* of TTL and expiry: the client's (v5) or now_us */
};

/* The result of a run, for its caller. */
struct cql_answer {
    struct cql_result result;
    uint32_t n_warnings;
    const char **warnings;    /* in the arena; cql_warn appends */
    uint64_t commit_seq;      /* with CQL_COMMIT, once applied: the sequence to wait for; 0 if batch is to be
                               * committed */
    enum stmt_kind stmt_kind; /* STMT_KINDS when nothing was parsed */
    /* statement text of EXECUTE, for metrics and traces; a 0 follows it; p may be NULL */
    struct slice fingerprint;
    enum cql_work_class work_class; /* with CQL_OFFLOAD and CQL_AGAIN */
    /* of a write, the write type that ERR_WRITE_TIMEOUT reports: SIMPLE, BATCH, CAS, ...; a literal,
     * set before the admission. NULL if not known yet */
    const char *write_type;
    /* with CQL_AGAIN: each part has the whole timeout, as a page has (for aggregates) */
    bool deadline_per_part;
    int64_t again_us;    /* with CQL_AGAIN: machine time before which there is nothing to do; 0 means more at once */
    int64_t admitted_us; /* wall time at which the admission asked the limiter; 0 if it did not */
    const struct limit_verdict *verdict; /* the admission's verdict, in the arena; NULL if none */
};

/* One run of a request. The caller sets the first part; cql stores its answer and its state in the
 * rest, which is zero before. A request that starts over gets a new run. */
struct cql_run {
    const struct cql_request *in;
    struct cql_db *db;
    struct cql_session *session;
    bool own_traces_only;    /* the session's role does not see the traces of other roles' requests */
    struct arena *arena;
    struct err *err;
    struct op_cost *cost;
    struct row_sink *sink;
    /* where writes go; on a loop the caller commits it, on a thread that may block it is empty before and after */
    struct eng_batch *batch;
    int64_t now_us;          /* the run's one clock reading */
    bool blocking;           /* on a thread that may block */
    bool noted;              /* an earlier run of the request has reported its notes */
    const struct cql_written *written; /* by earlier runs of the request; cql adds this one's */
    const _Atomic bool *cancelled; /* true: the client no longer waits for the answer; NULL means never */
    int64_t deadline_us;     /* machine time of the clock of cql_db_options; 0 if none */

    struct cql_answer answer;

    /* of cql */
    struct evaluation eval; /* of the statement that runs; of a batch, of one after the other */
    /* Carries out the planned writes or the planned change of the schema; cql_apply calls it once.
     * NULL means nothing is planned. */
    enum cql_outcome (*apply)(struct cql_run *r);
    bool independent;    /* the planned write has read nothing and holds no lock: cql_apply need not follow at once */
    bool admitted;       /* by cql_admit */
    /* the current one, referenced while the request runs; NULL when an EXECUTE needs none */
    const struct schema *schema;
    /* --compatibility report; else NULL. A caller that sets it gets the notes instead of the report. */
    struct compat_notes *notes;
    struct cql_prepared *statement; /* referenced while the request runs */
    uint32_t n_item_statements;     /* those of a batch's items, likewise */
    struct cql_prepared **item_statements;
    const struct cql_statement *compiled; /* that runs, in the request's arena or in statement */
    /* A request between two parts. running is the statement's state, in the request's arena.
     * running_fini, if set, releases the resources that are not in the arena; cql_run_fini calls it
     * once, on any thread, whether the request has finished or was dropped. */
    void *running;
    void (*running_fini)(struct cql_run *r);
};

/* Called between two parts, and after a request has waited. Returns -1 with an error if the request is
 * cancelled (ERR_SERVER) or its deadline has passed (ERR_READ_TIMEOUT, ERR_WRITE_TIMEOUT; for a
 * PREPARE ERR_OVERLOADED). A write that has begun to commit does not call it. */
int cql_check_running(struct cql_run *r) MUST_CHECK;

/* The refusals' context for a running statement: a copy with the request's notes. */
static inline struct compat compat_in(const struct cql_run *r, const struct compat *of) {
    struct compat k = *of;
    k.notes = r->notes;
    return k;
}

/* An empty cost under the rules of the database, with its lists in the arena. */
struct op_cost cql_cost(const struct cql_db *db, struct arena *arena);
/* The admission for the run: the database's, or one that allows all if its session is outside the limits. */
const struct cql_admission *cql_admission_of(const struct cql_run *r);
/* Adds a warning to the response. */
int cql_warn(struct cql_run *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
