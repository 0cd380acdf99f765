#include "system_schema/system_table.h"

/* One node owns the ring: one token, and the address that the client reached is the address it goes on using. */
int yield_local(const struct virtual_context *ctx, const struct schema_table *table, virtual_row_fn row, void *arg) {
    const struct catalog *c = ctx->catalog;
    const char *token = "0";
    struct row_out ro;
    if (row_out_init(&ro, ctx, table, row, arg)) return -1;
    if (!row_out_wants(&ro, 0, "local")) return 0;
    const char *address = ctx->local_address ? ctx->local_address : c->node.listen_address;
    row_out_begin(&ro);
    row_text(&ro, "key", "local");
    row_text(&ro, "bootstrapped", "COMPLETED");
    row_inet(&ro, "broadcast_address", address);
    row_int(&ro, "broadcast_port", 7000);
    row_text(&ro, "cluster_name", c->node.cluster_name);
    row_text(&ro, "cql_version", c->node.cql_version);
    row_text(&ro, "data_center", c->node.datacenter);
    row_int(&ro, "gossip_generation", (int32_t)c->started_s);
    row_bytes(&ro, "host_id", slice_of(c->host_id, 16));
    row_inet(&ro, "listen_address", address);
    row_int(&ro, "listen_port", 7000);
    row_text(&ro, "native_protocol_version", c->mode == MODE_CASSANDRA ? "5" : "4");
    row_text(&ro, "partitioner", "org.apache.cassandra.dht.Murmur3Partitioner");
    row_text(&ro, "rack", c->node.rack);
    row_text(&ro, "release_version", c->node.release_version);
    row_inet(&ro, "rpc_address", address);
    row_int(&ro, "rpc_port", ctx->local_port ? ctx->local_port : c->node.port);
    row_bytes(&ro, "schema_version", slice_of(ctx->schema->version, 16));
    row_text(&ro, "thrift_version", "20.1.0");
    row_texts(&ro, "tokens", 1, &token);
    return row_out_emit(&ro);
}
