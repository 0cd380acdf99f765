/* Do the partition keys of a table only grow, or only shrink? A detector on the stream of its writes, a few words a table.
 *
 * Of every write to another partition than the one before, it notes whether its key is above all keys of the running window, below all of them, or neither. A
 * window is ORDER_WINDOW such writes; it is one-way when at least ORDER_NEEDED of them (the first counts) were new extremes of one kind. A
 * pattern is told after ORDER_IN_A_ROW one-way windows of the same kind, until a window is not.
 *
 * Keys are compared as the bytes that they are stored by: numbers that do not change their sign, timestamps, dates and texts are in their order.
 *
 * False positives: of keys in random order, a window is one-way in one direction with probability (c(10, 10) + c(10, 9)) / 10! = 46 / 3,628,800 = 1.27e-5 (c: the
 * unsigned Stirling numbers of the first kind, which count permutations by their records), so two in a row with 1.6e-10: once in 6e10 writes.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"

enum { ORDER_WINDOW = 10, ORDER_NEEDED = 9, ORDER_IN_A_ROW = 2, ORDER_KEY = 16 };
enum order_pattern { ORDER_NONE, ORDER_APPEND_ONLY, ORDER_PREPEND_ONLY };

/* The beginning of a key: enough to tell which is greater, but for keys that begin alike. */
struct order_key {
    uint8_t n, bytes[ORDER_KEY];
};
struct order {
    struct order_key last, least, most;
    uint8_t n, up, down;       /* of the running window */
    uint8_t up_row, down_row;  /* one-way windows in a row, at most ORDER_IN_A_ROW */
    uint64_t windows, one_way; /* that were full; of them, the one-way ones */
};

/* The next write's partition key. */
void order_add(struct order *o, struct slice key);
enum order_pattern order_pattern(const struct order *o);
const char *order_pattern_name(enum order_pattern p);
