/* The contents of a cql_db; inside cql only. One per process, shared by all threads. */
#pragma once

#include "cql/request/request.h"
#include "system_schema/system_tables/virtual.h"

struct prepared_cache; /* prepared.c */
struct table_sizes;    /* cql/row/table_size.h */
struct row_bound;      /* cql/write/row_bound.h */

struct cql_db {
    struct cql_db_options options;
    struct catalog_listener listener; /* prepared statements follow changes of the schema */
    struct prepared_cache *prepared;
    struct table_sizes *sizes;
    struct row_bound *row_bound; /* NULL if rows have no bound */
    _Atomic int64_t last_now_us; /* the time of the last now(); the next one is later */
    /* Lists them for system.prepared_statements (system_schema/system_tables/virtual.h). */
    int (*each_prepared)(void *prepared, const uint8_t *after, virtual_prepared_fn take, void *arg);
    void (*unlist_prepared)(void *prepared, const struct slice *id); /* NULL for all */
};

/* The check that stops the request after its deadline or when it is cancelled (cql_check_running). */
struct stop_check db_stop_check(struct cql_run *r);
/* The context for the functions of system tables, for one request. */
struct virtual_context db_virtual_context(struct cql_run *r);
