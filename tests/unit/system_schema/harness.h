/* The catalogue on the memory engine and a clock that stands still until told otherwise. */
#pragma once

#include "system_schema/catalog.h"
#include "system_schema/system_tables/system_table.h"

struct fake_clock {
    struct clock clock; /* first */
    _Atomic int64_t now_us;
};

struct world {
    struct fake_clock clock;
    struct eng *eng;
    struct catalog *catalog;
    struct catalog_listener listener;
    struct err err;
    unsigned n_changes;
    struct schema_change changes[64]; /* that the listener was told of */
};

/* delay: that of DDL statements. world_on: on a store that the options choose. */
struct world *world_new(enum tally_mode mode, const char *delay);
struct world *world_on(struct eng_options o, enum tally_mode mode, const char *delay);
void world_restart(struct world *w, enum tally_mode mode, const char *delay);
void world_free(struct world *w);
/* Time goes by, and the catalogue does what is due. */
void advance(struct world *w, int64_t ms);
/* The worker may be freeing what a step would have freed. */
void wait_until_freed(struct world *w);

extern const struct schema_option simple_strategy[2];
/* As catalog_apply. */
int apply(struct world *w, const struct catalog_change *change);
int make_keyspace(struct world *w, const char *name);
/* With columns p, c, v and s, a comment and a TTL. */
int make_table(struct world *w, const char *keyspace, const char *name);
int drop_table(struct world *w, const char *keyspace, const char *name);
int add_column(struct world *w, const char *keyspace, const char *table, const char *name);

/* "" when there is no such table. */
const char *status_of(struct world *w, const char *keyspace, const char *name);
uint32_t storage_of(struct world *w, const char *keyspace, const char *name);
/* How many tables are being dropped. */
uint32_t n_deleting(struct world *w, const char *keyspace);
