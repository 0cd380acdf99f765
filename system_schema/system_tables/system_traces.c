#include "system_schema/system_tables/system_table.h"
#include "system_schema/system_tables/trace_store.h"

/* A trace holds the values of the request's statement. */
static bool is_hidden(const struct row_out *ro, const struct trace_session *s) {
    return ro->ctx->traces_of && (!s->role || strcmp(s->role, ro->ctx->traces_of) != 0);
}

static int emit_session(void *arg, const struct trace_session *s) {
    struct row_out *ro = arg;
    if (is_hidden(ro, s)) return 0;
    row_bytes_copy(ro, "session_id", s->id, 16);
    if (s->client.p) row_bytes_copy(ro, "client", s->client.p, s->client.n);
    row_text_copy(ro, "command", s->command);
    row_inet(ro, "coordinator", ro->ctx->local_address);
    row_int(ro, "coordinator_port", ro->ctx->local_port);
    row_int(ro, "duration", (int32_t)s->duration_us);
    row_map(ro, "parameters", s->n_parameters, s->parameters);
    row_text_copy(ro, "request", s->request);
    row_long(ro, "started_at", s->started_us / 1000);
    return row_out_emit(ro);
}

/* A timeuuid (version 1, 100 ns since 1582) of the event's moment; the sequence keeps events of one
 * microsecond apart and in order. */
static void event_id(const struct trace_session *s, uint32_t sequence, uint8_t id[16]) {
    uint64_t t = (uint64_t)(s->started_us + s->events[sequence].at_us) * 10 + 0x01b21dd213814000;
    store_u32(id, (uint32_t)t);
    store_u16(id + 4, (uint16_t)(t >> 32));
    store_u16(id + 6, (uint16_t)((t >> 48) & 0x0fff) | 0x1000);
    memcpy(id + 8, s->id + 8, 8);
    store_u16(id + 14, (uint16_t)sequence);
}

static int emit_events(void *arg, const struct trace_session *s) {
    struct row_out *ro = arg;
    for (uint32_t i = 0; i < s->n_events && !is_hidden(ro, s); i++) {
        uint8_t id[16];
        event_id(s, i, id);
        row_bytes_copy(ro, "session_id", s->id, 16);
        row_bytes_copy(ro, "event_id", id, 16);
        row_text_copy(ro, "activity", s->events[i].activity);
        row_inet(ro, "source", ro->ctx->local_address);
        row_int(ro, "source_elapsed", (int32_t)s->events[i].at_us);
        row_int(ro, "source_port", ro->ctx->local_port);
        row_text_copy(ro, "thread", s->events[i].thread);
        if (row_out_emit(ro)) return -1;
    }
    return 0;
}

YIELDS(trace_sessions) {
    const struct system_tables *s = context_of(ro->table);
    return trace_store_each(s->traces, clock_wall_us(s->objects->clock), ro->ctx->key, emit_session, ro);
}

YIELDS(trace_events) {
    const struct system_tables *s = context_of(ro->table);
    return trace_store_each(s->traces, clock_wall_us(s->objects->clock), ro->ctx->key, emit_events, ro);
}

/* Refuses writes except deletion: only requests write traces, but as in Cassandra a role with
 * MODIFY may delete them. */
static int erase(const struct virtual_context *ctx, const struct schema_table *table,
                 const struct virtual_change *change, bool events) {
    bool row = change->kind == VIRTUAL_DELETE, whole = change->kind == VIRTUAL_DELETE_PARTITION;
    if (row && events)
        return err_invalid(ctx->err, "Row deletion is not supported by table %s.%s", table->keyspace->name,
                           table->name);
    if (change->kind == VIRTUAL_TRUNCATE) trace_store_clear(context_of(table)->traces, events);
    else if (row || whole) trace_store_delete(context_of(table)->traces, value_slice(change->values[0]), events);
    else return err_set(ctx->err, ERR_UNAUTHORIZED, "%s keyspace is not user-modifiable.", table->keyspace->name);
    return 0;
}

WRITES(trace_sessions) { return erase(ctx, table, change, false); }
WRITES(trace_events) { return erase(ctx, table, change, true); }
