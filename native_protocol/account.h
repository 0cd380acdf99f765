/* The account of a request: its outcome and its units, counted once, when the outcome is known. */
#pragma once

#include "metering/ledger/shard.h"
#include "metering/limits/limiter.h"
#include "native_protocol/metric.h"

struct np_account {
    uint8_t opcode;
    bool prepared, schema_changed, throttled; /* throttled: a limit refused it */
    bool failed; /* answered with failure by a fault after apply: its writes remain and are charged */
    enum err_code failure;   /* when it failed so */
    int64_t read_halves, write_halves; /* half units: of reads; of writes in each Region, static ones too */
    uint64_t trace; /* number of its trace session (trace_store_add); 0 if it is not traced */
    struct ledger_claim claim; /* to reverse the posting of a waiting write if it fails */
    struct limit_took took;    /* of it */
};

/* Counts a request; e NULL or not set: it succeeded. A failed request is free, because it has no
 * result and has not changed the data. The loop's thread. */
void np_account(struct np_metrics *m, const struct np_account *a, const struct err *e);
