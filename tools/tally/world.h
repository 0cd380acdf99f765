/* A server of keyspaces mode without network and disk: the server's own engine, catalogue, language, refusals and charges, so that what is said
 * here of a statement is what a server does with it. DDL takes no time; the clock is the machine's.
 */
#pragma once

#include "cql/cql.h"
#include "keyspaces/compat.h"
#include "metering/charge.h"

struct world_options {
    enum size_model size_model;
    enum write_size write_size;
    uint32_t timestamp_size; /* bytes of the timestamp of a column, of tables with client-side timestamps */
    bool strict; /* what Amazon Keyspaces refuses is refused */
};

struct world;
struct world *world_new(const struct world_options *o, struct err *e) MUST_CHECK;
void world_free(struct world *w);

/* What a statement came to; valid until the next one. */
struct world_answer {
    enum stmt_kind kind;
    struct op_cost *cost;
    struct charge charge; /* of all pages together */
    uint64_t pages, rows_read, rows_returned, bytes_read, partitions, filtered;
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
/* Runs every statement of a file that must succeed, at LOCAL_QUORUM: -1 and ERR_CONFIG with file and line. */
int world_load(struct world *w, const char *path, struct err *e) MUST_CHECK;

/* "LOCAL_QUORUM", in any case; -1: there is no such level. */
int world_consistency(const char *name);
