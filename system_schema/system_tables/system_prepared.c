#include "system_schema/system_tables/system_table.h"

static int emit(void *arg, const struct virtual_prepared *p) {
    struct row_out *ro = arg;
    row_bytes(ro, "prepared_id", p->id);
    row_text(ro, "logged_keyspace", p->keyspace);
    row_text(ro, "query_string", p->query);
    return row_out_emit(ro);
}

YIELDS(prepared_statements) {
    if (!ro->ctx->each_prepared) return 0;
    bool behind = ro->ctx->after && ro->ctx->after[0].n == 16;
    return ro->ctx->each_prepared(ro->ctx->prepared, behind ? ro->ctx->after[0].p : NULL, emit, ro);
}
