/* tally replay: what each request of a capture came to when it was sent, or priced, again. */
#pragma once

#include "tools/client/hist.h"
#include "tools/tally/pricing.h"
#include "tools/tally/remote.h"
#include "tools/tally/trace.h"

struct replay_flags {
    struct remote remote;
    struct pricing pricing; /* of --price */
    const char *file, *speed, *capacity_mode;
    uint32_t connections;
    bool price, up_to_damage, json, limits;
};

struct replayed {
    bool sent; /* else it is not for a replay */
    bool throttled;
    uint32_t outcome; /* 0, or the code of its error */
    int64_t halves;   /* units x 2; -1: the server does not tell */
};

struct replay {
    const struct replay_flags *flags;
    const struct trace *trace;
    struct replayed *results; /* by request */
    double seconds;           /* that it took; live */
    struct hist *latency;     /* live; NULL: none */
    uint64_t differing;       /* requests whose outcome or charge is another one */
    double peak_read, peak_write; /* units in the busiest second; priced */
};

/* Is it one that a replay leaves out? PREPARE, for it prepares what it needs; EXECUTEs that were
 * answered UNPREPARED; Tally's own system tables, which are about the server that was captured. */
bool replay_skips(const struct trace *t, const struct trace_request *r);

int replay_price(struct replay *p, struct err *e) MUST_CHECK;
int replay_send(struct replay *p, struct err *e) MUST_CHECK;
