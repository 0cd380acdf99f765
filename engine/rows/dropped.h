/* Dropped columns: their stored values up to the time of the drop are hidden, also from a later
 * column with the same name and id. */
#pragma once

#include "engine/engine.h"

/* The dropped columns of one table. A change of the schema replaces the whole list. */
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
