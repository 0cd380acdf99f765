/* A call is one query request from its envelope to its response. Dispatch, the loop and the workers
 * hand it to each other.
 *
 * Life: a call is taken from the loop's free calls, decoded, and run on the loop. It is finished
 * there; or its body is copied, it runs again on a worker, and it returns to the loop to be
 * finished. Then the call and its arena go back to the free calls. It belongs to one thread at a
 * time: the loop, or the worker that has it.
 */
#pragma once

#include "metering/charge.h"
#include "native_protocol/account.h"
#include "native_protocol/inbox.h"
#include "native_protocol/request.h"
#include "native_protocol/rows.h"
#include "native_protocol/work_queue.h"

struct fault_rule;
struct np_conn;

/* The steps of dispatch.h that a trace records. number: for OFFLOAD the class of workers, for
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
    uint32_t n;
    struct {
        enum np_trace_step step;
        bool on_worker;
        enum cql_work_class class; /* of the worker */
        int64_t at_us, number;     /* machine time */
        uint64_t rows_read;
    } steps[NP_TRACE_STEPS];
};

/* The effect of a fault of system_control.faults on a call (fault.h). */
struct np_call_fault {
    bool checked;                  /* the faults were checked for one that hits it */
    const struct fault_rule *rule; /* the fault that hits it, in the arena; NULL if none */
    bool begun;                    /* its effect before apply has taken place */
    /* the call was applied before the fault took effect: its writes remain, whatever the answer
     * is */
    bool applied;
    int64_t until_us;              /* machine time, until which it is delayed; 0 if it is not */
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
    struct err err;
    struct op_cost cost;
    struct charge charge; /* for it, once it was sized; nothing when it failed */
    struct np_account account;
    struct cql_request request;
    struct cql_run r; /* of request */
    struct np_query_options options;
    struct np_reply reply;
    struct np_rows rows;
    enum cql_outcome outcome;
    struct np_call_fault fault;
    uint64_t statement_id; /* the ledger's id of the statement; 0 if none */
    struct slice statement_text;
    int64_t started_us; /* machine time; only when traced */
    struct np_trace trace; /* its steps; only when traced */
    /* offloaded only */
    bool offloaded;
    struct np_work work;
    bool awaits_room;           /* there was no room for its answer: it started over */
    uint32_t n_conflicts;       /* writes of other servers that it met; after each it started over */
    const struct cql_written *written; /* by those runs */
    uint32_t n_parts;           /* that were run */
    struct cql_session session; /* a copy: the connection's stays with the loop */
    struct buf out;             /* rows are encoded here */
    uint64_t seq;               /* of the commit under a lock */
};

/* The memory that a call holds while it waits for a worker. */
static inline size_t npi_call_bytes(const struct np_call *c) { return sizeof(*c) + c->arena.used + c->out.cap; }
