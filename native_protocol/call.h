/* A call is one query request from its envelope to its response.
 *
 * Its steps, in this order: plan, charge, admit, apply, durable, acknowledge, account. The first four
 * run on the thread that has the call, the loop's or a worker's; the rest on the loop's. Nothing is
 * written before apply, so a failed or refused request has no effect. Outcome and units are counted
 * once, when the outcome is known.
 *
 * The loop plans a call first. If cql returns CQL_OFFLOAD, the call's body is copied, and at the end
 * of the wake-up all such calls are submitted to the workers, each as a work of its class with the
 * deadline of that class. A call runs there part by part, commits its writes, and returns through the
 * loop's inbox. A call that could not run returns in the same way, with an error. It belongs to one
 * thread at a time.
 */
#pragma once

#include "metering/charge.h"
#include "native_protocol/loop.h"
#include "native_protocol/request.h"
#include "native_protocol/rows.h"
#include "native_protocol/work_queue.h"

struct fault_rule;
struct np_conn;

/* The steps that a trace records. number: for OFFLOAD the class of workers, for
 * WORKER the microseconds in the queue, for PART the number of the part. */
enum np_trace_step {
    NP_TRACE_OFFLOAD,
    NP_TRACE_WORKER,
    NP_TRACE_PART,
    NP_TRACE_PLANNED,
    NP_TRACE_SIZED,
    NP_TRACE_FAULT,
    NP_TRACE_ADMITTED,
    NP_TRACE_REFUSED,
    NP_TRACE_APPLIED,
};

/* The steps of a traced request with their times; of many parts only the first ones are
 * recorded. */
enum { NP_TRACE_STEPS = 24 };
struct np_trace {
    int64_t started_us; /* machine time */
    uint64_t session; /* number of its trace session (trace_store_add); 0 if none was stored */
    uint32_t n;
    struct {
        enum np_trace_step step;
        bool on_worker;
        enum cql_work_class class; /* of the worker */
        int64_t at_us, number;     /* machine time */
        uint64_t rows_read;
    } steps[NP_TRACE_STEPS];
};

/* The state of a call. npi_call_set_state has the moves. */
enum np_call_state {
    NP_CALL_FREE,        /* new, or in the loop's list of free calls */
    NP_CALL_PLANNING,    /* a thread runs its plan, or the next part of it; or it waits in the loop's group */
    NP_CALL_PLANNED,     /* nothing is written yet */
    NP_CALL_ADMITTED,    /* the limits have admitted its charge */
    NP_CALL_QUEUED,      /* it starts over on a worker, and has no effect yet */
    NP_CALL_PARTLY,      /* a worker has run a part of it, and will run the next */
    NP_CALL_DONE,        /* it succeeded, and its answer need not wait */
    NP_CALL_WRITTEN,     /* it succeeded, and its answer waits until commit_seq is durable */
    NP_CALL_FAILED,      /* err is set; a failed request has no effect */
    NP_CALL_STATES
};

enum { NP_CALL_ARENA_CHUNK = 16 << 10, NP_CALL_ARENA_MAX = 96 << 20 /* a batch of 65,535 inserts takes 80 MB */ };

struct np_call {
    struct np_task task; /* first: its way back from a worker */
    struct np_call *next;
    struct np_conn *conn; /* referenced */
    struct np_envelope env;
    struct slice body; /* plain; in the loop's window, or in the arena once offloaded */
    struct arena arena;
    struct arena_share share; /* of the arena and of all arenas that are made beside it */
    struct err *err; /* in the arena */
    struct op_cost cost;
    struct charge charge; /* for it, once it was sized; nothing when it failed */
    struct cql_request request;
    struct cql_run r; /* of request */
    int64_t begun_us; /* wall clock, when the loop planned it first; r.now_us is that of its last plan */
    struct np_query_options options;
    struct np_reply reply;
    struct np_rows rows;
    enum np_call_state state;
    struct {
        bool checked;                  /* the faults were checked for one that hits it */
        const struct fault_rule *rule; /* the fault that hits it, in the arena; NULL if none */
        int64_t until_us;              /* machine time, until which it is delayed; 0 if it is not */
    } fault;
    uint64_t statement_id; /* the ledger's id of the statement; 0 if none */
    struct slice statement_text;
    struct np_trace *trace; /* its steps; NULL if it is not traced */
    struct np_work work; /* its client is NULL until the call is queued for a worker; the rest only then */
    bool had_no_room;           /* it started over because there was no room for its answer */
    uint32_t n_conflicts;       /* with writes of other servers; after each it started over */
    const struct cql_written *written; /* by the runs that ended with a conflict */
    uint32_t n_parts;           /* that workers ran */
    struct cql_session session; /* a copy: the connection's stays with the loop */
    struct buf out;             /* a worker encodes rows here */
};

_Static_assert(sizeof(struct np_call) < 2048, "a call that waits holds little memory");

/* Whether it was queued for a worker, which encodes its answer into out. */
static inline bool npi_call_was_queued(const struct np_call *c) { return c->work.client != NULL; }
/* Whether it was applied. Its writes remain, even if a fault or the end of memory sets err afterwards. */
static inline bool npi_call_is_applied(const struct np_call *c) {
    return c->state == NP_CALL_DONE || c->state == NP_CALL_WRITTEN;
}
/* Whether a fault hit it after apply: its writes remain and are charged, even if it answers an error. */
bool npi_call_was_hit_after_apply(const struct np_call *c);
/* The memory that a call holds while it waits for a worker. */
static inline size_t npi_call_bytes(const struct np_call *c) { return sizeof(*c) + c->arena.used + c->out.cap; }

/* The loop's thread. A free or new call, with an empty arena; NULL if memory is exhausted. */
struct np_call *npi_call_take(struct np_loop *l);
void npi_call_give(struct np_loop *l, struct np_call *c);
void npi_call_free(struct np_call *c);
/* Asserts that the state may follow the present one. */
void npi_call_set_state(struct np_call *call, enum np_call_state state);
/* Drops the references that running the call took. The thread that has the call. */
void npi_call_forget(struct np_call *call);
