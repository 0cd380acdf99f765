#include "cql/request/db.h"

static int go_on(void *arg) { return cql_check_running(arg); }

struct virtual_context db_virtual_context(struct cql_run *r) {
    struct virtual_context ctx = {.schema = r->schema, .arena = r->arena,
                                  .each_prepared = r->db->each_prepared, .prepared = r->db->prepared, .err = r->err,
                                  .patience = {.ask = go_on, .arg = r}};
    if (r->session) {
        ctx.local_address = r->session->local_address;
        ctx.local_port = r->session->local_port;
        ctx.protocol_version = r->session->protocol_version;
    }
    return ctx;
}
