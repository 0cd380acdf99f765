/* The catalogue on the memory engine and a clock that stands still until told otherwise. */
#include "keyspaces/quota.h"
#include "system_schema/catalog.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/murmur3.h"
#include "system_schema/catalog_state.h"

struct fake_clock {
    struct clock clock; /* first */
    _Atomic int64_t now_us;
};

static int64_t fake_now(struct clock *c) { return ((struct fake_clock *)c)->now_us; }

static int64_t machine_now(struct clock *c) {
    (void)c;
    return clock_machine_us(&clock_real);
}

struct world {
    struct fake_clock clock;
    struct eng *eng;
    struct catalog *catalog;
    struct catalog_listener listener;
    struct err err;
    unsigned n_changes;
    struct schema_change changes[64];
};

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

static struct world *world_on(struct eng_options o, enum tally_mode mode, const char *delay) {
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

static struct world *world_new(enum tally_mode mode, const char *delay) {
    return world_on((struct eng_options){0}, mode, delay);
}

static void world_restart(struct world *w, enum tally_mode mode, const char *delay) {
    catalog_close(w->catalog);
    catalog_start(w, mode, delay);
}

static void world_free(struct world *w) {
    catalog_close(w->catalog);
    eng_close(w->eng);
    free(w);
}

static void advance(struct world *w, int64_t ms) {
    w->clock.now_us += ms * 1000;
    ddl_step(&w->catalog->ddl);
}

/* The worker may be freeing what a step would have freed. */
static void wait_until_freed(struct world *w) {
    struct catalog *c = w->catalog;
    struct objects *o = &c->objects;
    pthread_mutex_lock(&o->lock);
    for (uint32_t i = 0; i < o->n_entries; i++)
        while (i < o->n_entries && entry_is_gone(o->entries[i])) pthread_cond_wait(&o->moved, &o->lock);
    pthread_mutex_unlock(&o->lock);
}

static const struct schema_option simple[] = {{"class", "SimpleStrategy"}, {"replication_factor", "1"}};

static int apply(struct world *w, const struct catalog_change *change) {
    struct schema_change out;
    uint32_t unfinished;
    err_clear(&w->err);
    return catalog_apply(w->catalog, change, &out, &unfinished, &w->err);
}

static int make_keyspace(struct world *w, const char *name) {
    return apply(w, &(struct catalog_change){.op = CATALOG_CREATE_KEYSPACE,
                                             .keyspace = name,
                                             .durable_writes = -1,
                                             .n_replication = 2,
                                             .replication = simple});
}

static int make_table(struct world *w, const char *keyspace, const char *name) {
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

static int drop_table(struct world *w, const char *keyspace, const char *name) {
    return apply(w, &(struct catalog_change){.op = CATALOG_DROP_TABLE, .keyspace = keyspace, .name = name});
}

static int add_column(struct world *w, const char *keyspace, const char *table, const char *name) {
    const struct catalog_column col = {name, cql_type_scalar(CQL_INT), COLUMN_REGULAR, false};
    return apply(w,
                 &(struct catalog_change){
                     .op = CATALOG_ALTER_TABLE, .keyspace = keyspace, .name = table, .n_columns = 1, .columns = &col});
}

/* "" when there is no such table. */
static const char *status_of(struct world *w, const char *keyspace, const char *name) {
    const struct schema *s = catalog_schema(w->catalog);
    const struct schema_table *t = schema_table_any(s, keyspace, name);
    const char *status = t ? schema_status_name(t->status) : "";
    schema_unref(s);
    return status;
}

static uint32_t storage_of(struct world *w, const char *keyspace, const char *name) {
    const struct schema *s = catalog_schema(w->catalog);
    const struct schema_table *t = schema_table_any(s, keyspace, name);
    uint32_t storage = t ? t->storage : 0;
    schema_unref(s);
    return storage;
}

static uint32_t n_deleting(struct world *w, const char *keyspace) {
    const struct schema *s = catalog_schema(w->catalog);
    uint32_t n = schema_space_find(s, keyspace)->deleting.n;
    schema_unref(s);
    return n;
}

static void test_table_without_delay_is_active_at_once(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "none");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    assert_int_equal(w->n_changes, 2);
    assert_int_equal(w->changes[1].kind, CHANGE_CREATED);
    assert_string_equal(w->changes[1].name, "t");
    world_free(w);
}

static void test_table_is_creating_until_its_delay_is_over(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "500");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t"), -1);
    assert_string_equal(w->err.text, "unconfigured keyspace ks");
    advance(w, 500);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    assert_string_equal(status_of(w, "ks", "t"), "CREATING");
    const struct schema *s = catalog_schema(w->catalog);
    struct err e = {0};
    assert_null(schema_table_find(s, "ks", "t", &e));
    assert_string_equal(e.text, "unconfigured table ks.t");
    schema_unref(s);
    advance(w, 499);
    assert_string_equal(status_of(w, "ks", "t"), "CREATING");
    advance(w, 1);
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    world_free(w);
}

static void test_altered_table_keeps_its_old_form_while_updating(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "100");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    advance(w, 100);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    advance(w, 100);
    assert_int_equal(add_column(w, "ks", "t", "n"), 1);
    assert_string_equal(status_of(w, "ks", "t"), "UPDATING");
    const struct schema *s = catalog_schema(w->catalog);
    struct err e = {0};
    const struct schema_table *t = schema_table_find(s, "ks", "t", &e);
    assert_non_null(t);
    assert_null(schema_column_find(t, "n"));
    assert_int_equal(add_column(w, "ks", "t", "m"), -1);
    advance(w, 100);
    const struct schema *after = catalog_schema(w->catalog);
    const struct schema_column *n = schema_column_find(schema_table_any(after, "ks", "t"), "n");
    assert_non_null(n);
    assert_int_equal(n->id, 4);
    assert_ptr_equal(schema_column_by_id(schema_table_any(after, "ks", "t"), 4), n);
    assert_null(schema_column_find(t, "n")); /* the old snapshot is as it was */
    assert_memory_not_equal(s->version, after->version, 16);
    schema_unref(after);
    schema_unref(s);
    world_free(w);
}

static int create_table_if_not_exists(struct world *w, const char *keyspace, const char *name) {
    const struct catalog_column p = {"p", cql_type_scalar(CQL_INT), COLUMN_PARTITION_KEY, false};
    return apply(w, &(struct catalog_change){.op = CATALOG_CREATE_TABLE,
                                             .keyspace = keyspace,
                                             .name = name,
                                             .conditional = true,
                                             .n_columns = 1,
                                             .columns = &p});
}

static void test_dropped_table_hides_at_once_and_keeps_its_name_until_it_is_gone(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "100");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    advance(w, 100);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    advance(w, 100);
    uint32_t old = storage_of(w, "ks", "t");
    assert_int_equal(drop_table(w, "ks", "t"), 1);
    assert_string_equal(status_of(w, "ks", "t"), "");
    assert_int_equal(n_deleting(w, "ks"), 1);
    assert_int_equal(w->changes[w->n_changes - 1].kind, CHANGE_DROPPED);
    for (int restarted = 0; restarted < 2; restarted++) {
        assert_int_equal(make_table(w, "ks", "t"), -1);
        assert_string_equal(w->err.text, "Table 't' is DELETING: wait until it is gone");
        assert_int_equal(create_table_if_not_exists(w, "ks", "t"), -1);
        assert_string_equal(w->err.text, "Table 't' is DELETING: wait until it is gone");
        assert_int_equal(add_column(w, "ks", "t", "n"), -1);
        assert_string_equal(w->err.text, "Table 't' is DELETING: wait until it is gone");
        assert_int_equal(drop_table(w, "ks", "t"), 0);
        world_restart(w, MODE_KEYSPACES, "100"); /* the delay begins anew */
    }
    advance(w, 100);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    assert_int_not_equal(storage_of(w, "ks", "t"), old);
    assert_int_equal(n_deleting(w, "ks"), 0);
    assert_int_equal(create_table_if_not_exists(w, "ks", "t"), 0); /* CREATING: it is there */
    assert_int_equal(make_table(w, "ks", "t"), -1);
    assert_int_equal(w->err.code, ERR_ALREADY_EXISTS);
    assert_int_equal(add_column(w, "ks", "t", "n"), -1);
    assert_string_equal(w->err.text, "Table 't' is CREATING: wait until it is ACTIVE");
    assert_int_equal(drop_table(w, "ks", "t"), -1);
    assert_string_equal(w->err.text, "Table 't' is CREATING: wait until it is ACTIVE");
    advance(w, 100);
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    wait_until_freed(w);
    assert_int_equal(w->catalog->objects.n_entries, 2);
    world_free(w);
}

static void test_dropped_keyspace_keeps_its_name_until_it_is_gone(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "100");
    struct catalog_change drop = {.op = CATALOG_DROP_KEYSPACE, .keyspace = "ks"};
    struct catalog_change alter = {.op = CATALOG_ALTER_KEYSPACE, .keyspace = "ks", .durable_writes = 0};
    struct catalog_change again = {.op = CATALOG_CREATE_KEYSPACE,
                                   .keyspace = "ks",
                                   .conditional = true,
                                   .n_replication = 2,
                                   .replication = simple};
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(apply(w, &again), 0);
    assert_int_equal(apply(w, &alter), -1);
    assert_string_equal(w->err.text, "Keyspace 'ks' is CREATING: wait until it is ACTIVE");
    assert_int_equal(apply(w, &drop), -1);
    advance(w, 100);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    assert_int_equal(apply(w, &drop), -1); /* a table is still CREATING */
    advance(w, 100);
    assert_int_equal(apply(w, &alter), 1);
    assert_int_equal(apply(w, &drop), -1);
    assert_string_equal(w->err.text, "Keyspace 'ks' is UPDATING: wait until it is ACTIVE");
    advance(w, 100);
    assert_int_equal(apply(w, &drop), 1);
    static const char words[] = "Keyspace 'ks' is DELETING: wait until it is gone";
    assert_int_equal(make_keyspace(w, "ks"), -1);
    assert_string_equal(w->err.text, words);
    assert_int_equal(apply(w, &again), -1);
    assert_string_equal(w->err.text, words);
    assert_int_equal(apply(w, &alter), -1);
    assert_string_equal(w->err.text, words);
    assert_int_equal(make_table(w, "ks", "u"), -1);
    assert_string_equal(w->err.text, words);
    assert_int_equal(apply(w, &drop), 0);
    advance(w, 100);
    assert_int_equal(make_keyspace(w, "ks"), 1);
    advance(w, 100);
    assert_int_equal(make_table(w, "ks", "t"), 1); /* not what was dropped with the old one */
    world_free(w);
}

/* ---- notices ---- */

/* What a listener finds out about the catalogue while it is called. */
struct curious {
    struct world *w;
    uint32_t unfinished; /* the statement's object */
    uint32_t n_calls, n_locked, n_answered; /* locked: the caller held the lock; answered: the statement was */
};
enum { LOCK_HANGS_AFTER = 120 }; /* seconds: other threads hold the lock for milliseconds */

static void look_around(void *arg, const struct schema_change *change) {
    struct curious *s = arg;
    struct err e = {0};
    struct timespec end;
    s->n_calls++;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LOCK_HANGS_AFTER;
    if (pthread_mutex_timedlock(&s->w->catalog->objects.lock, &end)) {
        s->n_locked++;
        return;
    }
    pthread_mutex_unlock(&s->w->catalog->objects.lock);
    if (change->object == s->unfinished) s->n_answered += catalog_outcome(s->w->catalog, s->unfinished, &e) != 1;
}

/* N1 and N2. */
static void test_listeners_run_without_the_lock_and_before_the_answer(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "100");
    struct curious s = {.w = w};
    struct schema_change out;
    const struct catalog_change keyspace = {.op = CATALOG_CREATE_KEYSPACE, .keyspace = "ks",
                                            .n_replication = 2, .replication = simple};
    const struct catalog_change drop = {.op = CATALOG_DROP_KEYSPACE, .keyspace = "ks"};
    struct catalog_listener listener = {.changed = look_around, .arg = &s};
    catalog_on_change(w->catalog, &listener);
    assert_int_equal(catalog_apply(w->catalog, &keyspace, &out, &s.unfinished, &w->err), 1);
    advance(w, 100);
    while (catalog_outcome(w->catalog, s.unfinished, &w->err) == 1) sched_yield(); /* the worker is at it */
    assert_int_equal(s.n_calls, 1);
    s.unfinished = out.object;
    assert_int_equal(apply(w, &drop), 1);
    assert_int_equal(s.n_calls, 2);
    advance(w, 100);
    while (catalog_outcome(w->catalog, out.object, &w->err) == 1) sched_yield();
    assert_int_equal(s.n_calls, 3);
    assert_int_equal(s.n_locked, 0);
    assert_int_equal(s.n_answered, 0);
    catalog_off_change(w->catalog, &listener);
    world_free(w);
}

/* A listener that, told that a table is gone, lets another thread ask for its name, and is slow
 * then. */
struct slow {
    struct world *w;
    pthread_t thread;
    atomic_bool asks, returned;
    bool began, too_early;
};

static void *take_name(void *arg) {
    struct slow *s = arg;
    struct world other = {.catalog = s->w->catalog};
    atomic_store(&s->asks, true);
    assert_int_equal(make_table(&other, "ks", "t"), 1);
    s->too_early = !atomic_load(&s->returned);
    return NULL;
}

static void be_slow(void *arg, const struct schema_change *change) {
    struct slow *s = arg;
    if (change->kind != CHANGE_GONE) return;
    s->began = true;
    assert_int_equal(pthread_create(&s->thread, NULL, take_name, s), 0);
    while (!atomic_load(&s->asks)) sched_yield();
    for (int i = 0; i < 1000; i++) { /* the lock is free for the other one */
        assert_false(catalog_has_object(s->w->catalog, 0));
        sched_yield();
    }
    atomic_store(&s->returned, true);
}

/* N3. */
static void test_a_name_is_free_when_listeners_know_that_it_is(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "none");
    struct slow s = {.w = w};
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    struct catalog_listener listener = {.changed = be_slow, .arg = &s};
    catalog_on_change(w->catalog, &listener);
    assert_int_equal(drop_table(w, "ks", "t"), 1);
    assert_true(s.began);
    pthread_join(s.thread, NULL);
    assert_false(s.too_early);
    const struct schema_change *last = &w->changes[w->n_changes - 1];
    assert_int_equal(last[-2].kind, CHANGE_DROPPED);
    assert_int_equal(last[-1].kind, CHANGE_GONE);
    assert_int_equal(last[0].kind, CHANGE_CREATED);
    catalog_off_change(w->catalog, &listener);
    world_free(w);
}

static void test_listeners_hear_of_a_failed_creation(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "none");
    const struct ddl_subject of = {"CREATE TABLE", "ks", "t"};
    assert_int_equal(make_keyspace(w, "ks"), 1);
    pthread_mutex_lock(&w->catalog->objects.lock);
    assert_int_equal(rules_set(&w->catalog->ddl, &of, "100", "no luck", &w->err), 0);
    pthread_mutex_unlock(&w->catalog->objects.lock);
    unsigned before = w->n_changes;
    assert_int_equal(make_table(w, "ks", "t"), 1);
    assert_int_equal(w->n_changes, before);
    advance(w, 100);
    assert_string_equal(status_of(w, "ks", "t"), "");
    assert_int_equal(w->n_changes, before + 1);
    assert_int_equal(w->changes[before].kind, CHANGE_GONE);
    assert_string_equal(w->changes[before].name, "t");
    world_free(w);
}

static void test_held_change_waits_for_its_release(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "held");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    advance(w, 1000000);
    assert_int_equal(make_table(w, "ks", "t"), -1);
    catalog_release_held(w->catalog);
    advance(w, 0);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    advance(w, 1000000);
    assert_string_equal(status_of(w, "ks", "t"), "CREATING");
    catalog_release_held(w->catalog);
    advance(w, 0);
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    world_free(w);
}

static void test_restart_resumes_what_was_under_way(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "none");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "altered"), 1);
    assert_int_equal(make_table(w, "ks", "dropped"), 1);
    world_restart(w, MODE_KEYSPACES, "held");
    assert_int_equal(make_table(w, "ks", "created"), 1);
    assert_int_equal(add_column(w, "ks", "altered", "n"), 1);
    assert_int_equal(drop_table(w, "ks", "dropped"), 1);
    world_restart(w, MODE_KEYSPACES, "200");
    assert_string_equal(status_of(w, "ks", "created"), "CREATING");
    assert_string_equal(status_of(w, "ks", "altered"), "UPDATING");
    assert_int_equal(n_deleting(w, "ks"), 1);
    advance(w, 200);
    assert_string_equal(status_of(w, "ks", "created"), "ACTIVE");
    assert_string_equal(status_of(w, "ks", "altered"), "ACTIVE");
    assert_int_equal(n_deleting(w, "ks"), 0);
    const struct schema *s = catalog_schema(w->catalog);
    assert_non_null(schema_column_find(schema_table_any(s, "ks", "altered"), "n"));
    schema_unref(s);
    world_free(w);
}

static void test_change_that_a_start_finished_stays_finished(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "none");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    world_restart(w, MODE_KEYSPACES, "held");
    assert_int_equal(make_table(w, "ks", "t"), 1);
    world_restart(w, MODE_KEYSPACES, "none");
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    world_restart(w, MODE_KEYSPACES, "held");
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    world_free(w);
}

static void test_version_does_not_depend_on_the_order_of_creation(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    assert_int_equal(make_keyspace(w, "first"), 1);
    assert_int_equal(make_table(w, "first", "t"), 1);
    assert_int_equal(make_keyspace(w, "second"), 1);
    uint8_t version[16];
    const struct schema *s = catalog_schema(w->catalog);
    memcpy(version, s->version, 16);
    schema_unref(s);
    world_restart(w, MODE_CASSANDRA, "none");
    s = catalog_schema(w->catalog);
    assert_memory_equal(s->version, version, 16);
    schema_unref(s);
    world_free(w);
}

static void test_definition_survives_a_restart(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    const struct schema *before = catalog_schema(w->catalog);
    uint8_t version[16], id[16], host[16];
    memcpy(version, before->version, 16);
    memcpy(id, schema_table_any(before, "ks", "t")->id, 16);
    memcpy(host, catalog_host_id(w->catalog), 16);
    schema_unref(before);
    world_restart(w, MODE_CASSANDRA, "none");
    const struct schema *s = catalog_schema(w->catalog);
    const struct schema_table *t = schema_table_any(s, "ks", "t");
    assert_memory_equal(s->version, version, 16);
    assert_memory_equal(t->id, id, 16);
    assert_memory_equal(catalog_host_id(w->catalog), host, 16);
    assert_int_equal(t->n_columns, 4);
    assert_int_equal(t->n_static, 1);
    assert_string_equal(t->columns[1].name, "c");
    assert_true(t->columns[1].desc);
    assert_string_equal(t->columns[2].name, "s");
    assert_int_equal(t->columns[3].type->id, CQL_BLOB);
    assert_int_equal(t->settings.default_time_to_live, 60);
    assert_int_equal(t->settings.gc_grace_seconds, 864000);
    assert_string_equal(t->settings.comment, "hello");
    const struct schema_keyspace *ks = schema_keyspace_find(s, "ks");
    assert_string_equal(ks->replication[0].value, "org.apache.cassandra.locator.SimpleStrategy");
    schema_unref(s);
    world_free(w);
}

static void test_dropped_keyspace_takes_its_tables_along(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "a"), 1);
    assert_int_equal(make_table(w, "ks", "b"), 1);
    assert_int_equal(apply(w, &(struct catalog_change){.op = CATALOG_DROP_KEYSPACE, .keyspace = "ks"}), 1);
    ddl_step(&w->catalog->ddl);
    const struct schema *s = catalog_schema(w->catalog);
    assert_null(schema_keyspace_find(s, "ks"));
    schema_unref(s);
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_string_equal(status_of(w, "ks", "a"), "");
    world_restart(w, MODE_CASSANDRA, "none");
    assert_string_equal(status_of(w, "ks", "a"), "");
    world_free(w);
}

static void test_errors_carry_cassandras_words(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    assert_int_equal(make_table(w, "nope", "t"), -1);
    assert_string_equal(w->err.text, "Keyspace 'nope' doesn't exist");
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_keyspace(w, "ks"), -1);
    assert_int_equal(w->err.code, ERR_ALREADY_EXISTS);
    assert_string_equal(w->err.detail.keyspace, "ks");
    assert_int_equal(make_table(w, "ks", "t"), 1);
    assert_int_equal(make_table(w, "ks", "t"), -1);
    assert_string_equal(w->err.text, "Cannot add already existing table \"t\" to keyspace \"ks\"");
    assert_int_equal(drop_table(w, "ks", "u"), -1);
    assert_string_equal(w->err.text, "Table 'ks.u' doesn't exist");
    assert_int_equal(add_column(w, "ks", "t", "v"), -1);
    assert_string_equal(w->err.text, "Column with name 'v' already exists");
    assert_int_equal(drop_table(w, "system", "local"), -1);
    assert_int_equal(w->err.code, ERR_UNAUTHORIZED);
    assert_string_equal(w->err.text, "system keyspace is not user-modifiable.");
    assert_int_equal(
        apply(w,
              &(struct catalog_change){.op = CATALOG_DROP_TABLE, .keyspace = "ks", .name = "u", .conditional = true}),
        0);
    world_free(w);
}

static int make_keyspace_as(struct world *w, const char *name, enum compat_mode mode) {
    const struct compat compat = {.mode = mode};
    return apply(w, &(struct catalog_change){.op = CATALOG_CREATE_KEYSPACE,
                                             .keyspace = name,
                                             .compat = &compat,
                                             .durable_writes = -1,
                                             .n_replication = 2,
                                             .replication = simple});
}

static void test_fifty_changes_at_once_and_no_more_where_keyspaces_refusals_are_strict(void **state) {
    (void)state;
    struct world *w = world_new(MODE_KEYSPACES, "held");
    char name[16];
    for (int i = 0; i < QUOTA_CONCURRENT_DDL; i++) {
        snprintf(name, sizeof name, "k%d", i);
        assert_int_equal(make_keyspace_as(w, name, COMPAT_STRICT), 1);
    }
    assert_int_equal(make_keyspace_as(w, "one_more", COMPAT_STRICT), -1);
    assert_int_equal(make_keyspace_as(w, "one_more", COMPAT_OFF), 1);
    catalog_release_held(w->catalog);
    advance(w, 0);
    assert_int_equal(make_keyspace_as(w, "and_another", COMPAT_STRICT), 1);
    world_free(w);
}

static void test_generation_grows_with_every_snapshot(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    uint64_t before = catalog_generation(w->catalog);
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_true(catalog_generation(w->catalog) > before);
    const struct schema *s = catalog_schema(w->catalog);
    assert_int_equal(s->generation, catalog_generation(w->catalog));
    schema_unref(s);
    world_free(w);
}

static void *take_and_drop(void *arg) {
    struct world *w = arg;
    for (int i = 0; i < 20000; i++) {
        const struct schema *s = catalog_schema(w->catalog);
        if (!schema_keyspace_find(s, "system")) abort();
        schema_unref(s);
    }
    return NULL;
}

static void test_references_are_safe_against_a_swap(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    pthread_t threads[3];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_drop, w), 0);
    char name[16];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "k%d", i);
        assert_int_equal(make_keyspace(w, name), 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) pthread_join(threads[i], NULL);
    world_free(w);
}

static void test_delay_is_parsed_from_its_forms(void **state) {
    (void)state;
    struct ddl_delay d;
    struct err e = {0};
    assert_int_equal(ddl_delay_parse("none", &d, &e), 0);
    assert_int_equal(d.kind, DDL_NONE);
    assert_int_equal(ddl_delay_parse("250", &d, &e), 0);
    assert_int_equal(d.kind, DDL_FIXED);
    assert_int_equal(ddl_delay_parse("100..300", &d, &e), 0);
    assert_int_equal(d.kind, DDL_RANGE);
    assert_int_equal(d.max_ms, 300);
    assert_int_equal(ddl_delay_parse("held", &d, &e), 0);
    assert_int_equal(d.kind, DDL_HELD);
    assert_int_equal(ddl_delay_parse("realistic", &d, &e), 0);
    assert_int_equal(d.kind, DDL_REALISTIC);
    assert_int_equal(ddl_delay_parse("uniform(1, 5)", &d, &e), 0);
    assert_int_equal(d.kind, DDL_RANGE);
    assert_false(d.seeded);
    assert_int_equal(ddl_delay_parse(" lognormal( 150 , 0.5,7 ) ", &d, &e), 0);
    assert_int_equal(d.kind, DDL_LOGNORMAL);
    assert_true(d.seeded && d.seed == 7 && d.min_ms == 150 && d.sigma == 0.5);
    const char *const bad[] = {"",
                               "-1",
                               "300..100",
                               "5s",
                               "1..",
                               "99999999999999",
                               "uniform(5, 1)",
                               "uniform(1)",
                               "uniform(1, 2",
                               "uniform(1, 2, )",
                               "lognormal(1)",
                               "lognormal(1, -1)",
                               "lognormal(1, 99)",
                               "lognormal(1, nan)",
                               "held!",
                               "none none"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err_clear(&e);
        assert_int_equal(ddl_delay_parse(bad[i], &d, &e), -1);
    }
}

static bool has_column(struct world *w, const char *keyspace, const char *table, const char *column) {
    const struct schema *s = catalog_schema(w->catalog);
    const struct schema_table *t = schema_table_any(s, keyspace, table);
    bool has = t && schema_column_find(t, column);
    schema_unref(s);
    return has;
}

/* Two servers on one store: what one changes the other is told of, shows, tells its clients, and goes on from. */
static void test_what_another_server_on_the_store_changes_is_seen(void **state) {
    (void)state;
    struct world *a = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    struct world *b = world_on((struct eng_options){.shared = true, .beside = a->eng}, MODE_CASSANDRA, "none");
    assert_true(make_keyspace(a, "ks") == 1 && make_table(a, "ks", "t") == 1);
    advance(b, 0);
    assert_string_equal(status_of(b, "ks", "t"), "ACTIVE");
    assert_int_equal(storage_of(b, "ks", "t"), storage_of(a, "ks", "t"));
    assert_int_equal(b->changes[b->n_changes - 1].kind, CHANGE_CREATED);
    assert_true(add_column(b, "ks", "t", "added") == 1 && make_table(b, "ks", "u") == 1);
    advance(a, 0);
    assert_true(has_column(a, "ks", "t", "added"));
    assert_string_equal(status_of(a, "ks", "u"), "ACTIVE");
    assert_int_not_equal(storage_of(a, "ks", "u"), storage_of(a, "ks", "t"));
    struct slice key = slice_str("p");
    struct eng_part part = {.table = storage_of(b, "ks", "t"), .token = murmur3_token(key), .key = key};
    struct eng_batch *late = eng_batch_new(b->eng);
    assert_int_equal(drop_table(a, "ks", "t"), 1);
    advance(b, 0);
    assert_string_equal(status_of(b, "ks", "t"), "");
    wait_until_freed(a);
    advance(b, 0);
    /* b's engine has forgotten the table */
    assert_int_equal(eng_batch_delete_partition(late, &part, 0, 1, NULL, &b->err), -1);
    err_clear(&b->err);
    eng_batch_free(late);
    assert_int_equal(b->changes[b->n_changes - 2].kind, CHANGE_DROPPED);
    assert_int_equal(b->changes[b->n_changes - 1].kind, CHANGE_GONE);
    catalog_close(a->catalog);
    assert_int_equal(drop_table(b, "ks", "u"), 1); /* nobody is told any more */
    eng_close(a->eng);
    free(a);
    world_free(b);
}

/* Statements that were compiled stay as they are when another server writes a record that is no object's. */
static void test_records_of_other_things_leave_the_schema_alone(void **state) {
    (void)state;
    struct world *a = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    struct world *b = world_on((struct eng_options){.shared = true, .beside = a->eng}, MODE_CASSANDRA, "none");
    assert_int_equal(make_keyspace(a, "ks"), 1);
    advance(b, 0);
    uint64_t generation = catalog_generation(b->catalog);
    assert_int_equal(eng_meta_put(a->eng, slice_str("other"), slice_str("x"), &a->err), 0);
    advance(b, 0);
    assert_int_equal(catalog_generation(b->catalog), generation);
    assert_int_equal(make_table(a, "ks", "t"), 1);
    advance(b, 0);
    assert_true(catalog_generation(b->catalog) > generation);
    catalog_close(a->catalog);
    eng_close(a->eng);
    free(a);
    world_free(b);
}

static bool writes_are_durable(struct world *w, const char *keyspace) {
    const struct schema *s = catalog_schema(w->catalog);
    bool durable = schema_keyspace_find(s, keyspace)->durable_writes;
    schema_unref(s);
    return durable;
}

static void test_alterations_of_system_keyspaces_are_seen_at_another_server(void **state) {
    (void)state;
    struct world *a = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    struct world *b = world_on((struct eng_options){.shared = true, .beside = a->eng}, MODE_CASSANDRA, "none");
    struct schema_change out;
    uint32_t unfinished;
    const struct catalog_change change = {
        .op = CATALOG_ALTER_KEYSPACE, .keyspace = "system_traces", .durable_writes = 0};
    assert_true(writes_are_durable(b, "system_traces"));
    assert_int_equal(catalog_apply(a->catalog, &change, &out, &unfinished, &a->err), 1);
    advance(b, 0);
    assert_false(writes_are_durable(b, "system_traces"));
    catalog_close(a->catalog);
    eng_close(a->eng);
    free(a);
    world_free(b);
}

/* One of them is not told of what the other makes: their ids differ all the same, and no record replaces
 * another's. */
static void test_two_servers_give_no_id_twice(void **state) {
    (void)state;
    enum { TABLES = 6 };
    struct world *w[2];
    w[0] = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    w[1] = world_on((struct eng_options){.shared = true, .beside = w[0]->eng}, MODE_CASSANDRA, "none");
    char names[TABLES][16];
    uint32_t ids[TABLES];
    assert_int_equal(make_keyspace(w[0], "ks"), 1);
    advance(w[1], 0);
    eng_meta_unwatch(w[1]->eng, NULL);
    for (int i = 0; i < TABLES; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        assert_int_equal(make_table(w[i % 2], "ks", names[i]), 1); /* it has not seen the table before this one */
        ids[i] = storage_of(w[i % 2], "ks", names[i]);
        for (int k = 0; k < i; k++) assert_int_not_equal(ids[i], ids[k]);
    }
    advance(w[0], 0);
    for (int i = 0; i < TABLES; i++) assert_int_equal(storage_of(w[0], "ks", names[i]), ids[i]);
    uint32_t last = ids[TABLES - 1];
    for (int i = 0; i < TABLES; i++) {
        struct objects *o = &w[i % 2]->catalog->objects;
        uint32_t id;
        pthread_mutex_lock(&o->lock);
        assert_int_equal(entry_next_id(o, &id, &w[i % 2]->err), 0);
        pthread_mutex_unlock(&o->lock);
        assert_true(id > last);
        last = id;
    }
    catalog_close(w[0]->catalog);
    eng_close(w[0]->eng);
    free(w[0]);
    world_free(w[1]);
}

/* Both decide on the same schema. The second to write has changed nothing, reads what the first has written, and
 * decides anew. */
static void test_of_two_servers_that_change_the_schema_at_once_one_decides_anew(void **state) {
    (void)state;
    struct world *w[2];
    w[0] = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    w[1] = world_on((struct eng_options){.shared = true, .beside = w[0]->eng}, MODE_CASSANDRA, "none");
    struct err *e = &w[1]->err;
    assert_int_equal(make_keyspace(w[0], "ks"), 1);
    advance(w[1], 0);
    eng_meta_unwatch(w[1]->eng, NULL);
    assert_int_equal(make_table(w[0], "ks", "t"), 1);
    assert_int_equal(make_table(w[1], "ks", "t"), -1); /* it did not know that the name is taken */
    assert_int_equal(e->code, ERR_ALREADY_EXISTS);
    err_clear(e);
    assert_int_equal(storage_of(w[1], "ks", "t"), storage_of(w[0], "ks", "t"));
    assert_int_equal(add_column(w[0], "ks", "t", "x"), 1);
    assert_int_equal(add_column(w[1], "ks", "t", "x"), -1); /* a change of the same record */
    assert_int_equal(e->code, ERR_INVALID);
    err_clear(e);
    assert_int_equal(add_column(w[1], "ks", "t", "y"), 1);
    assert_int_equal(drop_table(w[1], "ks", "t"), 1);
    advance(w[0], 0);
    assert_string_equal(status_of(w[0], "ks", "t"), "");
    catalog_close(w[0]->catalog);
    eng_close(w[0]->eng);
    free(w[0]);
    world_free(w[1]);
}

/* Another server may not know the drop yet, and may write to the old rows until they are freed: here this server is
 * writing to them. Neither the drop nor the creation of a table with the same name ends before. */
static void test_a_name_is_used_again_when_the_old_rows_are_freed(void **state) {
    (void)state;
    struct world *w = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    struct schema_change out;
    uint32_t unfinished;
    const struct catalog_change drop = {.op = CATALOG_DROP_TABLE, .keyspace = "ks", .name = "t"};
    assert_true(make_keyspace(w, "ks") == 1 && make_table(w, "ks", "t") == 1);
    struct slice key = slice_str("p");
    struct eng_part part = {.table = storage_of(w, "ks", "t"), .token = murmur3_token(key), .key = key};
    struct eng_batch *writing = eng_batch_new(w->eng);
    assert_int_equal(eng_batch_delete_partition(writing, &part, 0, 1, NULL, &w->err), 0);
    assert_int_equal(catalog_apply(w->catalog, &drop, &out, &unfinished, &w->err), 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(catalog_outcome(w->catalog, unfinished, &w->err), 1);
        if (i == 0) assert_int_equal(make_table(w, "ks", "t"), 1);
        assert_string_equal(status_of(w, "ks", "t"), "CREATING");
        advance(w, 10000);
    }
    eng_batch_free(writing);
    advance(w, 10000);
    wait_until_freed(w);
    advance(w, 0);
    assert_int_equal(catalog_outcome(w->catalog, unfinished, &w->err), 0);
    assert_string_equal(status_of(w, "ks", "t"), "ACTIVE");
    world_free(w);
}

/* The server whose client waits for a TRUNCATE frees the old rows itself, whether it leads or not. */
static void test_a_truncation_is_carried_by_the_server_that_was_asked(void **state) {
    (void)state;
    struct world *w = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    struct objects *o = &w->catalog->objects;
    struct schema_change out;
    uint32_t unfinished;
    const struct catalog_change truncate = {.op = CATALOG_TRUNCATE_TABLE, .keyspace = "ks", .name = "t"};
    assert_true(make_keyspace(w, "ks") == 1 && make_table(w, "ks", "t") == 1);
    struct slice key = slice_str("p");
    struct eng_part part = {.table = storage_of(w, "ks", "t"), .token = murmur3_token(key), .key = key};
    struct eng_batch *writing = eng_batch_new(w->eng); /* the rows are not freed before it ends */
    assert_int_equal(eng_batch_delete_partition(writing, &part, 0, 1, NULL, &w->err), 0);
    assert_int_equal(catalog_apply(w->catalog, &truncate, &out, &unfinished, &w->err), 0);
    pthread_mutex_lock(&o->lock);
    const struct entry *old_rows = entry_by_id(o, unfinished);
    assert_true(old_rows && entry_is_gone(old_rows) && old_rows->awaited);
    pthread_mutex_unlock(&o->lock);
    assert_int_equal(catalog_outcome(w->catalog, unfinished, &w->err), 1);
    eng_batch_free(writing);
    advance(w, 10000);
    wait_until_freed(w);
    assert_int_equal(catalog_outcome(w->catalog, unfinished, &w->err), 0);
    world_free(w);
}

/* While the service's time stands still, too. */
static void test_old_rows_that_were_written_to_are_freed_by_the_machines_time(void **state) {
    (void)state;
    struct world *w = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    w->clock.clock.machine_us = machine_now;
    struct schema_change out;
    uint32_t unfinished;
    const struct catalog_change drop = {.op = CATALOG_DROP_TABLE, .keyspace = "ks", .name = "t"};
    assert_true(make_keyspace(w, "ks") == 1 && make_table(w, "ks", "t") == 1);
    struct slice key = slice_str("p");
    struct eng_part part = {.table = storage_of(w, "ks", "t"), .token = murmur3_token(key), .key = key};
    struct eng_batch *writing = eng_batch_new(w->eng);
    assert_int_equal(eng_batch_delete_partition(writing, &part, 0, 1, NULL, &w->err), 0);
    assert_int_equal(catalog_apply(w->catalog, &drop, &out, &unfinished, &w->err), 1);
    advance(w, 0);
    assert_int_equal(catalog_outcome(w->catalog, unfinished, &w->err), 1);
    eng_batch_free(writing);
    wait_until_freed(w);
    assert_int_equal(catalog_outcome(w->catalog, unfinished, &w->err), 0);
    world_free(w);
}

/* The client waits at the second server, and the first one ends the change. */
static void test_a_change_that_another_server_makes_fail_has_failed_here(void **state) {
    (void)state;
    static const struct {
        const char *statement, *name;
        enum catalog_op op;
    } cases[] = {{"CREATE TABLE", "made", CATALOG_CREATE_TABLE},
                 {"ALTER TABLE", "altered", CATALOG_ALTER_TABLE},
                 {"DROP TABLE", "dropped", CATALOG_DROP_TABLE}};
    const struct catalog_column column = {"p", cql_type_scalar(CQL_INT), COLUMN_PARTITION_KEY, false},
                                added = {"more", cql_type_scalar(CQL_INT), COLUMN_REGULAR, false};
    struct world *w[2];
    w[0] = world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none");
    w[1] = world_on((struct eng_options){.shared = true, .beside = w[0]->eng}, MODE_CASSANDRA, "none");
    assert_true(make_keyspace(w[0], "ks") == 1 && make_table(w[0], "ks", "altered") == 1 &&
                make_table(w[0], "ks", "dropped") == 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct ddl_subject of = {cases[i].statement, "ks", cases[i].name};
        const bool alters = cases[i].op == CATALOG_ALTER_TABLE;
        const struct catalog_change change = {.op = cases[i].op, .keyspace = "ks", .name = cases[i].name,
                                              .durable_writes = -1, .n_columns = cases[i].op != CATALOG_DROP_TABLE,
                                              .columns = alters ? &added : &column};
        struct schema_change out;
        uint32_t unfinished;
        advance(w[1], 0);
        for (int k = 0; k < 2; k++) {
            pthread_mutex_lock(&w[k]->catalog->objects.lock);
            assert_int_equal(rules_set(&w[k]->catalog->ddl, &of, "100", "no luck", &w[k]->err), 0);
            pthread_mutex_unlock(&w[k]->catalog->objects.lock);
        }
        assert_int_equal(catalog_apply(w[1]->catalog, &change, &out, &unfinished, &w[1]->err), 1);
        assert_int_equal(catalog_outcome(w[1]->catalog, unfinished, &w[1]->err), 1);
        int rc;
        while ((rc = catalog_outcome(w[1]->catalog, unfinished, &w[1]->err)) == 1) { /* workers may be at it, too */
            advance(w[0], 100);
            advance(w[1], 0);
        }
        assert_int_equal(rc, -1);
        assert_string_equal(w[1]->err.text, "no luck");
        err_clear(&w[1]->err);
    }
    assert_string_equal(status_of(w[1], "ks", "made"), "");
    assert_false(has_column(w[1], "ks", "altered", "more"));
    assert_string_equal(status_of(w[1], "ks", "dropped"), "ACTIVE");
    catalog_close(w[0]->catalog);
    eng_close(w[0]->eng);
    free(w[0]);
    world_free(w[1]);
}

static int64_t draw_delay(struct world *w) {
    pthread_mutex_lock(&w->catalog->objects.lock);
    int64_t us = ddl_rules_draw(&w->catalog->ddl.rules, &(struct ddl_subject){"CREATE TABLE", "ks", "t"});
    pthread_mutex_unlock(&w->catalog->objects.lock);
    return us;
}

static void record_rule(struct world *w, const char *statement, const char *delay) {
    const struct ddl_subject of = {statement, "ks", "*"};
    pthread_mutex_lock(&w->catalog->objects.lock);
    assert_int_equal(rules_set(&w->catalog->ddl, &of, delay, NULL, &w->err), 0);
    pthread_mutex_unlock(&w->catalog->objects.lock);
}

static void test_a_record_of_a_rule_does_not_begin_the_delays_of_others_again(void **state) {
    (void)state;
    struct world *w[2] = {world_on((struct eng_options){.shared = true}, MODE_CASSANDRA, "none")};
    w[1] = world_on((struct eng_options){.shared = true, .beside = w[0]->eng}, MODE_CASSANDRA, "none");
    int64_t drawn[4];
    for (int k = 0; k < 2; k++) {
        record_rule(w[0], "CREATE TABLE", "uniform(0, 1000000, 7)");
        drawn[2 * k] = draw_delay(w[0]);
        if (k == 0) record_rule(w[1], "DROP TABLE", "1"); /* the first server reads the rules again */
        advance(w[0], 0);
        drawn[2 * k + 1] = draw_delay(w[0]);
    }
    assert_int_equal(drawn[0], drawn[2]);
    assert_int_equal(drawn[1], drawn[3]);
    assert_int_not_equal(drawn[0], drawn[1]);
    catalog_close(w[0]->catalog);
    eng_close(w[0]->eng);
    free(w[0]);
    world_free(w[1]);
}

/* ---- rows that no object has ---- */

enum { STRAY = 4000 };

static void write_row(struct world *w, uint32_t storage) {
    struct slice key = slice_str("p");
    struct eng_part part = {.table = storage, .token = murmur3_token(key), .key = key};
    struct eng_batch *b = eng_batch_new(w->eng);
    struct eng_row row;
    uint64_t seq;
    eng_row_init(&row, ENG_ROW, slice_str("c"));
    row.live_ts = 1;
    assert_int_equal(eng_batch_row(b, &part, &row, NULL, &w->err), 0);
    assert_int_equal(eng_batch_delete_partition(b, &part, 0, 1, NULL, &w->err), 0); /* which makes a mark */
    assert_int_equal(eng_batch_commit(b, &seq, &w->err), 0);
    eng_batch_free(b);
}

static int count_stored(void *arg, uint32_t id, struct err *e) {
    uint32_t *n = arg;
    (void)e;
    n[id == STRAY]++;
    return 0;
}

/* Of a table, and of an id that no record names, how often the store names them after a restart. */
static void restart_with_strays(struct world *w, uint32_t n[2]) {
    assert_int_equal(make_keyspace(w, "ks"), 1);
    assert_int_equal(make_table(w, "ks", "t"), 1);
    struct objects *o = &w->catalog->objects;
    write_row(w, entry_find(o, &table_kind, entry_find(o, &keyspace_kind, 0, "ks")->id, "t")->storage);
    write_row(w, STRAY);
    world_restart(w, MODE_CASSANDRA, "none");
    for (bool done = false; !done; usleep(1000)) {
        pthread_mutex_lock(&w->catalog->objects.lock);
        done = w->catalog->recovery.strays.looked && !w->catalog->recovery.strays.n;
        pthread_mutex_unlock(&w->catalog->objects.lock);
    }
    n[0] = n[1] = 0;
    assert_int_equal(eng_each_stored(w->eng, count_stored, n, &w->err), 0);
}

static void test_rows_that_no_object_has_are_freed_after_a_start(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    uint32_t n[2];
    restart_with_strays(w, n);
    assert_int_equal(n[0], 2); /* the row and its mark */
    assert_int_equal(n[1], 0);
    world_free(w);
}

static void test_rows_that_no_object_has_stay_while_a_record_cannot_be_read(void **state) {
    (void)state;
    struct world *w = world_new(MODE_CASSANDRA, "none");
    uint8_t key[RECORD_KEY_SIZE];
    uint32_t n[2];
    record_key('t', 999, key);
    assert_int_equal(eng_meta_put(w->eng, slice_of(key, sizeof key), slice_str("damaged"), &w->err), 0);
    restart_with_strays(w, n);
    assert_int_equal(n[0], 2);
    assert_int_equal(n[1], 2);
    world_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_another_server_on_the_store_changes_is_seen),
        cmocka_unit_test(test_records_of_other_things_leave_the_schema_alone),
        cmocka_unit_test(test_alterations_of_system_keyspaces_are_seen_at_another_server),
        cmocka_unit_test(test_two_servers_give_no_id_twice),
        cmocka_unit_test(test_of_two_servers_that_change_the_schema_at_once_one_decides_anew),
        cmocka_unit_test(test_a_name_is_used_again_when_the_old_rows_are_freed),
        cmocka_unit_test(test_a_truncation_is_carried_by_the_server_that_was_asked),
        cmocka_unit_test(test_old_rows_that_were_written_to_are_freed_by_the_machines_time),
        cmocka_unit_test(test_a_change_that_another_server_makes_fail_has_failed_here),
        cmocka_unit_test(test_a_record_of_a_rule_does_not_begin_the_delays_of_others_again),
        cmocka_unit_test(test_table_without_delay_is_active_at_once),
        cmocka_unit_test(test_rows_that_no_object_has_are_freed_after_a_start),
        cmocka_unit_test(test_rows_that_no_object_has_stay_while_a_record_cannot_be_read),
        cmocka_unit_test(test_table_is_creating_until_its_delay_is_over),
        cmocka_unit_test(test_altered_table_keeps_its_old_form_while_updating),
        cmocka_unit_test(test_dropped_table_hides_at_once_and_keeps_its_name_until_it_is_gone),
        cmocka_unit_test(test_dropped_keyspace_keeps_its_name_until_it_is_gone),
        cmocka_unit_test(test_listeners_run_without_the_lock_and_before_the_answer),
        cmocka_unit_test(test_a_name_is_free_when_listeners_know_that_it_is),
        cmocka_unit_test(test_listeners_hear_of_a_failed_creation),
        cmocka_unit_test(test_held_change_waits_for_its_release),
        cmocka_unit_test(test_restart_resumes_what_was_under_way),
        cmocka_unit_test(test_change_that_a_start_finished_stays_finished),
        cmocka_unit_test(test_version_does_not_depend_on_the_order_of_creation),
        cmocka_unit_test(test_definition_survives_a_restart),
        cmocka_unit_test(test_dropped_keyspace_takes_its_tables_along),
        cmocka_unit_test(test_errors_carry_cassandras_words),
        cmocka_unit_test(test_fifty_changes_at_once_and_no_more_where_keyspaces_refusals_are_strict),
        cmocka_unit_test(test_generation_grows_with_every_snapshot),
        cmocka_unit_test(test_references_are_safe_against_a_swap),
        cmocka_unit_test(test_delay_is_parsed_from_its_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
