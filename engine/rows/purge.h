/* Drops the dead parts of a stored row: cells that a deletion covers, and expired cells and
 * tombstones that are old enough. Private to engine/. */
#pragma once

#include "engine/rows/row_codec.h"

struct engi_purge_limits {
    int64_t before_ts, before_seconds; /* data that died before both may be dropped */
    int64_t covered_ts;                /* a deletion that stays covers data up to this timestamp; ENG_NO_TS: none */
};

/* The result of engi_purge_row: how much it dropped, and what is left. */
struct engi_purged {
    uint32_t dropped;
    uint32_t expired; /* of dropped: a marker or cells whose time to live has ended, and that no deletion covers */
    bool empty, row_deletion, dead_cells;
    int64_t newest_ts;
};

/* Writes the row without the dead parts to out, which is empty. -1: the bytes are damaged. */
int engi_purge_row(const struct engi_purge_limits *limits, struct slice value, struct buf *out,
                   struct engi_purged *purged) MUST_CHECK;
