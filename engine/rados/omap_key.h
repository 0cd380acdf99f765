/* Keys inside an object (its omap). librados takes the start and the prefix of a scan as strings, so
 * no key holds a NUL byte; the order of the records is kept.
 *
 *   record    [escaped record key][01][operand id]    bytes of a record key: 00 -> 02 01, 01 -> 02 02, 02 -> 02 03
 *   partition [escaped prefix of the partition][02 01][01][what]   its ballot, its pieces, the mark of its last removal
 *   fence     [escaped record key][01][01]                         sorts before the operands of a record
 *   object    [01][what][rest]                        of the object itself: its state, its writers' counters
 *
 * A partition's own keys sort like a record of kind 0, before all its records.
 * The record key is the key of engine/rows/key.h without its table, which is in the object's name. The
 * end mark 01 is less than every escaped byte, so a key sorts before the keys that begin with it, and
 * the operands of one record are adjacent. A number is written as digits 1 to 255, the highest
 * first.
 *
 * An operand id is unique for ever. Its sequence is close to the time of the write, so that the
 * operands of a record sort by age.
 *
 *   appended  [sequence: 7]['A'][writer: 6]
 *   combined  [sequence of the oldest operand in it: 7]['C'][writer: 6][sequence: 7]
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum { OMAP_KEY_END = 1, OMAP_KEY_ESCAPE = 2, OMAP_SEQUENCE_DIGITS = 7, OMAP_WRITER_DIGITS = 6 };
enum omap_operand_kind { OMAP_APPENDED = 'A', OMAP_COMBINED = 'C' };

struct omap_operand_id {
    enum omap_operand_kind kind;
    uint64_t sequence; /* of this operand by its writer */
    uint64_t oldest;   /* of a combined one: the sequence that it sorts by */
    uint64_t writer;
};

#define OMAP_WRITERS (255ull * 255 * 255 * 255 * 255 * 255) /* a writer's number is below */

/* The keys of a partition. Ballot: compared by conditional writes. Pieces: the list of objects with most of its rows,
 * if it is wide (engine/rados/pieces.h). Removals: a mark that changes with each write that removes operands
 * of it. Fence: marks the begin of a piece. */
enum omap_partition_key { OMAP_FENCE = 1, OMAP_BALLOT = 'B', OMAP_PIECES = 'P', OMAP_REMOVALS = 'R' };
enum { OMAP_PARTITION_KEYS_MAX = 3 };
#define OMAP_PARTITION_KEYS "\x02\x01\x01" /* follows the escaped prefix */
void omap_key_partition(struct buf *out, struct slice prefix, enum omap_partition_key what);
void omap_key_escape(struct buf *out, struct slice bytes);
/* A key of objects as a C string in the arena: the escaped record key or prefix, without its table, and the suffix.
 * Returns NULL if memory is exhausted. */
const char *omap_key_string(struct arena *a, struct slice record_key, const char *suffix) MUST_CHECK;
/* Returns -1 if damaged, or memory is exhausted. */
int omap_key_unescape(struct slice escaped, struct buf *out) MUST_CHECK;
void omap_key_number(struct buf *out, uint64_t v, unsigned digits);
void omap_key_operand(struct buf *out, const struct omap_operand_id *id);
uint64_t omap_number_read(struct slice digits);
/* Splits the key of an operand: appends the record's key to record, unescaped. It has a partition's prefix and
 * a kind. Returns -1 if damaged. */
int omap_key_read(struct slice key, struct buf *record, struct omap_operand_id *id) MUST_CHECK;
/* Appends the record's key; for a partition's own key, the key that a record of kind 0 would have. */
int omap_key_record(struct slice key, struct buf *record) MUST_CHECK;
/* Returns the part of a key before the operand id, with the end mark: equal for the operands of one
 * record. */
struct slice omap_key_record_part(struct slice key);
/* Returns the purpose of a partition's own key, or 0 if it is an operand's key. */
enum omap_partition_key omap_key_of_partition(struct slice key);
