/* The partitions that = and IN name, as Keyspaces reads them: every element of the product of the
 * IN lists is a query of its own, in their order, and a page ends after every tenth ("Use the IN
 * operator with the SELECT statement",
 * https://docs.aws.amazon.com/keyspaces/latest/devguide/in.select.html). */
#include "keyspaces/quota.h"
#include "cql/read/engine_source.h"
#include "cql/read/select.h"

struct keys {
    struct eng_part *parts, part;
    struct where_subquery *each, row; /* of every partition; NULL: one for all of its rows */
    struct eng_slice row_slice;
    uint32_t n_parts, n_each;
    uint64_t first, at, total, begun, most; /* most: that a page begins */
    const struct paging_state *resume;
};

static int eval(const struct read_spec *spec, void **out, bool *none) {
    const struct where_plan *w = spec->plan->where;
    struct cql_run *r = spec->r;
    struct keys *k = ARENA_NEW(r->arena, struct keys);
    if (!k) return err_nomem(r->err);
    *out = k;
    k->n_each = 1;
    if (LIKELY(w->one_row)) {
        k->parts = &k->part;
        k->each = &k->row;
        k->n_parts = 1;
        k->row.is_row = true;
        return where_row(w, &r->eval, true, &k->part, &k->row.key);
    }
    struct where_keys keys;
    if (where_key_values(w, &r->eval, &keys)) return -1;
    if (where_parts(w, &r->eval, &keys, false, &k->parts, &k->n_parts)) return -1;
    if (w->rows != WHERE_ALL_ROWS && where_subqueries(w, &r->eval, &k->each, &k->n_each)) return -1;
    *none = k->n_parts == 0;
    uint64_t n = (uint64_t)k->n_parts * k->n_each;
    struct compat compat = compat_in(r, &r->compiled->compat);
    if (LIKELY(n <= QUOTA_IN_SUBQUERIES)) return 0;
    return compat_refuse(&compat, REFUSE_IN_SUBQUERIES, r->err, n > INT32_MAX ? INT32_MAX : (int)n,
                         QUOTA_IN_SUBQUERIES);
}

static void fill(struct keys *k, struct piece *out, const struct where_subquery *q, bool distinct) {
    if (!q) return;
    out->slices = q->slices;
    out->n_slices = q->n_slices;
    if (q->has_bound) out->bound = &q->bound;
    if (q->is_row) {
        k->row_slice = (struct eng_slice){.from = {.key = q->key.ck}, .to = {.key = q->key.ck, .after = true}};
        out->kind = distinct ? PIECE_SCAN : PIECE_POINT;
        out->ck = q->key.ck;
        out->slices = &k->row_slice;
        out->n_slices = 1;
    } else if (q->n_slices == 0) {
        out->kind = PIECE_EMPTY;
    }
}

static int next_piece(struct engine_source *s, void *keys, struct piece *out) {
    struct keys *k = keys;
    if (s->base.last_query) return 0;
    for (; k->at < k->total; k->at++) {
        const struct paging_state *from = k->resume && k->at == k->first ? k->resume : NULL;
        const struct where_subquery *q = k->each ? &k->each[k->at % k->n_each] : NULL;
        if ((from && !from->ck.p && !from->before) || (from && from->ck.p && q && q->is_row)) continue;
        if (k->begun++ == k->most) return engine_source_end_page(s, k->parts[s->index / k->n_each].key);
        s->index = (uint32_t)k->at;
        *out = (struct piece){.kind = PIECE_SCAN, .part = &k->parts[k->at++ / k->n_each], .resume = from};
        fill(k, out, q, s->spec.plan->distinct);
        return 1;
    }
    return 0;
}

static struct read_source *open(const struct read_spec *spec, void *keys) {
    struct keys *k = keys;
    struct cql_run *r = spec->r;
    k->resume = spec->resume;
    k->first = k->at = spec->resume ? spec->resume->partition : 0;
    k->total = (uint64_t)k->n_parts * k->n_each;
    k->most = spec->paged ? QUOTA_IN_PAGE_SUBQUERIES : UINT64_MAX;
    if (spec->paged && spec->page_rows < k->most) k->most = spec->page_rows;
    if (spec->paged && spec->limit < k->most) k->most = spec->limit;
    if (k->total > UINT32_MAX)
        return (void)err_invalid(r->err, "The product of the IN lists has more than %u elements", UINT32_MAX), NULL;
    if (k->resume && (k->first >= k->total || !slice_eq(k->parts[k->first / k->n_each].key, k->resume->key)))
        return (void)paging_refuse(r->err), NULL;
    struct read_spec one = *spec;
    bool single = k->total == 1 && k->each && k->each->is_row;
    if (single) one.page_rows = UINT64_MAX;
    struct read_source *s = engine_source_new(&one, &path_subqueries, next_piece, k, single ? 1 : READ_BATCH);
    if (s) s->single = single;
    return s;
}

const struct access_path path_subqueries = {.work_class = WORK_READ,
                                            .eval = eval,
                                            .open = open,
                                            .begin_part = engine_source_begin_part,
                                                  .unread = engine_source_unread,
                                            .place = engine_source_place,
                                            .close = engine_source_close};
