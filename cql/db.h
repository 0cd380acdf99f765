/* What a cql_db holds; inside cql only. One per process, shared by all threads. */
#pragma once

#include "cql/cql.h"
#include "cql/write_clock.h"

struct prepared_cache; /* prepared.c */

struct cql_db {
    struct cql_db_options options;
    struct write_clock write_clock;
    struct prepared_cache *prepared;
};
