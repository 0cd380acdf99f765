#include "native_protocol/offload.h"

#include <stddef.h>

#include "base/random.h"
#include "native_protocol/dispatch.h"
#include "native_protocol/fault.h"
#include "native_protocol/loop.h"

static struct np_call *call_of(struct np_work *w) {
    return (struct np_call *)((char *)w - offsetof(struct np_call, work));
}

/* A call is back from its worker. */
static void returned(struct np_task *x, bool ended) {
    struct np_call *call = (struct np_call *)x;
    if (!ended) {
        npi_call_finish(call);
        return;
    }
    npi_call_forget(call);
    np_reply_drop(&call->reply);
    npi_conn_unref(call->conn);
    npi_call_free(call);
}

/* ---- on a worker ---- */

/* Holds an answer back that would only wait in memory: while the connection has not read its
 * earlier answers, or all connections together hold too many unread bytes. The time that the client
 * takes to read does not count against the request's deadline. */
static enum np_may may_go_on(struct np_call *call) {
    struct np_share *unread = &call->conn->output.share;
    enum cql_work_class class = call->work.class;
    if (call->outcome == CQL_AGAIN) {
        enum np_may may = npi_share_may_make(unread, &call->reply, call->reply.charged);
        if (may == NP_MAY_WAIT && npi_share_is_behind(unread)) {
            npi_call_set_deadline(call, class);
            call->r.deadline_us = call->work.deadline_us;
        }
        return may;
    }
    if (class != WORK_READ && class != WORK_SCAN) return NP_MAY_GO_ON;
    if (npi_share_bytes(unread) > NP_SHARE_OWN) {
        npi_call_set_deadline(call, class);
        return NP_MAY_WAIT;
    }
    return call->awaits_room && !npi_share_has_room(unread) ? NP_MAY_WAIT : NP_MAY_GO_ON;
}

static enum np_work_part wait(struct np_call *call) {
    enum { LOOK_AGAIN_US = 10000 };
    call->work.not_before_us = clock_machine_us(call->conn->loop->o->clock) + LOOK_AGAIN_US;
    return NP_PART_LATER;
}

/* Drops the answer so far, for another run; the deadline stays. */
static void start_over(struct np_call *call) {
    int64_t deadline_us = call->work.deadline_us;
    npi_call_unplan(call);
    npi_call_start_over(call);
    call->work.deadline_us = call->r.deadline_us = deadline_us;
    call->outcome = CQL_OFFLOAD;
}

static enum np_work_part wait_for_room(struct np_call *call) {
    start_over(call);
    call->awaits_room = true;
    return wait(call);
}

/* Another server has written to the same partitions at the same time. The call has no effect yet,
 * except on the partitions that it keeps a list of, and has given its units back. So it starts over
 * after a random time, of which the limit doubles with each conflict; else the two servers would
 * meet again. It fails with the engine's error when it has met too many, or has no time left. */
static enum np_work_part avoid_conflict(struct np_call *call) {
    enum { CONFLICTS_MAX = 64, DOUBLED_MAX = 6, LEAST_US = 1000 };
    uint32_t doubled = call->n_conflicts < DOUBLED_MAX ? call->n_conflicts : DOUBLED_MAX, random;
    struct err failed = {0};
    int64_t now_us = clock_machine_us(call->conn->loop->o->clock), deadline_us = call->work.deadline_us;
    if (random_bytes(&random, sizeof(random), &failed)) random = (uint32_t)now_us;
    int64_t then_us = now_us + random % (LEAST_US << doubled);
    if (++call->n_conflicts == CONFLICTS_MAX || (deadline_us && then_us >= deadline_us)) {
        call->outcome = CQL_FAILED;
        return NP_PART_LAST;
    }
    call->written = call->r.written;
    start_over(call);
    err_clear(&call->err);
    call->work.not_before_us = then_us;
    return NP_PART_LATER;
}

static enum np_work_part run(struct np_work *w, struct eng_batch *batch) {
    struct np_call *call = call_of(w);
    if (UNLIKELY(npi_fault_delays(call))) {
        w->not_before_us = call->fault.until_us;
        return NP_PART_LATER;
    }
    if (call->fault.applied) return NP_PART_LAST;
    enum np_may may = may_go_on(call);
    if (may == NP_MAY_WAIT) return wait(call);
    if (may == NP_MAY_GIVE_UP) {
        if (call->reply.charged <= NP_SHARE_OWN) return wait_for_room(call);
        call->outcome = CQL_FAILED;
        np_err_no_room(&call->err);
        return NP_PART_LAST;
    }
    call->n_parts++;
    if (call->outcome == CQL_AGAIN) npi_call_more(call, batch);
    else npi_call_run(call, batch);
    if (call->outcome == CQL_AGAIN) {
        w->bytes = npi_call_bytes(call);
        if (call->r.answer.deadline_per_part) {
            npi_call_set_deadline(call, call->r.answer.work_class);
            call->r.deadline_us = w->deadline_us;
        }
        w->not_before_us = call->r.answer.again_us;
        return w->not_before_us ? NP_PART_LATER : NP_PART_MORE;
    }
    if (UNLIKELY(call->outcome == CQL_CONFLICT)) return avoid_conflict(call);
    if (UNLIKELY(npi_fault_delays(call))) {
        /* Before apply the call starts over at that time; after it only the answer waits. */
        if (call->fault.applied) npi_call_set_deadline(call, call->work.class);
        else npi_call_start_over(call);
        w->bytes = npi_call_bytes(call);
        w->not_before_us = call->fault.until_us;
        return NP_PART_LATER;
    }
    if (call->outcome == CQL_OFFLOAD && call->reply.no_room) return wait_for_room(call);
    if (call->outcome == CQL_OFFLOAD) {
        call->outcome = CQL_FAILED;
        err_set(&call->err, ERR_SERVER, "The request could not run");
    }
    return NP_PART_LAST;
}

static void set_end_error(struct np_call *call, enum np_work_end why) {
    bool ddl = call->work.class == WORK_DDL, waited_for_room = call->outcome == CQL_OFFLOAD && call->awaits_room;
    call->outcome = CQL_FAILED;
    switch (why) {
    case NP_WORK_STALE:
        if (waited_for_room && !atomic_load(call->work.cancelled)) np_err_no_room(&call->err);
        else if (!cql_check_running(&call->r)) err_set(&call->err, ERR_SERVER, "The request could not run in time");
        return;
    case NP_WORK_NO_ROOM:
        err_set(&call->err, ERR_OVERLOADED,
                "Too many requests wait for the storage, and this connection has the most of them");
        return;
    case NP_WORK_STOPPING:
        if (ddl)
            err_set(&call->err, ERR_SERVER,
                    "The server is stopping; a schema change that has begun continues when it starts again");
        else err_set(&call->err, ERR_OVERLOADED, "The server is stopping");
        return;
    case NP_WORK_DONE: return;
    }
}

static void ended(struct np_work *w, enum np_work_end why) {
    struct np_call *call = call_of(w);
    if (why != NP_WORK_DONE && !call->fault.applied) set_end_error(call, why);
    /* frees the memory now: other requests may need it before the loop handles this call */
    if (call->outcome == CQL_FAILED) np_reply_drop(&call->reply);
    np_reply_made(&call->reply);
    call->task.done = returned;
    npi_inbox_give(&call->conn->loop->inbox, &call->task);
}

const struct np_work_ops npi_offload_ops = {.run = run, .ended = ended};
