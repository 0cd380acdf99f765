#include "native_protocol/metric.h"

enum np_outcome np_outcome_of(const struct err *e) { return e->set ? np_outcome_of_error(e->code) : NP_OUTCOME_OK; }

enum np_outcome np_outcome_of_error(enum err_code code) {
    switch (code) {
    case ERR_OVERLOADED:
    case ERR_UNAVAILABLE:
    case ERR_WRITE_TIMEOUT:
    case ERR_READ_TIMEOUT: return NP_OUTCOME_THROTTLED;
    case ERR_SERVER:
    case ERR_READ_FAILURE:
    case ERR_WRITE_FAILURE: return NP_OUTCOME_FAILED;
    default: return NP_OUTCOME_REFUSED;
    }
}

const char *np_outcome_name(enum np_outcome o) {
    static const char *const names[] = {[NP_OUTCOME_OK] = "ok",
                                        [NP_OUTCOME_REFUSED] = "refused",
                                        [NP_OUTCOME_THROTTLED] = "throttled",
                                        [NP_OUTCOME_FAILED] = "failed"};
    return names[o];
}

const char *np_kind_name(enum np_kind k) {
    static const char *const names[NP_KINDS] = {
#define OPERATION(id) #id,
#include "metering/ledger/operation.def"
#undef OPERATION
        [NP_KIND_DDL] = "DDL",
        [NP_KIND_PREPARE] = "PREPARE",
    };
    return names[k];
}

const uint32_t np_latency_bounds_us[NP_LATENCY_BOUNDS] = {
    10,    25,    50,     100,    250,    500,     1000,    2500,    5000,    10000,
    25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000};

void np_metric_latency(struct np_metrics *m, enum np_kind kind, int64_t took_us, uint64_t n) {
    uint64_t us = took_us > 0 ? (uint64_t)took_us : 0; /* the wall clock can step back */
    int i = 0;
    while (i < NP_LATENCY_BOUNDS && us > np_latency_bounds_us[i]) i++;
    np_count(&m->latencies[kind].n[i], n);
    np_count(&m->latencies[kind].sum_us, us * n);
}

void np_metric_add_latencies(const struct np_metrics *m, enum np_kind kind, struct np_latencies *out) {
    for (int i = 0; i <= NP_LATENCY_BOUNDS; i++)
        out->n[i] += atomic_load_explicit(&m->latencies[kind].n[i], memory_order_relaxed);
    out->sum_us += atomic_load_explicit(&m->latencies[kind].sum_us, memory_order_relaxed);
}

static void account_error(struct np_metrics *m, const struct np_account *a, enum err_code code) {
    np_metric_request(m, a->opcode, np_outcome_of_error(code));
    if (a->throttled) np_metric_add(m, NP_METRIC_THROTTLED, 1);
    else if (code == ERR_READ_TIMEOUT || code == ERR_WRITE_TIMEOUT) np_metric_add(m, NP_METRIC_TIMEOUTS, 1);
    if (code == ERR_PROTOCOL) np_metric_add(m, NP_METRIC_PROTOCOL_ERRORS, 1);
}

void np_account(struct np_metrics *m, const struct np_account *a, const struct err *e) {
    if (e && e->set) {
        account_error(m, a, e->code);
        return;
    }
    if (UNLIKELY(a->failed)) account_error(m, a, a->failure);
    else np_metric_request(m, a->opcode, NP_OUTCOME_OK);
    if (a->read_halves) np_metric_add(m, NP_METRIC_READ_UNITS, a->read_halves);
    if (a->write_halves) np_metric_add(m, NP_METRIC_WRITE_UNITS, a->write_halves);
    if (a->prepared) np_metric_add(m, NP_METRIC_PREPARED, 1);
    if (a->schema_changed) np_metric_add(m, NP_METRIC_SCHEMA_CHANGES, 1);
}
