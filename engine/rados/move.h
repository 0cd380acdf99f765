/* A move: rows of a wide partition go from its shard to its pieces (engine/rados/pieces.h).
 *
 *   1. read: the partition's pieces, its mark of removals, and operands of its rows.
 *   2. begin: [pieces as read -> the move's number, begun, and as garbage the pieces that it will make].
 *   3. copy: a piece that stays small enough gets the operands in one operation, which compares the
 *      piece's counter. A piece that would be too large, or the first one, is replaced by new ones with
 *      all it has.
 *   4. complete: in one operation [pieces as begun -> the new pieces, and as garbage those replaced], the
 *      mark of removals changes as in each removal, the moved operands leave the shard, and the new pieces
 *      get fences there.
 *   5. remove the garbage.
 *
 * Each operand of a row has an id that is unique for ever, and steps 3 and 4 copy the union of what was
 * there. So a move that ends at any step has changed nothing that a reader sees; the next one begins
 * anew. A mover that finds a move begun leaves it alone, until it finds the same one again after more
 * writes: then its process has died, or is slow and will be refused.
 *
 * Q11. Only the move that was begun last completes, and a piece takes operands only from a move whose
 * number is not less than that in its counter. So an operand that was taken out of a shard, and perhaps
 * combined or removed from its piece since, is not copied again by a mover that was delayed.
 */
#pragma once

#include "engine/rados/pieces.h"

/* Operands and bytes of one move; what a shard has above is for the next. */
enum { MOVE_KEYS = 16384, MOVE_BYTES = 16 << 20 };

struct move_part;

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
};

void move_init(struct move *m, struct rados *s, struct slice prefix);
void move_fini(struct move *m);
/* Each returns 0, or a negative error number: -EAGAIN: another process has changed the partition; -ESTALE:
 * the table was dropped. */
int move_read(struct move *m) MUST_CHECK;
int move_begin(struct move *m) MUST_CHECK;
int move_copy(struct move *m) MUST_CHECK;
int move_complete(struct move *m) MUST_CHECK;

/* Moves the rows that a partition has in the shard. Does nothing if another process is at it. 0, or a
 * negative error number. Blocking, some seconds. */
int move_rows(struct rados *s, struct shard *sh, struct slice prefix) MUST_CHECK;
/* Splits a shard that is full, or moves the rows of a wide partition out of it. 0, or a negative error
 * number. Blocking. */
int move_relieve(struct rados *s, struct shard *sh) MUST_CHECK;
