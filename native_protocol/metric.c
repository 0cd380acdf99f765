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
