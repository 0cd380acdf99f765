#include "cql/write/mutation.h"

#include <assert.h>
#include <stdlib.h>

static int compare_parts(const struct eng_part *a, const struct eng_part *b) {
    if (a->table != b->table) return a->table < b->table ? -1 : 1;
    if (a->token != b->token) return a->token < b->token ? -1 : 1;
    return slice_cmp(a->key, b->key);
}

static int by_part(const void *a, const void *b) {
    return compare_parts(((const struct mutation_address *)a)->part, ((const struct mutation_address *)b)->part);
}

int mutations_open(struct mutations *m, struct mutation_address *addresses, size_t n) {
    m->list = arena_alloc(m->arena, (n + 1) * sizeof *m->list);
    if (!m->list) return err_nomem(m->err);
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
    struct change *c = arena_alloc(m->arena, sizeof *c);
    if (!c) return err_null(err_nomem(m->err));
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

int mutation_note_read(struct mutations *m, struct mutation *of, enum eng_row_kind kind, struct slice ck,
                       const struct eng_row *row) {
    struct mutation_read *r = ARENA_NEW(m->arena, struct mutation_read);
    if (!r) return err_nomem(m->err);
    *r = (struct mutation_read){.next = of->reads, .kind = kind, .ck = ck, .row = row};
    of->reads = r;
    return 0;
}

static int apply(const struct mutation *m, const struct change *c, struct eng_batch *b, struct op_cost *cost,
                 struct err *e) {
    /* An UPDATE may write nothing, for example when it removes elements that a list does not have. */
    const struct eng_row *row = &c->row;
    bool nothing = row->n_cells == 0 && row->live_ts == ENG_NO_TS && row->del_ts == ENG_NO_TS;
    switch (c->kind) {
    case CHANGE_ROW: return nothing ? 0 : eng_batch_row(b, &m->part, row, cost, e);
    case CHANGE_RANGE: return eng_batch_delete_range(b, &m->part, &c->range, c->row.del_ts, c->row.del_at, cost, e);
    case CHANGE_PARTITION: return eng_batch_delete_partition(b, &m->part, c->row.del_ts, c->row.del_at, cost, e);
    }
    return -1;
}

int mutations_apply(const struct mutations *m, uint32_t n, struct eng_batch *b, struct op_cost *cost) {
    for (uint32_t i = 0; i < n; i++)
        for (const struct change *c = m->list[i].written ? NULL : m->list[i].first; c; c = c->next)
            if (apply(&m->list[i], c, b, cost, m->err)) return -1;
    return 0;
}
