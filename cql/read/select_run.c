/* SELECT: a plan and bound values to a chain of operators (read.h), and pulling it, part by part. */
#include <assert.h>

#include "cql/read/read.h"
#include "cql/read/select.h"
#include "cql/request/consistency.h"
#include "cql/request/db.h"

/* One run; in the request's arena, with the operators that its statement needs. */
struct select_run {
    const struct cql_statement *statement;
    struct read_source *source;
    struct row_group *group; /* NULL if rows are not grouped */
    struct row_order *order; /* NULL if they are not sorted */
    struct result_page page;
};

/* ---- the parameters of a request ---- */

static int eval_limit(struct cql_run *r, const struct term *t, uint64_t *out) {
    struct value v;
    *out = UINT64_MAX;
    if (!t) return 0;
    if (term_eval(t, &r->eval, &v)) return -1;
    if (value_is_unset(v)) return 0;
    if (value_is_null(v)) return err_invalid(r->err, "Invalid null value of limit");
    if (v.n != 4 || (int32_t)load_u32(v.p) <= 0) return err_invalid(r->err, "LIMIT must be strictly positive");
    *out = load_u32(v.p);
    return 0;
}

/* ---- the page ---- */

enum read_pull result_page_pull(struct read_op *op, struct read_batch *batch) {
    struct result_page *p = (struct result_page *)op;
    if (p->ended) return READ_END;
    batch->most = READ_BATCH;
    if (p->has_limit && p->limit_left < batch->most) batch->most = (uint32_t)p->limit_left;
    if (p->rows_left < batch->most) batch->most = (uint32_t)p->rows_left;
    enum read_pull pull;
    if (LIKELY(!p->limit_reached)) {
        pull = read_next(p->below, batch);
    } else { /* the rest of the page is read, and not returned */
        batch->most = READ_BATCH;
        while ((pull = read_next(&p->source->op, batch)) == READ_ROWS) p->source->read->past_limit += batch->n;
    }
    if (pull != READ_ROWS) {
        p->ended = pull == READ_END;
        return pull;
    }
    if (p->has_limit && (p->limit_left -= batch->n) == 0) {
        p->limit_reached = p->source->last_query = true;
        p->ended = !p->reads_on;
    }
    if (p->rows_left != UINT64_MAX && (p->rows_left -= batch->n) == 0) p->full = p->ended = true;
    return pull;
}

bool result_page_next(const struct result_page *p, struct paging_state *out) {
    struct read_source *s = p->source;
    if (p->limit_reached || p->whole || !(p->full || s->page_end)) return false;
    if (p->group && p->group->pending) s->path->unread(s);
    *out = (struct paging_state){.has_limit = p->has_limit, .limit_left = p->limit_left};
    s->path->position(s, out);
    return true;
}

/* ---- the chain ---- */

/* Builds the operators above the source. */
static int build(struct select_run *run, const struct read_spec *spec) {
    const struct select_plan *p = spec->plan;
    struct arena *a = spec->r->arena;
    bool rows = !p->n_aggregates && !p->grouped;
    struct read_op *op = &run->source->op;
    run->source->partition_limit = !rows ? UINT64_MAX : p->distinct ? 1 : spec->partition_limit;
    if (p->where->n_filters || p->distinct || spec->partition_limit != UINT64_MAX) {
        struct row_filter *filter = ARENA_NEW(a, struct row_filter);
        if (!filter) return err_nomem(spec->r->err);
        *filter = (struct row_filter){.op = {row_filter_next}, .below = op, .source = run->source, .counts = rows,
                                      .first_only = p->distinct};
        if (p->where->n_filters && !(filter->filters = where_filters_bind(p->where, &spec->r->eval))) return -1;
        op = &filter->op;
    }
    if (!rows) {
        run->group = ARENA_NEW(a, struct row_group);
        if (!run->group) return err_nomem(spec->r->err);
        if (row_group_init(run->group, op, run->source, spec->r, p, spec)) return -1;
        op = &run->group->op;
    }
    /* A select list that is a range of columns in order needs no projection. */
    if (!p->list.consecutive || !rows) {
        struct row_project *project = ARENA_NEW(a, struct row_project);
        if (!project) return err_nomem(spec->r->err);
        if (row_project_init(project, op, spec->r, p, rows ? run->source->most : 1)) return -1;
        op = &project->op;
    }
    bool several = p->several_partitions || (spec->as_keyspaces && p->where->clustering_in);
    if (p->order.given && several && (!p->n_aggregates || p->grouped)) {
        run->order = ARENA_NEW(a, struct row_order);
        if (!run->order) return err_nomem(spec->r->err);
        row_order_init(run->order, op, spec->r, p);
        op = &run->order->op;
    }
    bool by_rows = !spec->count_read_rows && !run->order && !run->source->single;
    run->page = (struct result_page){.op = {result_page_pull},
                                     .below = op,
                                     .source = run->source,
                                     .group = run->group,
                                     .has_limit = spec->limit != UINT64_MAX,
                                     .limit_left = spec->limit,
                                     .rows_left = by_rows ? spec->page_rows : UINT64_MAX,
                                     .reads_on = spec->count_read_rows,
                                     .whole = run->order && !spec->as_keyspaces,
                                     .ended = spec->limit == 0};
    return 0;
}

static void fini(struct cql_run *r) {
    struct select_run *run = r->running;
    if (run->group) row_group_fini(run->group);
    if (run->order) row_order_fini(run->order);
    if (run->source) run->source->path->close(run->source);
    r->running = NULL;
    r->running_fini = NULL;
}

/* ---- the run ---- */

/* One bounded part. */
static enum cql_outcome pull(struct cql_run *r) {
    struct select_run *run = r->running;
    const struct select_plan *p = run->statement->plan;
    struct read_batch batch;
    enum read_pull got;
    const struct stop_check stop_check = db_stop_check(r);
    batch.latched = NULL;
    batch.aggregates = NULL;
    if (r->blocking) stop_check_set(&stop_check); /* a loop reads no large row */
    while ((got = result_page_pull(&run->page.op, &batch)) == READ_ROWS) {
        r->cost->rows_returned += batch.n;
        if (r->sink->rows(r->sink, batch.out, batch.n) == 0) continue;
        if (!r->err->set) err_set(r->err, ERR_SERVER, "The response is larger than a frame may be");
        break;
    }
    stop_check_set(NULL);
    if (got == READ_AGAIN) return CQL_AGAIN;
    enum cql_outcome outcome = CQL_FAILED;
    if (got == READ_END) {
        struct paging_state state;
        struct slice *next_page = &r->answer.result.paging_state;
        if (run->source->path->end) run->source->path->end(run->source);
        op_cost_count_rows(r->cost);
        r->answer.result.kind = RESULT_ROWS;
        r->answer.result.meta = &run->statement->result;
        bool follows = result_page_next(&run->page, &state);
        if (!follows || !paging_encode(&state, p->salt, r->arena, next_page, r->err)) outcome = CQL_DONE;
    }
    /* A serial read must not report data that a crash could still lose: its response waits until all
     * the writes that it may have read are durable. */
    bool serial = r->in->params.consistency == CL_SERIAL || r->in->params.consistency == CL_LOCAL_SERIAL;
    if (outcome == CQL_DONE && serial && !r->cost->is_system) {
        r->answer.commit_seq = eng_barrier_seq(r->db->options.eng);
        outcome = CQL_COMMIT;
    }
    fini(r);
    if (got != READ_INCOMPLETE) return outcome;
    /* The request starts over on another thread, as if nothing was done. */
    r->sink->restart(r->sink);
    *r->cost = cql_cost(r->db, r->cost->arena);
    return CQL_OFFLOAD;
}

static enum cql_outcome more(struct cql_run *r, const struct cql_statement *s) {
    struct select_run *run = r->running;
    assert(run->statement == s);
    if (cql_check_running(r)) {
        fini(r);
        return CQL_FAILED;
    }
    if (run->source->path->begin_part) run->source->path->begin_part(run->source);
    return pull(r);
}

/* Makes the chain that the statement and the request's parameters call for. */
static int start(struct cql_run *r, struct select_run *run, const struct select_plan *p) {
    const struct cql_params *params = &r->in->params;
    const struct where_plan *w = p->where;
    bool aggregates = p->n_aggregates || p->grouped, asked = params->page_size > 0, empty;
    struct read_spec spec = {.r = r, .plan = p};
    if (eval_limit(r, p->limit, &spec.limit) || eval_limit(r, p->partition_limit, &spec.partition_limit)) return -1;
    if (p->group.fault) return err_invalid(r->err, "%s", p->group.fault);
    if (term_check_subscripts(p->subscripts, &r->eval)) return -1;
    spec.as_keyspaces = r->db->options.mode == MODE_KEYSPACES && !p->grouped && !p->table->virt;
    spec.paged = !aggregates && (spec.as_keyspaces || asked) && !p->table->virt;
    spec.page_rows = asked && (!aggregates || (p->grouped && !p->distinct)) ? (uint64_t)params->page_size : UINT64_MAX;
    spec.count_read_rows = spec.as_keyspaces && !aggregates && !p->distinct && !p->partition_limit;
    spec.may_unread = p->grouped && spec.page_rows != UINT64_MAX;
    if (params->paging_state.p) {
        struct paging_state *resume = ARENA_NEW(r->arena, struct paging_state);
        if (!resume) return err_nomem(r->err);
        if (paging_decode(params->paging_state, p->salt, resume, r->err)) return -1;
        spec.resume = resume;
        spec.limit = resume->has_limit ? resume->limit_left : UINT64_MAX;
    }
    run->source = p->path->open(&spec, &empty);
    if (!run->source) return -1;
    const char *warning = NULL;
    if (w->keyless) warning = "Aggregation query used without partition key";
    else if (w->partition_in) warning = "Aggregation query used on multiple partition keys (IN restriction)";
    if (aggregates && warning && cql_warn(r, "%s", warning)) return -1;
    /* Rows of several partitions are sorted at the end, so no page of them is known before. Where there
     * is nothing to read, there is nothing to sort. Keyspaces sorts within a page. */
    if (p->order.given && p->several_partitions && asked && !(spec.as_keyspaces && spec.paged) &&
        (!empty || aggregates))
        return err_invalid(
            r->err, "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either "
                    "remove the ORDER BY or the IN and sort client side, or disable paging for this query");
    if (build(run, &spec)) return -1;
    if (r->sink->begin(r->sink, &run->statement->result))
        return r->err->set ? -1 : err_set(r->err, ERR_SERVER, "The response is larger than a frame may be");
    return 0;
}

static enum cql_outcome run(struct cql_run *r, const struct cql_statement *s) {
    const struct select_plan *p = s->plan;
    const struct where_plan *w = p->where;
    const struct cql_admission *admission = cql_admission_of(r);
    if (consistency_check(r, CONSISTENCY_READ, s->table, &s->compat) || consistency_reach(r, s->table->keyspace))
        return CQL_FAILED;
    if (UNLIKELY(admission->begin) && !s->table->virt && admission->begin(admission->arg, r, s->table, r->err))
        return CQL_FAILED;
    r->answer.work_class = p->path->work_class;
    r->answer.deadline_per_part = p->n_aggregates || p->grouped;
    /* Many reads in a row must not hold the loop; a scan of one partition leaves it when it becomes long. */
    if (!r->blocking && !p->table->virt && (p->path->work_class == WORK_SCAN || w->partition_in)) return CQL_OFFLOAD;
    /* The guidance calls it a partition scan when a condition cannot use the key's order: on a column that is no key,
     * or an "or" of clustering keys, as IN is. */
    bool scans = (w->filters_rows && w->rows != WHERE_ROW_KEYS) || w->clustering_in;
    r->cost->one_row_partitions = !w->table->n_clustering;
    if (w->partitions == WHERE_TOKENS && w->has_token)
        op_cost_class(r->cost, QUERY_PARTITION_RANGE, GUIDANCE_PARTITION_RANGE);
    else if (w->partitions == WHERE_TOKENS)
        op_cost_class(r->cost, QUERY_TABLE_SCAN, GUIDANCE_TABLE_SCAN);
    else if (w->rows == WHERE_ROW_KEYS)
        op_cost_class(r->cost, QUERY_POINT, scans ? GUIDANCE_PARTITION_SCAN : GUIDANCE_POINT);
    else
        op_cost_class(r->cost, QUERY_ROW_RANGE, scans ? GUIDANCE_PARTITION_SCAN : GUIDANCE_ROW_RANGE);
    struct select_run *run = ARENA_NEW(r->arena, struct select_run);
    if (!run) {
        err_nomem(r->err);
        return CQL_FAILED;
    }
    run->statement = s;
    r->running = run;
    r->running_fini = fini;
    if (start(r, run, p) == 0) return pull(r);
    fini(r);
    return CQL_FAILED;
}

const struct statement_ops select_ops = {.compile = select_compile, .run = run, .more = more};
