#include "cql/execute.h"

#include <time.h>

#include "cql/request/db.h"

void cql_charge(const struct cql_run *r, struct charge *out) {
    uint16_t level = r->in->params.consistency;
    bool eventual = level == CL_ONE || level == CL_LOCAL_ONE;
    *out = (struct charge){0};
    if (LIKELY(!r->cost->unmetered)) charge_compute(r->cost, eventual ? CHARGE_EVENTUAL : CHARGE_STRONG, out);
}

static int drop_meta(struct row_sink *s, const struct result_meta *meta) { return (void)s, (void)meta, 0; }
static int drop_rows(struct row_sink *s, const struct value *const *rows, uint32_t n) {
    return (void)s, (void)rows, (void)n, 0;
}
static void restart_nothing(struct row_sink *s) { (void)s; }
static size_t bytes_of_nothing(const struct row_sink *s) { return (void)s, 0; }
static struct row_sink drops_rows = {drop_meta, drop_rows, restart_nothing, bytes_of_nothing};

/* Runs the parts that are left. Each checks the deadline. */
static enum cql_outcome run_on(struct cql_run *r, enum cql_outcome outcome) {
    while (outcome == CQL_AGAIN) {
        int64_t us = r->answer.again_us - clock_machine_us(r->db->options.clock);
        if (us > 0) nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
        outcome = cql_run_more(r);
    }
    return outcome;
}

int cql_execute(struct cql_execution *x, struct err *e) {
    const struct cql_db_options *o = &x->db->options;
    struct cql_run *r = &x->run;
    x->own = (struct cql_session){.protocol_version = 4, .partitioner = catalog_partitioner(o->catalog),
                                  .local_address = "127.0.0.1", .role = x->role, .client_address = x->client_address};
    x->cost = cql_cost(x->db, x->arena);
    x->batch = eng_batch_new(o->eng);
    x->run = (struct cql_run){.in = &x->request, .db = x->db, .session = x->session ? x->session : &x->own,
                              .arena = x->arena, .err = e, .cost = &x->cost, .sink = x->sink ? x->sink : &drops_rows,
                              .batch = x->batch, .notes = x->notes, .now_us = clock_wall_us(o->clock),
                              .blocking = true,
                              .deadline_us = x->timeout_us ? clock_machine_us(o->clock) + x->timeout_us : 0,
                              .answer.stmt_kind = STMT_KINDS};
    if (!x->batch) return err_nomem(e);
    if (!x->request.tree && x->request.query.p &&
        cql_value_validate(cql_type_scalar(CQL_TEXT), x->request.query, e)) {
        err_clear(e);
        return err_set(e, ERR_PROTOCOL, "Cannot decode string as UTF8");
    }
    enum cql_outcome outcome = run_on(r, cql_run(r));
    if (outcome == CQL_DONE || outcome == CQL_COMMIT) {
        cql_charge(r, &x->charge);
        if (x->prices) return 0;
        outcome = cql_admit(r) ? CQL_FAILED : run_on(r, cql_apply(r, outcome));
    }
    if (outcome == CQL_COMMIT && eng_wait_durable(o->eng, r->answer.commit_seq, e)) return -1;
    if (outcome == CQL_DONE || outcome == CQL_COMMIT) return 0;
    return e->set ? -1 : err_set(e, ERR_SERVER, "The request failed without saying why");
}

void cql_execution_fini(struct cql_execution *x) {
    cql_run_fini(&x->run);
    if (x->batch) eng_batch_free(x->batch);
    x->batch = NULL;
}
