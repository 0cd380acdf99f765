/* SELECT: the partitions that = and IN name. Cassandra reads each with all its slices; Keyspaces makes a query of its own of every
 * element of the product of the IN lists, in their order, and ends a page after every tenth (reference/keyspaces.md 1.4, 1.5). */
#include "base/quota.h"
#include "cql/request/request.h"
#include "cql/request/db.h"
#include "cql/read/select.h"


struct key_plan {
    struct eng_part *parts;
    struct row_key *keys;
    struct eng_slice *slices;
    uint32_t n_parts, n_keys, n_slices;
    bool whole; /* no restriction on rows */
    struct where_subquery *each; /* as Keyspaces, instead of keys and slices; whole: NULL, for one */
    uint32_t n_each;
};

static int bad_state(struct select_state *run) { return err_set(run->r->err, ERR_PROTOCOL, "Invalid value for the paging state"); }

/* What a page left of the partition or subquery is nothing. */
static bool is_done(const struct paging_state *from) { return from && !from->ck.p && !from->before; }

/* ---- as Cassandra ---- */

static int read_part(struct select_state *run, const struct key_plan *k, const struct eng_part *part, const struct paging_state *resume) {
    if (k->n_keys == 1 && !run->plan->distinct) return select_read_point(run, part, k->keys[0].ck);
    if (select_read_new(run)) return -1;
    if (!k->whole && k->n_slices == 0 && k->n_keys != 1) return 0;
    struct eng_slice one = {0};
    if (k->n_keys == 1) one = (struct eng_slice){.from = {.key = k->keys[0].ck}, .to = {.key = k->keys[0].ck, .after = true}};
    struct eng_scan_spec spec = {.part = part, .slices = k->n_keys == 1 ? &one : k->slices, .n_slices = k->n_keys == 1 ? 1 : k->n_slices};
    return select_read_scan(run, &spec, resume, NULL);
}

static int run_parts(struct select_state *run, const struct key_plan *k, const struct paging_state *resume) {
    uint32_t first = resume ? resume->partition : 0;
    if (k->n_parts == 1 && k->n_keys == 1) run->page_left = UINT64_MAX; /* one row is never followed by a page */
    if (resume && (first >= k->n_parts || !slice_eq(k->parts[first].key, resume->key))) return bad_state(run);
    for (uint32_t i = first; i < k->n_parts && !run->page_full && !run->done; i++) {
        const struct paging_state *from = i == first ? resume : NULL;
        run->partition = i;
        if (is_done(from) || (from && k->n_keys == 1)) continue;
        int rc = read_part(run, k, &k->parts[i], from);
        if (rc < 0) return rc;
    }
    return 0;
}

/* ---- as Keyspaces ---- */

static int read_subquery(struct select_state *run, const struct eng_part *part, const struct where_subquery *q, const struct paging_state *resume) {
    if (q && q->is_row && !run->plan->distinct) return select_read_point(run, part, q->key.ck);
    if (select_read_new(run)) return -1;
    struct eng_slice one = {0};
    struct eng_scan_spec spec = {.part = part};
    if (q) {
        if (q->is_row) one = (struct eng_slice){.from = {.key = q->key.ck}, .to = {.key = q->key.ck, .after = true}};
        spec.slices = q->is_row ? &one : q->slices;
        spec.n_slices = q->is_row ? 1 : q->n_slices;
    }
    int rc = q && spec.n_slices == 0 ? 0 : select_read_scan(run, &spec, resume, NULL);
    if (rc || run->page_full || run->done || !q || !q->has_bound) return rc;
    return select_read_bound(run, part, &q->bound);
}

/* A page ends after so many subqueries. */
static uint64_t subqueries_of_page(const struct select_state *run) {
    uint64_t n = QUOTA_IN_PAGE_SUBQUERIES;
    if (!run->paged) return UINT64_MAX;
    if (run->page_left < n) n = run->page_left;
    return run->has_limit && run->limit_left < n ? run->limit_left : n;
}

static int run_subqueries(struct select_state *run, const struct key_plan *k, const struct paging_state *resume) {
    uint64_t total = (uint64_t)k->n_parts * k->n_each, first = resume ? resume->partition : 0, begun = 0, most = subqueries_of_page(run);
    if (total == 1 && k->each && k->each->is_row) run->page_left = UINT64_MAX; /* one row is never followed by a page */
    if (total > UINT32_MAX) return err_invalid(run->r->err, "The product of the IN lists has more than %u elements", UINT32_MAX);
    if (resume && (first >= total || !slice_eq(k->parts[first / k->n_each].key, resume->key))) return bad_state(run);
    for (uint64_t i = first; i < total && !run->page_full && !run->done && !run->limit_reached; i++) {
        const struct paging_state *from = i == first ? resume : NULL;
        const struct eng_part *part = &k->parts[i / k->n_each];
        const struct where_subquery *q = k->each ? &k->each[i % k->n_each] : NULL;
        run->partition = (uint32_t)i;
        if (is_done(from) || (from && from->ck.p && q && q->is_row)) continue;
        int rc = read_subquery(run, part, q, from);
        if (rc < 0) return rc;
        if (run->page_full || ++begun < most || i + 1 == total) continue;
        if (select_out_done(run, part->key)) return -1;
        run->page_full = true;
    }
    return 0;
}

/* ---- either ---- */

int select_keys_eval(struct select_state *run, const struct key_plan **out) {
    const struct where_plan *w = run->plan->where;
    struct cql_request *r = run->r;
    struct key_plan *k = ARENA_NEW(r->arena, struct key_plan);
    *out = k;
    if (!k) return err_nomem(r->err);
    k->whole = w->rows == WHERE_ALL_ROWS;
    k->n_each = 1;
    if (where_parts(w, r, !run->as_keyspaces, &k->parts, &k->n_parts)) return -1;
    if (k->whole) return 0;
    if (run->as_keyspaces) return where_subqueries(w, r, &k->each, &k->n_each);
    if (w->rows == WHERE_ROW_KEYS && where_row_keys(w, r, &k->keys, &k->n_keys)) return -1;
    return k->n_keys == 1 ? 0 : where_slices(w, r, &k->slices, &k->n_slices);
}

bool select_keys_none(const struct key_plan *k) {
    return k->n_parts == 0 || (!k->whole && !k->each && k->n_keys == 0 && k->n_slices == 0);
}

int select_keys_run(struct select_state *run, const struct key_plan *k, const struct paging_state *resume) {
    return run->as_keyspaces ? run_subqueries(run, k, resume) : run_parts(run, k, resume);
}
