/* tally replay: the result of each request of a capture when it is sent, or priced, again. */
#pragma once

#include "tools/client/hist.h"
#include "tools/tally/prices.h"
#include "tools/tally/pricing.h"
#include "tools/tally/remote.h"
#include "tools/tally/trace.h"

struct replay_flags {
    struct remote remote;
    struct pricing pricing; /* of --price */
    const char *file, *speed, *capacity_mode, *prices;
    uint32_t connections;
    bool price, up_to_damage, json;
};

struct replayed {
    bool sent; /* false: the replay leaves the request out */
    bool throttled;
    uint32_t outcome; /* 0, or an error code */
    int64_t halves;   /* units x 2; -1 if the server does not report charges */
    int64_t read_halves; /* of these, read units x 2; priced */
};

struct trace_replay {
    const struct replay_flags *flags;
    struct trace *trace;
    struct replayed *results; /* by request */
    double seconds;           /* duration of the replay; only when sent to a server */
    struct hist *latency;     /* NULL with --price */
    uint64_t differing;       /* requests whose outcome or charge differs from the capture */
    double peak_read, peak_write; /* units in the busiest second; priced */
    /* with --price: where the money is that of, and its prices */
    struct prices prices;
    const struct price_region *region;
};

/* Does a replay leave this request out? It skips PREPARE, because it prepares the statements itself;
 * EXECUTEs that were answered UNPREPARED; and Tally's own system tables, which describe the
 * captured server. */
bool replay_skips(const struct trace *t, const struct trace_request *r);

int replay_price(struct trace_replay *p, struct err *e) MUST_CHECK;
int replay_send(struct trace_replay *p, struct err *e) MUST_CHECK;
