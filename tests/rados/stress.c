/* Clients that write, read, scan and compete for ballots at the same time, while shards split, until
 * standard input ends. Whatever happens to the OSDs meanwhile, at the end every acknowledged write is
 * there, nothing is there that was not tried, and every ballot counts what was acknowledged.
 *
 *     rados_stress [SPLIT_KEYS]
 *
 * A write appends one number, which is used once, to the first three rows of a partition and to one
 * other row, as one group. So a reader that finds other numbers in the second row than in the first
 * has seen a part of a write. The wide partition takes several operations to read; its first and its
 * last row take part in every write. Prints a line of counts, and each violation; exits with 1 after
 * one.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"

enum {
    STORES = 2,
    WRITERS = 4,
    READERS = 1,
    ADDERS = 1,
    SCANNERS = 1,
    THREADS = STORES * (WRITERS + READERS + ADDERS + SCANNERS),
    PARTITIONS = 150,
    WIDE = 0,
    WIDE_ROWS = 2500,
    ROWS = 30,
    BALLOTS = 3,
    BALLOTS_FROM = 1000,
    NUMBERS_MAX = 1 << 22,
};

enum fate { NEVER, TRIED, ACKNOWLEDGED };

static struct {
    struct rados *stores[STORES];
    uint32_t table;
    _Atomic bool ends;
    _Atomic uint32_t numbers;             /* given out */
    _Atomic uint8_t fates[NUMBERS_MAX];
    uint32_t rows[NUMBERS_MAX];           /* the other row of a number, */
    uint16_t partitions[NUMBERS_MAX];     /* and its partition */
    _Atomic uint32_t newest[PARTITIONS];  /* a number that was acknowledged in the partition */
    _Atomic uint64_t added[BALLOTS], maybe_added[BALLOTS];
    _Atomic uint64_t writes, reads, scans, unknown, timeouts, violations;
} all;

static void violation(const char *what, uint32_t partition, uint32_t number) {
    atomic_fetch_add(&all.violations, 1);
    printf("violation: %s (partition %u, number %u)\n", what, partition, number);
    fflush(stdout);
}

/* An error other than a timeout is a violation. */
static void failed(const struct err *e, uint32_t partition) {
    if (e->code == ERR_READ_TIMEOUT || e->code == ERR_WRITE_TIMEOUT) atomic_fetch_add(&all.timeouts, 1);
    else violation(e->text, partition, 0);
}

struct worker {
    struct rados *s;
    uint64_t random;
    struct arena a;
    pthread_t thread;
    void (*step)(struct worker *w);
};

static uint32_t pick(struct worker *w, uint32_t n) {
    w->random ^= w->random << 13, w->random ^= w->random >> 7, w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 20) % n;
}

/* ---- what a client does ---- */

static void write_step(struct worker *w) {
    struct err e = {0};
    uint32_t number = atomic_fetch_add(&all.numbers, 1), partition = pick(w, 4) ? pick(w, PARTITIONS) : WIDE;
    if (number >= NUMBERS_MAX) return;
    uint32_t row = 3 + pick(w, partition == WIDE ? WIDE_ROWS : ROWS);
    uint32_t rows[] = {0, 1, partition == WIDE ? WIDE_ROWS + 10 : 2, row};
    all.partitions[number] = (uint16_t)partition;
    all.rows[number] = row;
    atomic_store(&all.fates[number], TRIED);
    if (harness_append(w->s, all.table, partition, rows, 4, number, &e) < 0) {
        failed(&e, partition);
        return;
    }
    atomic_store(&all.fates[number], ACKNOWLEDGED);
    atomic_store(&all.newest[partition], number);
    atomic_fetch_add(&all.writes, 1);
}

static struct slice key_of(struct worker *w, uint32_t partition, uint32_t row) {
    uint8_t rest[4];
    struct buf b;
    buf_init(&b, 0);
    store_u32(rest, row);
    harness_key(&b, all.table, partition, ENGI_ROW, slice_of(rest, 4));
    return arena_take(&w->a, &b);
}
static struct slice prefix_of(struct worker *w, uint32_t partition) {
    struct buf b;
    buf_init(&b, 0);
    harness_prefix(&b, all.table, partition);
    return arena_take(&w->a, &b);
}

static void read_step(struct worker *w) {
    uint32_t partition = 1 + pick(w, PARTITIONS - 1), newest = atomic_load(&all.newest[partition]);
    struct slice keys[3];
    struct read_result r;
    struct err e = {0};
    for (uint32_t i = 0; i < 3; i++) keys[i] = key_of(w, partition, i);
    if (read_partition(w->s, prefix_of(w, partition), keys, 3, &w->a, &r, &e) < 0) {
        failed(&e, partition);
        return;
    }
    atomic_fetch_add(&all.reads, 1);
    if (newest && !harness_has(r.keys[0].value, newest))
        violation("an acknowledged write is not read", partition, newest);
    if (!slice_eq(r.keys[0].value, r.keys[1].value) || !slice_eq(r.keys[0].value, r.keys[2].value))
        violation("a read has seen a part of a write", partition, newest);
}

/* Whether a set holds all of another one. */
static bool holds(struct slice set, struct slice other) {
    struct buf both;
    buf_init(&both, 0);
    bool all_of_it = harness_merge(set, other, &both) == 0 && slice_eq(buf_slice(&both), set);
    buf_fini(&both);
    return all_of_it;
}

/* Reads the wide partition, or the whole table. Rows of one page are of one moment. A page that begins within a
 * partition may be of a later moment than the page before (engine/rados/cursor.h), of which a row has more numbers. */
static void scan_step(struct worker *w) {
    struct cursor c;
    const struct record *r;
    struct err e = {0};
    struct slice prefix = {0}, first = {0}, first_part = {0}, whole = prefix_of(w, WIDE);
    uint8_t lower[4];
    bool wide = pick(w, 2);
    uint32_t newest = atomic_load(&all.newest[WIDE]), n = 0;
    int got;
    store_u32(lower, all.table);
    if (wide) prefix = whole;
    cursor_init(&c, w->s, all.table, prefix, wide ? whole : slice_of(lower, 4), (struct slice){0});
    while ((got = cursor_next(&c, &r, &e)) == 1) {
        struct slice part = slice_of(r->key.p, engi_prefix_len(r->key));
        uint32_t partition = load_u32(part.p + part.n - 4), row = load_u32(r->key.p + part.n + 1);
        if (partition >= BALLOTS_FROM) continue;
        if (row == 0) {
            first = arena_dup(&w->a, r->value);
            first_part = arena_dup(&w->a, part);
            n++;
            if (partition == WIDE && newest && !harness_has(first, newest))
                violation("an acknowledged write is not scanned", partition, newest);
        } else if (row == 1 || row == 2) {
            bool begins = c.at == 1; /* the first record of a page */
            if (!slice_eq(part, first_part) || (begins ? !holds(r->value, first) : !slice_eq(r->value, first)))
                violation("a scan has seen a part of a write", partition, row);
            if (begins) first = arena_dup(&w->a, r->value);
        } else if (partition == WIDE && row == WIDE_ROWS + 10 && r->value.n < first.n) {
            violation("a later page is of an earlier moment", partition, row);
        }
    }
    if (got < 0) failed(&e, wide ? WIDE : PARTITIONS);
    cursor_fini(&c);
    atomic_fetch_add(&all.scans, 1);
}

/* Adds one to a ballot, if nobody else has. */
static void add_step(struct worker *w) {
    uint32_t which = pick(w, BALLOTS), partition = BALLOTS_FROM + which;
    struct slice row = key_of(w, partition, 0), prefix = prefix_of(w, partition), seen = slice_of("", 0);
    struct read_result r;
    struct err e = {0};
    uint8_t value[4];
    if (read_partition(w->s, prefix, &row, 1, &w->a, &r, &e) < 0) {
        failed(&e, partition);
        return;
    }
    uint32_t now = r.ballot.n ? load_u32(r.ballot.p) : 0;
    if (now != harness_count(r.keys[0].value)) violation("ballot and row are of two moments", partition, now);
    if (r.ballot.n) seen = r.ballot;
    store_u32(value, now + 1);
    struct write_change c = {.kind = WRITE_APPEND, .key = row, .value = slice_of(value, 4)};
    struct write_group g = {.prefix = prefix, .changes = &c, .n = 1, .expected = &seen, .ballot = slice_of(value, 4)};
    if (write_groups(w->s, &g, 1, &e) < 0) {
        failed(&e, partition);
        atomic_fetch_add(&all.maybe_added[which], 1);
    } else if (g.result == 0) {
        atomic_fetch_add(&all.added[which], 1);
    }
}

static void *work(void *arg) {
    struct worker *w = arg;
    while (!atomic_load(&all.ends)) {
        arena_reset(&w->a);
        w->step(w);
    }
    return NULL;
}

/* ---- the end ---- */

static _Atomic uint8_t *found; /* bits of rows in which a number was found */

static void check_row(uint32_t partition, uint32_t row, struct slice value) {
    for (size_t i = 0; i < value.n; i += 4) {
        uint32_t number = load_u32(value.p + i), last = partition == WIDE ? WIDE_ROWS + 10 : 2;
        if (number >= NUMBERS_MAX || atomic_load(&all.fates[number]) == NEVER || all.partitions[number] != partition)
            violation("a number that nobody wrote there", partition, number);
        else if (row == 0 || row == 1 || row == last) found[number] |= (uint8_t)(row == 0 ? 1 : row == 1 ? 2 : 4);
        else if (all.rows[number] == row) found[number] |= 8;
        else violation("a number in a row to which it was not written", partition, number);
    }
}

/* False: the table was rewritten by folds meanwhile. */
static bool find_all(struct rados *s) {
    struct cursor c;
    const struct record *r;
    struct err e = {0};
    uint8_t lower[4];
    int got;
    store_u32(lower, all.table);
    memset((void *)found, 0, NUMBERS_MAX);
    cursor_init(&c, s, all.table, (struct slice){0}, slice_of(lower, 4), (struct slice){0});
    while ((got = cursor_next(&c, &r, &e)) == 1) {
        size_t n = engi_prefix_len(r->key);
        uint32_t partition = load_u32(r->key.p + n - 4);
        if (partition < BALLOTS_FROM) check_row(partition, load_u32(r->key.p + n + 1), r->value);
    }
    if (got < 0 && e.code != ERR_READ_TIMEOUT) violation(e.text, 0, 0);
    cursor_fini(&c);
    return got == 0;
}

static void check_all(struct rados *s) {
    found = calloc(NUMBERS_MAX, 1);
    if (!found) abort();
    for (int tries = 0; !find_all(s); tries++)
        if (tries == 100) violation("no scan succeeds", 0, 0);
    for (uint32_t i = 0; i < NUMBERS_MAX; i++)
        if (atomic_load(&all.fates[i]) == ACKNOWLEDGED && found[i] != 15)
            violation("an acknowledged write is lost", all.partitions[i], i);
        else if (found[i] && found[i] != 15) violation("a part of a write is there", all.partitions[i], i);
    free((void *)found);
}

static void check_ballots(struct rados *s) {
    struct worker w = {.s = s};
    arena_init(&w.a, 1 << 12, 0);
    for (uint32_t i = 0; i < BALLOTS; i++) {
        struct read_result r;
        struct err e = {0};
        struct slice none = {0};
        if (read_partition(s, prefix_of(&w, BALLOTS_FROM + i), &none, 0, &w.a, &r, &e) < 0)
            violation(e.text, BALLOTS_FROM + i, 0);
        uint32_t is = r.ballot.n ? load_u32(r.ballot.p) : 0;
        if (is < atomic_load(&all.added[i]) || is > atomic_load(&all.added[i]) + atomic_load(&all.maybe_added[i]))
            violation("a ballot does not count what was acknowledged", BALLOTS_FROM + i, is);
    }
    arena_fini(&w.a);
}

int main(int argc, char **argv) {
    static struct worker workers[THREADS];
    static void (*const steps[])(struct worker *) = {write_step, write_step, write_step, write_step,
                                                     read_step,  add_step,   scan_step};
    char byte;
    all.table = harness_table();
    atomic_store(&all.numbers, 1);
    for (int i = 0; i < STORES; i++) all.stores[i] = harness_open(argc > 1 ? strtoull(argv[1], NULL, 10) : 150, 15);
    for (int i = 0; i < THREADS; i++) {
        struct worker *w = &workers[i];
        *w = (struct worker){
            .s = all.stores[i % STORES], .random = 88172645463325252u + (uint64_t)i * 7919, .step = steps[i / STORES]};
        arena_init(&w->a, 1 << 16, 0);
        if (pthread_create(&w->thread, NULL, work, w)) abort();
    }
    printf("running\n");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) { /* each byte asks for the count so far */
        printf("%llu\n", (unsigned long long)atomic_load(&all.writes));
        fflush(stdout);
    }
    atomic_store(&all.ends, true);
    uint64_t splits = 0, folds = 0, operations = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        arena_fini(&workers[i].a);
    }
    for (int i = 0; i < STORES; i++) {
        check_all(all.stores[i]);
        check_ballots(all.stores[i]);
        splits += all.stores[i]->n_splits, folds += all.stores[i]->n_folds, operations += all.stores[i]->n_operations;
    }
    for (int i = 0; i < STORES; i++) rados_close(all.stores[i]);
    printf("%llu writes, %llu operations, %llu reads, %llu scans, %llu splits, %llu folds, %llu timeouts, %llu "
           "violations\n",
           (unsigned long long)all.writes, (unsigned long long)operations, (unsigned long long)all.reads,
           (unsigned long long)all.scans, (unsigned long long)splits, (unsigned long long)folds,
           (unsigned long long)all.timeouts, (unsigned long long)all.violations);
    return all.violations || !all.writes || !splits ? 1 : 0;
}
