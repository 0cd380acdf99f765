/* Counters of one loop: written by the loop's thread only, read by any thread (relaxed). The reader
 * sums them over the loops. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "metering/ledger/shard.h"
#include "metering/limits/limiter.h"
#include "native_protocol/frame.h"

enum np_metric {
#define METRIC(id, name, type, scale, help) NP_METRIC_##id,
#include "native_protocol/metric.def"
#undef METRIC
    NP_METRICS
};

/* Kinds of requests, each with a histogram: the ledger's operations, DDL and PREPARE. OTHER counts all other
 * requests, such as those that cannot be parsed. */
enum np_kind {
#define OPERATION(id) NP_KIND_##id,
#include "metering/ledger/operation.def"
#undef OPERATION
    NP_KIND_DDL,
    NP_KIND_PREPARE,
    NP_KINDS
};

/* Durations of requests, by the first bound that they do not exceed; the last element counts longer ones. */
enum { NP_LATENCY_BOUNDS = 19 };
extern const uint32_t np_latency_bounds_us[NP_LATENCY_BOUNDS];
struct np_latencies {
    uint64_t n[NP_LATENCY_BOUNDS + 1], sum_us;
};

enum np_outcome { NP_OUTCOME_OK, NP_OUTCOME_REFUSED, NP_OUTCOME_THROTTLED, NP_OUTCOME_FAILED, NP_OUTCOMES };
enum { NP_OPCODE_SLOTS = 0x11 };

struct np_metrics {
    _Atomic uint64_t counts[NP_METRICS];
    _Atomic uint64_t requests[NP_OPCODE_SLOTS][NP_OUTCOMES];
    struct {
        _Atomic uint64_t n[NP_LATENCY_BOUNDS + 1], sum_us;
    } latencies[NP_KINDS];
};

static inline void np_count(_Atomic uint64_t *c, uint64_t n) {
    /* one writer: no locked instruction needed */
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}
static inline void np_metric_add(struct np_metrics *m, enum np_metric id, int64_t n) {
    np_count(&m->counts[id], (uint64_t)n);
}
static inline void np_metric_requests(struct np_metrics *m, uint8_t opcode, enum np_outcome o, uint64_t n) {
    if (opcode < NP_OPCODE_SLOTS) np_count(&m->requests[opcode][o], n);
}
static inline void np_metric_request(struct np_metrics *m, uint8_t opcode, enum np_outcome o) {
    np_metric_requests(m, opcode, o, 1);
}

enum np_outcome np_outcome_of(const struct err *e);
enum np_outcome np_outcome_of_error(enum err_code code);
const char *np_outcome_name(enum np_outcome o);
const char *np_kind_name(enum np_kind k);
/* Counts n requests of took_us each. The loop's thread. */
void np_metric_latency(struct np_metrics *m, enum np_kind kind, int64_t took_us, uint64_t n);
/* Adds the counts of a kind to out. Any thread. */
void np_metric_add_latencies(const struct np_metrics *m, enum np_kind kind, struct np_latencies *out);

/* The account of a request: its outcome and its units, counted once, when the outcome is known. */
struct np_account {
    uint8_t opcode;
    uint8_t kind;     /* enum np_kind; set if the answer waits for durability */
    int64_t begun_us; /* wall clock; likewise */
    bool prepared, schema_changed, throttled; /* throttled: a limit refused it */
    bool failed; /* answered with failure by a fault after apply: its writes remain and are charged */
    enum err_code failure;   /* when it failed so */
    int64_t read_halves, write_halves; /* half units: of reads; of writes in each Region, static ones too */
    uint64_t trace; /* number of its trace session (trace_store_add); 0 if it is not traced */
    struct ledger_posting posting; /* to reverse the posting of a waiting write if it fails */
    struct limit_took took;    /* of it */
};

/* Counts a request; e NULL or not set: it succeeded. A failed request is free, because it has no
 * result and has not changed the data. The loop's thread. */
void np_account(struct np_metrics *m, const struct np_account *a, const struct err *e);
