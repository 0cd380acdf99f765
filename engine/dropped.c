#include "engine/dropped.h"

#include <stdlib.h>

#include "engine/store.h"

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

static void free_list(struct engi_retired *r) { free(r); }

static bool same(const struct engi_dropped *d, uint32_t n, const struct eng_dropped *items) {
    if (!d) return n == 0;
    bool all = d->n == n;
    for (uint32_t i = 0; i < n && all; i++)
        all = d->items[i].column == items[i].column && d->items[i].ts == items[i].ts &&
              d->items[i].gone == items[i].gone;
    return all;
}

static struct engi_dropped *list_new(uint32_t n, const struct eng_dropped *items) {
    struct engi_dropped *d = malloc(sizeof *d + n * sizeof *items);
    if (!d) return NULL;
    *d = (struct engi_dropped){.retired.free = free_list, .n = n};
    for (uint32_t i = 0; i < n; i++) d->items[i] = items[i];
    return d;
}

static int set_list(struct eng *eng, struct engi_table *t, uint32_t n, const struct eng_dropped *items, struct err *e) {
    struct engi_dropped *now = atomic_load(&t->dropped);
    if (same(now, n, items)) return 0;
    struct engi_dropped *d = list_new(n, items);
    if (!d) return err_nomem(e);
    atomic_store(&t->dropped, d);
    if (now) engi_retire(&eng->epoch, &now->retired);
    return 0;
}

/* The catalogue's lock lets one thread at a time call this. */
int eng_table_set_dropped(struct eng *eng, uint32_t table, uint32_t n, const struct eng_dropped *items, struct err *e) {
    struct engi_section section = engi_enter(&eng->epoch);
    struct engi_table *t = engi_table(eng, table);
    int rc = t ? set_list(eng, t, n, items, e) : err_nomem(e);
    engi_leave(&eng->epoch, section);
    return rc;
}
