#include "native_protocol/fault.h"

#include "native_protocol/trace.h"

static int64_t now_us(const struct np_call *call) { return clock_machine_us(call->conn->loop->o->clock); }

static bool start_over(struct np_call *call, int64_t until_us) {
    struct cql_run *r = &call->r;
    enum stmt_category category = stmt_category(r->answer.stmt_kind);
    npi_call_unplan(call);
    call->fault.until_us = until_us;
    r->answer.work_class = category == STMT_IS_QUERY ? WORK_READ : category == STMT_IS_DML ? WORK_UPDATE : WORK_DDL;
    call->outcome = CQL_OFFLOAD;
    return true;
}

static bool fail(struct np_call *call) {
    cql_abandon(&call->r);
    call->outcome = CQL_FAILED;
    return true;
}

static void set_error(struct np_call *call, const struct fault_rule *rule) {
    if (rule->fails) fault_rule_fail(rule, &call->r, &call->err);
    if (rule->close) err_set(&call->err, ERR_SERVER, "The fault %s closed the connection", rule->name);
}

bool npi_fault_before(struct np_call *call) {
    if (!call->fault.checked) { /* once in a call, on the thread and in the part that plans it first */
        call->fault.checked = true;
        call->fault.rule = faults_hit(call->conn->loop->o->faults, &call->r, call->conn->account.id);
        if (call->fault.rule) npi_trace_step(call, NP_TRACE_FAULT, 0);
    }
    const struct fault_rule *rule = call->fault.rule;
    if (call->err.set) return fail(call);
    if (!rule || call->fault.begun) return false;
    bool waits = rule->delay_ms && !call->fault.until_us;
    call->fault.begun = rule->after || !waits;
    if (waits && !rule->after) return start_over(call, now_us(call) + rule->delay_ms * 1000);
    if (waits && !call->offloaded) return start_over(call, 0); /* on a worker, whose queue can delay it */
    if (rule->after) return false;
    set_error(call, rule);
    return call->err.set && fail(call);
}

bool npi_fault_cut(struct np_call *call) {
    if (!call->fault.rule || !call->fault.rule->partly) return false;
    cql_keep_half(&call->r);
    return true;
}

void npi_fault_after(struct np_call *call) {
    const struct fault_rule *rule = call->fault.rule;
    if (!rule->after) return;
    call->fault.applied = true;
    if (rule->delay_ms) call->fault.until_us = now_us(call) + rule->delay_ms * 1000;
    set_error(call, rule);
}

bool npi_fault_delays(struct np_call *call) { return call->fault.until_us && now_us(call) < call->fault.until_us; }

bool npi_fault_hangs_up(struct np_call *call) {
    const struct fault_rule *rule = call->fault.rule;
    if (LIKELY(!rule) || !rule->close || !call->err.set || rule->after != call->fault.applied) return false;
    if (call->reply.out) np_reply_cancel(&call->reply);
    return true;
}
