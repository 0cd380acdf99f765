/* Snapshots share what did not change: what a change and a held table cost does not grow with the number of tables. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "system_schema/catalog.h"
#include "system_schema/system_tables/system_table.h"

struct world {
    struct eng *eng;
    struct catalog *catalog;
    struct err err;
};

static void world_open(struct world *w) {
    *w = (struct world){0};
    struct eng_options eo = {.clock = &clock_real, .durability = ENG_NONE};
    struct catalog_options o = {.clock = &clock_real, .mode = MODE_CASSANDRA};
    o.node = (struct node_info){"test", "dc1", "rack1", "5.0.8", "3.4.7", "127.0.0.1", 9042};
    assert_non_null(o.eng = w->eng = eng_open(&eo, &w->err));
    assert_non_null(w->catalog = catalog_open(&o, &w->err));
}

static void world_close(struct world *w) {
    catalog_close(w->catalog);
    eng_close(w->eng);
}

static void apply(struct world *w, const struct catalog_change *change) {
    struct schema_change out;
    uint32_t unfinished;
    if (catalog_apply(w->catalog, change, &out, &unfinished, &w->err) != 1) fail_msg("%s", w->err.text);
}

static void make_keyspace(struct world *w) {
    static const struct schema_option simple[] = {{"class", "SimpleStrategy"}, {"replication_factor", "1"}};
    apply(w, &(struct catalog_change){.op = CATALOG_CREATE_KEYSPACE,
                                      .keyspace = "ks",
                                      .durable_writes = -1,
                                      .n_replication = 2,
                                      .replication = simple});
}

enum { COLUMNS = 20 };

/* In no order of names. */
static void make_table(struct world *w, uint32_t i) {
    struct catalog_column columns[COLUMNS];
    char names[COLUMNS][16], name[24];
    for (int k = 0; k < COLUMNS; k++) {
        snprintf(names[k], sizeof names[k], "c%d", k);
        columns[k] = (struct catalog_column){names[k], cql_type_scalar(CQL_INT),
                                             k ? COLUMN_REGULAR : COLUMN_PARTITION_KEY, false};
    }
    snprintf(name, sizeof name, "t%08x", i * 2654435761u);
    apply(w, &(struct catalog_change){
                 .op = CATALOG_CREATE_TABLE, .keyspace = "ks", .name = name, .n_columns = COLUMNS, .columns = columns});
}

static void drop_table(struct world *w, uint32_t i) {
    char name[24];
    snprintf(name, sizeof name, "t%08x", i * 2654435761u);
    apply(w, &(struct catalog_change){.op = CATALOG_DROP_TABLE, .keyspace = "ks", .name = name});
}

static void check_order(const struct schema *s, uint32_t n) {
    const struct schema_tables *tables = &schema_space_find(s, "ks")->tables;
    struct schema_table_cursor at = schema_tables_begin(tables);
    const struct schema_table *before = NULL;
    uint32_t seen = 0;
    for (const struct schema_table *t; (t = schema_tables_next(&at)); before = t, seen++) {
        if (before) assert_true(strcmp(before->name, t->name) < 0);
        assert_ptr_equal(schema_tables_find(tables, t->name), t);
    }
    assert_int_equal(seen, n);
    assert_int_equal(tables->n, n);
}

static void test_tables_stay_in_order_while_they_come_and_go(void **state) {
    (void)state;
    struct world w;
    enum { N = 700 };
    world_open(&w);
    make_keyspace(&w);
    for (uint32_t i = 0; i < N; i++) make_table(&w, i);
    const struct schema *full = catalog_schema(w.catalog);
    for (uint32_t i = 0; i < N; i += 2) drop_table(&w, i);
    const struct schema *half = catalog_schema(w.catalog);
    for (uint32_t i = 1; i < N; i += 2) drop_table(&w, i);
    const struct schema *none = catalog_schema(w.catalog);
    check_order(full, N); /* as it was */
    check_order(half, N / 2);
    check_order(none, 0);
    schema_unref(full);
    schema_unref(half);
    schema_unref(none);
    make_table(&w, 1);
    world_close(&w);
}

static void test_tables_that_a_change_leaves_alone_are_the_same_in_the_next_snapshot(void **state) {
    (void)state;
    struct world w;
    world_open(&w);
    make_keyspace(&w);
    for (uint32_t i = 0; i < 200; i++) make_table(&w, i);
    const struct schema *before = catalog_schema(w.catalog);
    make_table(&w, 200);
    drop_table(&w, 7);
    const struct schema *after = catalog_schema(w.catalog);
    struct schema_table_cursor at = schema_tables_begin(&schema_space_find(before, "ks")->tables);
    uint32_t same = 0;
    for (const struct schema_table *t; (t = schema_tables_next(&at));)
        same += schema_table_any(after, "ks", t->name) == t;
    assert_int_equal(same, 199);
    schema_unref(before);
    schema_unref(after);
    world_close(&w);
}

/* A table that is held, as a prepared statement holds it, outlives its snapshot, its keyspace and its drop. */
static void test_a_held_table_holds_nothing_else(void **state) {
    (void)state;
    struct world w;
    world_open(&w);
    make_keyspace(&w);
    make_table(&w, 1);
    const struct schema *s = catalog_schema(w.catalog);
    struct schema_table_cursor at = schema_tables_begin(&schema_space_find(s, "ks")->tables);
    const struct schema_table *t = schema_tables_next(&at);
    schema_table_ref(t);
    schema_unref(s);
    apply(&w, &(struct catalog_change){.op = CATALOG_DROP_KEYSPACE, .keyspace = "ks"});
    assert_string_equal(t->keyspace->name, "ks");
    assert_int_equal(t->n_columns, COLUMNS);
    schema_table_unref(t);
    world_close(&w);
}

/* Of the address sanitizer's allocator, where that is the one in use. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t bytes_in_use(void) {
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() : mallinfo2().uordblks;
}

/* Bytes in use after n times CREATE TABLE and holding the new table, as PREPARE does. */
static size_t bytes_of(uint32_t n) {
    struct world w;
    const struct schema_table **held = calloc(n, sizeof(struct schema_table *));
    world_open(&w);
    make_keyspace(&w);
    size_t before = bytes_in_use();
    for (uint32_t i = 0; i < n; i++) {
        char name[24];
        make_table(&w, i);
        snprintf(name, sizeof name, "t%08x", i * 2654435761u);
        const struct schema *s = catalog_schema(w.catalog);
        schema_table_ref(held[i] = schema_table_any(s, "ks", name));
        schema_unref(s);
    }
    size_t bytes = bytes_in_use() - before;
    for (uint32_t i = 0; i < n; i++) schema_table_unref(held[i]);
    free(held);
    world_close(&w);
    return bytes;
}

static void test_memory_grows_with_the_tables_that_are_held(void **state) {
    (void)state;
    size_t once = bytes_of(250), four = bytes_of(1000);
    assert_true(once > 250 * COLUMNS * sizeof(struct schema_column));
    if (four > 6 * once) fail_msg("250 tables %zu bytes, 1000 tables %zu", once, four);
}

/* What a thread asks of the allocator while it counts: the work of a change that can be counted. */
struct work {
    uint64_t allocations, bytes;
};
static _Thread_local struct work work;
static _Thread_local bool counts;

static void count(const volatile void *p, size_t n) {
    (void)p;
    if (!counts) return;
    work.allocations++;
    work.bytes += n;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                              void (*on_free)(const volatile void *));

static void on_free(const volatile void *p) { (void)p; }

static void install_counter(void) { assert_true(__sanitizer_install_malloc_and_free_hooks(count, on_free) > 0); }
#else
/* glibc's own, of which these take the place. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n) {
    count(NULL, n);
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size) {
    count(NULL, n * size);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n) {
    count(NULL, n);
    return __libc_realloc(p, n);
}

static void install_counter(void) {}
#endif

/* Of CREATE TABLE and DROP TABLE beside n tables: the mean of so many that chunks are divided among
 * them as often as they ever are. */
static struct work work_beside(uint32_t n) {
    enum { TIMES = 128 };
    struct world w;
    world_open(&w);
    make_keyspace(&w);
    for (uint32_t i = 0; i < n; i++) make_table(&w, i);
    work = (struct work){0};
    for (uint32_t i = 0; i < TIMES; i++) {
        counts = true;
        make_table(&w, n + i);
        drop_table(&w, n + i);
        counts = false;
    }
    world_close(&w);
    return (struct work){work.allocations / TIMES, work.bytes / TIMES};
}

static void test_a_change_costs_no_more_beside_many_tables(void **state) {
    (void)state;
    install_counter();
    struct work few = work_beside(10), many = work_beside(2000);
    print_message("CREATE and DROP TABLE: %llu allocations of %llu bytes beside 10 tables, %llu of %llu beside 2,000\n",
                  (unsigned long long)few.allocations, (unsigned long long)few.bytes,
                  (unsigned long long)many.allocations, (unsigned long long)many.bytes);
    assert_true(few.allocations > 10);
    if (10 * many.allocations > 13 * few.allocations || 10 * many.bytes > 13 * few.bytes)
        fail_msg("beside 2,000 tables it is more than 1.3 times");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_stay_in_order_while_they_come_and_go),
        cmocka_unit_test(test_tables_that_a_change_leaves_alone_are_the_same_in_the_next_snapshot),
        cmocka_unit_test(test_a_held_table_holds_nothing_else),
        cmocka_unit_test(test_memory_grows_with_the_tables_that_are_held),
        cmocka_unit_test(test_a_change_costs_no_more_beside_many_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
