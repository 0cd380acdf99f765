/* A server without network and disk, of keyspaces mode unless asked otherwise: the server's own
 * engine, catalogue, language, refusals, charges and limits, so that what is said here of a
 * statement is what a server does with it. DDL takes no time; the clock is the machine's, or the
 * one of a capture, until world_expire moves it.
 */
#pragma once

#include "cql/cql.h"
#include "keyspaces/compat.h"
#include "metering/charge.h"

struct world_options {
    enum size_model size_model;
    enum write_size write_size;
    uint32_t timestamp_size; /* bytes of the timestamp of a column, of tables with client-side timestamps */
    bool strict;    /* what Amazon Keyspaces refuses is refused */
    bool cassandra; /* cassandra mode */
    /* of tables by their capacity mode, of partitions, connections, the account: what is over them is refused */
    bool limits;
};

struct world;
struct world *world_new(const struct world_options *o, struct err *e) MUST_CHECK;
void world_free(struct world *w);

/* What a statement came to; valid until the next one. */
struct world_answer {
    enum stmt_kind kind;
    struct op_cost *cost;
    struct charge charge; /* of all pages together */
    uint64_t pages, rows_read, rows_returned, bytes_read, partitions, filtered, entities;
    uint32_t n_warnings;
    const char **warnings;
};

struct world_request {
    struct slice text;
    uint16_t consistency; /* enum cql_consistency */
    int32_t page_size;
};

/* Runs it to its last page. -1: refused or wrong, e says why as a server would. */
int world_run(struct world *w, const struct world_request *q, struct world_answer *out, struct err *e) MUST_CHECK;
/* Runs a definition that Amazon Keyspaces may refuse: here it is not refused. -1: it is wrong, e
 * says why as a server would. */
int world_define(struct world *w, const struct world_request *q, struct err *e) MUST_CHECK;
/* A request as a client sent it, at a moment of its own; prepared statements must have been made known. */
struct world_call {
    int64_t now_us;      /* since 1970; 0: now */
    uint64_t connection; /* whose limit it counts for */
    struct slice keyspace; /* of its session */
    uint8_t version, opcode, flags;
    struct slice body;
    int32_t page_size;     /* instead of the one that it asks for; 0: that */
    struct slice paging_state; /* instead of the one that it brings; p NULL: none */
};
/* One page of it, and where the next one goes on (p NULL: nowhere; until the next call). -1:
 * refused or wrong; *throttled: by a limit. */
int world_send(struct world *w, const struct world_call *c, struct world_answer *out, struct slice *paging_state,
               bool *throttled, struct err *e) MUST_CHECK;
/* keyspace: in which it was prepared; empty: none. */
int world_prepare(struct world *w, struct slice text, struct slice keyspace, struct err *e) MUST_CHECK;

/* Every table of users that has another capacity mode is altered to this one; units a second, of a
 * provisioned table. */
int world_set_capacity(struct world *w, bool provisioned, uint32_t read, uint32_t write, struct err *e) MUST_CHECK;

/* Runs every statement of a file that must succeed, at LOCAL_QUORUM: -1 and ERR_CONFIG with file and line. */
int world_load(struct world *w, const char *path, struct err *e) MUST_CHECK;
/* The same of a file of definitions; those that Amazon Keyspaces refuses are made, too (world_define). */
int world_load_schema(struct world *w, const char *path, struct err *e) MUST_CHECK;
/* The same of a text of definitions; errors name it. */
int world_load_text(struct world *w, const char *name, struct slice text, struct err *e) MUST_CHECK;

/* A statement's markers and result, as a server prepares it; the reference is the caller's. */
struct cql_prepared *world_markers(struct world *w, struct slice text, struct err *e) MUST_CHECK;
/* The schema as it is; the reference is the caller's. */
const struct schema *world_schema(struct world *w);
/* What a table comes to as it is stored. */
int world_storage(struct world *w, const struct schema_table *t, struct table_size *out, struct err *e) MUST_CHECK;
/* So many seconds pass, and what has expired is taken away: *units are the TTL deletes of that, of
 * the table of that name. */
int world_expire(struct world *w, int64_t seconds, const struct schema_table *t, uint64_t *units,
                 struct err *e) MUST_CHECK;
/* The part of an answer of one page that is of the table of that name; entities: its rows. -1: no memory. */
int world_charge_of(const struct world_answer *a, const struct schema_table *t, uint16_t consistency,
                    struct charge *out, uint64_t *entities) MUST_CHECK;

/* "LOCAL_QUORUM", in any case; -1: there is no such level. */
int world_consistency(const char *name);
const char *world_consistency_name(uint16_t level);
