/* A move: rows of a wide partition go from its shard to its pieces (engine/rados/pieces.h).
 *
 *   1. read: the partition's pieces, its mark of removals, and operands of its rows.
 *   2. begin: [pieces as read -> the move's number, begun, and as garbage the pieces that it will make].
 *   3. copy: a piece that stays small enough gets the operands in one operation, which compares the
 *      piece's counter. A piece that would be too large, or the first one, is replaced by new ones with
 *      all it has.
 *   4. complete: in one operation [pieces as begun -> the new pieces, and as garbage those replaced], the
 *      mark of removals changes as in each removal, the moved operands leave the shard, the new pieces
 *      get fences there, and the fences of pieces that are gone are removed.
 *   5. remove the garbage.
 *
 * Each operand of a row has an id that is unique for ever, and steps 3 and 4 copy the union of what was
 * there. So a move that ends at any step has changed nothing for a reader; the next one starts
 * from step 1. A mover that finds a move begun leaves it alone, until it finds the same one again after more
 * writes: then its process has died, or is slow and will be refused.
 *
 * Q11. Only the move that was begun last completes, and a piece accepts operands only from a move whose
 * number is not less than the number in its counter. So an operand that was removed from a shard, and perhaps
 * combined or removed from its piece since, is not copied again by a mover that was delayed.
 *
 * Q18. A move may also purge pieces: drop the dead parts of their rows. It has every operand of these rows:
 * it has read all rows of the shard, and replaces the pieces as a whole, so that a delayed mover
 * adds to objects that are garbage. It judges rows by deletions that were read while the partition had the
 * mark of removals which its completion compares. So each of them is there until the rows are gone, and
 * a deletion that is gone drops nothing.
 */
#pragma once

#include "engine/rados/pieces.h"

/* Operands and bytes of one move; the next move takes the rest. */
enum { MOVE_KEYS = 16384, MOVE_BYTES = 16 << 20, MOVE_CHUNK = 256 << 10 /* of memory */ };

struct move_part;

/* The parts of rows that a move drops. */
struct move_purge {
    struct slice from; /* a record's key: the piece that holds it is purged, and some of the following pieces */
    /* Judges a row by all of its operands. Returns 0 if it stays as it is, 1 if its new value is in left, empty
     * before, or a negative error number. */
    int (*judge)(void *arg, const struct record *r, struct buf *left);
    void *arg;
};

/* A move, step by step: a test leaves out the last ones, as a process that dies does. */
struct move {
    struct rados *s;
    struct slice prefix; /* of the partition; the caller's */
    size_t n_prefix;     /* of it escaped, in keys of objects */
    struct arena arena;
    struct slice removals, value; /* of OMAP_REMOVALS and OMAP_PIECES, as read and then as this move wrote them */
    struct pieces pieces; /* as read, and then as this move changes them */
    struct records rows;  /* to be moved */
    size_t n_operands;
    bool more;            /* the shard has more of them */
    struct move_part *parts;
    size_t n_parts;
    const struct move_purge *purge; /* NULL if it purges no piece */
    size_t first_purged, n_purged;  /* of the pieces as read */
};

static inline void move_init(struct move *m, struct rados *s, struct slice prefix) {
    *m = (struct move){.s = s, .prefix = prefix};
    arena_init(&m->arena, MOVE_CHUNK, 0);
}
static inline void move_fini(struct move *m) { arena_fini(&m->arena); }
/* Each returns 0, -EAGAIN if another process has changed the partition, -ESTALE if the table was dropped, or another
 * negative error number. */
int move_read(struct move *m) MUST_CHECK;
int move_begin(struct move *m) MUST_CHECK;
int move_copy(struct move *m) MUST_CHECK;
int move_complete(struct move *m) MUST_CHECK;

/* Moves the rows that a partition has in the shard. Does nothing if another process is moving them. Returns 0, or a
 * negative error number. Blocking, some seconds. */
int move_rows(struct rados *s, struct shard *sh, struct slice prefix) MUST_CHECK;
/* A move that drops the dead parts of rows from some pieces, and makes as few new pieces as possible of the rest.
 * removals: the partition's mark when the caller read the deletions by which it judges. end: set to the first record
 * key after the pieces. Returns 0; -EAGAIN if nothing was dropped, because the partition has changed, or has too many
 * rows that were not moved; -EBUSY if another process is perhaps moving them; or another negative error number, after
 * which something may have been dropped. Blocking. */
int move_purge(struct rados *s, struct slice prefix, struct slice removals, const struct move_purge *purge,
               struct buf *end) MUST_CHECK;
/* Splits a shard that is full, or moves the rows of a wide partition out of it. Returns 0, also if the table
 * was dropped meanwhile, or a negative error number. Blocking. */
int move_relieve(struct rados *s, struct shard *sh) MUST_CHECK;
