/* Counters: from the increments of a statement or a batch to new values.
 *
 * Every increment is first added as a change whose cells hold it. Then each row is read once, and its
 * counters become the stored value plus all increments. So a batch is one write, whatever it
 * increments twice. */
#include <stdlib.h>

#include "cql/write/multicell.h"
#include "cql/write/mutation.h"

/* One increment. */
struct increment {
    struct change *change;
    struct eng_cell *cell;
};

static int compare_rows(const struct eng_row *a, const struct eng_row *b) {
    return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : slice_cmp(a->ck, b->ck);
}

static int by_counter(const void *a, const void *b) {
    const struct increment *x = a, *y = b;
    int c = compare_rows(&x->change->row, &y->change->row);
    return c ? c : (x->cell->column > y->cell->column) - (x->cell->column < y->cell->column);
}

/* Takes the changes that hold increments out of the mutation. Returns all their cells, sorted by
 * row and column, or NULL if memory is exhausted. */
static struct increment *take(struct arena *a, struct mutation *of, size_t *n) {
    size_t cells = 0;
    for (const struct change *c = of->first; c; c = c->next) cells += c->counts ? c->row.n_cells : 0;
    struct increment *all = ARENA_ARRAY(a, cells + 1, struct increment);
    *n = 0;
    if (!all) return NULL;
    struct change **at = &of->first;
    of->last = NULL;
    while (*at) {
        struct change *c = *at;
        for (uint32_t i = 0; c->counts && i < c->row.n_cells; i++)
            all[(*n)++] = (struct increment){.change = c, .cell = &c->row.cells[i]};
        if (c->counts) {
            *at = c->next;
        } else {
            of->last = c;
            at = &c->next;
        }
    }
    if (*n) qsort(all, *n, sizeof *all, by_counter);
    return all;
}

/* Replaces n increments, all of one row, by one change with the row's new values. */
static int settle_row(struct mutations *m, struct mutation *of, const struct increment *all, size_t n, int64_t now,
                      int64_t *newest) {
    const struct eng_row *delta = &all[0].change->row;
    struct arena *a = m->r->arena;
    struct eng_row *before;
    struct change *c = mutation_add(m, of, CHANGE_ROW);
    if (!c) return -1;
    int rc = mutation_read(m->r, of, delta->kind, delta->ck, now, &before);
    if (rc < 0) return rc;
    if (before->newest_ts > *newest) *newest = before->newest_ts;
    /* Lists each change once in c->summed and clears its counts. */
    for (size_t i = 0; i < n; i++) {
        struct change *part = all[i].change;
        if (!part->counts) continue;
        part->counts = false;
        part->next = c->summed;
        c->summed = part;
    }
    c->row = *delta;
    c->row.n_cells = 0;
    c->row.cells = ARENA_ARRAY(a, n, struct eng_cell);
    if (!c->row.cells) return err_nomem(m->r->err);
    for (size_t i = 0; i < n;) {
        const struct eng_cell *cell = all[i].cell;
        const struct schema_column *column = schema_column_by_id(of->table, cell->column);
        uint32_t n_cells;
        const struct eng_cell *have = column ? cells_of(rc ? before : NULL, column, &n_cells) : NULL;
        uint64_t sum = have && have->value.n == 8 ? load_u64(have->value.p) : 0;
        for (; i < n && all[i].cell->column == cell->column; i++) sum += load_u64(all[i].cell->value.p);
        uint8_t *p = arena_alloc(a, 8);
        if (!p) return err_nomem(m->r->err);
        store_u64(p, sum);
        c->row.cells[c->row.n_cells] = *cell;
        c->row.cells[c->row.n_cells++].value = slice_of(p, 8);
    }
    return 0;
}

int counter_settle(struct mutations *m, int64_t now) {
    int64_t newest = ENG_NO_TS;
    for (uint32_t i = 0; i < m->n; i++) {
        size_t n, from = 0;
        struct increment *all = take(m->r->arena, &m->list[i], &n);
        if (!all) return err_nomem(m->r->err);
        while (from < n) {
            size_t to = from + 1;
            while (to < n && compare_rows(&all[from].change->row, &all[to].change->row) == 0) to++;
            int rc = settle_row(m, &m->list[i], all + from, to - from, now, &newest);
            if (rc) return rc;
            from = to;
        }
    }
    /* Increments and deletions of a write have one timestamp, so that a deletion wins. */
    for (uint32_t i = 0; i < m->n; i++)
        for (struct change *c = m->list[i].first; c; c = c->next) {
            if (c->row.del_ts != ENG_NO_TS) c->row.del_ts = eng_ts_above(c->row.del_ts, newest);
            for (uint32_t k = 0; k < c->row.n_cells; k++) c->row.cells[k].ts = eng_ts_above(c->row.cells[k].ts, newest);
        }
    return 0;
}
