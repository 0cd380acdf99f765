/* The process is killed at every step of every statement, and started again: what was acknowledged
 * is there, what was seen is not taken back.
 *
 * A child works through the script on RocksDB and tells through a pipe what was acknowledged and
 * whose end it saw; fault point FAULT_DDL kills it at the nth step. The parent opens the store
 * again, with all changes held, and looks; then it lets them go on to their end, and looks again. */
#include "base/fault.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "system_schema/catalog.h"
#include "system_schema/system_tables/system_table.h"
#include "system_schema/objects/table_event.h"

struct world {
    struct eng *eng;
    struct catalog *catalog;
    struct err err;
};

static void world_open(struct world *w, const char *dir, const char *delay) {
    struct eng_options eo = {.data_dir = dir,
                             .durability = ENG_FSYNC,
                             .clock = &clock_real,
                             .memtable_bytes = 1 << 20,
                             .block_cache_bytes = 1 << 20};
    *w = (struct world){0};
    w->eng = eng_open(&eo, &w->err);
    if (!w->eng) fail_msg("%s", w->err.text);
    struct catalog_options co = {.eng = w->eng, .clock = &clock_real, .mode = MODE_KEYSPACES, .ddl_delay = delay};
    co.node = (struct node_info){"test", "dc1", "rack1", "3.11.2", "3.4.4", "127.0.0.1", 9042};
    w->catalog = catalog_open(&co, &w->err);
    if (!w->catalog) fail_msg("%s", w->err.text);
}

static void world_close(struct world *w) {
    catalog_close(w->catalog);
    eng_close(w->eng);
}

static uint32_t n_pending(struct catalog *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->objects->n_all; i++) n += c->objects->all[i]->status != SCHEMA_ACTIVE;
    return n;
}

/* What was dropped is freed, too. */
static void wait_until_settled(struct catalog *c) {
    pthread_mutex_lock(&c->objects->lock);
    while (n_pending(c)) pthread_cond_wait(&c->objects->moved, &c->objects->lock);
    pthread_mutex_unlock(&c->objects->lock);
}

/* ---- the script ---- */

static const struct schema_option simple[] = {{"class", "SimpleStrategy"}, {"replication_factor", "1"}};
static const struct catalog_column columns[] = {{"p", NULL, COLUMN_PARTITION_KEY, false},
                                                {"v", NULL, COLUMN_REGULAR, false},
                                                {"more", NULL, COLUMN_REGULAR, false}};

/* What a statement leaves: of the tables t and u the number of columns, of the type y the number of
 * fields, 0: there is none. */
static const struct step {
    enum catalog_op op;
    const char *name;
    bool keyspace;
    uint32_t t, u, y;
} script[] = {
    {CATALOG_CREATE_KEYSPACE, NULL, true, 0, 0},   {CATALOG_CREATE_TABLE, "t", true, 2, 0},
    {CATALOG_ALTER_TABLE, "t", true, 3, 0},        {CATALOG_DROP_TABLE, "t", true, 0, 0},
    {CATALOG_CREATE_TABLE, "t", true, 2, 0},       {CATALOG_CREATE_TABLE, "u", true, 2, 2},
    {CATALOG_CREATE_TYPE, "y", true, 2, 2, 2},     {CATALOG_ALTER_TYPE, "y", true, 2, 2, 3},
    {CATALOG_DROP_TYPE, "y", true, 2, 2, 0},       {CATALOG_CREATE_TYPE, "y", true, 2, 2, 2},
    {CATALOG_ALTER_KEYSPACE, NULL, true, 2, 2, 2}, {CATALOG_DROP_KEYSPACE, NULL, false, 0, 0},
    {CATALOG_CREATE_KEYSPACE, NULL, true, 0, 0},   {CATALOG_CREATE_TABLE, "t", true, 2, 0},
};

static bool creates(enum catalog_op op) { return op == CATALOG_CREATE_TABLE || op == CATALOG_CREATE_TYPE; }
static bool alters(enum catalog_op op) { return op == CATALOG_ALTER_TABLE || op == CATALOG_ALTER_TYPE; }

static int run_step(struct world *w, const struct step *s) {
    struct catalog_column own[3];
    for (int i = 0; i < 3; i++) {
        own[i] = columns[i];
        own[i].type = cql_type_scalar(CQL_INT);
    }
    struct catalog_change change = {.op = s->op,
                                    .keyspace = "ks",
                                    .name = s->name,
                                    .durable_writes = s->op == CATALOG_ALTER_KEYSPACE ? 0 : -1};
    if (s->op == CATALOG_CREATE_KEYSPACE) change.n_replication = 2, change.replication = simple;
    if (creates(s->op)) change.n_columns = 2, change.columns = own;
    if (alters(s->op)) change.n_columns = 1, change.columns = own + 2;
    struct schema_change out;
    uint32_t unfinished;
    return catalog_apply(w->catalog, &change, &out, &unfinished, &w->err);
}

/* Never returns: exits with 0 at the end of the script, when the nth step never came. */
static void child(const char *dir, const char *delay, int64_t nth, int to) {
    struct world w;
    fault_arm(FAULT_DDL, nth);
    world_open(&w, dir, delay);
    for (size_t i = 0; i < ARRAY_LEN(script); i++) {
        if (run_step(&w, &script[i]) != 1) _exit(2);
        if (write(to, "a", 1) != 1) _exit(3);
        wait_until_settled(w.catalog);
        if (write(to, "s", 1) != 1) _exit(3);
    }
    world_close(&w);
    _exit(0);
}

/* ---- what is there ---- */

static uint32_t columns_of(const struct schema *s, const char *name) {
    const struct schema_table *t = schema_table_any(s, "ks", name);
    return t ? t->n_columns : 0;
}

static uint32_t fields_of(const struct schema *s, const char *name) {
    const struct schema_type *t = schema_type_find(s, "ks", name);
    return t ? t->type->n_args : 0;
}

static bool is_as_after(struct world *w, int steps) {
    const struct schema *s = catalog_schema(w->catalog);
    struct step want = {0};
    if (steps) want = script[steps - 1];
    bool keyspace = schema_keyspace_find(s, "ks");
    bool same = keyspace == want.keyspace && columns_of(s, "t") == want.t && columns_of(s, "u") == want.u &&
                fields_of(s, "y") == want.y;
    schema_unref(s);
    return same;
}

static int count_events(void *arg, const struct history_row *row) {
    int *counts = arg;
    counts[strcmp(row->event, "CREATE") == 0 ? 0 : strcmp(row->event, "ALTER") == 0 ? 1 : 2]++;
    return 0;
}

/* The events of the tables that the statements so far made, altered and dropped: each once. */
static void check_events(struct world *w, int steps) {
    int want[3] = {0}, have[3] = {0};
    struct arena a;
    for (int i = 0; i < steps; i++) {
        want[0] += script[i].op == CATALOG_CREATE_TABLE;
        want[1] += script[i].op == CATALOG_ALTER_TABLE;
        want[2] += script[i].op == CATALOG_DROP_TABLE ? 1 : script[i].op == CATALOG_DROP_KEYSPACE ? 2 : 0;
    }
    arena_init(&a, 4096, 0);
    assert_int_equal(history_each(w->catalog->objects, "ks", &a, count_events, have, &w->err), 0);
    arena_fini(&a);
    for (int i = 0; i < 3; i++)
        if (want[i] != have[i]) fail_msg("%d events of kind %d in the history, not %d", have[i], i, want[i]);
}

/* The end of a statement that was seen is not under way again; only the one after it may be. */
static void check_under_way(struct world *w, int64_t nth, int seen) {
    for (uint32_t i = 0; i < w->catalog->objects->n_all; i++) {
        enum schema_status status = w->catalog->objects->all[i]->status;
        if (status == SCHEMA_ACTIVE) continue;
        if (seen == ARRAY_LEN(script))
            fail_msg("step %d: all was seen to end, and something is %s", (int)nth, schema_status_name(status));
        bool drops = script[seen].op == CATALOG_DROP_TABLE || script[seen].op == CATALOG_DROP_TYPE ||
                     script[seen].op == CATALOG_DROP_KEYSPACE;
        bool changes = alters(script[seen].op) || script[seen].op == CATALOG_ALTER_KEYSPACE;
        bool fits = drops     ? status == SCHEMA_DELETING || status == SCHEMA_DELETED
                    : changes ? status == SCHEMA_UPDATING
                              : status == SCHEMA_CREATING;
        if (!fits)
            fail_msg("step %d: the end of statement %d was seen, and something is %s", (int)nth, seen - 1,
                     schema_status_name(status));
    }
}

static void check_after_crash(const char *dir, int64_t nth, int acknowledged, int seen) {
    struct world w;
    world_open(&w, dir, "held");
    if (seen == acknowledged) check_under_way(&w, nth, seen);
    catalog_release_held(w.catalog);
    wait_until_settled(w.catalog);
    int done = acknowledged < (int)ARRAY_LEN(script) && is_as_after(&w, acknowledged + 1) ? acknowledged + 1
                                                                                          : acknowledged;
    /* The same state may come of both. */
    if (!is_as_after(&w, acknowledged) && done == acknowledged)
        fail_msg("step %d: %d statements were acknowledged, and that is not what is there", (int)nth, acknowledged);
    if (done == acknowledged || !is_as_after(&w, acknowledged)) check_events(&w, done);
    world_close(&w);
}

static void kill_at_every_step(const char *delay) {
    for (int64_t nth = 1;; nth++) {
        char dir[] = "/tmp/tally-crash-XXXXXX", command[64];
        int pipes[2], status, acknowledged = 0, seen = 0;
        char told;
        assert_non_null(mkdtemp(dir));
        assert_int_equal(pipe(pipes), 0);
        pid_t pid = fork();
        if (pid == 0) child(dir, delay, nth, pipes[1]);
        close(pipes[1]);
        while (read(pipes[0], &told, 1) == 1) told == 'a' ? acknowledged++ : seen++;
        close(pipes[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (!killed && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
            fail_msg("step %d: the child ended with %x", (int)nth, status);
        check_after_crash(dir, nth, acknowledged, seen);
        snprintf(command, sizeof command, "rm -rf %s", dir);
        assert_int_equal(system(command), 0);
        if (killed) continue;
        assert_int_equal(acknowledged, ARRAY_LEN(script));
        assert_true(nth > 30); /* so many steps there were */
        return;
    }
}

static void test_killed_at_every_step_of_changes_that_take_time(void **state) {
    (void)state;
    kill_at_every_step("1");
}

static void test_killed_at_every_step_of_changes_at_once(void **state) {
    (void)state;
    kill_at_every_step("none");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_at_every_step_of_changes_that_take_time),
        cmocka_unit_test(test_killed_at_every_step_of_changes_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
