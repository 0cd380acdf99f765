/* The partitions that = and IN name, as Cassandra reads them: each with all its slices, in the
 * order of the keys' values. */
#include "cql/read/engine_source.h"
#include "cql/read/select.h"

struct keys {
    struct eng_part *parts, part;
    struct row_key *rows, row;
    struct eng_slice *slices, row_slice;
    uint32_t n_parts, n_rows, n_slices, first, at;
    const struct paging_state *resume;
};

static int eval(const struct read_spec *spec, void **out, bool *none) {
    const struct where_plan *w = spec->plan->where;
    struct cql_run *r = spec->r;
    struct keys *k = ARENA_NEW(r->arena, struct keys);
    if (!k) return err_nomem(r->err);
    *out = k;
    if (LIKELY(w->one_row)) {
        k->parts = &k->part;
        k->rows = &k->row;
        k->n_parts = k->n_rows = 1;
        return where_row(w, &r->eval, false, &k->part, &k->row);
    }
    struct where_keys keys;
    if (where_key_values(w, &r->eval, &keys)) return -1;
    if (w->rows == WHERE_ROW_KEYS && where_row_keys(w, &r->eval, &k->rows, &k->n_rows)) return -1;
    if (w->rows != WHERE_ALL_ROWS && k->n_rows != 1 && where_slices(w, &r->eval, &k->slices, &k->n_slices)) return -1;
    *none = w->rows != WHERE_ALL_ROWS && k->n_rows == 0 && k->n_slices == 0;
    if (*none) return 0;
    if (where_parts(w, &r->eval, &keys, true, &k->parts, &k->n_parts)) return -1;
    *none = k->n_parts == 0;
    return 0;
}

static int next_piece(struct engine_source *s, void *keys, struct piece *out) {
    struct keys *k = keys;
    for (; k->at < k->n_parts; k->at++) {
        const struct paging_state *from = k->resume && k->at == k->first ? k->resume : NULL;
        if (from && (from->ck.p ? k->n_rows == 1 : !from->before)) continue; /* the page before read all of it */
        s->index = k->at;
        *out = (struct piece){.kind = PIECE_SCAN,
                              .part = &k->parts[k->at++],
                              .slices = k->slices,
                              .n_slices = k->n_slices,
                              .resume = from};
        if (k->n_rows == 1) {
            out->kind = s->spec.plan->distinct ? PIECE_SCAN : PIECE_POINT;
            out->ck = k->rows[0].ck;
            out->slices = &k->row_slice;
            out->n_slices = 1;
        } else if (s->spec.plan->where->rows != WHERE_ALL_ROWS && k->n_slices == 0) {
            out->kind = PIECE_EMPTY;
        }
        return 1;
    }
    return 0;
}

static struct read_source *open(const struct read_spec *spec, void *keys) {
    struct keys *k = keys;
    k->resume = spec->resume;
    k->first = k->at = spec->resume ? spec->resume->partition : 0;
    if (k->resume && (k->first >= k->n_parts || !slice_eq(k->parts[k->first].key, k->resume->key)))
        return (void)paging_refuse(spec->r->err), NULL;
    if (k->n_rows == 1)
        k->row_slice = (struct eng_slice){.from = {.key = k->rows[0].ck}, .to = {.key = k->rows[0].ck, .after = true}};
    struct read_source *s = engine_source_new(spec, &path_keys, next_piece, k, k->n_rows == 1 ? 1 : READ_BATCH);
    if (s) s->single = k->n_parts == 1 && k->n_rows == 1;
    return s;
}

const struct access_path path_keys = {.in_keyspaces = &path_subqueries,
                                      .work_class = WORK_READ,
                                      .eval = eval,
                                      .open = open,
                                      .begin_part = engine_source_begin_part,
                                      .unread = engine_source_unread,
                                      .place = engine_source_place,
                                      .close = engine_source_close};
