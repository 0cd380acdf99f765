#include "cql/request/db.h"

static int go_on(void *arg) { return cql_check_running(arg); }

struct stop_check db_stop_check(struct cql_run *r) { return (struct stop_check){.check = go_on, .arg = r}; }

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
