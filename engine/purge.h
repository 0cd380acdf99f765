/* What may be dropped of a stored row: what a deletion covers, and expired cells and tombstones
 * that are old enough. Private to engine/. */
#pragma once

#include "engine/row_codec.h"

struct engi_purge_limits {
    int64_t before_ts, before_seconds; /* dead before both, it may go */
    int64_t covered_ts;                /* up to here, a deletion that stays covers it; ENG_NO_TS: none */
};

/* What is in the row that is left. */
struct engi_purged {
    uint32_t dropped;
    uint32_t expired; /* of those: a marker or cells whose time to live has ended, and that no deletion covers */
    bool empty, row_deletion, dead_cells;
    int64_t newest_ts;
};

/* out (empty) gets the row without what may be dropped. -1: the bytes are damaged. */
int engi_purge_row(const struct engi_purge_limits *limits, struct slice value, struct buf *out,
                   struct engi_purged *purged) MUST_CHECK;

/* ---- for who keeps what the store holds ---- */

struct eng;
struct engi_table;
/* The row's earliest moment in seconds that gc_grace counts from; INT64_MAX: there is none,
 * INT64_MIN: it may change at any time. */
int64_t engi_purge_from(struct slice value);
/* Whether a compaction may by now have taken away something that is from that moment. */
bool engi_may_be_purged(const struct eng *eng, const struct engi_table *t, int64_t from);
