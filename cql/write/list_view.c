#include "cql/write/list_view.h"

/* Inserting or removing a list element moves those behind it; the limit of one statement. */
enum { MOVED_MAX = 1 << 24 };

int list_view_open(struct list_view *v, const struct schema_column *c, const struct eng_cell *cells, uint32_t n,
                   struct arena *a, struct err *e) {
    uint32_t capacity = n + 16;
    *v = (struct list_view){.column = c, .n = n, .capacity = capacity, .moved = v->moved,
                            .cells = ARENA_ARRAY(a, capacity, struct eng_cell)};
    if (!v->cells) return err_nomem(e);
    if (n) memcpy(v->cells, cells, n * sizeof *cells);
    return 0;
}

int list_view_apply(struct list_view *v, const struct eng_cell *cell, struct arena *a, struct err *e) {
    uint32_t at = 0;
    for (uint32_t end = v->n; at < end;) {
        uint32_t mid = (at + end) / 2;
        if (slice_cmp(v->cells[mid].path, cell->path) < 0) at = mid + 1;
        else end = mid;
    }
    bool there = at < v->n && slice_eq(v->cells[at].path, cell->path), dead = cell->flags & ENG_CELL_TOMBSTONE;
    struct eng_cell *here = &v->cells[at];
    if (there) { /* the rule that reconciles rows (engine/row.h) */
        bool same_time = cell->ts == here->ts;
        bool wins = same_time ? dead || slice_cmp(cell->value, here->value) > 0 : cell->ts > here->ts;
        if (!wins) return 0;
    }
    if (there && !dead) {
        *here = *cell;
        return 0;
    }
    if (!there && dead) return 0;
    v->moved += v->n - at;
    if (v->moved > MOVED_MAX)
        return err_invalid(e, "The list operations of one statement may not move more than %d elements", MOVED_MAX);
    if (!dead && v->n == v->capacity) {
        struct eng_cell *more = ARENA_ARRAY(a, 2 * (size_t)v->capacity, struct eng_cell);
        if (!more) return err_nomem(e);
        memcpy(more, v->cells, v->n * sizeof *more);
        v->cells = more;
        v->capacity *= 2;
    }
    here = &v->cells[at];
    memmove(dead ? here : here + 1, dead ? here + 1 : here, (v->n - at - dead) * sizeof *here);
    if (!dead) *here = *cell;
    v->n = dead ? v->n - 1 : v->n + 1;
    return 0;
}
