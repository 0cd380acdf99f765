/* SELECT: a plan and bound values to reads of the engine. */
#include "base/murmur3.h"
#include "cql/request/request.h"
#include "cql/request/db.h"
#include "cql/read/select.h"

/* ---- ranges of tokens ---- */

static int run_tokens(struct select_state *run, int64_t from, int64_t to, const struct paging_state *resume) {
    struct quarters q = {.first = select_quarter(from)};
    struct eng_scan_spec spec = {.token_from = from, .token_to = to};
    bool whole = !run->plan->where->has_token;
    if (select_read_new(run)) return -1;
    if (resume) {
        struct eng_part part = {.token = murmur3_token(resume->key)};
        if (part.token < from || part.token > to) return err_set(run->r->err, ERR_PROTOCOL, "Invalid value for the paging state");
        q.first = select_quarter(part.token);
        q.seen = 1u << q.first;
    }
    int rc = select_read_scan(run, &spec, resume, whole ? &q : NULL);
    if (rc || !whole) return rc;
    uint32_t last = run->page_full || run->done ? select_quarter(murmur3_token(buf_slice(&run->key))) : 3;
    for (uint32_t i = q.first; i <= last; i++) run->r->cost->empty_partitions += !(q.seen & 1u << i);
    return 0;
}

/* ---- the run ---- */

static int eval_limit(struct cql_request *r, const struct term *t, uint64_t *out) {
    struct value v;
    if (term_eval(t, r, &v)) return -1;
    if (value_is_unset(v)) return 0;
    if (value_is_null(v)) return err_invalid(r->err, "Invalid null value of limit");
    if (v.n != 4 || (int32_t)load_u32(v.p) <= 0) return err_invalid(r->err, "LIMIT must be strictly positive");
    *out = load_u32(v.p);
    return 0;
}

static int eval_limits(struct select_state *run) {
    const struct select_plan *p = run->plan;
    struct cql_request *r = run->r;
    if (p->limit && eval_limit(r, p->limit, &run->limit_left)) return -1;
    run->has_limit = run->limit_left > 0;
    if (p->partition_limit && eval_limit(r, p->partition_limit, &run->partition_limit)) return -1;
    bool several = !p->n_aggregates && !p->grouped, asked = several && r->params.page_size > 0;
    run->as_keyspaces = r->db->options.mode == MODE_KEYSPACES && !p->grouped && !p->table->virt;
    run->paged = run->as_keyspaces ? several : asked;
    run->page_left = asked ? (uint64_t)r->params.page_size : UINT64_MAX;
    run->count_read_rows = run->as_keyspaces && several && !p->distinct && !p->partition_limit;
    return 0;
}

/* Rows of several partitions are sorted at the end, so no page of them is known before. Where there is nothing to read, there is
 * nothing to sort. Keyspaces sorts within a page. */
static int check_order(const struct select_state *run, bool empty) {
    const struct select_plan *p = run->plan;
    struct cql_request *r = run->r;
    if (empty && !p->n_aggregates && !p->grouped) return 0;
    if (!p->ordered || !p->where->partition_in) return 0;
    if (r->params.page_size <= 0 || (run->as_keyspaces && run->paged)) return 0;
    return err_invalid(r->err, "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either remove the "
                               "ORDER BY or the IN and sort client side, or disable paging for this query");
}

static int warn_of_aggregation(struct cql_request *r, const struct select_plan *p) {
    if (!p->n_aggregates && !p->grouped) return 0;
    if (p->where->keyless) return cql_warn(r, "Aggregation query used without partition key");
    return p->where->partition_in ? cql_warn(r, "Aggregation query used on multiple partition keys (IN restriction)") : 0;
}

static enum query_class class_of(const struct select_plan *p) {
    if (p->where->partitions == WHERE_TOKENS) return p->where->has_token ? QUERY_PARTITION_RANGE : QUERY_TABLE_SCAN;
    return p->where->rows == WHERE_ROW_KEYS ? QUERY_POINT : QUERY_ROW_RANGE;
}

static int run_plan(struct select_state *run, const struct paging_state *resume) {
    struct cql_request *r = run->r;
    const struct select_plan *p = run->plan;
    const struct key_plan *keys = NULL;
    int64_t from = 0, to = 0;
    bool by_key = p->where->partitions == WHERE_KEYS && !p->table->virt;
    int some = by_key ? 1 : where_tokens(p->where, r, &from, &to);
    if (some < 0 || (by_key && select_keys_eval(run, &keys))) return -1;
    if (warn_of_aggregation(r, p) || check_order(run, keys && select_keys_none(keys)) || select_out_begin(run)) return -1;
    if (r->sink->begin(r->sink, &run->s->result))
        return r->err->set ? -1 : err_set(r->err, ERR_SERVER, "The response is larger than a frame may be");
    int rc = p->table->virt ? select_virtual(run) : by_key ? select_keys_run(run, keys, resume) : some ? run_tokens(run, from, to, resume) : 0;
    return rc ? rc : select_out_end(run);
}

static void start_over(struct cql_request *r) {
    r->sink->restart(r->sink);
    *r->cost = (struct op_cost){.arena = r->cost->arena, .size_model = r->cost->size_model};
}

/* Many reads in a row must not hold the loop; a scan of one partition leaves it when it becomes long. */
static bool belongs_elsewhere(const struct cql_request *r, const struct select_plan *p) {
    if (r->blocking || p->table->virt) return false;
    return p->where->partitions == WHERE_TOKENS || p->where->partition_in;
}

enum cql_outcome select_run(struct cql_request *r, const struct cql_statement *s) {
    struct select_state run = {.r = r, .s = s, .plan = s->plan};
    struct paging_state state;
    const struct paging_state *resume = NULL;
    r->work_class = run.plan->where->partitions == WHERE_TOKENS ? WORK_SCAN : WORK_READ;
    r->deadline_per_part = run.plan->n_aggregates || run.plan->grouped;
    if (belongs_elsewhere(r, run.plan)) return CQL_OFFLOAD;
    r->cost->is_read = true;
    op_cost_class(r->cost, class_of(run.plan));
    if (eval_limits(&run)) return CQL_FAILED;
    if (r->params.paging_state.p) {
        if (paging_decode(r->params.paging_state, run.plan->salt, &state, r->err)) return CQL_FAILED;
        resume = &state;
        run.has_limit = state.has_limit;
        run.limit_left = state.limit_left;
        if (run.plan->table->virt) run.skip = run.partition = state.partition;
        if (run.has_limit && run.limit_left == 0) run.done = true;
    }
    int rc = run_plan(&run, resume);
    select_out_fini(&run);
    if (rc == 0) return CQL_DONE;
    if (rc != ENG_INCOMPLETE) return CQL_FAILED;
    start_over(r);
    return CQL_OFFLOAD;
}
