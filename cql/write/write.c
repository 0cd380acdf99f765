#include "cql/write/write.h"

#include "cql/request/consistency.h"
#include "cql/request/db.h"
#include "cql/write/cas.h"
#include "cql/write/counter.h"
#include "cql/write/weigh.h"

struct write {
    struct cql_request *r;
    const struct write_batch *batch;
    uint32_t n;
    const struct write_item *items;
    bool conditional, counters, locked;
    struct modify_times times;
    struct modify_write *writes;
    struct mutations m;
};

/* ---- binding ---- */

static void use_values(struct write *w, uint32_t i) {
    w->r->params.values = w->items[i].values;
    w->r->params.n_values = w->items[i].n_values;
}

static const struct modify_plan *plan_of(const struct write *w, uint32_t i) { return modify_plan_of(w->items[i].statement); }

static int find_times(struct write *w) {
    struct cql_request *r = w->r;
    w->times = (struct modify_times){.batch = ENG_NO_TS, .protocol = ENG_NO_TS, .server = ENG_NO_TS};
    /* The order of conditional writes and of counts is the server's alone. */
    if (r->params.has_timestamp && !w->conditional && !w->counters) w->times.protocol = r->params.timestamp;
    return modify_timestamp(r, w->batch ? w->batch->timestamp : NULL, &w->times.batch) < 0 ? -1 : 0;
}

static int open_mutations(struct write *w) {
    size_t n = 0;
    for (uint32_t i = 0; i < w->n; i++) n += w->writes[i].n_parts;
    struct mutation_address *all = ARENA_ARRAY(w->r->arena, n + 1, struct mutation_address);
    if (!all) return err_nomem(w->r->err);
    n = 0;
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t k = 0; k < w->writes[i].n_parts; k++)
            all[n++] = (struct mutation_address){.table = w->writes[i].plan->table, .part = &w->writes[i].parts[k]};
    w->m = (struct mutations){.arena = w->r->arena, .err = w->r->err};
    return mutations_open(&w->m, all, n);
}

static int bind(struct write *w) {
    w->writes = ARENA_ARRAY(w->r->arena, w->n, struct modify_write);
    if (!w->writes) return err_nomem(w->r->err);
    if (find_times(w)) return -1;
    for (uint32_t i = 0; i < w->n; i++) {
        use_values(w, i);
        if (modify_bind(w->r, plan_of(w, i), &w->times, &w->writes[i])) return -1;
    }
    return open_mutations(w);
}

/* ---- consistency levels ---- */

/* A batch is only asked for its conditions. */
static int check_level(const struct write *w) {
    const struct schema_table *t = plan_of(w, 0)->table;
    if (w->conditional) return consistency_check(w->r, CONSISTENCY_CONDITION, t);
    return w->batch ? 0 : consistency_check(w->r, w->counters ? CONSISTENCY_COUNTER : CONSISTENCY_WRITE, t);
}

static int reach_all(const struct write *w) {
    for (uint32_t i = 0; i < w->m.n; i++)
        if (consistency_reach(w->r, w->m.list[i].table->keyspace)) return -1;
    return 0;
}

/* ---- deciding ---- */

static int check_conditional(struct write *w) {
    if (!w->batch) return 0;
    if (w->m.n > 1) return err_invalid(w->r->err, "Batch with conditions cannot span multiple partitions");
    for (uint32_t i = 0; i < w->n; i++) {
        const struct modify_plan *p = w->writes[i].plan;
        if (p->where && p->where->partition_in) return err_invalid(w->r->err, "Batch with conditions cannot span multiple partitions (you cannot use IN on the partition key)");
        if (p->where && p->where->clustering_in)
            return err_invalid(w->r->err, "IN on the clustering key columns is not supported with conditional %s", p->kind == OP_DELETE ? "deletions" : "updates");
    }
    return 0;
}

/* What it costs that the conditions did not hold. */
static int refuse(struct write *w, const struct cas *c) {
    for (uint32_t i = 0; i < w->n; i++) {
        const struct eng_row *row, *statics;
        if (!w->writes[i].plan->conditional) continue;
        cas_stored(c, &w->writes[i], &row, &statics);
        if (modify_cost_failed(&w->writes[i], &w->m.list[0].part, row, statics)) return -1;
    }
    return 0;
}

static int note_reads(struct write *w, const struct cas *c) {
    struct mutation *m = &w->m.list[0];
    if (mutation_note_read(&w->m, m, ENG_STATIC, slice_of("", 0), c->statics.stored)) return -1;
    for (uint32_t i = 0; i < c->n_rows; i++)
        if (mutation_note_read(&w->m, m, ENG_ROW, c->rows[i].ck, c->rows[i].stored)) return -1;
    return 0;
}

/* 1: go on and write, 0: refused and answered, -1. */
static int decide(struct write *w, int64_t *newest) {
    struct cas c;
    if (!w->conditional) return 1;
    if (cas_init(&c, w->r, w->writes[0].plan->table, &w->m.list[0].part, w->batch)) return -1;
    for (uint32_t i = 0; i < w->n; i++) {
        use_values(w, i);
        if (cas_add(&c, &w->writes[i])) return -1;
    }
    int rc = cas_check(&c);
    if (rc < 0 || note_reads(w, &c) || cas_answer(&c, rc == 1)) return -1;
    if (rc == 0 && refuse(w, &c)) return -1;
    for (uint32_t i = 0; rc == 1 && i < w->n; i++)
        if (cas_newest(&c, &w->writes[i], newest)) return -1;
    return rc;
}

/* ---- changing ---- */

static int change_all(struct write *w) {
    for (uint32_t i = 0; i < w->n; i++) {
        use_values(w, i);
        if (modify_add(&w->writes[i], &w->m)) return -1;
    }
    if (reach_all(w)) return -1;
    if (w->counters && counter_settle(w->r, &w->m, w->writes[0].now)) return -1;
    return w->batch ? weigh_batch(w->r, &w->m, w->batch->kind, w->conditional) : 0;
}

static enum cql_outcome write_locked(struct write *w) {
    struct cql_request *r = w->r;
    int64_t newest = ENG_NO_TS;
    int go = decide(w, &newest);
    if (go < 0) return CQL_FAILED;
    if (go == 0) {
        r->commit_seq = eng_barrier_seq(r->db->options.eng); /* what refused it must not be lost once it was told */
        return CQL_COMMIT;
    }
    /* The order of conditional writes and of counts is that of the lock. */
    int64_t ts = eng_ts_above(eng_write_us(r->db->options.eng, r->now_us), newest);
    for (uint32_t i = 0; i < w->n; i++) modify_order(&w->writes[i], w->conditional, ts);
    if (change_all(w)) return CQL_FAILED;
    struct eng_batch *b = eng_batch_new(r->db->options.eng);
    if (!b) {
        err_nomem(r->err);
        return CQL_FAILED;
    }
    int rc = mutations_apply(&w->m, b, r->cost);
    if (rc == 0 && !eng_batch_empty(b)) rc = eng_batch_commit(b, &r->commit_seq, r->err);
    eng_batch_free(b);
    return rc ? CQL_FAILED : r->commit_seq ? CQL_COMMIT : CQL_DONE;
}

static enum cql_outcome run_locked(struct write *w) {
    struct eng *eng = w->r->db->options.eng;
    const struct eng_part **parts = ARENA_ARRAY(w->r->arena, w->m.n, const struct eng_part *);
    w->r->commit_seq = 0;
    if (!parts) {
        err_nomem(w->r->err);
        return CQL_FAILED;
    }
    for (uint32_t i = 0; i < w->m.n; i++) parts[i] = &w->m.list[i].part;
    eng_lock_many(eng, parts, w->m.n);
    enum cql_outcome outcome = write_locked(w);
    eng_unlock_many(eng, parts, w->m.n);
    return outcome;
}

static const char *write_type(const struct write *w) {
    if (w->conditional) return "CAS";
    if (w->counters) return "COUNTER";
    return !w->batch ? "SIMPLE" : w->batch->kind == BATCH_LOGGED ? "BATCH" : "UNLOGGED_BATCH";
}

static enum cql_outcome run(struct write *w) {
    for (uint32_t i = 0; i < w->n; i++) {
        const struct modify_plan *p = plan_of(w, i);
        w->conditional = w->conditional || p->conditional;
        w->counters = w->counters || p->counter;
        w->locked = w->locked || modify_needs_lock(p);
    }
    w->r->work_class = WORK_UPDATE;
    w->r->write_type = write_type(w);
    if (w->locked && !w->r->blocking) return CQL_OFFLOAD;
    if (!w->conditional && check_level(w)) return CQL_FAILED;
    if (bind(w) || (w->conditional && (check_level(w) || check_conditional(w)))) return CQL_FAILED;
    if (w->m.n == 0) return CQL_DONE;
    if (w->locked) return run_locked(w);
    return change_all(w) || mutations_apply(&w->m, w->r->batch, w->r->cost) ? CQL_FAILED : CQL_COMMIT;
}

enum cql_outcome write_run(struct cql_request *r, const struct write_batch *batch, const struct write_item *items, uint32_t n) {
    struct write w = {.r = r, .batch = batch, .items = items, .n = n};
    struct cql_params params = r->params; /* the items' values replace the request's while they run */
    enum cql_outcome outcome = run(&w);
    r->params = params;
    return outcome;
}

/* ---- a statement that stands alone ---- */

static enum cql_outcome run_alone(struct cql_request *r, const struct cql_statement *s) {
    const struct write_item item = {.statement = s, .n_values = r->params.n_values, .values = r->params.values};
    return write_run(r, NULL, &item, 1);
}

const struct statement_ops insert_ops = {.compile = modify_compile_insert, .run = run_alone};
const struct statement_ops update_ops = {.compile = modify_compile_update, .run = run_alone};
const struct statement_ops delete_ops = {.compile = modify_compile_delete, .run = run_alone};

const struct statement_ops *write_ops(enum stmt_kind kind) {
    return kind == STMT_INSERT ? &insert_ops : kind == STMT_UPDATE ? &update_ops : &delete_ops;
}
