/* Do the partition keys of a table only grow, or only shrink? A detector on the stream of its
 * writes.
 *
 * Keys are compared in the order of their columns' types, column by column, as Azure Table Storage
 * orders its partition keys as texts: the greatest value is at the end of the table. A key of
 * several columns is watched as a whole and by its first columns: every write to ((day, bucket))
 * goes to the end of the table although its buckets are in no order. A growing column after one
 * that does not grow spreads its writes, and is no pattern.
 *
 * A lead is the first columns of a key, or all of them. When a write's lead differs from that of
 * the previous write, the detector notes whether the lead is above all leads of the running window,
 * below all of them, or neither. A window is ORDER_WINDOW such writes; it is one-way when at least
 * ORDER_NEEDED of them (the first counts) were new extremes of one kind. The detector reports a
 * pattern after ORDER_IN_A_ROW one-way windows of the same kind, until a window is not one-way. An
 * extreme counts as new only if it also exceeds the earlier windows of the row: buckets 0 to 9 in
 * turn are no pattern. 20 values or more that are written in their order, again and again, look
 * like growing ones while they grow.
 *
 * False positives: of leads in random order, a window is one-way in one direction with probability
 * (c(10, 10) + c(10, 9)) / 10! = 46 / 3,628,800 = 1.27e-5 (c: the unsigned Stirling numbers of the
 * first kind, which count permutations by their records), so two in a row with at most 1.6e-10:
 * once in 6e10 writes.
 *
 * Memory: two keys a lead and one more, each of at most ORDER_KEY bytes. The detector ignores a
 * write to a longer key, which Amazon Keyspaces refuses.
 */
#pragma once

#include "base/buf.h"
#include "base/compiler.h"
#include "types/type.h"

enum { ORDER_WINDOW = 10, ORDER_NEEDED = 9, ORDER_IN_A_ROW = 2, ORDER_KEY = 2048, ORDER_LEADS = 4 };
enum order_pattern { ORDER_NONE, ORDER_APPEND_ONLY, ORDER_PREPEND_ONLY };

struct order_lead {
    struct buf least, most;    /* of the running window, and of the row of one-way windows that precede it */
    uint8_t n, up, down;       /* of the running window */
    uint8_t up_row, down_row;  /* one-way windows in a row, at most ORDER_IN_A_ROW; one of the two is 0 */
    uint64_t windows, one_way; /* that were full; of them, the one-way ones */
};
struct order {
    bool begun;
    int64_t last_token;                   /* of the previous write */
    struct buf last;                      /* its key, if keys have more than one column */
    struct order_lead leads[ORDER_LEADS]; /* of one column, of two and so on; a key's last one is of all columns */
};

/* An all-zero struct is a detector that has seen no writes. */
void order_fini(struct order *o);
/* The next write's partition key, as it is stored: the value of its one column, or of several [u16
 * length][value][0] each; and its token. types: of its n columns; the same number at each call.
 * Without memory the detector starts again. */
void order_add(struct order *o, const struct cql_type *const *types, uint32_t n, struct slice key, int64_t token);
enum order_pattern order_pattern(const struct order *o);
const char *order_pattern_name(enum order_pattern p);
