#include "native_protocol/trace.h"

#include "base/random.h"
#include "cql/fingerprint.h"
#include "cql/request/consistency.h"
#include "native_protocol/faults/rule.h"
#include "native_protocol/conn.h"
#include "native_protocol/loop.h"
#include "system_schema/system_tables/trace_store.h"

enum { EVENTS = NP_TRACE_STEPS + 8, PARAMETERS = 4 };

/* RFC 4122 version 1 with a random clock sequence and node (multicast bit set). */
static int make_timeuuid(int64_t wall_us, uint8_t id[16]) {
    struct err why = {0};
    static const int64_t gregorian_to_unix = 0x01B21DD213814000; /* 100 ns from 1582-10-15 to 1970 */
    uint64_t t = (uint64_t)(wall_us * 10 + gregorian_to_unix);
    store_u32(id, (uint32_t)t);
    store_u16(id + 4, (uint16_t)(t >> 32));
    store_u16(id + 6, (uint16_t)((t >> 48 & 0x0FFF) | 0x1000));
    if (random_bytes(id + 8, 8, &why)) return -1;
    id[8] = (id[8] & 0x3F) | 0x80;
    id[10] |= 1;
    return 0;
}

static const char *query_text(struct np_call *call) {
    struct slice query = call->request.query;
    if (query.p) return (const char *)cql_shown(&call->arena, call->r.answer.stmt_kind, query).p;
    return call->r.answer.fingerprint.p ? (const char *)call->r.answer.fingerprint.p : "";
}

static uint32_t parameters(struct np_call *call, struct schema_option *out) {
    const struct cql_params *p = &call->r.in->params;
    uint32_t n = 0;
    out[n++] = (struct schema_option){"consistency_level", consistency_name(p->consistency)};
    if (p->page_size > 0)
        out[n++] = (struct schema_option){"page_size", arena_printf(&call->arena, "%d", p->page_size)};
    out[n++] = (struct schema_option){"query", query_text(call)};
    out[n++] = (struct schema_option){"serial_consistency_level", consistency_name(p->serial_consistency)};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (out[i].value) out[kept++] = out[i];
    return kept;
}

static const char *class_name(enum cql_work_class class) {
    static const char *const names[WORK_CLASSES] = {
        [WORK_READ] = "read", [WORK_UPDATE] = "update", [WORK_SCAN] = "scan", [WORK_DDL] = "ddl"};
    return names[class];
}

struct np_trace *npi_trace_new(struct np_call *call) {
    struct np_trace *t = arena_alloc(&call->arena, sizeof(*t));
    if (!t) return NULL;
    *t = (struct np_trace){.started_us = clock_machine_us(call->conn->loop->o->clock)};
    return t;
}

void npi_trace_record(struct np_call *call, enum np_trace_step step, int64_t number) {
    struct np_trace *t = call->trace;
    /* parts leave room for the last steps */
    if (t->n == NP_TRACE_STEPS || (step == NP_TRACE_PART && t->n > NP_TRACE_STEPS / 2)) return;
    t->steps[t->n].step = step;
    t->steps[t->n].on_worker = call->r.blocking;
    t->steps[t->n].class = call->work.class;
    t->steps[t->n].at_us = clock_machine_us(call->conn->loop->o->clock);
    t->steps[t->n].number = number;
    t->steps[t->n++].rows_read = call->cost.rows_read;
}

static const char *step_text(struct np_call *call, uint32_t i) {
    struct arena *a = &call->arena;
    const struct op_cost *c = &call->cost;
    long long number = (long long)call->trace->steps[i].number;
    switch (call->trace->steps[i].step) {
    case NP_TRACE_OFFLOAD:
        return arena_printf(a, "Handed to the %s workers: it needs what is not in memory, or reads before it writes",
                            class_name((enum cql_work_class)number));
    case NP_TRACE_WORKER: return arena_printf(a, "A worker begins; %lld microseconds were waited in the queue", number);
    case NP_TRACE_PART:
        return arena_printf(a, "Part %lld is done, %llu rows were read; other requests run before the next part",
                            number, (unsigned long long)call->trace->steps[i].rows_read);
    case NP_TRACE_PLANNED:
        return arena_printf(a, "Read %llu rows (%llu bytes, %llu tombstones) of %llu partitions %s, returned %llu",
                            (unsigned long long)c->rows_read, (unsigned long long)c->bytes_read,
                            (unsigned long long)c->tombstones, (unsigned long long)c->partitions,
                            call->trace->steps[i].on_worker ? "from memory and disk" : "from memory",
                            (unsigned long long)c->rows_returned);
    case NP_TRACE_SIZED:
        return arena_printf(a, "Charged %g read units, %g write units, %g static write units", call->charge.read_units,
                            call->charge.write_units, call->charge.static_write_units);
    case NP_TRACE_FAULT: return arena_printf(a, "Hit by the fault %s of system_control.faults", call->fault.rule->name);
    case NP_TRACE_ADMITTED: return "Admitted by the limits";
    case NP_TRACE_REFUSED: return "Refused by the limits";
    case NP_TRACE_APPLIED:
        return arena_printf(a, "Applied %llu bytes; %s", (unsigned long long)c->bytes_written,
                            eng_is_remote(call->conn->loop->o->eng) ? "the cluster has acknowledged them"
                                                                    : "waits until they are on disk");
    }
    return NULL;
}

static uint32_t events(struct np_call *call, int64_t took, struct trace_event *out) {
    struct arena *a = &call->arena;
    const struct np_trace *t = call->trace;
    static const char loop[] = "event-loop";
    uint32_t n = 0;
    out[n++] = (struct trace_event){0, arena_printf(a, "Parsing %.*s", 1000, query_text(call)), loop};
    for (uint32_t i = 0; i < t->n; i++) {
        const char *thread = t->steps[i].on_worker ? arena_printf(a, "%s-worker", class_name(t->steps[i].class)) : loop;
        out[n++] = (struct trace_event){t->steps[i].at_us - call->trace->started_us, step_text(call, i), thread};
    }
    if (call->err->set) { /* the text of an error may quote the statement */
        bool secret = cql_holds_password(call->r.answer.stmt_kind, call->r.in->query);
        const char *text = secret ? err_title(call->err->code) : call->err->text;
        out[n++] = (struct trace_event){took, arena_printf(a, "Failed: %s", text), loop};
    }
    if (call->r.answer.result.paging_state.p) out[n++] = (struct trace_event){took, "Another page may follow", loop};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (out[i].activity) out[kept++] = out[i];
    return kept;
}

int npi_trace(struct np_call *call, uint8_t id[16]) {
    static const char *const titles[] = {[REQUEST_QUERY] = "Execute CQL3 query",
                                         [REQUEST_PREPARE] = "Preparing CQL3 query",
                                         [REQUEST_EXECUTE] = "Execute CQL3 prepared query",
                                         [REQUEST_BATCH] = "Execute batch of CQL3 queries"};
    struct np_loop *l = call->conn->loop;
    struct trace_event ev[EVENTS];
    struct schema_option par[PARAMETERS];
    int64_t took = clock_machine_us(l->o->clock) - call->trace->started_us;
    struct trace_session s = {
        .started_us = call->r.now_us,
        .machine_us = call->trace->started_us,
        .duration_us = took,
        .role = call->conn->role,
        .command = "QUERY",
        .request = titles[call->r.in->kind],
        .client = slice_of(call->conn->peer.bytes, call->conn->peer.n),
        .parameters = par,
        .events = ev,
    };
    if (make_timeuuid(call->r.now_us, id)) return -1;
    memcpy(s.id, id, 16);
    s.n_parameters = parameters(call, par);
    s.n_events = events(call, took, ev);
    call->trace->session = trace_store_add(l->o->traces, &s);
    return 0;
}
