#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int64_t fake_now(struct clock *c) { return ((struct fake_clock *)c)->now_us; }

static void on_change(void *arg, const struct schema_change *change) {
    struct world *w = arg;
    if (w->n_changes < ARRAY_LEN(w->changes)) w->changes[w->n_changes++] = *change;
}

static void catalog_start(struct world *w, enum tally_mode mode, const char *delay) {
    struct catalog_options o = {.eng = w->eng, .clock = &w->clock.clock, .mode = mode, .control = true};
    o.node = (struct node_info){"test",  "dc1",       "rack1", mode == MODE_CASSANDRA ? "5.0.8" : "3.11.2",
                                "3.4.4", "127.0.0.1", 9042};
    o.ddl_delay = delay;
    w->catalog = catalog_open(&o, &w->err);
    assert_non_null(w->catalog);
    w->listener = (struct catalog_listener){.changed = on_change, .arg = w};
    catalog_on_change(w->catalog, &w->listener);
}

struct world *world_on(struct eng_options o, enum tally_mode mode, const char *delay) {
    struct world *w = calloc(1, sizeof *w);
    w->clock.clock = (struct clock){fake_now, fake_now};
    w->clock.now_us = 1000000;
    o.clock = &w->clock.clock;
    o.durability = ENG_NONE;
    w->eng = eng_open(&o, &w->err);
    assert_non_null(w->eng);
    catalog_start(w, mode, delay);
    return w;
}

struct world *world_new(enum tally_mode mode, const char *delay) {
    return world_on((struct eng_options){0}, mode, delay);
}

void world_restart(struct world *w, enum tally_mode mode, const char *delay) {
    catalog_close(w->catalog);
    catalog_start(w, mode, delay);
}

void world_free(struct world *w) {
    catalog_close(w->catalog);
    eng_close(w->eng);
    free(w);
}

void advance(struct world *w, int64_t ms) {
    w->clock.now_us += ms * 1000;
    ddl_step(w->catalog->ddl);
}

void wait_until_freed(struct world *w) {
    struct catalog *c = w->catalog;
    struct objects *o = c->objects;
    pthread_mutex_lock(&o->lock);
    for (uint32_t i = 0; i < o->n_all; i++)
        while (i < o->n_all && object_is_gone(o->all[i])) pthread_cond_wait(&o->moved, &o->lock);
    pthread_mutex_unlock(&o->lock);
}

const struct schema_option simple_strategy[2] = {{"class", "SimpleStrategy"}, {"replication_factor", "1"}};

int apply(struct world *w, const struct catalog_change *change) {
    struct schema_change out;
    uint32_t unfinished;
    err_clear(&w->err);
    return catalog_apply(w->catalog, change, &out, &unfinished, &w->err);
}

int make_keyspace(struct world *w, const char *name) {
    return apply(w, &(struct catalog_change){.op = CATALOG_CREATE_KEYSPACE,
                                             .keyspace = name,
                                             .durable_writes = -1,
                                             .n_replication = 2,
                                             .replication = simple_strategy});
}

int make_table(struct world *w, const char *keyspace, const char *name) {
    const struct catalog_column columns[] = {
        {"p", cql_type_scalar(CQL_INT), COLUMN_PARTITION_KEY, false},
        {"c", cql_type_scalar(CQL_TEXT), COLUMN_CLUSTERING, true},
        {"v", cql_type_scalar(CQL_BLOB), COLUMN_REGULAR, false},
        {"s", cql_type_scalar(CQL_UUID), COLUMN_STATIC, false},
    };
    static const struct table_settings settings = {.given = SETTING_BIT(comment) | SETTING_BIT(default_time_to_live),
                                                   .comment = "hello",
                                                   .default_time_to_live = 60};
    return apply(w, &(struct catalog_change){.op = CATALOG_CREATE_TABLE,
                                             .keyspace = keyspace,
                                             .name = name,
                                             .durable_writes = -1,
                                             .n_columns = ARRAY_LEN(columns),
                                             .columns = columns,
                                             .settings = &settings});
}

int drop_table(struct world *w, const char *keyspace, const char *name) {
    return apply(w, &(struct catalog_change){.op = CATALOG_DROP_TABLE, .keyspace = keyspace, .name = name});
}

int add_column(struct world *w, const char *keyspace, const char *table, const char *name) {
    const struct catalog_column col = {name, cql_type_scalar(CQL_INT), COLUMN_REGULAR, false};
    return apply(w,
                 &(struct catalog_change){
                     .op = CATALOG_ALTER_TABLE, .keyspace = keyspace, .name = table, .n_columns = 1, .columns = &col});
}

const char *status_of(struct world *w, const char *keyspace, const char *name) {
    const struct schema *s = catalog_schema(w->catalog);
    const struct schema_table *t = schema_table_any(s, keyspace, name);
    const char *status = t ? schema_status_name(t->status) : "";
    schema_unref(s);
    return status;
}

uint32_t storage_of(struct world *w, const char *keyspace, const char *name) {
    const struct schema *s = catalog_schema(w->catalog);
    const struct schema_table *t = schema_table_any(s, keyspace, name);
    uint32_t storage = t ? t->storage : 0;
    schema_unref(s);
    return storage;
}

uint32_t n_deleting(struct world *w, const char *keyspace) {
    const struct schema *s = catalog_schema(w->catalog);
    uint32_t n = schema_space_find(s, keyspace)->deleting.n;
    schema_unref(s);
    return n;
}
