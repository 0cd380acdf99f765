/* Shards: the objects that hold the rows of a table, and how one is found.
 *
 * A shard is the range of tokens that share its first bits. A table begins as one shard of no bits.
 * A shard that is full splits in two (engine/rados/split.h): the two halves are shards of one bit
 * more, and the object of the whole stays, empty except for its state. So the search for a token's shard
 * begins at the table's root and follows the states; a store remembers which shards are split.
 *
 *   key [01]['s'], the state: ['O'] open, ['F'] frozen, ['S'] split, ['C'] being copied to
 *   key [01]['m']: some of its partitions have, or had, pieces (engine/rados/pieces.h)
 *   key [01]['w'][writer: 6]: [u64 sequence][u64 keys][u64 bytes][u64 removals]
 *
 * Q3. Every write to a shard compares the state with "open" in its own operation. The state of an
 * object goes from copied to open to frozen to split and never back.
 *
 * Q21. A shard stays in memory as long as its table. A job of the store frees it, after the jobs
 *      that were queued before (Q27), when the table was freed and its last batch, view and cursor are gone.
 *      So no thread holds a pointer to it, and no operation on it is under way.
 *
 * Each store that writes to a shard has a writer's number there, and alone writes that writer's
 * counters, in the operation that they count: the sums that the writer has added, and the sequence of its
 * last operand. The counters of all writers, read with the first keys of a partition, identify a moment:
 * an operand appended later has a higher sequence than its writer's counter. So a partition that
 * takes several operations to read is read as it was at the first, unless operands were removed
 * meanwhile; then the reader starts again.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "engine/rados/omap_op.h"
#include "engine/rows/key.h"

struct shard_id {
    uint32_t table;
    uint8_t depth; /* number of bits, at most SHARD_DEPTH_MAX */
    uint64_t bits; /* the first bits of its tokens, sign flipped; the others are 0 */
};

enum { SHARD_NAME = 40, SHARD_DEPTH_MAX = 64 };
/* "rows.00000010.02.c000000000000000" */
void shard_name(const struct shard_id *id, char out[SHARD_NAME]);
int shard_name_read(const char *name, struct shard_id *id) MUST_CHECK; /* -1 if it is no shard's */
/* Returns the half of a shard whose next bit is 0 or 1. */
struct shard_id shard_half(const struct shard_id *id, unsigned bit);
static inline uint64_t shard_last(const struct shard_id *id) {
    return id->depth ? id->bits | (~(uint64_t)0 >> 1 >> (id->depth - 1)) : ~(uint64_t)0;
}

/* Returns the position of a record in its table: its token, sign flipped. */
static inline uint64_t shard_position(struct slice record_key) { return load_u64(record_key.p + ENGI_KEY_TOKEN); }

/* ---- the head of an object ---- */

enum shard_state { SHARD_OPEN = 'O', SHARD_FROZEN = 'F', SHARD_SPLIT = 'S', SHARD_COPIED = 'C' };

struct shard_counter {
    uint64_t writer;
    uint64_t sequence, keys, bytes, removals;
};

struct shard_head {
    enum shard_state state;
    bool has_pieces;                /* some of its partitions have pieces, or had */
    struct shard_counter *counters; /* by writer */
    size_t n_counters;
};

#define SHARD_HEAD_PREFIX "\x01"  /* of the keys of the head */
#define SHARD_HEAD_LAST "\x01\xff" /* a key after them and before the first record */
extern const struct slice shard_state_key, shard_pieces_key;
struct slice shard_state_value(enum shard_state s);
/* Decodes the head that a read returned. Returns -1 if damaged, or memory is exhausted. */
int shard_head_read(const struct omap_pairs *pairs, struct arena *a, struct shard_head *out) MUST_CHECK;
const struct shard_counter *shard_counter_find(const struct shard_head *h, uint64_t writer);
/* Returns the sums of the counters of all writers. */
struct shard_counter shard_sum(const struct shard_head *h);
void shard_counter_key(struct buf *out, uint64_t writer);
void shard_counter_value(struct buf *out, const struct shard_counter *c);

/* ---- the shards in a store's memory ---- */

struct write_group;

struct shard {
    struct shard_id id;
    char name[SHARD_NAME];
    _Atomic bool split;     /* its halves have its rows */
    _Atomic bool will_split; /* a split of it is queued or running in this process */
    _Atomic bool stays_whole; /* the split that ran last was not worth it, or failed */
    _Atomic bool is_indivisible; /* the last try to split the shard found that it neither splits nor has rows to move */
    _Atomic uint64_t shown_keys, shown_bytes; /* after the last write of this store, for metrics; 0 if none yet */
    struct shard *next;     /* in the map */
    pthread_mutex_t lock;   /* of the fields up to has_wide */
    pthread_cond_t turn;    /* an operation has ended */
    bool busy;              /* an operation of this store on it is under way */
    int64_t busy_since_us;  /* machine time at which it began */
    bool silent;            /* the last one timed out */
    struct write_group **sent; /* the groups of the operation that was sent; NULL if none was */
    uint32_t n_patient;     /* threads that wait although it has been under way for long (Q26) */
    struct write_group *first, **last; /* groups that wait for the next operation */
    struct shard_counter own;          /* of this store, as of the last operation that succeeded */
    uint64_t other_keys, other_bytes;  /* of the other writers, as last read */
    uint32_t since_read;               /* operations since then */
    bool known;                        /* they were read, and the object is there */
    uint64_t split_keys, split_bytes;  /* sizes from which on a split is worth trying; 0 for the usual sizes */
    uint64_t begun_id, begun_move;     /* the move that this store last found begun by another one */
    /* The position of the wide partition that a reader last found, if any. */
    _Atomic bool has_wide;
    _Atomic uint64_t wide_position;
    _Atomic uint64_t key_bytes; /* of a key with its value, the average of the latest page; 0 if unknown */
};

struct shard_map {
    pthread_rwlock_t lock;
    struct shard **chains;
    size_t n_chains, n;
};

int shard_map_init(struct shard_map *m) MUST_CHECK;
void shard_map_fini(struct shard_map *m);
/* Returns the shard with that id, adding it if it is new. It stays until its table is evicted. Returns
 * NULL if memory is exhausted. Any thread. */
struct shard *shard_map_get(struct shard_map *m, const struct shard_id *id) MUST_CHECK;
/* Returns the smallest known shard of a table that holds the position, or NULL if memory is exhausted. */
struct shard *shard_map_find(struct shard_map *m, uint32_t table, uint64_t position) MUST_CHECK;
/* Sets the number of known shards that are not split, and their shown keys and bytes. */
void shard_map_sum(struct shard_map *m, uint64_t *shards, uint64_t *keys, uint64_t *bytes);
/* Forgets which shards of a table are split, because it was dropped, or its objects are not as remembered. */
void shard_map_forget(struct shard_map *m, uint32_t table);
/* Frees the shards of a table (Q21). */
void shard_map_evict(struct shard_map *m, uint32_t table);
