#include "system_schema/system_tables/system_table.h"
#include "system_schema/system_tables/trace_store.h"

/* A trace holds the values of the request's statement. */
static bool is_hidden(const struct row_out *ro, const struct trace_session *s) {
    return ro->ctx->traces_of && (!s->role || strcmp(s->role, ro->ctx->traces_of) != 0);
}

static const struct trace_row *written_row(const struct trace_session *s, const uint8_t *event) {
    const struct trace_row *row = s->written;
    while (row && !trace_row_is(row, event)) row = row->next;
    return row;
}

/* Puts what clients have written over the values of the trace. Returns false if neither is left. */
static bool put_written(struct row_out *ro, const struct trace_row *row, bool traced) {
    bool exists = traced || (row && row->inserted);
    for (uint32_t i = ro->table->n_partition_key + ro->table->n_clustering; row && i < ro->table->n_columns; i++) {
        struct value v = row->values[i];
        if (value_is_unset(v)) continue;
        exists = exists || !value_is_null(v);
        if (v.n > 0 && !(v.p = arena_dup(ro->ctx->arena, value_slice(v)).p)) ro->failed = true;
        ro->values[i] = v;
    }
    return exists;
}

static int emit_session(void *arg, const struct trace_session *s) {
    struct row_out *ro = arg;
    const struct trace_row *written = written_row(s, NULL);
    bool traced = s->traced && !(written && written->deleted);
    if (is_hidden(ro, s)) return 0;
    if (traced) {
        if (s->client.p) row_bytes_copy(ro, "client", s->client.p, s->client.n);
        row_text_copy(ro, "command", s->command);
        row_inet(ro, "coordinator", ro->ctx->local_address);
        row_int(ro, "coordinator_port", ro->ctx->local_port);
        row_int(ro, "duration", (int32_t)s->duration_us);
        row_map(ro, "parameters", s->n_parameters, s->parameters);
        row_text_copy(ro, "request", s->request);
        row_long(ro, "started_at", s->started_us / 1000);
    }
    if (!put_written(ro, written, traced)) return 0;
    row_bytes_copy(ro, "session_id", s->id, 16);
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

static int emit_event(struct row_out *ro, const struct trace_session *s, const uint8_t id[16],
                      const struct trace_event *event, const struct trace_row *written) {
    if (event) {
        row_text_copy(ro, "activity", event->activity);
        row_inet(ro, "source", ro->ctx->local_address);
        row_int(ro, "source_elapsed", (int32_t)event->at_us);
        row_int(ro, "source_port", ro->ctx->local_port);
        row_text_copy(ro, "thread", event->thread);
    }
    if (!put_written(ro, written, event != NULL)) return 0;
    row_bytes_copy(ro, "session_id", s->id, 16);
    row_bytes_copy(ro, "event_id", id, 16);
    return row_out_emit(ro);
}

/* The events of the trace, then the rows that clients have written beside them. */
static int emit_events(void *arg, const struct trace_session *s) {
    struct row_out *ro = arg;
    uint8_t id[16];
    if (is_hidden(ro, s)) return 0;
    for (uint32_t i = 0; i < s->n_events; i++) {
        event_id(s, i, id);
        const struct trace_row *written = written_row(s, id);
        if (!(written && written->deleted) && emit_event(ro, s, id, &s->events[i], written)) return -1;
    }
    for (const struct trace_row *row = s->written; row; row = row->next) {
        bool emitted = !row->of_event;
        for (uint32_t i = 0; i < s->n_events && !emitted && !row->deleted; i++) {
            event_id(s, i, id);
            emitted = trace_row_is(row, id);
        }
        if (!emitted && emit_event(ro, s, row->event, NULL, row)) return -1;
    }
    return 0;
}

YIELDS(trace_sessions) {
    const struct system_tables *s = context_of(ro->table);
    return trace_store_each(s->traces, clock_wall_us(s->catalog->objects->clock), ro->ctx->key, emit_session, ro);
}

YIELDS(trace_events) {
    const struct system_tables *s = context_of(ro->table);
    return trace_store_each(s->traces, clock_wall_us(s->catalog->objects->clock), ro->ctx->key, emit_events, ro);
}

/* In cassandra mode a role with MODIFY may write any row, and delete rows and columns. In keyspaces mode only
 * requests write traces, and such a role may delete them. */
static int write_traces(const struct virtual_context *ctx, const struct schema_table *table,
                        const struct virtual_change *change, bool events) {
    const struct system_tables *s = context_of(table);
    bool row = change->kind == VIRTUAL_DELETE, whole = change->kind == VIRTUAL_DELETE_PARTITION;
    if (change->kind == VIRTUAL_TRUNCATE) {
        trace_store_clear(s->traces, events);
        return 0;
    }
    const struct slice session = value_slice(change->values[0]);
    if (whole || (row && !events)) {
        trace_store_delete(s->traces, session, events);
        return 0;
    }
    if (s->catalog->objects->mode == MODE_KEYSPACES && row)
        return err_invalid(ctx->err, "Row deletion is not supported by table %s.%s", table->keyspace->name,
                           table->name);
    if (s->catalog->objects->mode == MODE_KEYSPACES)
        return err_set(ctx->err, ERR_UNAUTHORIZED, "%s keyspace is not user-modifiable.", table->keyspace->name);
    const struct slice event = events ? value_slice(change->values[1]) : session;
    if (session.n != 16 || event.n != 16) return err_invalid(ctx->err, "Key may not be empty");
    return trace_store_write(s->traces, clock_wall_us(s->catalog->objects->clock), ctx->traces_of, session,
                             events ? &event : NULL, row ? NULL : change->values, table->n_columns,
                             change->kind == VIRTUAL_INSERT, ctx->err);
}

WRITES(trace_sessions) { return write_traces(ctx, table, change, false); }
WRITES(trace_events) { return write_traces(ctx, table, change, true); }
