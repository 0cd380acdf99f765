/* A search for the begin of a read downwards.
 *
 * An omap can be read upwards only. So a reader that needs the last rows before a key has to find a
 * key that few rows follow. In one operation it reads the first key after each of some
 * points between the range's ends, and continues between the last point with a key after it and the
 * next point. The points are numbers made of the first bytes in which the ends differ: at first
 * from near the range's begin to near its end, by powers of two, because rows may fill the whole range or a
 * millionth of it; then closer. The search takes two to eight operations of a few keys.
 *
 * Q22. The result chooses where a chunk of a read begins, and nothing else. The chunk is then read
 *      as any range is, and the next chunk ends where it begins. So keys that are added or removed meanwhile, or a
 *      piece that is gone, change the size of a chunk and not the contents of all chunks together.
 */
#pragma once

#include "engine/rados/rados.h"

struct bisect_range {
    struct slice from, to; /* record keys of one partition */
    uint64_t wanted;       /* keys before to */
    /* Another object has the wanted number from there on: fewer keys, or none, are enough. The keys are counted before
     * any point is read, because they are probably few. */
    bool any;
};

/* Puts a record key of the range in begin, from which on the object has about the wanted number of keys before
 * the range's end, or more. *keys: their number, or BISECT_UNKNOWN.
 * Returns 0, also if there is no such object, or a negative error number. */
#define BISECT_UNKNOWN UINT64_MAX
int bisect_object(struct rados *s, const char *object, const struct bisect_range *range, struct buf *begin,
                  uint64_t *keys) MUST_CHECK;
