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
