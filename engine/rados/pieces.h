/* Pieces: the objects that hold most rows of a wide partition.
 *
 * A partition that is most of a full shard is wide: a mover (engine/rados/move.h) takes its rows out
 * of the shard, from time to time, and adds them to pieces. Each piece is a range of the partition's
 * clustering keys. All else of the partition stays in its shard, the head: its deletions, its static
 * row, its ballot, and the operands that were written since the last move. So a write to a wide
 * partition is a write to its shard, as to any other: a condition, a batch, a counter or a range
 * deletion is one operation on one object, independent of pieces. A reader combines the
 * operands of both. Reconciliation is idempotent, so an operand that is in both counts once.
 *
 * The alternative, that each write goes to the piece of its row, was not built. It saves the second
 * write of a row. But a write to several pieces would need a record of its intent, which readers
 * apply, and each read would have to look at the head twice. All writes to a partition pass its
 * shard, which takes some thousand rows a second.
 *
 *   in the shard, a key of the partition (OMAP_PIECES): [u64 id][u64 move][u8 begun][u64 next number]
 *       [u32 n][u64 number of garbage]... [u32 n][[u64 number][u32 n][first key]]...
 *   object "piece.<table>.<id>.<number>": a state, open; the counter of writer 0, whose sequence is the
 *       move that wrote to it last; operands of rows
 *
 * id: random, chosen when the partition becomes wide, because partitions may share a token. A first key is
 * the part of an object's key after the partition's escaped prefix, up to the end mark; it is empty for the
 * first piece.
 *
 * Q10. A move is begun in the shard before it writes to any piece, and moves only operands that were
 * in the shard before that. Each piece stores the number of the last move that wrote to it. If that is not later
 * than the last move in the head, which is read first, the piece holds nothing that is newer than
 * the head; otherwise the reader starts again. And because the head is read first, a reader misses no
 * operand that is moved meanwhile.
 *
 * Q17. Where a piece begins, the shard has a fence, a key that stays. An OSD keeps a removed key until it
 * has compacted its store, and a read skips all such keys up to the next
 * one that exists. So a read near a key skips those of one piece, not of the whole partition.
 *
 * A read (read_partition) returns a consistent snapshot of the moment at which it read the head. A
 * cursor (engine/rados/cursor.h) does, too, as long as no move begins or ends meanwhile; otherwise each of its
 * pages is a consistent snapshot, none of them older than the page before.
 */
#pragma once

#include "engine/rados/fetch.h"

struct piece {
    uint64_t number;
    struct slice first;
};

struct pieces {
    uint64_t id, move, next; /* next: number of the next piece that is made */
    bool begun;              /* the move is under way, or its mover has died */
    uint64_t *garbage;       /* numbers of pieces that no reader needs and that may be there */
    size_t n_garbage;
    struct piece *items;     /* by first key */
    size_t n;
};

enum { PIECE_NAME = 56 };
/* "piece.00000010.0123456789abcdef.7" */
void piece_name(uint32_t table, uint64_t id, uint64_t number, char out[PIECE_NAME]);
/* Returns -1 if it is no piece's. */
int piece_name_read(const char *name, uint32_t *table, uint64_t *id, uint64_t *number) MUST_CHECK;

/* Decodes a partition's value, which is empty if the partition is not wide. Returns -1 if the value is damaged,
 * or memory is exhausted. The first keys stay in value. */
int pieces_read(struct slice value, struct arena *a, struct pieces *out) MUST_CHECK;
void pieces_write(struct buf *out, const struct pieces *p);
/* Returns the index of the piece that holds a key. rest: the key after the partition's prefix. */
size_t pieces_find(const struct pieces *p, struct slice rest);

/* Puts the record key with which piece i begins in out, or the key of the partition's end if there is no such piece.
 * Returns 0, or a negative error number. */
int pieces_first_key(const struct pieces *p, size_t i, struct slice prefix, struct buf *out) MUST_CHECK;

/* Adds pairs of the pieces to the pairs of a part of a wide partition, as its shard returned them.
 * value: of OMAP_PIECES, read with them. prefix: of the partition. last: the last key that was read; some keys before
 * it may have been removed from the pairs (fetch_as_of). more: keys of the partition follow after last.
 * Both are updated for the result. Returns 0, -EAGAIN if rows are being moved, so that the caller must read the
 * shard again, or another negative error number. */
int pieces_add(struct rados *s, struct slice prefix, struct slice value, const struct fetch_part *part, struct arena *a,
               struct omap_pairs *pairs, struct slice *last, bool *more) MUST_CHECK;

/* Makes the union of two sorted lists in out, which is empty. A key in both lists gets the shard's value, which
 * combines the same operands as the piece's. Returns 0, or a negative error number. */
int pieces_merge(const struct omap_pairs *shard, const struct omap_pairs *piece, struct omap_pairs *out) MUST_CHECK;

/* Calls fn with the name of each piece of a shard's partitions, and of garbage that may exist, until fn returns a
 * negative error number. Reads all of the shard. */
typedef int (*piece_fn)(void *arg, const char *name);
int pieces_each(struct rados *s, const struct shard *sh, piece_fn fn, void *arg) MUST_CHECK;
