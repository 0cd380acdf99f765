#include "cql/request/db.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static int check_running(void *arg) { return cql_check_running(arg); }

struct stop_check db_stop_check(struct cql_run *r) { return (struct stop_check){.check = check_running, .arg = r}; }

struct op_cost cql_cost(const struct cql_db *db, struct arena *arena) {
    const struct cql_db_options *o = &db->options;
    return (struct op_cost){.arena = arena, .size_model = o->size_model, .write_size = o->write_size,
                            .timestamp_size = o->timestamp_size, .unmetered = o->unmetered};
}

const struct cql_admission *cql_admission_of(const struct cql_run *r) {
    static const struct cql_admission allows_all;
    return r->session->limit ? &r->db->options.admission : &allows_all;
}

struct virtual_context db_virtual_context(struct cql_run *r) {
    struct virtual_context ctx = {.schema = r->schema, .arena = r->arena,
                                  .each_prepared = r->db->each_prepared,
                                  .unlist_prepared = r->db->unlist_prepared, .prepared = r->db->prepared, .err = r->err,
                                  .stop_check = db_stop_check(r)};
    if (r->session) {
        ctx.local_address = r->session->local_address;
        ctx.local_port = r->session->local_port;
        ctx.protocol_version = r->session->protocol_version;
        ctx.partitioner = r->session->partitioner;
        if (r->own_traces_only) ctx.traces_of = r->session->role;
    }
    return ctx;
}

int cql_check_running(struct cql_run *r) {
    if (r->cancelled && atomic_load_explicit(r->cancelled, memory_order_relaxed))
        return err_set(r->err, ERR_SERVER, "The client is gone");
    if (!r->deadline_us || clock_machine_us(r->db->options.clock) < r->deadline_us) return 0;
    /* A PREPARE reads and writes no data that an answer could be missing of: it waited too long
     * (Cassandra's Dispatcher). */
    if (r->in->kind == REQUEST_PREPARE) return err_set(r->err, ERR_OVERLOADED, "Query timed out before it could start");
    /* One node holds the data: the request waited for one answer, and none came (v5 specification,
     * section 9, 0x1100 and 0x1200). */
    bool write = r->answer.work_class == WORK_UPDATE;
    err_set(r->err, write ? ERR_WRITE_TIMEOUT : ERR_READ_TIMEOUT, "Operation timed out - received only 0 responses.");
    r->err->detail = (struct err_detail){.consistency = r->in->params.consistency, .required = 1};
    if (write)
        snprintf(r->err->detail.write_type, sizeof(r->err->detail.write_type), "%s",
                 r->answer.write_type ? r->answer.write_type : "SIMPLE");
    return -1;
}

int cql_warn(struct cql_run *r, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    err_print(text, sizeof(text), fmt, ap);
    va_end(ap);
    const char **all = ARENA_ARRAY(r->arena, r->answer.n_warnings + 1, const char *);
    char *copy = all ? arena_strdup(r->arena, text) : NULL;
    if (!copy) return err_nomem(r->err);
    if (r->answer.n_warnings) memcpy(all, r->answer.warnings, r->answer.n_warnings * sizeof(*all));
    all[r->answer.n_warnings++] = copy;
    r->answer.warnings = all;
    return 0;
}
