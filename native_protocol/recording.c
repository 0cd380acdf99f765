#include "native_protocol/recording.h"

#include "base/hot.h"
#include "metering/capture/recorder.h"
#include "cql/fingerprint.h"
#include "cql/prepared.h"
#include "native_protocol/conn.h"
#include "native_protocol/loop.h"

/* ---- prepared statements ---- */

/* hashed: the text has no literals. */
static struct capture_statement statement_of(struct np_call *call, const struct cql_prepared *p, bool hashed) {
    const struct prepared_info *info = cql_prepared_info(p);
    return (struct capture_statement){
        .id = slice_of(info->id, CAPTURE_ID),
        .keyspace = slice_str(info->keyspace ? info->keyspace : ""),
        .text = hashed ? cql_without_literals(&call->arena, info->shown) : info->shown,
    };
}

/* In the call's arena. */
static const struct capture_statement *statements_of(struct np_call *call, bool hashed, size_t *n) {
    const struct cql_run *r = &call->r;
    struct capture_statement *list = arena_alloc(&call->arena, (r->n_item_statements + 1) * sizeof(*list));
    *n = 0;
    if (!list) return NULL;
    if (r->statement) list[(*n)++] = statement_of(call, r->statement, hashed);
    for (uint32_t i = 0; i < r->n_item_statements; i++)
        if (r->item_statements[i]) list[(*n)++] = statement_of(call, r->item_statements[i], hashed);
    return list;
}

/* ---- digests ---- */

static void put_values(struct buf *out, const struct capture_key *k, uint32_t n, const struct value *values) {
    for (uint32_t i = 0; i < n; i++) capture_put_digest_value(out, k, values[i].n, values[i].p);
}

static void put_digest(struct np_call *call, const struct capture_key *k, struct buf *out) {
    const struct cql_run *r = &call->r;
    bool batch = r->in->kind == REQUEST_BATCH;
    const struct capture_digest d = {.consistency = r->in->params.consistency,
                                     .page_size = r->in->params.page_size,
                                     .paging = r->in->params.paging_state.p != NULL,
                                     .batch_kind = (uint8_t)r->in->batch_kind,
                                     .n_statements = batch ? (uint16_t)r->in->n_items : 1};
    capture_put_digest(out, &d);
    if (!batch) {
        struct slice text = r->in->prepared_id.p ? (struct slice){0} : cql_fingerprint(&call->arena, r->in->query);
        /* in the order of the markers, also if the client named them */
        capture_put_digest_statement(out, r->in->prepared_id, text, (uint16_t)r->eval.n_values);
        put_values(out, k, r->eval.n_values, r->eval.values);
        return;
    }
    for (uint32_t i = 0; i < r->in->n_items; i++) {
        const struct cql_batch_item *item = &r->in->items[i];
        struct slice text = item->prepared_id.p ? (struct slice){0} : cql_fingerprint(&call->arena, item->query);
        capture_put_digest_statement(out, item->prepared_id, text, (uint16_t)item->n_values);
        put_values(out, k, item->n_values, item->values);
    }
}

/* ---- the request ---- */

static uint32_t outcome_of(const struct err *e) { return e->set ? (uint32_t)e->code : 0; }

SELDOM static void record(struct np_call *call, struct capture_recorder *to) {
    struct np_conn *c = call->conn;
    const struct capture_switch *is = capture_switch_of(to);
    int64_t now = c->loop->now_us;
    size_t n;
    const struct capture_statement *statements = statements_of(call, capture_is_hashed(is), &n);
    bool digested = capture_is_hashed(is) || cql_holds_password(call->r.answer.stmt_kind, call->r.in->query);
    struct capture_request q = {
        .began_us = call->r.now_us,
        .took_us = now > call->r.now_us ? (uint64_t)(now - call->r.now_us) : 0,
        .connection = c->account.id,
        .version = call->env.version,
        .flags = digested ? 0 : call->env.flags & NP_FLAG_PAYLOAD,
        .opcode = call->env.opcode,
        .marks = (uint8_t)((call->r.answer.verdict && limit_refuses(call->r.answer.verdict) ? CAPTURE_THROTTLED : 0) |
                           (digested ? CAPTURE_DIGEST : 0)),
        .outcome = outcome_of(call->err),
        .keyspace = slice_str(call->r.session->keyspace),
        .body = call->body,
    };
    struct buf digest;
    buf_init(&digest, 0);
    const struct charge *charge = &call->charge;
    if (!call->err->set || npi_call_was_hit_after_apply(call)) { /* a failed request is free */
        q.read_halves = (uint64_t)(charge->read_units * 2);
        q.write_halves = (uint64_t)(charge->write_units * 2);
        q.static_halves = (uint64_t)(charge->static_write_units * 2);
        double billed = charge->write_units + charge->static_write_units;
        if (billed > 0 && billed == charge->region_write_units) q.marks |= CAPTURE_ONE_REGION;
        q.row_bytes = charge->row_bytes;
        q.static_bytes = charge->static_bytes;
        q.rows_read = call->cost.rows_read;
        q.rows_returned = call->cost.rows_returned;
    }
    if (digested) {
        const struct capture_key k = capture_key_of(to);
        put_digest(call, &k, &digest);
        q.body = buf_slice(&digest);
    }
    if (!buf_failed(&digest)) capture_post(to, statements, n, &q);
    buf_fini(&digest);
}

bool npi_records(const struct np_options *o) { return UNLIKELY(capture_is_on(capture_switch_of(o->capture))); }

void npi_record(struct np_call *call) {
    struct capture_recorder *to = call->conn->loop->o->capture;
    if (UNLIKELY(capture_is_on(capture_switch_of(to)))) record(call, to);
}

void npi_record_refused(struct np_conn *c, const struct np_envelope *env, struct slice body, const struct err *e) {
    struct capture_recorder *to = c->loop->o->capture;
    if (LIKELY(!capture_is_on(capture_switch_of(to)))) return;
    bool hashed = capture_is_hashed(capture_switch_of(to));
    const struct capture_request q = {.began_us = clock_wall_us(c->loop->o->clock),
                                      .connection = c->account.id,
                                      .version = env->version,
                                      .opcode = env->opcode,
                                      .flags = hashed ? 0 : env->flags & NP_FLAG_PAYLOAD,
                                      .marks = hashed ? CAPTURE_DIGEST : 0,
                                      .outcome = outcome_of(e),
                                      .keyspace = slice_str(c->session.keyspace),
                                      .body = hashed ? slice_str("") : body};
    capture_post(to, NULL, 0, &q);
}
