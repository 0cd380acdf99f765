#include "native_protocol/trace.h"

#include <openssl/rand.h>

#include "cql/request/consistency.h"
#include "native_protocol/conn.h"
#include "native_protocol/loop.h"

enum { EVENTS = 4, PARAMETERS = 4 };

/* RFC 4122 version 1 with a random clock sequence and node (multicast bit set). */
static void make_timeuuid(int64_t wall_us, uint8_t id[16]) {
    static const int64_t gregorian_to_unix = 0x01B21DD213814000; /* 100 ns from 1582-10-15 to 1970 */
    uint64_t t = (uint64_t)(wall_us * 10 + gregorian_to_unix);
    store_u32(id, (uint32_t)t);
    store_u16(id + 4, (uint16_t)(t >> 32));
    store_u16(id + 6, (uint16_t)((t >> 48 & 0x0FFF) | 0x1000));
    if (RAND_bytes(id + 8, 8) != 1) memset(id + 8, 0x55, 8);
    id[8] = (id[8] & 0x3F) | 0x80;
    id[10] |= 1;
}

static const char *request_title(const struct np_call *call) {
    switch (call->r.kind) {
    case REQUEST_QUERY: return "Execute CQL3 query";
    case REQUEST_PREPARE: return "Preparing CQL3 query";
    case REQUEST_EXECUTE: return "Execute CQL3 prepared query";
    case REQUEST_BATCH: return "Execute batch of CQL3 queries";
    }
    return "";
}

static const char *query_text(struct np_call *call) {
    if (call->r.query.p) return (const char *)arena_dup(&call->arena, call->r.query).p;
    return call->r.fingerprint ? call->r.fingerprint : "";
}

static uint32_t parameters(struct np_call *call, struct schema_option *out) {
    const struct cql_params *p = &call->r.params;
    uint32_t n = 0;
    out[n++] = (struct schema_option){"consistency_level", consistency_name(p->consistency)};
    if (p->page_size > 0) out[n++] = (struct schema_option){"page_size", arena_printf(&call->arena, "%d", p->page_size)};
    out[n++] = (struct schema_option){"query", query_text(call)};
    out[n++] = (struct schema_option){"serial_consistency_level", consistency_name(p->serial_consistency)};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (out[i].value) out[kept++] = out[i];
    return kept;
}

static uint32_t events(struct np_call *call, const struct charge *charge, int64_t took, struct trace_event *out) {
    struct arena *a = &call->arena;
    const struct op_cost *c = &call->cost;
    const char *thread = call->offloaded ? "blocking-worker" : "event-loop";
    uint32_t n = 0;
    out[n++] = (struct trace_event){0, arena_printf(a, "Parsing %.*s", 1000, query_text(call)), thread};
    out[n++] = (struct trace_event){took, arena_printf(a, "Read %llu rows (%llu bytes, %llu tombstones) of %llu partitions, returned %llu",
                                                       (unsigned long long)c->rows_read, (unsigned long long)c->bytes_read,
                                                       (unsigned long long)c->tombstones, (unsigned long long)c->partitions,
                                                       (unsigned long long)c->rows_returned), thread};
    out[n++] = (struct trace_event){took, arena_printf(a, "Charged %g read units, %g write units, %g static write units", charge->read_units,
                                                       charge->write_units, charge->static_write_units), thread};
    if (call->err.set) out[n++] = (struct trace_event){took, arena_printf(a, "Failed: %s", call->err.text), thread};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (out[i].activity) out[kept++] = out[i];
    return kept;
}

void npi_trace(struct np_call *call, const struct charge *charge, uint8_t id[16]) {
    struct np_loop *l = call->conn->loop;
    struct trace_event ev[EVENTS];
    struct schema_option par[PARAMETERS];
    int64_t took = clock_machine_us(l->o->clock) - call->started_us;
    struct trace_session s = {
        .started_us = call->r.now_us,
        .duration_us = took,
        .command = "QUERY",
        .request = request_title(call),
        .client = slice_of(call->conn->peer, call->conn->peer_n),
        .parameters = par,
        .events = ev,
    };
    make_timeuuid(call->r.now_us, id);
    memcpy(s.id, id, 16);
    s.n_parameters = parameters(call, par);
    s.n_events = events(call, charge, took, ev);
    catalog_trace_add(l->o->catalog, &s);
}
