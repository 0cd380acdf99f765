/* A server without network and disk, in keyspaces mode by default. It uses the server's own engine,
 * catalogue, language, refusals, charges and limits, so its results are those of a server. DDL
 * takes no time. The clock is the machine's or that of a capture, until world_expire advances it.
 */
#pragma once

#include "cql/cql.h"
#include "keyspaces/compat.h"
#include "metering/explanation.h"

struct world_options {
    enum size_model size_model;
    enum write_size write_size;
    uint32_t timestamp_size; /* bytes of a column's timestamp in tables with client-side timestamps */
    bool strict;    /* refuse what Amazon Keyspaces refuses; false: run it, and note the uses */
    bool cassandra; /* cassandra mode */
    /* refuse what exceeds the limits of tables (by capacity mode), partitions, connections and the
     * account */
    bool limits;
};

struct world;
struct world *world_new(const struct world_options *o, struct err *e) MUST_CHECK;
void world_free(struct world *w);

/* The result of a statement; valid until the next statement. */
struct world_answer {
    enum stmt_kind kind;
    struct op_cost *cost;
    struct charge charge; /* of all pages together */
    uint64_t pages, rows_read, rows_returned, bytes_read, filtered, past_limit, entities;
    struct partition_count partitions;
    uint32_t n_warnings;
    const char **warnings;
};

/* The error of the last statement of world_run, and its uses of features that Amazon Keyspaces refuses; valid
 * until the next statement. */
struct world_faults {
    const struct compat_note *notes; /* newest first; none in a strict world */
    const char *needs; /* "the index that schema.cql:7 would create"; NULL if none that was left out */
};

struct world_request {
    struct slice text;
    uint16_t consistency; /* enum cql_consistency */
    int32_t page_size;
};

/* Runs a statement to its last page. Returns -1 if the statement is refused or wrong, e is the
 * server's error. */
int world_run(struct world *w, const struct world_request *q, struct world_answer *out, struct err *e) MUST_CHECK;
struct world_faults world_faults(const struct world *w);
/* Runs a definition without the refusals of Amazon Keyspaces. Returns -1 if it is wrong, or nothing
 * that Tally has (world_leave_out); e is the server's error. */
int world_define(struct world *w, const struct world_request *q, struct err *e) MUST_CHECK;
/* Whether a statement that has just failed is of a kind that Amazon Keyspaces refuses whatever it
 * says, such as CREATE INDEX; other statements go on without it. Its place is kept for
 * world_faults. */
bool world_leave_out(struct world *w, struct slice text, const char *path, uint32_t line);
/* A captured request and its time. Its prepared statements must be known by world_prepare. */
struct world_call {
    int64_t now_us;      /* since 1970; 0 means now */
    uint64_t connection; /* counts for this connection's limit */
    struct slice keyspace; /* of the session */
    uint8_t version, opcode, flags;
    struct slice body;
    int32_t page_size;     /* replaces the body's; 0 if keep the body's */
    struct slice paging_state; /* replaces the body's; p NULL: none, or the body's when page_size is 0 */
};
/* Runs one page. *paging_state: of the next page, valid until the next call; p NULL: none. Returns
 * -1 if the request is refused or wrong; *throttled: a limit refused it. */
int world_send(struct world *w, const struct world_call *c, struct world_answer *out, struct slice *paging_state,
               bool *throttled, struct err *e) MUST_CHECK;
/* keyspace: the session's when the statement was prepared; empty: none. */
int world_prepare(struct world *w, struct slice text, struct slice keyspace, struct err *e) MUST_CHECK;

/* Alters every user table that has another capacity mode. read and write: units a second when
 * provisioned. */
int world_set_capacity(struct world *w, bool provisioned, uint32_t read, uint32_t write, struct err *e) MUST_CHECK;

/* Runs every statement of a file at LOCAL_QUORUM; with defines, by world_define, and indexes and
 * the like are left out. Returns -1 if one failed; ERR_CONFIG with file and line. */
int world_load(struct world *w, const char *path, bool defines, struct err *e) MUST_CHECK;
/* Runs a text of definitions with world_define; errors give name as the file. */
int world_load_text(struct world *w, const char *name, struct slice text, struct err *e) MUST_CHECK;

/* Prepares a statement, for its markers and result columns. The caller owns the reference. */
struct cql_prepared *world_markers(struct world *w, struct slice text, struct err *e) MUST_CHECK;
/* The session's keyspace; "": none. */
const char *world_keyspace(const struct world *w);
/* The current schema. The caller owns the reference. */
const struct schema *world_schema(struct world *w);
/* The billable size of a table. */
int world_storage(struct world *w, const struct schema_table *t, struct table_size *out, struct err *e) MUST_CHECK;
/* Advances the clock and removes expired data. *units: the TTL deletes charged for the table of t's
 * name. */
int world_expire(struct world *w, int64_t seconds, const struct schema_table *t, uint64_t *units,
                 struct err *e) MUST_CHECK;
/* The part of a one-page answer's charge that belongs to the table of t's name. *entities: its
 * rows. Returns -1 if memory is exhausted. */
int world_charge_of(const struct world_answer *a, const struct schema_table *t, uint16_t consistency,
                    struct charge *out, uint64_t *entities) MUST_CHECK;

/* The level of a name such as "LOCAL_QUORUM", in any case; -1 if unknown, or name is NULL. */
int world_consistency(const char *name);
