/* The process is killed at every step of TRUNCATE, and started again: the table has all of its rows
 * or none, none when the statement was acknowledged; the old place is freed; and a table with
 * point-in-time recovery is restored to the moment before with its rows, and to now without.
 *
 * A child writes, truncates and tells through a pipe how far it came; FAULT_DDL kills it at the nth
 * step of TRUNCATE. */
#include "base/fault.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/murmur3.h"
#include "engine/local/local.h"
#include "engine/named.h"
#include "system_schema/catalog.h"
#include "system_schema/system_tables/system_table.h"

enum { ROWS = 5, LATER = 2 };

struct world {
    struct eng *eng;
    struct catalog *catalog;
    struct err err;
};

static void must(struct world *w, int rc) {
    if (rc < 0) fail_msg("%s", w->err.text);
}

static void engine_open(struct world *w, const char *dir) {
    struct eng_options eo = {.data_dir = dir,
                             .durability = ENG_FSYNC,
                             .clock = &clock_real,
                             .memtable_bytes = 1 << 20,
                             .block_cache_bytes = 1 << 20};
    *w = (struct world){0};
    w->eng = eng_open(&eo, &w->err);
    if (!w->eng) fail_msg("%s", w->err.text);
}

static void world_open(struct world *w, const char *dir) {
    engine_open(w, dir);
    struct catalog_options co = {.eng = w->eng, .clock = &clock_real, .mode = MODE_CASSANDRA, .ddl_delay = "none"};
    co.node = (struct node_info){"test", "dc1", "rack1", "5.0.8", "3.4.7", "127.0.0.1", 9042};
    w->catalog = catalog_open(&co, &w->err);
    if (!w->catalog) fail_msg("%s", w->err.text);
}

static void world_close(struct world *w) {
    catalog_close(w->catalog);
    eng_close(w->eng);
}

static void apply(struct world *w, const struct catalog_change *change) {
    struct schema_change out;
    uint32_t unfinished;
    must(w, catalog_apply(w->catalog, change, &out, &unfinished, &w->err));
}

static void make_table(struct world *w, bool recovery) {
    static const struct schema_option simple[] = {{"class", "SimpleStrategy"}, {"replication_factor", "1"}};
    static const struct table_settings pitr = {.given = SETTING_BIT(point_in_time_recovery),
                                               .point_in_time_recovery = true};
    const struct catalog_column columns[] = {{"p", cql_type_scalar(CQL_TEXT), COLUMN_PARTITION_KEY, false},
                                             {"v", cql_type_scalar(CQL_INT), COLUMN_REGULAR, false}};
    apply(w, &(struct catalog_change){.op = CATALOG_CREATE_KEYSPACE,
                                      .keyspace = "ks",
                                      .durable_writes = -1,
                                      .n_replication = 2,
                                      .replication = simple});
    apply(w, &(struct catalog_change){.op = CATALOG_CREATE_TABLE,
                                      .keyspace = "ks",
                                      .name = "t",
                                      .n_columns = 2,
                                      .columns = columns,
                                      .settings = recovery ? &pitr : NULL});
}

/* 0: it is not there. */
static uint32_t storage_of(struct world *w, const char *name) {
    const struct schema *s = catalog_schema(w->catalog);
    const struct schema_table *t = schema_table_any(s, "ks", name);
    uint32_t storage = t && t->status == SCHEMA_ACTIVE ? t->storage : 0;
    schema_unref(s);
    return storage;
}

static void write_rows(struct world *w, uint32_t storage, int n) {
    struct eng_batch *b = eng_batch_new(w->eng);
    for (int i = 0; i < n; i++) {
        char key[16];
        struct eng_row row;
        snprintf(key, sizeof key, "k%d", i);
        eng_row_init(&row, ENG_ROW, slice_str(""));
        row.live_ts = clock_wall_us(&clock_real);
        const struct eng_part part = {.table = storage, .token = murmur3_token(slice_str(key)), .key = slice_str(key)};
        must(w, eng_batch_row(b, &part, &row, NULL, &w->err));
    }
    uint64_t seq;
    must(w, eng_batch_commit(b, &seq, &w->err));
    must(w, eng_wait_durable(w->eng, seq, &w->err));
    eng_batch_free(b);
}

static int rows_in(struct world *w, uint32_t storage) {
    struct eng_scan_spec spec = {.table = storage,
                                 .token_from = INT64_MIN,
                                 .token_to = INT64_MAX,
                                 .rows = true,
                                 .statics = true,
                                 .now = clock_wall_us(&clock_real) / 1000000};
    struct eng_scan *s = eng_scan_open(w->eng, ENG_TIER_ANY, &spec, NULL, &w->err);
    struct eng_item item;
    int n = 0, got;
    assert_non_null(s);
    while ((got = eng_scan_next(s, &item, &w->err)) > 0) n += item.kind == ENG_ITEM_ROW;
    must(w, got);
    eng_scan_close(s);
    return n;
}

static int count_key(void *arg, struct slice key, struct slice value, struct err *e) {
    (void)key, (void)value, (void)e;
    ++*(int *)arg;
    return 0;
}

/* Of a place that was freed: nobody reads rows there any more (eng_table_drop). */
static int keys_in(struct world *w, uint32_t storage) {
    uint8_t from[4], to[4];
    int n = 0;
    store_u32(from, storage);
    store_u32(to, storage + 1);
    must(w, kv_scan(local_of(&w->eng->store)->kv, NULL, slice_of(from, 4), slice_of(to, 4), count_key, &n, &w->err));
    return n;
}

/* What the child has to tell. */
struct told {
    uint32_t storage;  /* with rows in it */
    int64_t before_us; /* a moment when they were */
};

/* Never returns: exits with 0 when the nth step never came. */
static void child(const char *dir, bool recovery, int64_t nth, int to) {
    struct world w;
    world_open(&w, dir);
    make_table(&w, recovery);
    struct told told = {.storage = storage_of(&w, "t")};
    write_rows(&w, told.storage, ROWS);
    usleep(2000);
    told.before_us = clock_wall_us(&clock_real);
    usleep(2000);
    if (write(to, &told, sizeof told) != sizeof told) _exit(3);
    fault_arm(FAULT_DDL, nth);
    apply(&w, &(struct catalog_change){.op = CATALOG_TRUNCATE_TABLE, .keyspace = "ks", .name = "t"});
    if (write(to, "t", 1) != 1) _exit(3);
    write_rows(&w, storage_of(&w, "t"), LATER);
    if (write(to, "w", 1) != 1) _exit(3);
    usleep(1300000); /* the old place is freed a second later */
    world_close(&w);
    _exit(0);
}

static bool is_settled(struct world *w) {
    pthread_mutex_lock(&w->catalog->objects->lock);
    bool settled = true;
    for (const struct catalog_object *x = w->catalog->objects->busy; x; x = x->busy_next)
        settled = settled && !object_is_gone(x) && x->status != SCHEMA_RESTORING;
    pthread_mutex_unlock(&w->catalog->objects->lock);
    return settled;
}

static void settle(struct world *w) {
    for (int i = 0; i < 5000 && !is_settled(w); i++) usleep(1000);
    assert_true(is_settled(w));
}

static int restored_rows(struct world *w, const char *name, int64_t at_us) {
    apply(w, &(struct catalog_change){.op = CATALOG_RESTORE_TABLE,
                                      .keyspace = "ks",
                                      .name = name,
                                      .from_keyspace = "ks",
                                      .from_name = "t",
                                      .has_restore_us = at_us != 0,
                                      .restore_us = at_us});
    settle(w);
    return rows_in(w, storage_of(w, name));
}

struct places {
    uint32_t storage[8];
    size_t n;
};

static int add_place(void *arg, struct slice key, struct slice value, struct err *e) {
    struct places *p = arg;
    struct record r;
    if (record_decode(key, value, &r, e)) return -1;
    for (size_t i = 0; i < p->n; i++)
        if (p->storage[i] == r.storage) fail_msg("two records own the rows of place %u", r.storage);
    assert_true(p->n < ARRAY_LEN(p->storage));
    p->storage[p->n++] = r.storage;
    return 0;
}

/* G2. Before a start looks at the records. */
static void check_records(const char *dir) {
    struct world w;
    struct places p = {.n = 0};
    engine_open(&w, dir);
    must(&w, eng_meta_scan(w.eng, slice_str("catalog/t/"), add_place, &p, &w.err));
    assert_true(p.n > 0);
    eng_close(w.eng);
}

static void check_after_crash(const char *dir, bool recovery, int64_t nth, const struct told *told, bool truncated,
                              bool written) {
    struct world w;
    check_records(dir);
    world_open(&w, dir);
    settle(&w);
    uint32_t storage = storage_of(&w, "t");
    int rows = rows_in(&w, storage);
    bool sound = written ? rows == LATER : truncated ? rows == 0 || rows == LATER : rows == 0 || rows == ROWS;
    if (!sound) fail_msg("step %d: %d rows, truncated %d, written to %d", (int)nth, rows, truncated, written);
    if (storage != told->storage) assert_int_equal(keys_in(&w, told->storage), 0);
    if (recovery) {
        assert_int_equal(restored_rows(&w, "before", told->before_us), ROWS);
        assert_int_equal(restored_rows(&w, "now", 0), rows);
    }
    write_rows(&w, storage, ROWS); /* its place was not freed */
    assert_int_equal(rows_in(&w, storage), ROWS);
    if (recovery) assert_int_equal(restored_rows(&w, "later", 0), ROWS);
    world_close(&w);
}

static void kill_at_every_step(bool recovery) {
    bool killed = true;
    int64_t nth = 0;
    while (killed) {
        char dir[] = "/tmp/tally-truncate-XXXXXX", command[64], progress[2];
        int pipes[2], status;
        struct told told = {0};
        nth++;
        assert_non_null(mkdtemp(dir));
        assert_int_equal(pipe(pipes), 0);
        pid_t pid = fork();
        if (pid == 0) child(dir, recovery, nth, pipes[1]);
        close(pipes[1]);
        assert_int_equal(read(pipes[0], &told, sizeof told), sizeof told);
        ssize_t n = 0;
        while (n < 2 && read(pipes[0], &progress[n], 1) == 1) n++;
        close(pipes[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (!killed && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
            fail_msg("step %d: the child ended with %x", (int)nth, status);
        check_after_crash(dir, recovery, nth, &told, n > 0, n > 1);
        snprintf(command, sizeof command, "rm -rf %s", dir);
        assert_int_equal(system(command), 0);
    }
    assert_true(nth > 4); /* steps: the history, the move; the data, the record of the remains */
}

static void test_truncate_killed_at_every_step(void **state) {
    (void)state;
    kill_at_every_step(false);
}

static void test_truncate_of_a_table_with_recovery_killed_at_every_step(void **state) {
    (void)state;
    kill_at_every_step(true);
}

/* Writes the record that an older version wrote first, and by which a DELETED object owns the rows of the
 * table, too. */
static int add_remains(void *arg, struct slice key, struct slice value, struct err *e) {
    struct buf *out = arg;
    struct record r;
    if (record_decode(key, value, &r, e)) return -1;
    if (!slice_is(r.name, "t")) return 0;
    r.id = 9999;
    r.status = SCHEMA_DELETED;
    record_encode(&r, out);
    return 0;
}

static void test_half_a_truncation_of_an_older_version_frees_no_rows(void **state) {
    (void)state;
    char dir[] = "/tmp/tally-truncate-XXXXXX", command[64];
    uint8_t key[RECORD_KEY_SIZE];
    struct world w;
    struct buf remains;
    assert_non_null(mkdtemp(dir));
    world_open(&w, dir);
    make_table(&w, false);
    uint32_t storage = storage_of(&w, "t");
    write_rows(&w, storage, ROWS);
    buf_init(&remains, 0);
    must(&w, eng_meta_scan(w.eng, slice_str("catalog/t/"), add_remains, &remains, &w.err));
    assert_true(remains.n > 0);
    record_key('t', 9999, key);
    must(&w, eng_meta_put(w.eng, slice_of(key, sizeof key), buf_slice(&remains), &w.err));
    buf_fini(&remains);
    world_close(&w);
    for (int i = 0; i < 2; i++) {
        world_open(&w, dir);
        settle(&w);
        assert_int_equal(storage_of(&w, "t"), storage);
        assert_int_equal(rows_in(&w, storage), ROWS);
        write_rows(&w, storage, ROWS); /* its place was not freed */
        world_close(&w);
    }
    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncate_killed_at_every_step),
        cmocka_unit_test(test_truncate_of_a_table_with_recovery_killed_at_every_step),
        cmocka_unit_test(test_half_a_truncation_of_an_older_version_frees_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
