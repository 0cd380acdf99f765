/* What a loop does not find in memory is looked for on a worker, from the beginning: wherever the
 * first try ends, the answer and its cost are those of a try that is not hindered. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

enum { SECOND_US = 1000000 };
static const int64_t START_US = 1700000000000000, FAR = 1 << 30;

static const char *const tables[] = {
    "CREATE TABLE t (p int, q double, c time, d boolean, v int, w text, l list<int>, m map<text, int>, s text static, "
    "PRIMARY KEY ((p, q), c, d)) "
    "WITH CLUSTERING ORDER BY (c DESC, d ASC)",
    "CREATE TABLE r (p int, c int, v int, s int static, PRIMARY KEY (p, c))",
    "CREATE TABLE n (p int, c int, k counter, PRIMARY KEY (p, c))",
    "CREATE TABLE x (p int PRIMARY KEY, v int, w set<int>)",
    "CREATE TABLE a (p int, c int, v int, l list<int>, s int static, PRIMARY KEY (p, c))",
    "CREATE TABLE b (p int, c int, v int, l list<int>, s int static, PRIMARY KEY (p, c))",
    "CREATE TABLE an (p int, c int, k counter, PRIMARY KEY (p, c))",
    "CREATE TABLE bn (p int, c int, k counter, PRIMARY KEY (p, c))",
    NULL,
};

/* Partitions: live and dead rows below deletions of every kind; a static row alone; a deletion
 * alone; rows that expire. */
static const char *const loads[] = {
    "INSERT INTO t (p, q, c, d, v, w, l, m, s) VALUES (0, -1.5, '00:00:00', true, 1, 'a', [1, 2], {'a': 1, 'b': 2}, "
    "'x') USING TIMESTAMP 7",
    "INSERT INTO t (p, q, c, d, v) VALUES (0, -1.5, '12:30:00', false, 2) USING TIMESTAMP 10",
    "INSERT INTO t (p, q, c, d, v) VALUES (0, -1.5, '12:30:00', true, 3) USING TIMESTAMP 2",
    "INSERT INTO t (p, q, c, d, v) VALUES (0, -1.5, '23:59:59.999999999', true, 4) USING TIMESTAMP 1",
    "UPDATE t USING TIMESTAMP 8 SET m['a'] = 9, l = l + [3] WHERE p = 0 AND q = -1.5 AND c = '00:00:00' AND d = true",
    "INSERT INTO t (p, q, s) VALUES (1, -1.5, 'alone') USING TIMESTAMP 3",
    "INSERT INTO t (p, q, c, d, v, s) VALUES (2, -1.5, '00:00:00', true, 5, 'dead') USING TIMESTAMP 3",
    "INSERT INTO t (p, q, c, d, v, s) VALUES (2, -1.5, '00:00:00', false, 6, 'live') USING TIMESTAMP 9",
    "DELETE FROM t USING TIMESTAMP 5 WHERE p = 2 AND q = -1.5",
    "DELETE FROM t USING TIMESTAMP 6 WHERE p = 0 AND q = -1.5 AND c = '12:30:00' AND d = true",
    "DELETE FROM t USING TIMESTAMP 4 WHERE p = 0 AND q = -1.5 AND c > '13:00:00'",
    "DELETE FROM t USING TIMESTAMP 4 WHERE p = 3 AND q = -1.5",
    "INSERT INTO t (p, q, c, d, v, s) VALUES (4, -1.5, '01:00:00', true, 5, 'soon') USING TTL 10",
    "INSERT INTO t (p, q, c, d, v, w) VALUES (4, -1.5, '02:00:00', true, 5, 'kept')",
    "UPDATE t USING TTL 10 SET w = 'soon', v = 8 WHERE p = 4 AND q = -1.5 AND c = '03:00:00' AND d = false",
    "INSERT INTO r (p, c, v, s) VALUES (1, 0, 0, 1) USING TIMESTAMP 1",
    "INSERT INTO x (p, v, w) VALUES (1, 1, {1, 2, 3}) USING TIMESTAMP 3",
    "INSERT INTO x (p, v) VALUES (2, 2) USING TIMESTAMP 3",
    "DELETE FROM x USING TIMESTAMP 4 WHERE p = 2",
    "UPDATE n SET k = k + 3 WHERE p = 1 AND c = 1",
    "UPDATE n SET k = k - 5 WHERE p = 1 AND c = 2",
    "UPDATE n SET k = k + 1 WHERE p = 1 AND c = 1",
    NULL,
};

#define OF_ZERO "FROM t WHERE p = 0 AND q = -1.5"
#define OF_ALL "FROM t WHERE p IN (0, 2, 2, 4, 1, 3, 0) AND q = -1.5"

static const char *const reads[] = {
    "SELECT w, q, min('a'), avg(p) " OF_ZERO " AND (c) IN (('00:00:00'), ('00:00:00')) ORDER BY c ASC LIMIT 3",
    "SELECT w, q, min('a'), avg(p) " OF_ZERO " AND (c) IN (('00:00:00'), ('00:00:00')) ORDER BY c DESC LIMIT 3",
    "SELECT * " OF_ZERO,
    "SELECT * " OF_ZERO " ORDER BY c ASC, d DESC",
    "SELECT v, s " OF_ZERO " AND c = '00:00:00' AND d = true",
    "SELECT v " OF_ZERO " AND c = '00:00:00' AND d = true",
    "SELECT v " OF_ZERO " AND c = '12:30:00' AND d IN (true, false, true)",
    "SELECT v, WRITETIME(v) " OF_ZERO
    " AND (c, d) IN (('00:00:00', true), ('12:30:00', false), ('00:00:00', true)) ORDER BY c ASC LIMIT 2",
    "SELECT v, s " OF_ZERO " AND c > '00:00:00' AND c <= '12:30:00' ORDER BY c ASC",
    "SELECT v " OF_ZERO " AND c >= '00:00:00' AND c < '23:00:00' LIMIT 1",
    "SELECT v " OF_ZERO " AND c IN ('12:30:00', '00:00:00', '07:00:00', '12:30:00') ORDER BY c ASC",
    "SELECT v " OF_ZERO " AND c IN ('12:30:00', '00:00:00') AND d >= false PER PARTITION LIMIT 2",
    "SELECT count(*), max(v), sum(v) " OF_ZERO,
    "SELECT c, count(*), max(w) " OF_ZERO " GROUP BY c",
    "SELECT c, count(v) " OF_ZERO " GROUP BY p, q, c ORDER BY c ASC LIMIT 1",
    "SELECT m['a'], l, m " OF_ZERO " AND c = '00:00:00'",
    "SELECT v " OF_ZERO " AND v > 1 ALLOW FILTERING",
    "SELECT DISTINCT p, q, s FROM t",
    "SELECT DISTINCT p, q, s " OF_ZERO,
    "SELECT s, v FROM t WHERE p = 1 AND q = -1.5",
    "SELECT s, v FROM t WHERE p = 1 AND q = -1.5 ORDER BY c ASC",
    "SELECT s, v FROM t WHERE p = 1 AND q = -1.5 AND c = '00:00:00' AND d = true",
    "SELECT d, v, s FROM t WHERE p = 2 AND q = -1.5",
    "SELECT d, v, s FROM t WHERE p = 2 AND q = -1.5 AND c = '00:00:00' AND d IN (false, true) ORDER BY c ASC",
    "SELECT v FROM t WHERE p = 2 AND q = -1.5 AND c = '00:00:00' AND d = true",
    "SELECT v, s FROM t WHERE p = 3 AND q = -1.5",
    "SELECT v, s, TTL(w) FROM t WHERE p = 4 AND q = -1.5",
    "SELECT v, w FROM t WHERE p = 4 AND q = -1.5 AND c = '01:00:00' AND d = true",
    "SELECT v, s FROM t WHERE p = 4 AND q = -1.5 AND c = '01:00:00' AND d = true",
    "SELECT v, w FROM t WHERE p = 4 AND q = -1.5 ORDER BY c ASC LIMIT 1",
    "SELECT p, v, s " OF_ALL,
    "SELECT p, c, v " OF_ALL " AND c IN ('00:00:00', '00:00:00', '12:30:00')",
    "SELECT p, count(v) " OF_ALL " GROUP BY p, q",
    "SELECT p, v " OF_ALL " PER PARTITION LIMIT 1 LIMIT 2",
    "SELECT p, v FROM t",
    "SELECT p, v FROM t WHERE token(p, q) > 0 LIMIT 3",
    "SELECT p, c, v, s FROM r",
    "SELECT c, v FROM r WHERE p = 1",
    "SELECT c, v FROM r WHERE p = 1 ORDER BY c DESC LIMIT 7",
    "SELECT c, v, s FROM r WHERE p = 1 AND c = 41",
    "SELECT c, v FROM r WHERE p = 1 AND c = 41",
    "SELECT c, v FROM r WHERE p = 1 AND c IN (40, 41, 41, 3) ORDER BY c DESC",
    "SELECT count(*), max(c) FROM r WHERE p = 1 AND c > 20",
    "SELECT c, k FROM n WHERE p = 1",
    "SELECT k FROM n WHERE p = 1 AND c = 1",
    "SELECT k FROM n WHERE p = 1 AND c IN (2, 2, 1, 9) ORDER BY c DESC",
    "SELECT * FROM x WHERE p = 1",
    "SELECT * FROM x WHERE p = 2",
    "SELECT v FROM x WHERE p IN (1, 2, 1, 3)",
    "SELECT count(*) FROM x",
};

/* @ is the table's name. The second statement is looked at; the first leads up to it. */
static const struct change {
    const char *before, *cql;
} changes[] = {
    {"INSERT INTO @ (p, c, v, s) VALUES (1, 1, 1, 1)", "UPDATE @ SET v = 2 WHERE p = 1 AND c = 1 IF v = 1"},
    {"INSERT INTO @ (p, c, v, s) VALUES (1, 1, 1, 1)", "UPDATE @ SET v = 2 WHERE p = 1 AND c = 1 IF v = 9 AND s = 1"},
    {"DELETE FROM @ WHERE p = 1", "INSERT INTO @ (p, c, v) VALUES (1, 1, 9) IF NOT EXISTS"},
    {"INSERT INTO @ (p, c, v, s) VALUES (1, 1, 1, 1)", "INSERT INTO @ (p, c, v) VALUES (1, 1, 9) IF NOT EXISTS"},
    {"INSERT INTO @ (p, c, v) VALUES (1, 2, 1)", "DELETE FROM @ WHERE p = 1 AND c = 2 IF EXISTS"},
    {"DELETE FROM @ WHERE p = 1 AND c > 1", "UPDATE @ SET v = 3 WHERE p = 1 AND c = 2 IF EXISTS"},
    {"INSERT INTO @ (p, s) VALUES (2, 5)", "UPDATE @ SET s = 6 WHERE p = 2 IF s = 5"},
    {"INSERT INTO @ (p, s) VALUES (2, 5)", "INSERT INTO @ (p, c, v) VALUES (2, 3, 4) IF NOT EXISTS"},
    {"UPDATE @ SET l = [1, 2, 3, 2] WHERE p = 3 AND c = 1", "UPDATE @ SET l[1] = 9 WHERE p = 3 AND c = 1"},
    {"UPDATE @ SET l = [1, 2, 3, 2] WHERE p = 3 AND c = 1", "DELETE l[0] FROM @ WHERE p = 3 AND c = 1"},
    {"UPDATE @ SET l = [1, 2, 3, 2] WHERE p = 3 AND c = 1", "UPDATE @ SET l = l - [2] WHERE p = 3 AND c = 1"},
    {"INSERT INTO @ (p, c, v, s) VALUES (4, 1, 1, 1)",
     "BEGIN BATCH UPDATE @ SET v = 5 WHERE p = 4 AND c = 1 IF v = 1; INSERT INTO @ (p, c, v) VALUES (4, 2, 2); UPDATE "
     "@ SET s = 3 WHERE p = 4 IF s = 1; APPLY BATCH"},
    {"INSERT INTO @ (p, c, v, l) VALUES (5, 1, 1, [1, 2])", "UPDATE @ SET v = 2 WHERE p = 5 AND c = 1"},
    {"INSERT INTO @ (p, c, v, l, s) VALUES (5, 1, 1, [1, 2], 7)", "UPDATE @ SET v = null, s = 4 WHERE p = 5 AND c = 1"},
    {"DELETE FROM @ WHERE p = 5 AND c = 1", "INSERT INTO @ (p, c, v) VALUES (5, 1, 1)"},
    {"DELETE FROM @ WHERE p = 5", "UPDATE @ SET l = l + [3] WHERE p = 5 AND c = 1"},
    {"INSERT INTO @ (p, c, v, l, s) VALUES (5, 1, 1, [1, 2], 7)", "DELETE FROM @ WHERE p = 5 AND c = 1"},
    {"INSERT INTO @ (p, c, v, l, s) VALUES (5, 1, 1, [1, 2], 7)",
     "BEGIN BATCH UPDATE @ SET v = 5 WHERE p = 5 AND c = 1; DELETE v FROM @ WHERE p = 5 AND c = 2; UPDATE @ SET s = 3 "
     "WHERE p = 5; APPLY BATCH"},
    {"UPDATE @n SET k = k + 1 WHERE p = 1 AND c = 1", "UPDATE @n SET k = k + 10 WHERE p = 1 AND c = 1"},
    {"UPDATE @n SET k = k + 1 WHERE p = 1 AND c = 2",
     "BEGIN COUNTER BATCH UPDATE @n SET k = k + 10 WHERE p = 1 AND c = 1; UPDATE @n SET k = k - 1 WHERE p = 1 AND c = "
     "2; APPLY BATCH"},
};

/* Keyspaces refuses some of it; then it is not there. */
static void load(struct harness *h) {
    char cql[128];
    for (const char *const *s = loads; *s; s++)
        if (harness_run(h, *s, 0, NULL) == CQL_FAILED && h->mode == MODE_CASSANDRA) fail_msg("%s: %s", *s, h->err.text);
    for (int i = 0; i < 60; i++) { /* more deletions of ranges than a loop looks at one by one */
        snprintf(cql, sizeof(cql), "INSERT INTO r (p, c, v) VALUES (1, %d, %d) USING TIMESTAMP %d", i, i, i % 3 + 1);
        run_ok(h, cql);
        snprintf(cql, sizeof(cql), "DELETE FROM r USING TIMESTAMP 2 WHERE p = 1 AND c >= %d AND c < %d", 2 * i,
                 2 * i + 1);
        if (i % 2 && harness_run(h, cql, 0, NULL) == CQL_FAILED) assert_int_equal(h->mode, MODE_KEYSPACES);
    }
    h->clock.now_us += 20 * SECOND_US;
}

static struct harness *new_loaded(enum tally_mode mode) {
    struct harness *h = harness_new(mode, tables);
    load(h);
    return h;
}

static void add_answer(struct harness *h, enum cql_outcome outcome, struct buf *out) {
    char costs[160];
    snprintf(costs, sizeof(costs), " (%llu rows of %llu bytes, %llu tombstones, %llu partitions, class %d)\n",
             (unsigned long long)h->cost.rows_read, (unsigned long long)h->cost.bytes_read,
             (unsigned long long)h->cost.tombstones, (unsigned long long)h->cost.partitions, h->cost.query_class);
    buf_put_str(out, outcome == CQL_FAILED ? h->err.text : (const char *)h->rows.p);
    if (outcome != CQL_FAILED) buf_put_str(out, costs);
}

/* One statement, on a loop and, when it is given up there, on a worker. How often it was given up. */
static unsigned run(struct harness *h, const char *cql, bool on_loop, enum cql_outcome *outcome) {
    struct buf state;
    uint64_t seq;
    buf_init(&state, 0);
    buf_put_slice(&state, buf_slice(&h->paging));
    h->on_loop = on_loop;
    *outcome = harness_run(h, cql, 0, NULL);
    h->on_loop = false;
    bool given_up = *outcome == CQL_OFFLOAD;
    if (given_up) {
        assert_int_equal(h->n_rows, 0);
        assert_true(eng_batch_empty(h->batch));
        assert_int_equal(h->paging.n, 0);
        buf_put_slice(&h->paging, buf_slice(&state));
        *outcome = harness_run(h, cql, 0, NULL);
    }
    assert_int_not_equal(*outcome, CQL_OFFLOAD);
    if (!eng_batch_empty(h->batch)) assert_int_equal(eng_batch_commit(h->batch, &seq, &h->err), 0);
    buf_fini(&state);
    return given_up;
}

/* All pages with what they cost. */
static unsigned read_all(struct harness *h, const char *cql, bool on_loop, struct buf *out) {
    enum cql_outcome outcome;
    unsigned given_up = 0;
    buf_clear(out, 1 << 20);
    buf_clear(&h->paging, 1 << 20);
    h->resume = false;
    do {
        given_up += run(h, cql, on_loop, &outcome);
        add_answer(h, outcome, out);
        h->resume = h->paging.n > 0;
    } while (h->resume && outcome != CQL_FAILED);
    h->resume = false;
    buf_u8(out, 0);
    return given_up;
}

/* The read is hindered at its nth step, for every n. */
static unsigned read_hindered(struct harness *h, const char *cql, const char *whole, struct buf *got) {
    enum { PAGED_STEPS = 12 };
    unsigned n = 1, given_up = 0;
    for (bool hit = true; hit && (!h->page_size || n <= PAGED_STEPS); n++) {
        fault_arm(FAULT_KV_COLD, n);
        given_up += read_all(h, cql, true, got);
        hit = fault_left(FAULT_KV_COLD) == 0;
        fault_arm(FAULT_KV_COLD, 0);
        if (strcmp(whole, (const char *)got->p))
            fail_msg("%s, step %u: instead of\n%s it is\n%s", cql, n, whole, (const char *)got->p);
    }
    return given_up;
}

static void test_reads_are_the_same_wherever_the_loop_gives_up(void **state) {
    struct harness *h = *state;
    struct buf whole, got;
    unsigned given_up = 0;
    buf_init(&whole, 0);
    buf_init(&got, 0);
    for (size_t i = 0; i < ARRAY_LEN(reads); i++)
        for (h->page_size = 0; h->page_size < 4; h->page_size += 2) {
            (void)read_all(h, reads[i], false, &whole);
            given_up += read_hindered(h, reads[i], (const char *)whole.p, &got);
        }
    assert_in_range(given_up, 2 * ARRAY_LEN(reads), FAR); /* most are at several steps */
    buf_fini(&whole);
    buf_fini(&got);
}

static void on_table(const char *cql, const char *name, char *out, size_t size) {
    size_t n = 0;
    for (; *cql; cql++) n += (size_t)snprintf(out + n, size - n, *cql == '@' ? "%s" : "%.1s", *cql == '@' ? name : cql);
    assert_in_range(n, 1, size - 1);
}

static void add_charges(const struct harness *h, struct buf *out) {
    char text[160];
    for (const struct op_write *w = h->cost.writes; w; w = w->next) {
        const struct op_image *stood = &w->image;
        snprintf(text, sizeof(text),
                 " (kind %d of %llu and %llu bytes; it stood %d: %llu rows of %llu bytes, statics of %llu)", w->kind,
                 (unsigned long long)w->row.bytes, (unsigned long long)w->statics.bytes, stood->known,
                 (unsigned long long)stood->row.rows, (unsigned long long)stood->row.bytes,
                 (unsigned long long)stood->statics.bytes);
        buf_put_str(out, text);
    }
}

static void change(struct harness *h, const struct change *c, const char *name, int64_t nth, struct buf *out) {
    static const char *const contents[] = {"SELECT * FROM @", "SELECT * FROM @n"};
    char cql[512];
    enum cql_outcome outcome;
    buf_clear(out, 1 << 20);
    on_table(c->before, name, cql, sizeof(cql));
    run_ok(h, cql);
    h->clock.now_us += SECOND_US;
    on_table(c->cql, name, cql, sizeof(cql));
    fault_arm(FAULT_KV_COLD, nth);
    (void)run(h, cql, nth > 0, &outcome);
    if (outcome != CQL_FAILED && h->n_rows) buf_put_str(out, (const char *)h->rows.p);
    if (outcome == CQL_FAILED) buf_put_str(out, h->err.text);
    add_charges(h, out);
    for (size_t i = 0; i < ARRAY_LEN(contents); i++) {
        on_table(contents[i], name, cql, sizeof(cql));
        buf_put_str(out, "; ");
        buf_put_str(out, harness_query(h, cql));
    }
    buf_u8(out, 0);
}

static void test_writes_that_read_are_the_same_wherever_the_loop_gives_up(void **state) {
    struct harness *h = *state;
    struct buf whole, got;
    unsigned steps = 0;
    buf_init(&whole, 0);
    buf_init(&got, 0);
    h->write_size = WRITE_SIZE_ROW; /* for which rows are read that are only written otherwise */
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        bool hit = true;
        for (int64_t n = 1; hit; n++) {
            change(h, &changes[i], "b", 0, &whole);
            change(h, &changes[i], "a", n, &got);
            hit = fault_left(FAULT_KV_COLD) == 0;
            fault_arm(FAULT_KV_COLD, 0);
            steps += hit;
            if (strcmp((const char *)whole.p, (const char *)got.p))
                fail_msg("%s, step %lld: instead of\n%s it is\n%s", changes[i].cql, (long long)n, (const char *)whole.p,
                         (const char *)got.p);
        }
    }
    /* most are at several steps; what reads a list leaves the loop before */
    assert_in_range(steps, ARRAY_LEN(changes), FAR);
    buf_fini(&whole);
    buf_fini(&got);
}

/* ---- large rows: a worker reads them in parts, and each is a block of a table file ---- */

enum { LARGE = 20 };

static void load_large(struct harness *h, size_t bytes) {
    char *value = test_calloc(1, bytes + 1);
    struct value bound[2];
    uint8_t id[16], c[4];
    memset(value, 'v', bytes);
    run_ok(h, "CREATE TABLE k.large (p int, c int, s int static, v text, PRIMARY KEY (p, c))");
    run_ok(h, "INSERT INTO k.large (p, s) VALUES (1, 5)");
    harness_prepare(h, "INSERT INTO k.large (p, c, v) VALUES (1, ?, ?)", id);
    for (uint32_t i = 0; i < LARGE; i++) {
        store_u32(c, i);
        bound[0] = value_of(c, 4), bound[1] = value_of(value, (int32_t)bytes);
        assert_int_not_equal(harness_execute(h, id, 2, bound), CQL_FAILED);
    }
    run_ok(h, "DELETE FROM k.large WHERE p = 1 AND c = 7");
    run_ok(h, "DELETE FROM k.large WHERE p = 1 AND c >= 11 AND c < 13");
    h->clock.now_us += SECOND_US;
    test_free(value);
}

#define OF_LARGE "FROM k.large WHERE p = 1"

static const struct large_read {
    const char *cql, *rows;
    bool one; /* row, which is no part of a read */
} large_reads[] = {
    {"SELECT c " OF_LARGE, "0;1;2;3;4;5;6;8;9;10;13;14;15;16;17;18;19", false},
    {"SELECT c, s " OF_LARGE " ORDER BY c DESC LIMIT 9", "19,5;18,5;17,5;16,5;15,5;14,5;13,5;10,5;9,5", false},
    {"SELECT count(*), min(c), max(c), max(s) " OF_LARGE, "17,0,19,5", false},
    {"SELECT count(*), min(c) " OF_LARGE " AND c > 3 AND c <= 16 ORDER BY c DESC", "10,4", false},
    {"SELECT c, count(*) " OF_LARGE " GROUP BY c LIMIT 8", "0,1;1,1;2,1;3,1;4,1;5,1;6,1;8,1", false},
    {"SELECT c " OF_LARGE " AND c IN (19, 3, 7, 12, 3, 5, 1, 0, 2, 4, 19) ORDER BY c DESC", "19;5;4;3;2;1;0", false},
    {"SELECT p, sum(c) FROM k.large GROUP BY p", "1,160", false},
    {"SELECT DISTINCT p, s FROM k.large", "1,5", false},
    {"SELECT c, s " OF_LARGE " AND c = 9", "9,5", true},
    {"SELECT c " OF_LARGE " AND c = 11", "", true},
    {"SELECT count(c), min(c) " OF_LARGE " AND c IN (9, 9)", "1,9", true},
    {"SELECT count(c), min(c) " OF_LARGE " AND c IN (9, 9) ORDER BY c DESC LIMIT 3", "1,9", true},
};

static void test_reads_in_parts_are_the_same(void **state) {
    struct harness *h = *state;
    load_large(h, 300 << 10);
    for (size_t i = 0; i < ARRAY_LEN(large_reads); i++) {
        const struct large_read *r = &large_reads[i];
        assert_rows(h, r->cql, r->rows);
        if (r->one) assert_int_equal(h->n_parts, 1);
        else assert_in_range(h->n_parts, 2, LARGE);
        uint64_t read = h->cost.rows_read;
        bool hit = true;
        for (int64_t n = 1; hit; n++) {
            enum cql_outcome outcome;
            fault_arm(FAULT_KV_COLD, n);
            (void)run(h, r->cql, true, &outcome);
            hit = fault_left(FAULT_KV_COLD) == 0;
            fault_arm(FAULT_KV_COLD, 0);
            assert_string_equal((const char *)h->rows.p, r->rows);
            assert_int_equal(h->cost.rows_read, read);
        }
    }
}

/* ---- table files, and hardly anything of them in memory ---- */

static char dir[64];

static int setup_files(void **state) {
    struct harness *h = test_calloc(1, sizeof(*h));
    strcpy(dir, "/tmp/tally-cold-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    harness_open_in(h, MODE_CASSANDRA, dir, START_US);
    run_ok(h, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run_ok(h, "USE k");
    for (const char *const *t = tables; *t; t++) run_ok(h, *t);
    load(h);
    *state = h;
    return 0;
}

static int teardown_files(void **state) {
    char command[96];
    harness_teardown(state);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

static unsigned read_large_cold(struct harness *h) {
    char warm[64];
    unsigned given_up = 0;
    enum cql_outcome outcome;
    for (int k = 0; k < LARGE; k += 3)
        for (size_t i = 0; i < ARRAY_LEN(large_reads); i++) {
            snprintf(warm, sizeof(warm), "SELECT c FROM k.large WHERE p = 1 AND c = %d", k);
            run_ok(h, warm);
            given_up += run(h, large_reads[i].cql, true, &outcome);
            if (strcmp((const char *)h->rows.p, large_reads[i].rows))
                fail_msg("%s, %d in memory: instead of %s it is %s", large_reads[i].cql, k, large_reads[i].rows,
                         (const char *)h->rows.p);
        }
    return given_up;
}

static void test_reads_of_table_files_are_the_same(void **state) {
    static const size_t caches[] = {1, 40 << 10, 200 << 10};
    struct harness *h = *state;
    struct buf whole, got;
    unsigned given_up = 0;
    buf_init(&whole, 0);
    buf_init(&got, 0);
    harness_restart(h, h->clock.now_us); /* what is in memory becomes a table file */
    load_large(h, 20 << 10);
    for (size_t c = 0; c < ARRAY_LEN(caches); c++) {
        harness_restart_cold(h, h->clock.now_us, caches[c]);
        run_ok(h, "USE k");
        for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
            h->page_size = (int32_t)(i + c) % 3;
            unsigned cold = read_all(h, reads[i], true, &got);
            (void)read_all(h, reads[i], false, &whole);
            assert_string_equal((const char *)got.p, (const char *)whole.p);
            given_up += cold;
        }
        h->page_size = 0;
        assert_in_range(given_up, 1, FAR);
        given_up = 0;
        assert_in_range(read_large_cold(h), LARGE, FAR);
    }
    buf_fini(&whole);
    buf_fini(&got);
}

static int setup_cassandra(void **state) {
    *state = new_loaded(MODE_CASSANDRA);
    return 0;
}

static int setup_keyspaces(void **state) {
    *state = new_loaded(MODE_KEYSPACES);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads_are_the_same_wherever_the_loop_gives_up, setup_cassandra,
                                        harness_teardown),
        cmocka_unit_test_setup_teardown(test_reads_are_the_same_wherever_the_loop_gives_up, setup_keyspaces,
                                        harness_teardown),
        cmocka_unit_test_setup_teardown(test_writes_that_read_are_the_same_wherever_the_loop_gives_up, setup_cassandra,
                                        harness_teardown),
        cmocka_unit_test_setup_teardown(test_writes_that_read_are_the_same_wherever_the_loop_gives_up, setup_keyspaces,
                                        harness_teardown),
        cmocka_unit_test_setup_teardown(test_reads_in_parts_are_the_same, setup_cassandra, harness_teardown),
        cmocka_unit_test_setup_teardown(test_reads_of_table_files_are_the_same, setup_files, teardown_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
