#include "system_schema/system_tables/system_table.h"

static int emit(void *arg, const struct virtual_prepared *p) {
    struct row_out *ro = arg;
    row_out_begin(ro);
    row_bytes(ro, "prepared_id", p->id);
    row_text(ro, "logged_keyspace", p->keyspace);
    row_text(ro, "query_string", p->query);
    return row_out_emit(ro);
}

YIELDS(prepared_statements) {
    struct row_out ro;
    if (!ctx->each_prepared) return 0;
    if (row_out_init(&ro, ctx, table, row, arg)) return -1;
    bool behind = ctx->after && ctx->after[0].n == 16;
    return ctx->each_prepared(ctx->prepared, behind ? ctx->after[0].p : NULL, emit, &ro);
}
