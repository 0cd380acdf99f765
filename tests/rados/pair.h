/* A pair of engines: one on Ceph, with two clients of the cluster, and one of one process with its store
 * in memory. They get the same statements, and each row, slice and scan is compared. */
#pragma once

#include "engine/engine.h"
#include "engine/rados/rados.h"

enum { PARTITIONS = 25, WIDE_PARTITIONS = 3, KEYS = 30, COLUMNS = 4, ROUNDS = 1200 };

struct pair {
    struct eng *local, *rados, *other; /* other: a second client of the cluster */
    struct clock clock;
    int64_t now; /* seconds */
    uint32_t table, partitions;
    uint64_t random;
    int64_t newer; /* added to the timestamps of statements */
    /* What is left of dead rows is not compared: a pass leaves a partition that others change to the next one. */
    bool reclaims;
    uint8_t partition[4];
    struct err e;
};

/* For cmocka. A shard of the cluster splits, or a wide partition's rows move, at split_keys; 0: as in a server. */
int pair_setup(void **state, uint32_t partitions, uint64_t split_keys);
int pair_teardown(void **state);

/* A client of the cluster. */
struct eng *pair_open(struct clock *clock, uint64_t split_keys, struct err *e);
static inline struct rados *pair_store(struct eng *eng) { return rados_of(store_of(eng)); }
/* 0: of one process, 1 and 2: of the cluster. */
struct eng *pair_engine(struct pair *p, int i);
uint32_t pair_draw(struct pair *p, uint32_t below);
/* Its key is in the pair until the next call. */
struct eng_part pair_part(struct pair *p, uint32_t number);

struct statement {
    uint32_t partition, kind, from, to; /* kind 0 or 1: a deletion; to 3: a static row; from 4 on: a row */
    struct eng_row row;
    struct eng_cell cells[COLUMNS];
    char ck[8], from_key[8], to_key[8], values[COLUMNS][24];
    int64_t ts;
};

void pair_draw_statement(struct pair *p, struct statement *s);
void pair_add(struct pair *p, struct eng_batch *b, const struct statement *s);
/* together: atomically. */
void pair_commit(struct pair *p, struct eng *eng, const struct statement *statements, size_t n, bool together);
/* Leaves a batch over two partitions in the log, as a server that dies before it writes them. */
void pair_leave_in_log(struct pair *p, const struct statement s[2]);

/* Appends what a scan gives; part NULL: of the table. */
void pair_scan(struct pair *p, struct eng *eng, const struct eng_part *part, const struct eng_slice *slice,
               bool reverse, struct buf *out);
void pair_compare_partition(struct pair *p, uint32_t partition);
void pair_compare_table(struct pair *p);
/* Writes statements, and compares. */
void pair_compare_random(struct pair *p, int rounds);

/* Verifies the pool and expects the words to be found of the table; NULL: nothing. Returns the number of operands of
 * all tables. */
uint64_t pair_assert_found(struct pair *p, bool in_catalogue, const char *words);
void pair_put_raw(struct pair *p, const char *object, struct slice key, struct slice value);

/* Keys in the shards of the table, but those that tell of the objects. */
uint64_t pair_keys(struct pair *p);
enum { GC_GRACE = 1000 };
void pair_set_gc_grace(struct pair *p);
/* Writes n statements. */
void pair_write_both(struct pair *p, int n);
void pair_reclaim(struct pair *p, struct eng *eng);
