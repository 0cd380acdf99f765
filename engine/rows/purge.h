/* Drops the dead parts of a stored row: cells that a deletion covers, and expired cells and
 * tombstones that are old enough. Private to engine/. */
#pragma once

#include "engine/rows/row_codec.h"
#include "engine/table.h"

struct engi_purge_limits {
    int64_t before_ts, before_seconds; /* data that died before both may be dropped */
    int64_t covered_ts;                /* a deletion that stays covers data up to this timestamp; ENG_NO_TS: none */
};

/* The result of engi_purge_row: how much it dropped and kept. */
struct engi_purged {
    uint32_t dropped;
    uint32_t expired; /* of dropped: a marker or cells whose time to live has ended, and that no deletion covers */
    bool empty, row_deletion, dead_cells;
    int64_t newest_ts;
};

/* Writes the row without the dead parts to out, which is empty. Returns -1 if the bytes are
 * damaged. */
int engi_purge_row(const struct engi_purge_limits *limits, struct slice value, struct buf *out,
                   struct engi_purged *purged) MUST_CHECK;

/* ---- dropped columns ---- */

/* The dropped columns of one table: their stored values up to the time of the drop are hidden, also
 * from a later column with the same name and id. A change of the schema replaces the whole list. */
struct engi_dropped {
    uint32_t n;
    const struct eng_dropped *items; /* by column */
};

/* Removes the cells that the list hides from a decoded row. as_stored: the row is to be written
 * back, so values that a re-added column would show stay. */
void engi_dropped_take(const struct engi_dropped *d, struct eng_row *row, bool as_stored);
static inline void engi_dropped_hide(const struct engi_dropped *d, struct eng_row *row, bool as_stored) {
    if (UNLIKELY(d != NULL) && row->n_cells) engi_dropped_take(d, row, as_stored);
}
