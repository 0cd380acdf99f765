/* What operations of the store cost: rows per second, and processor time of the client and of the OSDs per row.
 *
 *     rados_bench [THREADS [ROWS_PER_THREAD]]
 *     rados_bench queue [ROWS [COMMAND]]
 *     rados_bench downwards [ROWS]
 *     rados_bench splits RATE [SECONDS]
 *
 * downwards: the last rows of wide partitions, and those in front of a random key, for some kinds of clustering keys.
 * queue: a wide partition whose rows are written at its end and removed at its front. COMMAND runs before the last
 * reads.
 * splits: RATE rows a second, in writes of 50 rows over 40,000 partitions of a new table. Each second it prints the
 * number of rows written, of splits done and of shards that wait for a split, and the keys of the largest shard. While
 * splits keep up, the last two numbers do not grow.
 * On the cluster of TALLY_RADOS_CONF (tests/rados/cluster.py start). The rows have 100 bytes. Times depend on what else
 * the machine does; processor time depends on it least.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "engine/rados/iter.h"
#include "engine/rados/move.h"
#include "engine/stats.h"
#include "harness.h"

enum { VALUE = 100, THREADS_MAX = 256, LOADED = 40000 };

static struct rados *store;
static uint32_t table;
static int n_threads = 64, per_thread = 500;

struct worker {
    pthread_t thread;
    uint64_t random;
    uint32_t number, rows; /* rows in one group */
    bool in_order;         /* from the row next on; else random ones */
    uint32_t next;
    void (*step)(struct worker *w);
};

static uint32_t pick(struct worker *w, uint32_t n) {
    w->random ^= w->random << 13, w->random ^= w->random >> 7, w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 20) % n;
}

static void fail(const char *what, const struct err *e) {
    fprintf(stderr, "%s: %s\n", what, e->text);
    exit(1);
}

static void write_rows(struct worker *w, uint32_t partition, bool conditional) {
    struct write_change changes[64];
    struct buf prefix, keys[64];
    struct read_result r;
    struct arena a;
    struct err e = {0};
    uint8_t value[VALUE];
    memset(value, 'v', sizeof(value));
    arena_init(&a, 1 << 12, 0);
    buf_init(&prefix, 0);
    harness_prefix(&prefix, table, partition);
    for (uint32_t i = 0; i < w->rows; i++) {
        uint8_t row[4];
        store_u32(row, w->in_order ? w->next++ : pick(w, 1 << 30));
        buf_init(&keys[i], 0);
        harness_key(&keys[i], table, partition, ENGI_ROW, slice_of(row, 4));
        changes[i] =
            (struct write_change){.kind = WRITE_APPEND, .key = buf_slice(&keys[i]), .value = slice_of(value, VALUE)};
    }
    struct slice key = buf_slice(&keys[0]), seen = slice_of("", 0);
    struct write_group g = {.prefix = buf_slice(&prefix), .changes = changes, .n = w->rows};
    do {
        if (conditional) {
            if (read_partition(store, g.prefix, &key, 1, &a, &r, &e) < 0) fail("read", &e);
            if (r.ballot.n) seen = r.ballot;
            g.expected = &seen;
            g.ballot = slice_of(value, 8);
            store_u32(value, w->number), store_u32(value + 4, pick(w, UINT32_MAX));
        }
        if (write_groups(store, &g, 1, &e) < 0) fail("write", &e);
    } while (g.result == WRITE_CHANGED);
    buf_fini(&prefix);
    for (uint32_t i = 0; i < w->rows; i++) buf_fini(&keys[i]);
    arena_fini(&a);
}

static void spread(struct worker *w) { write_rows(w, pick(w, LOADED), false); }
static void conditional(struct worker *w) { write_rows(w, pick(w, LOADED), true); }
static void one_partition(struct worker *w) { write_rows(w, LOADED + 1, false); }
static void get(struct worker *w) {
    struct buf prefix, key;
    struct read_result r;
    struct arena a;
    struct err e = {0};
    uint32_t partition = pick(w, LOADED);
    arena_init(&a, 1 << 12, 0);
    buf_init(&prefix, 0);
    buf_init(&key, 0);
    harness_prefix(&prefix, table, partition);
    harness_key(&key, table, partition, ENGI_ROW, slice_of("\0\0\0\1", 4));
    struct slice row = buf_slice(&key);
    if (read_partition(store, buf_slice(&prefix), &row, 1, &a, &r, &e) < 0) fail("read", &e);
    buf_fini(&prefix);
    buf_fini(&key);
    arena_fini(&a);
}

/* Takes rows of a wide partition in order, from a random key on. */
static void take_slice(struct worker *w, bool expects) {
    struct buf prefix, from, to;
    struct cursor c;
    const struct record *r;
    struct err e = {0};
    uint8_t row[4];
    store_u32(row, pick(w, 1 << 30));
    buf_init(&prefix, 0);
    buf_init(&from, 0);
    buf_init(&to, 0);
    harness_prefix(&prefix, table, LOADED + 1);
    harness_key(&from, table, LOADED + 1, ENGI_ROW, slice_of(row, 4));
    harness_key(&to, table, LOADED + 1, ENGI_PAST, slice_of("", 0));
    cursor_init(&c, store, table, buf_slice(&prefix), buf_slice(&from), buf_slice(&to));
    if (expects) cursor_expect(&c, w->rows);
    for (uint32_t i = 0; i < w->rows; i++)
        if (cursor_next(&c, &r, &e) < 0) fail("cursor", &e);
    cursor_fini(&c);
    buf_fini(&prefix);
    buf_fini(&from);
    buf_fini(&to);
}
static void slice_expected(struct worker *w) { take_slice(w, true); }
static void slice_unknown(struct worker *w) { take_slice(w, false); }

static void *work(void *arg) {
    struct worker *w = arg;
    for (int i = 0; i < per_thread; i++) w->step(w);
    return NULL;
}

static double seconds_of_osds(void) {
    double sum = 0;
    const char *conf = getenv("TALLY_RADOS_CONF"), *end = strrchr(conf, '/');
    for (int osd = 0; osd < 3; osd++) {
        char path[4096], line[2048];
        unsigned long user = 0, system = 0;
        snprintf(path, sizeof(path), "%.*s/run/osd.%d.pid", (int)(end - conf), conf, osd);
        if (access(path, R_OK) != 0) continue;
        snprintf(path, sizeof(path), "/proc/%d/stat", harness_osd(osd));
        FILE *f = fopen(path, "r");
        if (f && fgets(line, sizeof(line), f) &&
            sscanf(strrchr(line, ')'), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) == 2)
            sum += (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
        if (f) fclose(f);
    }
    return sum;
}
static double own_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void measure(const char *name, int threads, uint32_t rows, void (*step)(struct worker *)) {
    static struct worker workers[THREADS_MAX];
    double t0 = now(), own0 = own_seconds(), osd0 = seconds_of_osds();
    uint64_t operations = store->n_operations;
    for (int i = 0; i < threads; i++) {
        workers[i] = (struct worker){
            .random = 88172645463325252u + (uint64_t)i * 7919, .number = (uint32_t)i, .rows = rows, .step = step};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) exit(1);
    }
    for (int i = 0; i < threads; i++) pthread_join(workers[i].thread, NULL);
    double t = now() - t0, n = (double)threads * per_thread * rows;
    printf("%-38s %8.0f rows/s  client %6.1f us/row  OSDs %6.1f us/row  %7llu writes\n", name, n / t,
           (own_seconds() - own0) / n * 1e6, (seconds_of_osds() - osd0) / n * 1e6,
           (unsigned long long)(store->n_operations - operations));
    fflush(stdout);
}

static void measure_split(void) {
    struct worker w = {.random = 5, .rows = 50};
    struct shard *root;
    table = harness_table();
    for (uint32_t p = 0; p < 78; p++) write_rows(&w, p, false);
    root = shard_map_get(&store->shards, &(struct shard_id){.table = table});
    double t0 = now(), own0 = own_seconds(), osd0 = seconds_of_osds();
    if (move_relieve(store, root) < 0) exit(1);
    printf("split of %llu rows: %.0f ms, client %.0f ms, OSDs %.0f ms of processor time\n",
           (unsigned long long)root->own.keys, (now() - t0) * 1e3, (own_seconds() - own0) * 1e3,
           (seconds_of_osds() - osd0) * 1e3);
}

/* ---- a queue ---- */

enum { QUEUE = LOADED + 2, QUEUE_PART = 20000, QUEUE_LEFT = 100, QUEUE_READS = 400 };

struct spent {
    double own, osds;
};

static struct spent spent(void) { return (struct spent){own_seconds(), seconds_of_osds()}; }

static void print_spent(const char *what, struct spent since, uint32_t n) {
    printf("  %s: client %6.1f us, OSDs %6.1f us", what, (own_seconds() - since.own) / n * 1e6,
           (seconds_of_osds() - since.osds) / n * 1e6);
    fflush(stdout);
}

static int judge_front(void *arg, const struct record *r, struct buf *left) {
    (void)left;
    return load_u32(r->key.p + r->key.n - 4) < *(const uint32_t *)arg;
}

/* Removes all rows with lower numbers by moves, as the pass that removes dead rows does. */
static void take_out(struct slice prefix, uint32_t below) {
    struct move_purge purge = {.from = prefix, .judge = judge_front, .arg = &below};
    struct read_result head;
    struct arena a;
    struct buf from, end;
    struct err e = {0};
    arena_init(&a, 1 << 12, 0);
    buf_init(&from, 0);
    buf_init(&end, 0);
    while (!end.n || end.p[prefix.n] != ENGI_PAST) {
        arena_reset(&a);
        if (read_partition(store, prefix, NULL, 0, &a, &head, &e) < 0) fail("read", &e);
        int rc = move_purge(store, prefix, head.removals, &purge, &end);
        if (rc == -EAGAIN || rc == -EBUSY) continue;
        if (rc < 0) exit(1);
        buf_clear(&from, SIZE_MAX);
        buf_put_slice(&from, buf_slice(&end));
        purge.from = buf_slice(&from);
    }
    arena_fini(&a);
    buf_fini(&from);
    buf_fini(&end);
}

/* Reads the first row from a key on. */
static void read_first(struct slice prefix, struct slice from, uint32_t expected) {
    struct buf to;
    struct cursor c;
    const struct record *r;
    struct err e = {0};
    buf_init(&to, 0);
    harness_key(&to, table, QUEUE, ENGI_PAST, slice_of("", 0));
    cursor_init(&c, store, table, prefix, from, buf_slice(&to));
    cursor_expect(&c, 1);
    if (cursor_next(&c, &r, &e) != 1) fail("cursor", &e);
    if (load_u32(r->key.p + r->key.n - 4) != expected) exit(1);
    cursor_fini(&c);
    buf_fini(&to);
}

static void measure_reads(struct slice prefix, uint32_t first) {
    struct buf known;
    uint8_t row[4];
    store_u32(row, first);
    buf_init(&known, 0);
    harness_key(&known, table, QUEUE, ENGI_ROW, slice_of(row, 4));
    struct spent since = spent();
    for (int i = 0; i < QUEUE_READS; i++) read_first(prefix, prefix, first);
    print_spent("read of the first row", since, QUEUE_READS);
    since = spent();
    for (int i = 0; i < QUEUE_READS; i++) read_first(prefix, buf_slice(&known), first);
    print_spent("from its key on", since, QUEUE_READS);
    printf("\n");
    buf_fini(&known);
}

static void measure_queue(uint32_t rows, const char *then) {
    struct buf prefix;
    table = harness_table();
    buf_init(&prefix, 0);
    harness_prefix(&prefix, table, QUEUE);
    struct worker w = {.random = 1, .rows = 50, .in_order = true};
    for (uint32_t n = QUEUE_PART; n <= rows; n += QUEUE_PART) {
        uint64_t moves = atomic_load(&store->n_moves);
        struct spent since = spent();
        while (w.next < n) write_rows(&w, QUEUE, false);
        struct shard *sh = shard_map_find(&store->shards, table, shard_position(buf_slice(&prefix)));
        while (atomic_load(&sh->will_split)) sched_yield();
        if (move_rows(store, sh, buf_slice(&prefix)) < 0) exit(1);
        printf("%7u rows,", n);
        print_spent("written and moved", since, QUEUE_PART);
        since = spent();
        take_out(buf_slice(&prefix), n - QUEUE_LEFT);
        print_spent("removed", since, QUEUE_PART);
        printf(" (%llu moves)", (unsigned long long)(atomic_load(&store->n_moves) - moves));
        measure_reads(buf_slice(&prefix), n - QUEUE_LEFT);
    }
    if (then) {
        if (system(then) != 0) exit(1);
        printf("after %s:", then);
        measure_reads(buf_slice(&prefix), w.next - QUEUE_LEFT);
    }
    buf_fini(&prefix);
}

/* ---- downwards ---- */

enum { DOWN_READS = 100, DOWN_AT_ONCE = 50, DOWN_KEY = 32 };

/* Writes the i-th clustering key of a kind, and returns its length. The keys of a kind ascend, but for random ones. */
static size_t int_key(struct worker *w, uint32_t i, uint8_t *to) { return (void)w, store_u32(to, 1u << 31 | i), 4; }
static size_t timestamp_key(struct worker *w, uint32_t i, uint8_t *to) {
    store_u64(to, (1ull << 63) + 1700000000000 + i * 1000ull + pick(w, 1000));
    return 8;
}
static size_t timeuuid_key(struct worker *w, uint32_t i, uint8_t *to) {
    store_u64(to, 0x01ee000000000000 + i * 10000000ull + pick(w, 10000000));
    store_u64(to + 8, 0x8123456789abcdef ^ pick(w, 1 << 30));
    return 16;
}
static size_t text_key(struct worker *w, uint32_t i, uint8_t *to) {
    return (void)w, (size_t)snprintf((char *)to, DOWN_KEY, "sensor-%08u", i);
}
static size_t random_key(struct worker *w, uint32_t i, uint8_t *to) {
    (void)i;
    for (int half = 0; half < 2; half++) store_u32(to + 4 * half, pick(w, 1 << 30) << 2 | pick(w, 4));
    return 8;
}

static const struct down_kind {
    const char *name;
    size_t (*key)(struct worker *w, uint32_t i, uint8_t *to);
} down_kinds[] = {{"int", int_key},
                  {"timestamp", timestamp_key},
                  {"timeuuid", timeuuid_key},
                  {"text", text_key},
                  {"random", random_key}};

static void write_down_rows(const struct down_kind *kind, struct worker *w, uint32_t partition, uint32_t first) {
    struct write_change changes[DOWN_AT_ONCE];
    struct buf prefix, keys[DOWN_AT_ONCE];
    struct err e = {0};
    uint8_t value[VALUE];
    memset(value, 'v', sizeof(value));
    buf_init(&prefix, 0);
    harness_prefix(&prefix, table, partition);
    for (uint32_t i = 0; i < DOWN_AT_ONCE; i++) {
        uint8_t key[DOWN_KEY];
        size_t n = kind->key(w, first + i, key);
        buf_init(&keys[i], 0);
        harness_key(&keys[i], table, partition, ENGI_ROW, slice_of(key, n));
        changes[i] =
            (struct write_change){.kind = WRITE_APPEND, .key = buf_slice(&keys[i]), .value = slice_of(value, VALUE)};
    }
    struct write_group g = {.prefix = buf_slice(&prefix), .changes = changes, .n = DOWN_AT_ONCE};
    if (write_groups(store, &g, 1, &e) < 0) fail("write", &e);
    buf_fini(&prefix);
    for (uint32_t i = 0; i < DOWN_AT_ONCE; i++) buf_fini(&keys[i]);
}

/* Reads the partition's own keys and then some rows downwards, as a scan does. */
static void read_down(uint32_t partition, struct slice below, uint64_t wanted) {
    struct buf prefix, from, past;
    struct err e = {0};
    buf_init(&prefix, 0);
    buf_init(&from, 0);
    buf_init(&past, 0);
    harness_prefix(&prefix, table, partition);
    harness_key(&past, table, partition, ENGI_PAST, slice_of("", 0));
    harness_key(&from, table, partition, below.n ? ENGI_ROW : ENGI_PAST, below);
    struct kv_iter *it =
        iter_of_range(store, table, buf_slice(&prefix), buf_slice(&prefix), buf_slice(&past), true, wanted, &e);
    if (!it || it->ops->iter_move(it, KV_SEEK, buf_slice(&prefix), &e) < 0) fail("open", &e);
    int got = it->ops->iter_move(it, KV_SEEK_BACK, buf_slice(&from), &e);
    for (uint64_t i = 1; i < wanted && got == 1; i++) got = it->ops->iter_move(it, KV_PREV, buf_slice(&from), &e);
    if (got < 0) fail("read", &e);
    it->ops->iter_free(it);
    buf_fini(&prefix);
    buf_fini(&from);
    buf_fini(&past);
}

static void measure_down(const struct down_kind *kind, struct worker *w, uint32_t rows, uint32_t partition,
                         uint64_t wanted, bool anywhere) {
    struct eng_store_figures before, after;
    struct spent since = spent();
    pool_figures(store->pool.counts, &before);
    for (int i = 0; i < DOWN_READS; i++) {
        uint8_t key[DOWN_KEY];
        size_t n = anywhere ? kind->key(w, pick(w, rows), key) : 0;
        read_down(partition, slice_of(key, n), wanted);
    }
    pool_figures(store->pool.counts, &after);
    printf("  %3llu rows %s,", (unsigned long long)wanted, anywhere ? "below any key" : "from the end ");
    print_spent("each read", since, DOWN_READS);
    printf(", %5.1f operations\n",
           (double)(after.n[ENG_STORE_READS] - before.n[ENG_STORE_READS]) / DOWN_READS);
}

static void measure_downwards(uint32_t rows) {
    for (uint32_t i = 0; i < sizeof(down_kinds) / sizeof(down_kinds[0]); i++) {
        struct worker w = {.random = 5};
        struct buf prefix;
        uint32_t partition = LOADED + 10 + i;
        table = harness_table();
        buf_init(&prefix, 0);
        harness_prefix(&prefix, table, partition);
        for (uint32_t row = 0; row < rows; row += DOWN_AT_ONCE) write_down_rows(&down_kinds[i], &w, partition, row);
        struct shard *sh = shard_map_find(&store->shards, table, shard_position(buf_slice(&prefix)));
        for (int moved = 0; moved < 2; moved++) {
            while (atomic_load(&sh->will_split)) sched_yield();
            if (moved && move_rows(store, sh, buf_slice(&prefix)) < 0) exit(1);
            printf("%s, %u rows%s:\n", down_kinds[i].name, rows, moved ? ", all in pieces" : "");
            for (int anywhere = 0; anywhere < 2; anywhere++) {
                measure_down(&down_kinds[i], &w, rows, partition, 1, anywhere);
                measure_down(&down_kinds[i], &w, rows, partition, 100, anywhere);
            }
        }
        buf_fini(&prefix);
    }
}

/* ---- splits under load ---- */

enum { SPLIT_BATCH = 50, POSITIONS = 4096 };
static double rate, load_ends;
static _Atomic uint64_t n_started;

static void *write_at_rate(void *arg) {
    struct worker *w = arg;
    for (double began = now();;) {
        double due = began + (double)(atomic_fetch_add(&n_started, 1) * SPLIT_BATCH) / rate;
        while (now() < due && now() < load_ends) usleep(1000);
        if (now() >= load_ends) return NULL;
        write_rows(w, pick(w, LOADED), false);
    }
    return NULL;
}

static void print_shards(double began) {
    uint64_t largest = 0, waiting = 0;
    struct shard *before = NULL;
    for (uint64_t i = 0; i < POSITIONS; i++) {
        struct shard *sh = shard_map_find(&store->shards, table, i * (UINT64_MAX / POSITIONS));
        if (!sh || sh == before) continue;
        before = sh;
        uint64_t keys = atomic_load(&sh->shown_keys);
        waiting += keys > RADOS_SPLIT_KEYS;
        if (keys > largest) largest = keys;
    }
    printf("%5.1f s  %9llu rows  %5llu splits  %4llu shards wait  %7llu keys in the largest\n", now() - began,
           (unsigned long long)(store->n_groups * SPLIT_BATCH), (unsigned long long)store->n_splits,
           (unsigned long long)waiting, (unsigned long long)largest);
    fflush(stdout);
}

static void measure_splits(double seconds) {
    static struct worker workers[THREADS_MAX];
    double began = now();
    table = harness_table();
    load_ends = began + seconds;
    for (int i = 0; i < n_threads; i++) {
        workers[i] = (struct worker){.random = 88172645463325252u + (uint64_t)i * 7919, .rows = SPLIT_BATCH};
        if (pthread_create(&workers[i].thread, NULL, write_at_rate, &workers[i])) exit(1);
    }
    for (double next = began + 1; next < load_ends; next += 1) {
        while (now() < next) usleep(10000);
        print_shards(began);
    }
    for (int i = 0; i < n_threads; i++) pthread_join(workers[i].thread, NULL);
    print_shards(began);
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "splits") == 0) {
        store = harness_open(0, 30);
        rate = atof(argv[2]);
        measure_splits(argc > 3 ? atof(argv[3]) : 20);
        rados_close(store);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "queue") == 0) {
        store = harness_open(0, 30);
        measure_queue(argc > 2 ? (uint32_t)atoi(argv[2]) : 200000, argc > 3 ? argv[3] : NULL);
        rados_close(store);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "downwards") == 0) {
        store = harness_open(0, 30);
        measure_downwards(argc > 2 ? (uint32_t)atoi(argv[2]) : 10000);
        rados_close(store);
        return 0;
    }
    if (argc > 1) n_threads = atoi(argv[1]);
    if (argc > 2) per_thread = atoi(argv[2]);
    if (n_threads < 1 || n_threads > THREADS_MAX) return 2;
    store = harness_open(0, 30);
    table = harness_table();
    int saved = per_thread;
    per_thread = LOADED / 50 / n_threads + 1;
    measure("load, 50 rows a write", n_threads, 50, spread);
    per_thread = saved;
    printf("splits so far: %llu\n", (unsigned long long)store->n_splits);
    measure("one row, spread", n_threads, 1, spread);
    measure("one row, spread, one in flight", 1, 1, spread);
    measure("one row, one partition", n_threads, 1, one_partition);
    measure("one row, read then conditional write", n_threads, 1, conditional);
    measure("read of a row", n_threads, 1, get);
    measure("read of a row, one in flight", 1, 1, get);
    measure("first row from a key on, wide", 8, 1, slice_unknown);
    measure("the same, of one that is expected", 8, 1, slice_expected);
    measure("100 rows from a key on, wide", 8, 100, slice_unknown);
    measure("the same, of 100 that are expected", 8, 100, slice_expected);
    measure_split();
    rados_close(store);
    return 0;
}
