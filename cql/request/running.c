#include <stdatomic.h>
#include <stdio.h>

#include "cql/request/db.h"
#include "cql/request/request.h"

/* One node holds the data: of one answer that was waited for, none came (v5 specification, section 9, 0x1100 and 0x1200). */
static int timed_out(struct cql_request *r) {
    bool write = r->work_class == WORK_UPDATE;
    err_set(r->err, write ? ERR_WRITE_TIMEOUT : ERR_READ_TIMEOUT, "Operation timed out - received only 0 responses.");
    r->err->detail = (struct err_detail){.consistency = r->params.consistency, .required = 1};
    if (write) snprintf(r->err->detail.write_type, sizeof(r->err->detail.write_type), "%s", r->write_type ? r->write_type : "SIMPLE");
    return -1;
}

int cql_check_running(struct cql_request *r) {
    if (r->cancelled && atomic_load_explicit(r->cancelled, memory_order_relaxed)) return err_set(r->err, ERR_SERVER, "The client is gone");
    if (!r->deadline_us || clock_machine_us(r->db->options.clock) < r->deadline_us) return 0;
    return timed_out(r);
}
