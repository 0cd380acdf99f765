/* One query request from its envelope to its response: what dispatch, the loop and the workers hand
 * to each other.
 *
 * Life: taken from the loop's spare ones, decoded, run on the loop; either finished there, or its
 * body is copied, it runs once more on a worker and comes back to the loop to be finished. Then it
 * goes back to the spare ones with its arena. It belongs to one thread at a time: the loop, or the
 * worker that has it.
 */
#pragma once

#include "native_protocol/account.h"
#include "native_protocol/request.h"
#include "native_protocol/rows.h"
#include "native_protocol/work_queue.h"

struct fault_rule;
struct np_conn;

/* Those of sequence.h that a trace tells of; number: of OFFLOAD the class of workers, of WORKER the
 * microseconds in the queue, of PART which. */
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

/* When what happened to a traced request; of many parts the first ones are told. */
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

/* What a fault of system_control.faults does to a call (fault.h). */
struct np_call_fault {
    bool asked;                    /* the faults were asked */
    const struct fault_rule *rule; /* that hits it, in the arena; NULL: none */
    bool begun;                    /* what it does before the call is applied is done */
    /* the call is applied, and the fault came after: what it did stands, whatever it answers */
    bool applied;
    int64_t until_us;              /* machine time, until which it is delayed; 0: it is not */
};

enum { NP_CALL_ARENA_CHUNK = 16 << 10, NP_CALL_ARENA_MAX = 64 << 20 };

struct np_call {
    struct np_call *next;
    struct np_conn *conn; /* referenced */
    struct np_envelope env;
    struct slice body; /* plain; in the loop's window, or in the arena once offloaded */
    struct arena arena;
    struct arena_share share; /* of the arena and all that are made beside it */
    struct err err;
    struct op_cost cost;
    struct charge charge; /* for it, once it was sized; nothing when it failed */
    struct np_account account;
    struct cql_request r;
    struct np_query_options options;
    struct np_reply reply;
    struct np_rows rows;
    enum cql_outcome outcome;
    bool broken; /* it could not be answered, or is not to be: the connection goes */
    struct np_call_fault fault;
    uint64_t statement_id; /* as the ledger knows the statement; 0: not at all */
    struct slice statement_text;
    int64_t started_us; /* machine time; only when traced */
    struct np_trace trace; /* its steps, likewise */
    /* offloaded only */
    bool offloaded;
    struct np_work work;
    bool crowded_out;           /* there was no room for its answer: it started over */
    uint32_t n_parts;           /* that were run */
    struct cql_session session; /* a copy: the connection's stays with the loop */
    struct buf out;             /* rows are encoded here */
    uint64_t seq;               /* of the commit under a lock */
};

/* Reads of a loop that are answered and not yet counted (plain_read.h). */
enum { NP_PLAIN_READS = 32 };
struct np_plain {
    unsigned n;
    const struct np_conn *conn;
    uint8_t id[2 + 16]; /* what their bodies begin with: the statement, as [short bytes] */
    uint64_t statement_id; /* as the ledger knows it; 0: not at all */
    struct shard *in; /* the ledger's, where they stand; NULL: in none */
    int64_t began_us;
    uint64_t read_halves;
};

/* Drops the references a run took. */
void npi_call_forget(struct np_call *call);
/* The same of a run that is to start over: its plan goes, and what it holds. */
void npi_call_unplan(struct np_call *call);
