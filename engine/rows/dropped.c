#include "engine/rows/dropped.h"

void engi_dropped_take(const struct engi_dropped *d, struct eng_row *row, bool as_stored) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < row->n_cells; i++) {
        const struct eng_cell *cell = &row->cells[i];
        uint32_t from = 0, to = d->n;
        while (from < to) {
            uint32_t mid = from + (to - from) / 2;
            if (d->items[mid].column < cell->column) from = mid + 1;
            else to = mid;
        }
        const struct eng_dropped *of = from < d->n && d->items[from].column == cell->column ? &d->items[from] : NULL;
        if (!of || (cell->ts > of->ts && (as_stored || !of->gone))) row->cells[kept++] = *cell;
    }
    row->n_cells = kept;
}
