#include "engine/rows/dropped.h"

static bool hides(const struct engi_dropped *d, const struct eng_cell *cell, bool as_stored) {
    uint32_t from = 0, to = d->n;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (d->items[mid].column < cell->column) from = mid + 1;
        else to = mid;
    }
    if (from == d->n || d->items[from].column != cell->column) return false;
    return cell->ts <= d->items[from].ts || (d->items[from].gone && !as_stored);
}

void engi_dropped_take(const struct engi_dropped *d, struct eng_row *row, bool as_stored) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < row->n_cells; i++)
        if (!hides(d, &row->cells[i], as_stored)) row->cells[kept++] = row->cells[i];
    row->n_cells = kept;
}
