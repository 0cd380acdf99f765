/* Columns that were dropped: what is stored of them and is not newer than the drop is hidden, also
 * from a column that gets the name and the id again. Private to engine/ but for struct eng_dropped
 * (engine.h).
 *
 * A table's list is replaced as a whole, at a change of the schema; one that readers may hold is
 * freed after them (engine/epoch.h).
 */
#pragma once

#include "engine/engine.h"
#include "engine/epoch.h"

struct engi_dropped {
    struct engi_retired retired;
    uint32_t n;
    struct eng_dropped items[]; /* by column */
};

/* Takes out of a row as it was decoded what the list hides. as_stored: the row is written back,
 * with what a column that comes again would have. */
void engi_dropped_take(const struct engi_dropped *d, struct eng_row *row, bool as_stored);
static inline void engi_dropped_hide(const struct engi_dropped *d, struct eng_row *row, bool as_stored) {
    if (UNLIKELY(d != NULL) && row->n_cells) engi_dropped_take(d, row, as_stored);
}
