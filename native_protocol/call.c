#include "native_protocol/call.h"

void npi_call_forget(struct np_call *call) {
    struct cql_result *res = &call->r.answer.result;
    if (res->kind == RESULT_PREPARED && res->prepared) cql_prepared_unref(res->prepared);
    res->prepared = NULL;
    cql_run_fini(&call->r);
}

void npi_call_unplan(struct np_call *call) {
    npi_call_forget(call);
    call->cost = (struct op_cost){.arena = &call->arena}; /* the cost names objects that may be freed meanwhile */
}
