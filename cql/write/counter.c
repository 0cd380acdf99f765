#include "cql/write/counter.h"

#include <assert.h>
#include <stdlib.h>

#include "cql/write/locked.h"
#include "cql/write/multicell.h"

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
static struct increment *take(struct mutations *m, struct mutation *of, size_t *n) {
    size_t cells = 0;
    for (const struct change *c = of->first; c; c = c->next) cells += c->counts ? c->row.n_cells : 0;
    struct increment *all = ARENA_ARRAY(m->arena, cells + 1, struct increment);
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
static int settle_row(struct cql_run *r, struct mutations *m, struct mutation *of, const struct increment *all,
                      size_t n, int64_t now, int64_t *newest) {
    const struct eng_row *delta = &all[0].change->row;
    struct eng_row *before = ARENA_NEW(m->arena, struct eng_row);
    struct change *c = mutation_add(m, of, CHANGE_ROW);
    if (!before || !c) return err_nomem(m->err);
    assert(locked_holds(r, &of->part));
    int rc = locked_row_get(r, &of->part, delta->kind, delta->ck, now, m->arena, before, r->cost);
    if (rc < 0) return rc;
    if (mutation_note_read(m, of, delta->kind, delta->ck, rc ? before : NULL)) return -1;
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
    c->row.cells = ARENA_ARRAY(m->arena, n, struct eng_cell);
    if (!c->row.cells) return err_nomem(m->err);
    for (size_t i = 0; i < n;) {
        const struct eng_cell *cell = all[i].cell;
        const struct schema_column *column = schema_column_by_id(of->table, cell->column);
        uint32_t n_cells;
        const struct eng_cell *have = column ? cells_of(rc ? before : NULL, column, &n_cells) : NULL;
        uint64_t sum = have && have->value.n == 8 ? load_u64(have->value.p) : 0;
        for (; i < n && all[i].cell->column == cell->column; i++) sum += load_u64(all[i].cell->value.p);
        uint8_t *p = arena_alloc(m->arena, 8);
        if (!p) return err_nomem(m->err);
        store_u64(p, sum);
        c->row.cells[c->row.n_cells] = *cell;
        c->row.cells[c->row.n_cells++].value = slice_of(p, 8);
    }
    return 0;
}

static int settle_partition(struct cql_run *r, struct mutations *m, struct mutation *of, int64_t now,
                            int64_t *newest) {
    size_t n, from = 0;
    struct increment *all = take(m, of, &n);
    if (!all) return err_nomem(m->err);
    while (from < n) {
        size_t to = from + 1;
        while (to < n && compare_rows(&all[from].change->row, &all[to].change->row) == 0) to++;
        int rc = settle_row(r, m, of, all + from, to - from, now, newest);
        if (rc) return rc;
        from = to;
    }
    return 0;
}

int counter_settle(struct cql_run *r, struct mutations *m, int64_t now) {
    int64_t newest = ENG_NO_TS;
    for (uint32_t i = 0; i < m->n; i++) {
        int rc = settle_partition(r, m, &m->list[i], now, &newest);
        if (rc) return rc;
    }
    /* Increments and deletions of a write have one timestamp, so that a deletion wins. */
    for (uint32_t i = 0; i < m->n; i++)
        for (struct change *c = m->list[i].first; c; c = c->next) {
            if (c->row.del_ts != ENG_NO_TS) c->row.del_ts = eng_ts_above(c->row.del_ts, newest);
            for (uint32_t k = 0; k < c->row.n_cells; k++) c->row.cells[k].ts = eng_ts_above(c->row.cells[k].ts, newest);
        }
    return 0;
}
