/* The partition deletion and range tombstones of one partition, resolved to disjoint pieces. Private to engine/.
 *
 * Life: engi_tombs_add every record of the partition, engi_tombs_paint once, then ask for rows in any order.
 */
#pragma once

#include "engine/key.h"

struct engi_tomb {
    struct engi_interval range;
    int64_t ts;
};

struct engi_tombs {
    struct arena *arena; /* holds everything, also the bounds */
    int64_t partition_ts;
    struct engi_tomb *tombs; /* as added */
    uint32_t n, cap;
    struct slice *bounds; /* ascending; piece i is [bounds[i], bounds[i + 1]), the last one goes to the end */
    int64_t *piece_ts;
    uint32_t n_bounds;
};

void engi_tombs_init(struct engi_tombs *t, struct arena *a);
/* A record of the partition: key behind the kind, and its value. Bytes are copied. */
int engi_tombs_add(struct engi_tombs *t, enum engi_kind kind, struct slice rest, struct slice value, struct err *e) MUST_CHECK;
int engi_tombs_paint(struct engi_tombs *t, struct err *e) MUST_CHECK;
/* The newest deletion that covers a row of the partition; ENG_NO_TS: none. */
int64_t engi_tombs_at(const struct engi_tombs *t, struct slice ck);
