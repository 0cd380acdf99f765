/* Running one INSERT, UPDATE or DELETE: added to the caller's batch, or, when it reads first, committed here under the lock. */
#include "cql/write/modify.h"

#include "cql/write/cas.h"
#include "cql/request/db.h"

static enum cql_outcome run_blind(struct cql_request *r, const struct modify_plan *p) {
    struct modify_write w;
    if (modify_bind(r, p, ENG_NO_TS, &w)) return CQL_FAILED;
    eng_batch_savepoint(r->batch);
    if (modify_add(&w, r->batch)) {
        eng_batch_rollback(r->batch);
        return CQL_FAILED;
    }
    eng_batch_release(r->batch);
    return CQL_COMMIT;
}

/* 1: go on and write, 0: refused and answered, -1. */
static int decide(struct modify_write *w, int64_t *newest) {
    struct cas c;
    if (!w->plan->conditional) return 1;
    if (cas_init(&c, w->r, w->plan->table, &w->parts[0], false) || cas_add(&c, w)) return -1;
    int rc = cas_check(&c);
    if (rc < 0 || cas_answer(&c, rc == 1)) return -1;
    const struct eng_row *row, *statics;
    if (rc == 0) {
        cas_stored(&c, w, &row, &statics);
        if (modify_cost_failed(w, &w->parts[0], row, statics)) return -1;
    }
    return rc == 1 && cas_newest(&c, w, newest) ? -1 : rc;
}

static enum cql_outcome write_locked(struct modify_write *w) {
    struct cql_request *r = w->r;
    struct eng *eng = r->db->options.eng;
    int64_t newest = ENG_NO_TS;
    int go = decide(w, &newest);
    /* The order of conditional writes and of counts is that of the lock. */
    modify_order(w, w->plan->conditional, eng_ts_above(eng_write_us(eng, r->now_us), newest));
    if (go < 0) return CQL_FAILED;
    if (go == 0) {
        r->commit_seq = eng_barrier_seq(r->db->options.eng); /* what refused it must not be lost once it was told */
        return CQL_COMMIT;
    }
    struct eng_batch *b = eng_batch_new(r->db->options.eng);
    if (!b) {
        err_nomem(r->err);
        return CQL_FAILED;
    }
    int rc = modify_add(w, b);
    if (rc == 0 && !eng_batch_empty(b)) rc = eng_batch_commit(b, &r->commit_seq, r->err);
    eng_batch_free(b);
    return rc ? CQL_FAILED : r->commit_seq ? CQL_COMMIT : CQL_DONE;
}

static enum cql_outcome run_locked(struct cql_request *r, const struct modify_plan *p) {
    struct eng *eng = r->db->options.eng;
    struct modify_write w;
    r->commit_seq = 0;
    if (modify_bind(r, p, ENG_NO_TS, &w)) return CQL_FAILED;
    if (w.n_parts == 0) return CQL_DONE;
    const struct eng_part **parts = ARENA_ARRAY(r->arena, w.n_parts, const struct eng_part *);
    if (!parts) {
        err_nomem(r->err);
        return CQL_FAILED;
    }
    for (uint32_t i = 0; i < w.n_parts; i++) parts[i] = &w.parts[i];
    eng_lock_many(eng, parts, w.n_parts);
    enum cql_outcome outcome = write_locked(&w);
    eng_unlock_many(eng, parts, w.n_parts);
    return outcome;
}

enum cql_outcome modify_run(struct cql_request *r, const struct modify_plan *p) {
    if (!modify_needs_lock(p)) return run_blind(r, p);
    r->work_class = WORK_UPDATE;
    r->write_type = p->conditional ? "CAS" : p->counter ? "COUNTER" : "SIMPLE";
    return r->blocking ? run_locked(r, p) : CQL_OFFLOAD;
}
