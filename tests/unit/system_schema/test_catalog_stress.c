/* Many clients change the schema at once while others read it, with restarts in the middle; each
 * client owns some tables and knows what was acknowledged to it, and all share one keyspace in
 * which anything may happen. TALLYTEST_SEED=n tells the dice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "system_schema/catalog.h"
#include "system_schema/system_tables/system_table.h"

enum { CLIENTS = 3, TABLES_EACH = 3, EXTRA_COLUMNS = 4, READERS = 2, ROUNDS = 4, STEPS = 40 };

struct world {
    struct eng *eng;
    struct catalog *catalog;
    enum tally_mode mode;
    const char *delay;
    char path[64];
    const char *dir; /* NULL: rows are in memory */
    _Atomic bool stop;
    struct err err;
};

struct known_table {
    bool exists;
    unsigned columns; /* bits of those that were added */
    int comment;
    uint32_t storage; /* the last one seen */
};

struct client {
    struct world *w;
    int index;
    uint64_t random;
    struct known_table tables[TABLES_EACH];
};

/* cmocka's own asserts jump, which only its own thread may. */
static void check(bool holds, const char *what, const char *detail) {
    if (holds) return;
    fprintf(stderr, "schema stress: %s: %s\n", what, detail);
    abort();
}

static unsigned draw(struct client *cl, unsigned below) {
    cl->random ^= cl->random << 13;
    cl->random ^= cl->random >> 7;
    cl->random ^= cl->random << 17;
    return (unsigned)(cl->random >> 33) % below;
}

/* ---- the world ---- */

static void world_open_catalog(struct world *w) {
    bool v5 = w->mode == MODE_CASSANDRA;
    struct catalog_options o = {.eng = w->eng, .clock = &clock_real, .mode = w->mode};
    o.node = (struct node_info){"test",      "dc1", "rack1", v5 ? "5.0.8" : "3.11.2", v5 ? "3.4.7" : "3.4.4",
                                "127.0.0.1", 9042};
    o.ddl_delay = w->delay;
    w->catalog = catalog_open(&o, &w->err);
    if (!w->catalog) fail_msg("%s", w->err.text);
}

static void world_open_engine(struct world *w) {
    struct eng_options o = {.data_dir = w->dir, .durability = ENG_NONE, .clock = &clock_real, .memtable_bytes = 1 << 20,
                            .block_cache_bytes = 1 << 20};
    w->eng = eng_open(&o, &w->err);
    if (!w->eng) fail_msg("%s", w->err.text);
}

static void world_init(struct world *w, bool rocks, enum tally_mode mode, const char *delay) {
    *w = (struct world){.mode = mode, .delay = delay, .path = "/tmp/tally-schema-XXXXXX"};
    if (rocks) assert_non_null(w->dir = mkdtemp(w->path));
    world_open_engine(w);
    world_open_catalog(w);
}

/* A store in memory forgets everything when it closes, so there only the catalogue starts anew. */
static void world_restart(struct world *w) {
    catalog_close(w->catalog);
    if (w->dir) {
        eng_close(w->eng);
        world_open_engine(w);
    }
    world_open_catalog(w);
}

static void world_fini(struct world *w) {
    char command[128];
    catalog_close(w->catalog);
    eng_close(w->eng);
    snprintf(command, sizeof command, "rm -rf %s", w->path);
    if (w->dir) assert_int_equal(system(command), 0);
}

static bool is_settled(const struct catalog *c) {
    for (uint32_t i = 0; i < c->objects->n_all; i++)
        if (c->objects->all[i]->status != SCHEMA_ACTIVE) return false;
    return true;
}

/* Every change is told by `moved`, also that what was dropped is freed. */
static void wait_until_settled(struct world *w) {
    struct catalog *c = w->catalog;
    pthread_mutex_lock(&c->objects->lock);
    while (!is_settled(c)) pthread_cond_wait(&c->objects->moved, &c->objects->lock);
    pthread_mutex_unlock(&c->objects->lock);
}

/* ---- statements ---- */

static const struct schema_option simple[] = {{"class", "SimpleStrategy"}, {"replication_factor", "1"}};

static int apply(struct world *w, const struct catalog_change *change, struct err *e) {
    struct schema_change out;
    uint32_t unfinished;
    err_clear(e);
    int rc = catalog_apply(w->catalog, change, &out, &unfinished, e);
    check(rc >= 0 || (e->set && *e->text), "a refusal without words", change->keyspace);
    check(rc >= 0 || e->code == ERR_INVALID || e->code == ERR_ALREADY_EXISTS || e->code == ERR_CONFIG,
          "refused for a wrong reason", e->text);
    return rc;
}

static int make_keyspace(struct world *w, const char *name, struct err *e) {
    return apply(w,
                 &(struct catalog_change){.op = CATALOG_CREATE_KEYSPACE,
                                          .keyspace = name,
                                          .durable_writes = -1,
                                          .conditional = true,
                                          .n_replication = 2,
                                          .replication = simple},
                 e);
}

static int make_table(struct world *w, const char *keyspace, const char *name, struct err *e) {
    const struct catalog_column columns[] = {
        {"p", cql_type_scalar(CQL_INT), COLUMN_PARTITION_KEY, false},
        {"c", cql_type_scalar(CQL_TEXT), COLUMN_CLUSTERING, true},
        {"v", cql_type_scalar(CQL_BLOB), COLUMN_REGULAR, false},
        {"s", cql_type_scalar(CQL_UUID), COLUMN_STATIC, false},
    };
    return apply(w,
                 &(struct catalog_change){.op = CATALOG_CREATE_TABLE,
                                          .keyspace = keyspace,
                                          .name = name,
                                          .durable_writes = -1,
                                          .n_columns = ARRAY_LEN(columns),
                                          .columns = columns},
                 e);
}

static int drop_table(struct world *w, const char *keyspace, const char *name, struct err *e) {
    return apply(w, &(struct catalog_change){.op = CATALOG_DROP_TABLE, .keyspace = keyspace, .name = name}, e);
}

static int add_column(struct world *w, const char *keyspace, const char *table, unsigned number, struct err *e) {
    char name[32];
    snprintf(name, sizeof name, "extra%u", number);
    const struct catalog_column col = {name, cql_type_scalar(CQL_INT), number % 2 ? COLUMN_STATIC : COLUMN_REGULAR,
                                       false};
    return apply(w,
                 &(struct catalog_change){
                     .op = CATALOG_ALTER_TABLE, .keyspace = keyspace, .name = table, .n_columns = 1, .columns = &col},
                 e);
}

static int set_comment(struct world *w, const char *keyspace, const char *table, int comment, struct err *e) {
    char text[16];
    snprintf(text, sizeof text, "%d", comment);
    const struct table_settings settings = {.given = SETTING_BIT(comment), .comment = text};
    return apply(w,
                 &(struct catalog_change){.op = CATALOG_ALTER_TABLE,
                                          .keyspace = keyspace,
                                          .name = table,
                                          .settings = &settings},
                 e);
}

/* ---- clients ---- */

/* While a change of a table is under way, the next one is refused; with no delay nothing is ever under way. */
static void expect(const struct client *cl, int rc, bool possible, const struct err *e) {
    if (!possible) check(rc < 0, "acknowledged what cannot be", e->text);
    else if (strcmp(cl->w->delay, "none") == 0) check(rc >= 0, "refused what can be", e->text);
}

static void change_own(struct client *cl) {
    struct world *w = cl->w;
    struct err e = {0};
    unsigned which = draw(cl, TABLES_EACH), number = draw(cl, EXTRA_COLUMNS);
    struct known_table *t = &cl->tables[which];
    char name[32];
    int rc;
    snprintf(name, sizeof name, "t%d_%u", cl->index, which);
    switch (draw(cl, 5)) {
    case 0:
        rc = drop_table(w, "own", name, &e);
        if (rc == 0 && !t->exists) break; /* once more, while it is DELETING */
        expect(cl, rc, t->exists, &e);
        if (rc == 1) *t = (struct known_table){.storage = t->storage};
        break;
    case 1:
        rc = set_comment(w, "own", name, (int)number + 1, &e);
        expect(cl, rc, t->exists, &e);
        if (rc >= 0) t->comment = (int)number + 1;
        break;
    case 2:
    case 3:
        rc = add_column(w, "own", name, number, &e);
        expect(cl, rc, t->exists && !(t->columns & 1u << number), &e);
        if (rc == 1) t->columns |= 1u << number;
        break;
    default:
        rc = make_table(w, "own", name, &e);
        expect(cl, rc, !t->exists, &e);
        if (rc == 1) t->exists = true;
    }
}

/* Nobody knows what is there; the answer must only be one of the answers there are. */
static void change_shared(struct client *cl) {
    struct err e = {0};
    char name[32];
    snprintf(name, sizeof name, "t%u", draw(cl, 3));
    switch (draw(cl, 6)) {
    case 0: (void)apply(cl->w, &(struct catalog_change){.op = CATALOG_DROP_KEYSPACE, .keyspace = "shared"}, &e); break;
    case 1: (void)make_keyspace(cl->w, "shared", &e); break;
    case 2: (void)drop_table(cl->w, "shared", name, &e); break;
    case 3: (void)add_column(cl->w, "shared", name, draw(cl, EXTRA_COLUMNS), &e); break;
    default: (void)make_table(cl->w, "shared", name, &e);
    }
}

static void *run_client(void *arg) {
    struct client *cl = arg;
    for (int i = 0; i < STEPS; i++) {
        if (draw(cl, 3)) change_own(cl);
        else change_shared(cl);
    }
    return NULL;
}

/* ---- readers ---- */

static void check_table(const struct schema_table *t) {
    check(t->n_columns == t->n_partition_key + t->n_clustering + t->n_static + t->n_regular,
          "columns are not of four kinds", t->name);
    for (uint32_t i = 0; i < t->n_columns; i++) {
        check(t->columns[i].ordinal == i && schema_column_by_id(t, t->columns[i].id) == &t->columns[i],
              "a column is not at its id", t->name);
        check(i == 0 || t->columns[i - 1].kind <= t->columns[i].kind, "columns out of order", t->name);
    }
}

static int by_storage(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void check_keyspace(const struct schema *s, const struct schema_space *space) {
    const struct schema_keyspace *ks = space->keyspace;
    const struct schema_table *before = NULL;
    uint32_t *storages = calloc(space->tables.n + 1, sizeof *storages), n = 0;
    struct schema_table_cursor at = schema_tables_begin(&space->tables);
    for (const struct schema_table *t; (t = schema_tables_next(&at)); before = t) {
        check(!before || strcmp(before->name, t->name) < 0, "tables out of order", t->name);
        check(strcmp(t->keyspace->name, ks->name) == 0 && t->status != SCHEMA_DELETING, "not a table of its keyspace",
              t->name);
        check(schema_table_any(s, ks->name, t->name) == t, "a table is not found", t->name);
        check_table(t);
        storages[n++] = t->storage;
    }
    check(n == space->tables.n, "a list does not know its length", ks->name);
    qsort(storages, n, sizeof *storages, by_storage);
    for (uint32_t i = 1; i < n && !ks->is_system; i++)
        check(storages[i - 1] != storages[i], "two tables with one storage", ks->name);
    free(storages);
    at = schema_tables_begin(&space->deleting);
    for (const struct schema_table *t; (t = schema_tables_next(&at));) {
        check(t->status == SCHEMA_DELETING, "not being deleted", t->name);
        check(!schema_table_any(s, ks->name, t->name), "a name in use is shown as being deleted", t->name);
    }
}

static void check_snapshot(const struct schema *s) {
    for (uint32_t i = 0; i < s->n_spaces; i++) {
        const char *name = s->spaces[i]->keyspace->name;
        check(i == 0 || strcmp(s->spaces[i - 1]->keyspace->name, name) < 0, "keyspaces out of order", name);
        check_keyspace(s, s->spaces[i]);
    }
}

/* Holds one snapshot while the next ones are made: it must stay as it was. */
static void *run_reader(void *arg) {
    struct world *w = arg;
    const struct schema *held = catalog_schema(w->catalog);
    uint8_t version[16];
    memcpy(version, held->version, 16);
    while (!w->stop) {
        const struct schema *s = catalog_schema(w->catalog);
        check(s->generation >= held->generation, "an older snapshot came later", "");
        check(catalog_generation(w->catalog) >= s->generation, "the generation lags behind its snapshot", "");
        check_snapshot(s);
        check_snapshot(held);
        check(memcmp(version, held->version, 16) == 0, "a snapshot changed", "");
        schema_unref(held);
        held = s;
        memcpy(version, s->version, 16);
    }
    schema_unref(held);
    return NULL;
}

/* ---- rounds ---- */

static void run_round(struct world *w, struct client *clients) {
    pthread_t threads[CLIENTS], readers[READERS];
    w->stop = false;
    for (int i = 0; i < READERS; i++) assert_int_equal(pthread_create(&readers[i], NULL, run_reader, w), 0);
    for (int i = 0; i < CLIENTS; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_client, &clients[i]), 0);
    for (int i = 0; i < CLIENTS; i++) pthread_join(threads[i], NULL);
    w->stop = true;
    for (int i = 0; i < READERS; i++) pthread_join(readers[i], NULL);
}

static void check_known(const struct schema *s, const char *name, struct known_table *known) {
    const struct schema_table *t = schema_table_any(s, "own", name);
    if (!t != !known->exists) fail_msg("%s %s", name, t ? "is there though it was dropped" : "is lost");
    if (!t) return;
    assert_int_equal(t->status, SCHEMA_ACTIVE);
    assert_true(t->storage >= known->storage);
    known->storage = t->storage;
    assert_int_equal(t->n_columns, 4 + __builtin_popcount(known->columns));
    for (unsigned i = 0; i < EXTRA_COLUMNS; i++) {
        char column[16];
        snprintf(column, sizeof column, "extra%u", i);
        assert_int_equal(schema_column_find(t, column) != NULL, (known->columns >> i) & 1);
    }
    assert_int_equal(atoi(t->settings.comment), known->comment);
}

static void check_settled(struct world *w, struct client *clients) {
    wait_until_settled(w);
    const struct schema *s = catalog_schema(w->catalog);
    check_snapshot(s);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_spaces; i++)
        if (!s->spaces[i]->keyspace->is_system) n += 1 + s->spaces[i]->tables.n;
    assert_int_equal(w->catalog->objects->n_all, n);
    for (int i = 0; i < CLIENTS; i++)
        for (int j = 0; j < TABLES_EACH; j++) {
            char name[32];
            snprintf(name, sizeof name, "t%d_%d", i, j);
            check_known(s, name, &clients[i].tables[j]);
        }
    schema_unref(s);
}

static void check_version_survives(struct world *w) {
    uint8_t version[16];
    const struct schema *s = catalog_schema(w->catalog);
    memcpy(version, s->version, 16);
    schema_unref(s);
    world_restart(w);
    s = catalog_schema(w->catalog);
    assert_memory_equal(s->version, version, 16);
    schema_unref(s);
}

static void stress(bool rocks, enum tally_mode mode, const char *delay) {
    const char *seed = getenv("TALLYTEST_SEED");
    struct world w;
    struct client clients[CLIENTS] = {0};
    world_init(&w, rocks, mode, delay);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].w = &w;
        clients[i].index = i;
        clients[i].random = 0x9e3779b97f4a7c15 * ((seed ? strtoull(seed, NULL, 10) : 1) * CLIENTS + (uint64_t)i + 1);
    }
    assert_int_equal(make_keyspace(&w, "own", &w.err), 1);
    wait_until_settled(&w);
    for (int round = 0; round < ROUNDS; round++) {
        run_round(&w, clients);
        world_restart(&w);
        check_settled(&w, clients);
        check_version_survives(&w);
    }
    world_fini(&w);
}

static void test_clients_change_tables_at_once(void **state) {
    (void)state;
    stress(false, MODE_CASSANDRA, "none");
}

static void test_answers_wait_for_the_last_status(void **state) {
    (void)state;
    stress(false, MODE_CASSANDRA, "0..2");
}

static void test_changes_under_way_go_on_after_a_restart(void **state) {
    (void)state;
    stress(false, MODE_KEYSPACES, "0..4");
}

static void test_changes_under_way_are_found_on_disk(void **state) {
    (void)state;
    stress(true, MODE_KEYSPACES, "0..4");
}

static void test_finished_changes_are_found_on_disk(void **state) {
    (void)state;
    stress(true, MODE_CASSANDRA, "none");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clients_change_tables_at_once),
        cmocka_unit_test(test_answers_wait_for_the_last_status),
        cmocka_unit_test(test_changes_under_way_go_on_after_a_restart),
        cmocka_unit_test(test_changes_under_way_are_found_on_disk),
        cmocka_unit_test(test_finished_changes_are_found_on_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
