#include "native_protocol/posting.h"

#include "base/hot.h"
#include "base/log.h"
#include "base/murmur3.h"
#include "cql/fingerprint.h"
#include "native_protocol/conn.h"
#include "native_protocol/loop.h"
#include "native_protocol/recording.h"

enum operation npi_operation_of(enum stmt_kind kind) {
    static const enum operation operations[] = {
#define STMT(id, words, functions, permission, resource, rule, checks, category, operation, work) OPERATION_##operation,
#include "cql/syntax/stmt.def"
#undef STMT
        OPERATION_OTHER, /* STMT_KINDS */
    };
    return operations[kind];
}

enum np_kind npi_kind_of(const struct np_call *call) {
    _Static_assert((int)NP_KIND_OTHER == (int)OPERATION_OTHER, "the operations are the first kinds");
    enum stmt_kind kind = call->r.answer.stmt_kind;
    if (call->env.opcode == NP_PREPARE) return NP_KIND_PREPARE;
    if (stmt_category(kind) == STMT_IS_DDL) return NP_KIND_DDL;
    return (enum np_kind)npi_operation_of(kind);
}

static bool is_posted(const struct np_call *call) {
    return call->conn->loop->o->ledger && (call->r.in->kind != REQUEST_PREPARE || call->err->set);
}

/* A prepared statement is named by its id, any other by a hash of its text without literals. */
void npi_post_statement(struct np_call *call) {
    const struct cql_run *r = &call->r;
    struct slice text = {0};
    call->statement_id = 0;
    if (LIKELY(r->in->kind == REQUEST_EXECUTE)) {
        call->statement_text = r->answer.fingerprint;
        if (r->answer.fingerprint.p) call->statement_id = load_u64(r->in->prepared_id.p);
        return;
    }
    if (!is_posted(call)) return;
    if (r->in->kind == REQUEST_BATCH && call->cost.table) {
        const char *batch = arena_printf(&call->arena, "BATCH of %u on %s.%s", r->in->n_items, call->cost.keyspace,
                                         call->cost.table);
        if (batch) text = slice_str(batch);
    } else if (r->in->kind == REQUEST_QUERY && stmt_is_data(r->answer.stmt_kind) && !call->cost.is_system) {
        text = cql_fingerprint(&call->arena, r->in->query);
    }
    call->statement_text = text;
    if (text.p) call->statement_id = murmur3_hash(text);
}

/* Logs a slow statement without values of rows: its text has no literals, and text that could
 * contain a password is not shown at all. The trace context was checked: it needs no quotes. */
SELDOM static void log_slow(struct np_call *call, int64_t took_us) {
    const struct charge *c = &call->charge;
    const char *kind = call->r.answer.stmt_kind < STMT_KINDS ? stmt_words(call->r.answer.stmt_kind)
                                                      : np_opcode_name(call->env.opcode);
    struct slice text = call->statement_text, trace = call->options.traceparent;
    if (text.p && call->r.in->kind == REQUEST_EXECUTE) text = cql_without_literals(&call->arena, text);
    log_warn("slow: %.1f ms, %g read units, %g write units, %g static write units, %s, role %s, from %s%s%.*s: %.*s",
             (double)took_us / 1000, c->read_units, c->write_units, c->static_write_units,
             call->err->set ? "failed" : "answered", call->conn->account.role, call->conn->account.address,
             trace.n ? ", trace " : "", SLICE_FMT(trace), SLICE_FMT(text.p ? text : slice_str(kind)));
}

SELDOM static void post(struct np_call *call, int64_t took_us) {
    struct np_conn *c = call->conn;
    const struct limit_verdict *v = call->r.answer.verdict;
    enum ledger_outcome outcome = LEDGER_OK;
    if (call->err->set && v && limit_refuses(v)) outcome = LEDGER_THROTTLED;
    else if (call->err->set)
        outcome = np_outcome_of(call->err) == NP_OUTCOME_REFUSED ? LEDGER_USER_ERROR : LEDGER_SYSTEM_ERROR;
    uint32_t statements = call->cost.reads ? 0 : 1;
    for (const struct op_read *r = call->cost.reads; r; r = r->next) statements++;
    struct ledger_request q = {
        .cost = &call->cost,
        .operation = npi_operation_of(call->r.answer.stmt_kind),
        .outcome = outcome,
        .applied = npi_call_was_hit_after_apply(call),
        .statements = statements,
        .now_us = call->r.now_us,
        .took_us = took_us,
        .connection = call->r.in->kind == REQUEST_PREPARE ? NULL : &c->account,
        .statement_id = call->statement_id,
        .rules = call->charge.rules,
        .text = call->statement_text,
    };
    /* Drivers answer this error by preparing the statement again: it counts neither as a success of
     * the statement nor as an error. */
    if (call->err->set && call->err->code == ERR_UNPREPARED) {
        q.operation = OPERATION_OTHER;
        q.outcome = LEDGER_OK;
    }
    if (v) {
        enum limit_id limit = v->over.limit != LIMITS ? v->over.limit : v->guidance.limit;
        q.guidance = v->guidance.limit != LIMITS;
        q.throttled = v->over.limit != LIMITS || v->guidance.enforced;
        q.read_throttled = !call->cost.writes || limit_is_of_reads(limit);
        q.by_connection = limit == LIMIT_CONNECTION;
        q.by_partition = limit == LIMIT_PARTITION_READ || limit == LIMIT_PARTITION_WRITE;
    }
    ledger_post(c->loop->o->ledger, c->loop->number, &q);
}

/* Queues a prepared SELECT of one read that succeeded, with nothing else to post. */
static bool queue_read(struct np_call *call) {
    const struct np_loop *l = call->conn->loop;
    const struct cql_answer *a = &call->r.answer;
    bool more = call->err->set | (call->fault.rule != NULL) | npi_call_was_queued(call) | (a->verdict != NULL) |
                (a->stmt_kind != STMT_SELECT) | (call->request.kind != REQUEST_EXECUTE) | !call->statement_id;
    return LIKELY(call->charge.one_read & !more) && is_posted(call) &&
           ledger_queue_read(l->o->ledger, l->number, &call->conn->account, call->statement_id, &call->cost,
                             call->r.now_us);
}

void npi_post(struct np_call *call, bool is_held) {
    struct np_loop *l = call->conn->loop;
    int64_t slow_us = l->o->slow_us ? atomic_load_explicit(l->o->slow_us, memory_order_relaxed) : 0;
    bool queued = queue_read(call);
    bool untimed = LIKELY(queued && !slow_us && !npi_records(l->o));
    if (LIKELY(untimed) && ++l->n_untimed < NP_UNTIMED) return;
    if (!l->group.is_timed) npi_loop_time(l);
    l->group.is_timed = l->group.is_finishing;
    if (!untimed && !is_held) np_metric_latency(&l->metrics, npi_kind_of(call), l->now_us - call->begun_us, 1);
    if (!is_posted(call)) return;
    if (UNLIKELY(slow_us && l->now_us - call->begun_us >= slow_us)) log_slow(call, l->now_us - call->begun_us);
    if (!queued) post(call, l->now_us > call->r.now_us ? l->now_us - call->r.now_us : 0);
}
