#include "native_protocol/stage.h"

#include <assert.h>

#include "native_protocol/answer.h"
#include "native_protocol/fault.h"
#include "native_protocol/loop.h"
#include "native_protocol/sequence.h"

enum { ID = 2 + 16 }; /* what EXECUTE begins with: a [short bytes] */

static bool is_alike(const struct np_stage *s, const struct np_conn *c, const struct np_envelope *env) {
    if (!s->n) return true;
    assert(s->calls[0]->conn == c); /* S3 */
    return !memcmp(env->body.p, s->calls[0]->body.p, ID);
}

bool npi_stage_may(const struct np_conn *c, const struct np_envelope *env) {
    const struct np_options *o = c->loop->o;
    bool plain = env->opcode == NP_EXECUTE && env->stream >= 0 && env->body.n > ID && !(env->flags & (NP_FLAG_TRACING | NP_FLAG_PAYLOAD));
    bool answered_plainly = !c->capacity_full && o->capacity_payload != NP_CAPACITY_FULL && (npi_conn_framed(c) || c->compression == NP_COMPRESS_NONE);
    if (!plain || !answered_plainly || c->state != NP_CONN_READY || env->version != c->version) return false;
    return is_alike(&c->loop->stage, c, env) && !npi_fault_any(o) && !cql_admits(o->db);
}

/* Its rows are in the answer, and nothing is to be added but the charge, or done but to tell of it. */
static bool is_plain(const struct np_call *call) {
    const struct cql_request *r = &call->r;
    const struct np_reply *reply = &call->reply;
    bool read = call->outcome == CQL_DONE && r->stmt_kind == STMT_SELECT && r->result.kind == RESULT_ROWS;
    bool more = reply->more.n || reply->tail.p || buf_failed(reply->out) || r->n_warnings || call->options.named;
    return read && !more && !call->cost.is_system && call->cost.reads && !call->cost.reads->next;
}

/* What is told of it later is its own. */
static bool keep_key(struct np_call *call) {
    struct op_read *read = call->cost.reads;
    if (read->one_partition) read->key = arena_dup(&call->arena, read->key);
    return !read->one_partition || read->key.p;
}

bool npi_stage_put(struct np_call *call) {
    struct np_stage *s = &call->conn->loop->stage;
    call->share.crowded |= s->share.crowded;
    s->share.crowded = false;
    if (UNLIKELY(!is_plain(call) || !keep_key(call))) return false;
    npi_answer_seal(call);
    npi_stage_clear(s);
    s->calls[s->n++] = call;
    if (s->n == NP_STAGED) npi_stage_end(s);
    return true;
}

void npi_stage_clear(struct np_stage *s) { arena_reset(&s->arena); }

void npi_stage_end(struct np_stage *s) {
    unsigned n = s->n;
    s->n = 0;
    for (unsigned i = 0; i < n; i++) npi_call_go_on(s->calls[i]);
    npi_calls_finish(s->calls, n);
}
