/* The partitions that = and IN name, each with its row or its slices.
 *
 * Cassandra reads each partition once with all its slices, in the order of the keys' values.
 * Keyspaces reads every element of the product of the IN lists as a separate query, in their
 * order, and ends a page after every tenth ("Use the IN operator with the SELECT statement",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/in.select.html). */
#include "keyspaces/quota.h"
#include "cql/read/engine_source.h"
#include "cql/read/select.h"

struct keys {
    struct eng_part *parts, part;
    struct where_subquery *each, one; /* of every partition; NULL for all of its rows */
    struct eng_slice row_slice;
    uint32_t n_parts, n_each;
    uint64_t first, at, total, begun, most; /* most: the maximum that a page begins */
    const struct paging_state *resume;
};

static int eval_subqueries(const struct read_spec *spec, const struct where_keys *values, struct keys *k) {
    const struct where_plan *w = spec->plan->where;
    struct cql_run *r = spec->r;
    if (where_parts(w, &r->eval, values, false, &k->parts, &k->n_parts)) return -1;
    if (w->rows != WHERE_ALL_ROWS && where_subqueries(w, &r->eval, &k->each, &k->n_each)) return -1;
    uint64_t n = (uint64_t)k->n_parts * k->n_each;
    struct compat compat = compat_in(r, &r->compiled->compat);
    if (LIKELY(n <= QUOTA_IN_SUBQUERIES)) return 0;
    return compat_refuse(&compat, REFUSE_IN_SUBQUERIES, r->err, n > INT32_MAX ? INT32_MAX : (int)n,
                         QUOTA_IN_SUBQUERIES);
}

static int eval_slices(const struct read_spec *spec, const struct where_keys *values, struct keys *k) {
    const struct where_plan *w = spec->plan->where;
    struct cql_run *r = spec->r;
    if (w->rows != WHERE_ALL_ROWS) {
        struct row_key *rows = NULL;
        uint32_t n_rows = 0;
        k->each = &k->one;
        if (w->rows == WHERE_ROW_KEYS && where_row_keys(w, &r->eval, &rows, &n_rows)) return -1;
        k->one.is_row = n_rows == 1;
        if (k->one.is_row) k->one.key = rows[0];
        else if (where_slices(w, &r->eval, &k->one.slices, &k->one.n_slices)) return -1;
        if (!k->one.is_row && !k->one.n_slices) return 0;
    }
    return where_parts(w, &r->eval, values, true, &k->parts, &k->n_parts);
}

static int next_piece(struct engine_source *s, void *keys, struct piece *out) {
    struct keys *k = keys;
    if (s->base.last_query) return 0;
    for (; k->at < k->total; k->at++) {
        const struct paging_state *from = k->resume && k->at == k->first ? k->resume : NULL;
        const struct where_subquery *q = k->each ? &k->each[k->at % k->n_each] : NULL;
        /* the previous page has read all of it */
        if ((from && !from->ck.p && !from->before) || (from && from->ck.p && q && q->is_row)) continue;
        if (k->begun++ == k->most) return engine_source_end_page(s, k->parts[s->index / k->n_each].key);
        s->index = (uint32_t)k->at;
        *out = (struct piece){.kind = PIECE_SCAN, .part = &k->parts[k->at++ / k->n_each], .resume = from};
        if (q && q->is_row) {
            k->row_slice = (struct eng_slice){.from = {.key = q->key.ck}, .to = {.key = q->key.ck, .after = true}};
            out->kind = s->spec.plan->distinct ? PIECE_SCAN : PIECE_POINT;
            out->ck = q->key.ck;
            out->slices = &k->row_slice;
            out->n_slices = 1;
        } else if (q) {
            out->kind = q->n_slices ? PIECE_SCAN : PIECE_EMPTY;
            out->slices = q->slices;
            out->n_slices = q->n_slices;
            out->bound = q->has_bound ? &q->bound : NULL;
        }
        return 1;
    }
    return 0;
}

static struct read_source *open(const struct read_spec *spec, bool *none) {
    const struct where_plan *w = spec->plan->where;
    struct cql_run *r = spec->r;
    struct where_keys values;
    struct keys *k = ARENA_NEW(r->arena, struct keys);
    if (!k) return err_null(err_nomem(r->err));
    k->n_each = 1;
    if (LIKELY(w->one_row)) {
        k->parts = &k->part;
        k->each = &k->one;
        k->n_parts = 1;
        k->one.is_row = true;
        if (where_row(w, &r->eval, spec->as_keyspaces, &k->part, &k->one.key)) return NULL;
    } else if (where_key_values(w, &r->eval, &values) ||
               (spec->as_keyspaces ? eval_subqueries(spec, &values, k) : eval_slices(spec, &values, k))) {
        return NULL;
    }
    *none = k->n_parts == 0;
    k->resume = spec->resume;
    k->first = k->at = spec->resume ? spec->resume->partition : 0;
    k->total = (uint64_t)k->n_parts * k->n_each;
    k->most = UINT64_MAX;
    if (spec->as_keyspaces && spec->paged) {
        k->most = QUOTA_IN_PAGE_SUBQUERIES;
        if (spec->page_rows < k->most) k->most = spec->page_rows;
        if (spec->limit < k->most) k->most = spec->limit;
    }
    if (k->total > UINT32_MAX)
        return err_null(err_invalid(r->err, "The product of the IN lists has more than %u elements", UINT32_MAX));
    if (k->resume && (k->first >= k->total || !slice_eq(k->parts[k->first / k->n_each].key, k->resume->key)))
        return err_null(paging_refuse(r->err));
    bool rows = k->each && k->n_each == 1 && k->each->is_row;
    return engine_source_new(spec, &path_keys, next_piece, k, rows ? 1 : READ_BATCH, rows && k->n_parts == 1);
}

const struct access_path path_keys = {.work_class = WORK_READ,
                                      .open = open,
                                      .begin_part = engine_source_begin_part,
                                      .unread = engine_source_unread,
                                      .position = engine_source_position,
                                      .close = engine_source_close};
