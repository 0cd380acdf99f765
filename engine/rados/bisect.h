/* Where a read downwards begins.
 *
 * An omap is read upwards only. So a reader that wants the last rows in front of a key has to find a
 * key from which few rows follow. It asks the object, in one operation, which key follows each of some
 * points between the range's ends, and goes on between the last point with a key behind it and the
 * next one. The points lie by the keys' first bytes in which the ends differ, as a number: at first
 * from near the range's begin to near its end, by powers of two, because rows may fill a range or a
 * part of it that is a millionth; then closer. It takes two to eight operations of a few keys.
 *
 * Q22. What is found chooses where a chunk of a read begins, and nothing else. The chunk is then read
 *      as any range is, and the next one ends where it begins. So keys that come or go meanwhile, or a
 *      piece that is gone, change how much a chunk has and not what the chunks have together.
 */
#pragma once

#include "engine/rados/rados.h"

struct bisect_range {
    struct slice from, to; /* record keys of one partition */
    uint64_t wanted;       /* keys in front of to */
    /* Another object has them from there on: fewer, or none, are enough. The keys are counted before any point is
     * looked at, because they are probably few. */
    bool any;
};

/* Puts a record key of the range in begin, from which on the object has about the wanted number of keys in
 * front of the range's end, or more. *keys: their number; BISECT_UNKNOWN: it is not known.
 * 0, also when there is no such object, or a negative error number. */
#define BISECT_UNKNOWN UINT64_MAX
int bisect_object(struct rados *s, const char *object, const struct bisect_range *range, struct buf *begin,
                  uint64_t *keys) MUST_CHECK;
