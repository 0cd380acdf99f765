#include "cql/write/locked.h"

#include "cql/request/db.h"

enum { LOOP_CELLS_MAX = 1024, LOOP_BYTES_MAX = 64 << 10 };

bool locked_holds(const struct cql_run *r, const struct eng_part *part) {
    return r->blocking ? eng_holds(r->db->options.eng, part) : eng_batch_holds(r->batch, part);
}

int locked_row_get(const struct cql_run *r, const struct eng_part *part, enum eng_row_kind kind, struct slice ck,
                   int64_t now, struct arena *a, struct eng_row *row, struct op_cost *cost) {
    struct eng *eng = r->db->options.eng;
    if (r->blocking) return eng_row_get(eng, ENG_TIER_ANY, part, kind, ck, now, a, row, cost, r->err);
    if (eng_batch_has_written(r->batch, part, kind, ck)) return ENG_INCOMPLETE;
    int got = eng_row_get(eng, ENG_TIER_CACHE, part, kind, ck, now, a, row, cost, r->err);
    if (got <= 0) return got;
    /* A row that would take a loop too long is for a worker. */
    size_t bytes = 0;
    if (row->n_cells > LOOP_CELLS_MAX) return ENG_INCOMPLETE;
    for (uint32_t i = 0; i < row->n_cells; i++) bytes += row->cells[i].value.n;
    return bytes > LOOP_BYTES_MAX ? ENG_INCOMPLETE : got;
}
