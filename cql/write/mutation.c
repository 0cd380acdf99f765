#include "cql/write/mutation.h"

#include <assert.h>
#include <stdlib.h>

#include "cql/request/db.h"

enum { LOOP_CELLS_MAX = 1024, LOOP_BYTES_MAX = 64 << 10 };

static int compare_parts(const struct eng_part *a, const struct eng_part *b) {
    if (a->table != b->table) return a->table < b->table ? -1 : 1;
    if (a->token != b->token) return a->token < b->token ? -1 : 1;
    return slice_cmp(a->key, b->key);
}

static int by_part(const void *a, const void *b) {
    return compare_parts(((const struct mutation_address *)a)->part, ((const struct mutation_address *)b)->part);
}

int mutations_open(struct mutations *m, struct mutation_address *addresses, size_t n) {
    m->list = arena_alloc(m->r->arena, (n + 1) * sizeof *m->list);
    if (!m->list) return err_nomem(m->r->err);
    if (n > 1) qsort(addresses, n, sizeof *addresses, by_part);
    m->n = 0;
    for (size_t i = 0; i < n; i++) {
        const struct mutation_address *a = &addresses[i];
        if (m->n && compare_parts(a->part, &m->list[m->n - 1].part) == 0) {
            assert(a->table == m->list[m->n - 1].table); /* M1 */
            continue;
        }
        m->list[m->n++] = (struct mutation){.table = a->table, .part = *a->part};
    }
    return 0;
}

struct mutation *mutations_find(const struct mutations *m, const struct eng_part *part) {
    uint32_t from = 0, to = m->n;
    while (to - from > 1) {
        uint32_t middle = from + (to - from) / 2;
        if (compare_parts(&m->list[middle].part, part) <= 0) from = middle;
        else to = middle;
    }
    return &m->list[from];
}

struct change *mutation_add(struct mutations *m, struct mutation *to, enum change_kind kind) {
    struct change *c = arena_alloc(m->r->arena, sizeof *c);
    if (!c) return err_null(err_nomem(m->r->err));
    *c = (struct change){.kind = kind, .row = ENG_ROW_EMPTY(ENG_ROW, slice_of("", 0))};
    if (to->last) to->last->next = c;
    else to->first = c;
    return to->last = c;
}

void mutation_drop_newest(struct mutation *of, struct change *last) {
    of->last = last;
    if (last) last->next = NULL;
    else of->first = NULL;
}

bool mutation_is_locked(const struct cql_run *r, const struct mutation *m) {
    return r->blocking ? eng_holds(r->db->options.eng, &m->part) : eng_batch_holds(r->batch, &m->part);
}

int mutation_get(struct cql_run *r, const struct mutation *m, enum eng_row_kind kind, struct slice ck, int64_t now,
                 struct arena *a, struct eng_row *row, struct op_cost *cost) {
    struct eng *eng = r->db->options.eng;
    assert(mutation_is_locked(r, m)); /* invariant 5 */
    if (r->blocking) return eng_row_get(eng, ENG_TIER_ANY, &m->part, kind, ck, now, a, row, cost, r->err);
    if (eng_batch_has_written(r->batch, &m->part, kind, ck)) return ENG_INCOMPLETE;
    int got = eng_row_get(eng, ENG_TIER_CACHE, &m->part, kind, ck, now, a, row, cost, r->err);
    if (got <= 0) return got;
    /* A row that would take a loop too long is for a worker. */
    size_t bytes = 0;
    if (row->n_cells > LOOP_CELLS_MAX) return ENG_INCOMPLETE;
    for (uint32_t i = 0; i < row->n_cells; i++) bytes += row->cells[i].value.n;
    return bytes > LOOP_BYTES_MAX ? ENG_INCOMPLETE : got;
}

int mutation_read(struct cql_run *r, struct mutation *m, enum eng_row_kind kind, struct slice ck, int64_t now,
                  struct eng_row **row) {
    *row = ARENA_NEW(r->arena, struct eng_row);
    if (!*row) return err_nomem(r->err);
    int rc = mutation_get(r, m, kind, ck, now, r->arena, *row, r->cost);
    if (rc <= 0) return rc;
    struct mutation_read *read = ARENA_NEW(r->arena, struct mutation_read);
    if (!read) return err_nomem(r->err);
    *read = (struct mutation_read){.next = m->reads, .ck = ck, .row = *row};
    m->reads = read;
    return rc;
}
