/* The operators of a read, each on a fake source below it: rows of one int column k (partition) and
 * one int column c (clustering). */
#include "harness.h"

#include <stdio.h>

#include "cql/read/read.h"
#include "cql/read/select.h"

enum { ROWS_MAX = 16, AGAIN = -99 /* among rows: the source pauses */ };

/* What it hands on: pairs of k and c, in batches of one partition. */
struct fake {
    struct read_source base;
    int32_t rows[ROWS_MAX][2];
    uint32_t n, at;
    uint8_t bytes[ROWS_MAX][8];
    struct value values[ROWS_MAX][2];
    int32_t partition; /* of the row handed on last */
    uint32_t unread;   /* calls */
    bool ends_page;
};

static void fake_add(struct fake *f, const int32_t *row, struct read_batch *batch) {
    struct value *values = f->values[batch->n];
    for (int i = 0; i < 2; i++) {
        uint8_t *bytes = f->bytes[batch->n] + 4 * i;
        store_u32(bytes, (uint32_t)row[i]);
        values[i] = value_of(bytes, 4);
    }
    batch->out[batch->n] = NULL;
    batch->values[batch->n++] = values;
}

static enum read_pull fake_next(struct read_op *op, struct read_batch *batch) {
    struct fake *f = (struct fake *)op;
    batch->n = 0;
    batch->view = NULL;
    assert_in_range(batch->most, 1, READ_BATCH);
    while (f->at < f->n && f->base.skip_partition && f->rows[f->at][0] == f->partition) f->at++;
    if (f->at == f->n) {
        f->base.page_end = f->ends_page;
        f->base.exhausted = !f->ends_page;
        return READ_END;
    }
    if (f->rows[f->at][0] == AGAIN) return f->at++, READ_AGAIN;
    if (f->partition != f->rows[f->at][0]) f->base.given = f->base.skip_partition = 0;
    f->partition = f->rows[f->at][0];
    while (f->at < f->n && f->rows[f->at][0] == f->partition && batch->n < batch->most)
        fake_add(f, f->rows[f->at++], batch);
    return READ_ROWS;
}

static void fake_unread(struct read_source *s) { ((struct fake *)s)->unread++; }
static void fake_position(const struct read_source *s, struct paging_state *out) { out->given = s->given; }
static const struct access_path fake_path = {.unread = fake_unread, .position = fake_position};

struct read_test {
    struct harness h;
    struct cql_run r;
    struct fake source;
    const struct select_plan *plan;
};

static int setup(void **state) {
    static struct read_test t;
    memset(&t, 0, sizeof(t));
    harness_open(&t.h, MODE_CASSANDRA);
    run_ok(&t.h, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run_ok(&t.h, "USE k");
    run_ok(&t.h, "CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))");
    t.source.base = (struct read_source){.op = {fake_next}, .path = &fake_path, .partition_limit = UINT64_MAX};
    *state = &t;
    return 0;
}

static int teardown(void **state) {
    struct read_test *t = *state;
    harness_close(&t->h);
    return 0;
}

/* The plan of a statement on t, kept in the arena. */
static void compile(struct read_test *t, const char *cql) {
    struct arena *a = &t->h.arena;
    arena_reset(a);
    struct ast_stmt *ast = cql_parse(a, slice_str(cql), true, &t->h.err);
    assert_non_null(ast);
    struct bind_specs binds = {0};
    struct cql_statement out = {0};
    const struct schema *schema = catalog_schema(t->h.catalog);
    struct compile c = {.arena = a, .schema = schema, .keyspace = "k", .binds = &binds, .err = &t->h.err};
    binds.specs = ARENA_ARRAY(a, 8, struct receiver);
    if (select_compile(&c, ast, &out)) fail_msg("%s: %s", cql, t->h.err.text);
    t->plan = out.plan;
    t->r = (struct cql_run){
        .arena = a, .err = &t->h.err, .now_us = 1, .eval = {.arena = a, .err = &t->h.err, .reading.now_us = 1}};
    schema_unref(schema);
}

#define set_rows(t, ...)                                                                              \
    do {                                                                                              \
        static const int32_t rows_[][2] = {__VA_ARGS__};                                              \
        memcpy((t)->source.rows, rows_, sizeof(rows_));                                               \
        (t)->source.n = sizeof(rows_) / sizeof(*rows_);                                               \
    } while (0)

/* Pulls dry; result rows as text, "|" where a part ended. n: values of a row. */
static const char *pull(struct read_op *op, uint32_t n, enum read_pull *last) {
    static char text[512];
    struct read_batch batch = {.most = READ_BATCH};
    size_t at = 0;
    text[0] = 0;
    while ((*last = read_next(op, &batch)) == READ_ROWS || *last == READ_AGAIN) {
        if (*last == READ_AGAIN) at += (size_t)snprintf(text + at, sizeof(text) - at, "| ");
        for (uint32_t row = 0; *last == READ_ROWS && row < batch.n; row++) {
            const struct value *values = batch.out[row] ? batch.out[row] : batch.values[row];
            for (uint32_t i = 0; i < n; i++) {
                long long v = value_is_null(values[i]) ? -1
                              : values[i].n == 4       ? (int32_t)load_u32(values[i].p)
                                                       : (int64_t)load_u64(values[i].p);
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%lld%s", v, i + 1 < n ? "," : " ");
            }
        }
        batch.most = READ_BATCH;
    }
    if (at) text[at - 1] = 0;
    return text;
}

static struct result_page page_over(struct read_test *t, struct read_op *below) {
    return (struct result_page){
        .op = {result_page_pull}, .below = below, .source = &t->source.base, .rows_left = UINT64_MAX};
}

static const struct read_spec unlimited = {.limit = UINT64_MAX, .partition_limit = UINT64_MAX};

static void test_filter_passes_so_many_rows_of_a_partition_and_then_skips_it(void **state) {
    struct read_test *t = *state;
    struct row_filter f;
    enum read_pull last;
    set_rows(t, {1, 1}, {1, 2}, {AGAIN, 0}, {2, 1}, {3, 1}, {3, 2}, {3, 3});
    t->source.base.partition_limit = 2;
    f = (struct row_filter){
        .op = {row_filter_next}, .below = &t->source.base.op, .source = &t->source.base, .counts = true};
    assert_string_equal(pull(&f.op, 2, &last), "1,1 1,2 | 2,1 3,1 3,2");
    assert_int_equal(last, READ_END);
}

static void test_filter_passes_the_first_row_of_a_partition_for_distinct(void **state) {
    struct read_test *t = *state;
    struct row_filter f;
    enum read_pull last;
    set_rows(t, {1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2});
    /* it does not count: an aggregate over partitions */
    f = (struct row_filter){
        .op = {row_filter_next}, .below = &t->source.base.op, .source = &t->source.base, .first_only = true};
    assert_string_equal(pull(&f.op, 2, &last), "1,1 2,1");
    assert_int_equal(t->source.base.given, 0);
}

static void test_group_hands_on_a_group_when_the_next_one_comes(void **state) {
    struct read_test *t = *state;
    struct row_group g;
    struct row_project p;
    enum read_pull last;
    compile(t, "SELECT k, c, count(*), sum(c) FROM t GROUP BY k");
    set_rows(t, {1, 5}, {AGAIN, 0}, {1, 6}, {2, 7}, {AGAIN, 0}, {3, 8}, {3, 9});
    assert_int_equal(row_group_init(&g, &t->source.base.op, &t->source.base, &t->r, t->plan, &unlimited), 0);
    assert_int_equal(row_project_init(&p, &g.op, &t->r, t->plan, 1), 0);
    assert_string_equal(pull(&p.op, 4, &last), "| 1,5,2,11 | 2,7,1,7 3,8,2,17");
    assert_int_equal(last, READ_END);
    assert_false(g.pending);
    row_group_fini(&g);
}

static void test_group_of_nothing_is_one_row_for_an_aggregate_and_none_for_group_by(void **state) {
    struct read_test *t = *state;
    enum read_pull last;
    for (int grouped = 0; grouped < 2; grouped++) {
        struct row_group g;
        struct row_project p;
        compile(t, grouped ? "SELECT count(*), max(c) FROM t GROUP BY k" : "SELECT count(*), max(c) FROM t");
        assert_int_equal(row_group_init(&g, &t->source.base.op, &t->source.base, &t->r, t->plan, &unlimited), 0);
        assert_int_equal(row_project_init(&p, &g.op, &t->r, t->plan, 1), 0);
        assert_string_equal(pull(&p.op, 2, &last), grouped ? "" : "0,-1");
        row_group_fini(&g);
    }
}

static void test_group_skips_the_partition_that_has_its_groups(void **state) {
    struct read_test *t = *state;
    struct row_group g;
    struct row_project p;
    enum read_pull last;
    struct read_spec spec = unlimited;
    spec.partition_limit = 1;
    compile(t, "SELECT k, c, count(*) FROM t GROUP BY k, c");
    set_rows(t, {1, 5}, {1, 5}, {1, 6}, {1, 7}, {2, 1});
    assert_int_equal(row_group_init(&g, &t->source.base.op, &t->source.base, &t->r, t->plan, &spec), 0);
    assert_int_equal(row_project_init(&p, &g.op, &t->r, t->plan, 1), 0);
    assert_string_equal(pull(&p.op, 3, &last), "1,5,2 2,1,1");
    row_group_fini(&g);
}

static void test_group_keeps_as_much_for_many_rows_as_for_few(void **state) {
    struct read_test *t = *state;
    size_t used[2];
    enum read_pull last;
    compile(t, "SELECT count(*), max(c), sum(c) FROM t");
    for (int many = 0; many < 2; many++) {
        struct row_group g;
        assert_int_equal(row_group_init(&g, &t->source.base.op, &t->source.base, &t->r, t->plan, &unlimited), 0);
        size_t before = t->h.arena.used;
        for (int round = 0; round < (many ? 400 : 1); round++) {
            set_rows(t, {1, 1}, {1, 2}, {1, 3}, {AGAIN, 0});
            t->source.at = 0;
            struct read_batch batch = {.most = READ_BATCH};
            while (read_next(&g.op, &batch) != READ_AGAIN) {}
        }
        (void)pull(&g.op, 0, &last);
        used[many] = g.keep.used + t->h.arena.used - before;
        row_group_fini(&g);
    }
    assert_int_equal(used[0], used[1]);
}

static void test_order_sorts_by_the_columns_named_and_keeps_the_order_of_equals(void **state) {
    struct read_test *t = *state;
    enum read_pull last;
    for (int reversed = 0; reversed < 2; reversed++) {
        struct row_project p;
        struct row_order o;
        compile(t, reversed ? "SELECT k, c FROM t WHERE k IN (1, 2) ORDER BY c DESC"
                            : "SELECT k, c FROM t WHERE k IN (1, 2) ORDER BY c");
        set_rows(t, {1, 2}, {1, 4}, {AGAIN, 0}, {2, 1}, {2, 2}, {3, 2});
        t->source.at = 0;
        assert_int_equal(row_project_init(&p, &t->source.base.op, &t->r, t->plan, READ_BATCH), 0);
        row_order_init(&o, &p.op, &t->r, t->plan);
        assert_string_equal(pull(&o.op, 2, &last), reversed ? "| 1,4 1,2 2,2 3,2 2,1" : "| 2,1 1,2 2,2 3,2 1,4");
        row_order_fini(&o);
    }
}

static void test_page_ends_behind_its_rows_and_says_where_the_next_one_goes_on(void **state) {
    struct read_test *t = *state;
    struct result_page page;
    struct paging_state next;
    enum read_pull last;
    set_rows(t, {1, 1}, {AGAIN, 0}, {1, 2}, {1, 3});
    page = page_over(t, &t->source.base.op);
    page.rows_left = 2;
    page.has_limit = true;
    page.limit_left = 3;
    assert_string_equal(pull(&page.op, 2, &last), "1,1 | 1,2");
    assert_true(result_page_next(&page, &next) && next.has_limit);
    assert_int_equal(next.limit_left, 1);
    assert_int_equal(t->source.unread, 0);
}

static void test_page_with_the_last_row_of_limit_is_the_last(void **state) {
    struct read_test *t = *state;
    struct result_page page;
    struct paging_state next;
    enum read_pull last;
    set_rows(t, {1, 1}, {1, 2}, {1, 3});
    page = page_over(t, &t->source.base.op);
    page.rows_left = 2;
    page.has_limit = true;
    page.limit_left = 2;
    assert_string_equal(pull(&page.op, 2, &last), "1,1 1,2");
    assert_false(result_page_next(&page, &next));
    assert_int_equal(t->source.at, 2); /* nothing behind it was read */
}

static void test_page_that_ends_by_what_was_read_is_followed_by_another(void **state) {
    struct read_test *t = *state;
    struct result_page page;
    struct paging_state next;
    enum read_pull last;
    set_rows(t, {1, 1});
    t->source.ends_page = true;
    page = page_over(t, &t->source.base.op);
    assert_string_equal(pull(&page.op, 2, &last), "1,1");
    assert_true(result_page_next(&page, &next));
}

static void test_page_gives_the_row_of_the_next_group_back(void **state) {
    struct read_test *t = *state;
    struct row_group g;
    struct row_project p;
    struct result_page page;
    struct paging_state next;
    enum read_pull last;
    struct read_spec spec = unlimited;
    spec.may_unread = true;
    compile(t, "SELECT k, count(*) FROM t GROUP BY k");
    set_rows(t, {1, 1}, {1, 2}, {2, 1}, {3, 1});
    assert_int_equal(row_group_init(&g, &t->source.base.op, &t->source.base, &t->r, t->plan, &spec), 0);
    assert_int_equal(row_project_init(&p, &g.op, &t->r, t->plan, 1), 0);
    page = page_over(t, &p.op);
    page.group = &g;
    page.rows_left = 2;
    assert_string_equal(pull(&page.op, 2, &last), "1,2 2,1");
    assert_true(result_page_next(&page, &next));
    assert_int_equal(t->source.unread, 1);
    assert_int_equal(t->source.at, 4); /* the row of the next group was the last one read */
    row_group_fini(&g);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_filter_passes_so_many_rows_of_a_partition_and_then_skips_it),
        T(test_filter_passes_the_first_row_of_a_partition_for_distinct),
        T(test_group_hands_on_a_group_when_the_next_one_comes),
        T(test_group_of_nothing_is_one_row_for_an_aggregate_and_none_for_group_by),
        T(test_group_skips_the_partition_that_has_its_groups),
        T(test_group_keeps_as_much_for_many_rows_as_for_few),
        T(test_order_sorts_by_the_columns_named_and_keeps_the_order_of_equals),
        T(test_page_ends_behind_its_rows_and_says_where_the_next_one_goes_on),
        T(test_page_with_the_last_row_of_limit_is_the_last),
        T(test_page_that_ends_by_what_was_read_is_followed_by_another),
        T(test_page_gives_the_row_of_the_next_group_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
