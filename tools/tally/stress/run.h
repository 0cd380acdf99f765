/* Runs a plan against a server: creates the schema, loads rows, and sends requests with the load
 * engine. */
#pragma once

#include "metering/limits/backoff.h"
#include "tools/client/load.h"
#include "tools/tally/remote.h"
#include "tools/tally/stress/score.h"

enum retry_kind { RETRY_NONE, RETRY_FIXED, RETRY_EXPONENTIAL };

/* The retries after time-outs (by which Amazon Keyspaces throttles), Unavailable and Overloaded. */
struct retry {
    enum retry_kind kind;
    uint32_t tries;                  /* greatest number of retries */
    int64_t minimum, delta, maximum; /* milliseconds; fixed: minimum */
};

struct stress {
    struct remote remote;
    struct plan plan;
    struct retry retry;
    uint32_t connections, in_flight;
    double seconds;
    bool poisson, quiet, skip_load;
    uint64_t seed;
    /* set by stress_run */
    struct load *load;
    struct score score;
    struct client_prepared *prepared; /* by statement of the plan; the last one is for the load */
    struct arena keep;
    double took; /* seconds */
    uint64_t unanswered;
    uint64_t backing_off; /* part of unanswered: requests that waited for another try when the run ended */
    struct chance random;
    struct backoff_random jitter;
    uint64_t begun_ns, next_due_ns, picked[PLAN_STATEMENTS + 1], loaded;
    int64_t begun_wall_ms;
    bool loading;
    struct buf scratch;
    struct err failed; /* a value that cannot be generated */
    void (*show)(struct stress *s); /* called several times a second during the run; may be NULL */
    uint64_t shown_ns;
};

/* "none", "fixed:MS[,TRIES]", "exponential[:MIN,DELTA,MAX[,TRIES]]". */
int retry_parse(const char *text, struct retry *out, struct err *e) MUST_CHECK;
/* Milliseconds to wait after that many failures; below 0: no further try. */
int64_t retry_wait(const struct retry *r, struct backoff_random *jitter, uint32_t failures);

/* Whether requests failed or were never answered, or there were none. Requests that wait for
 * another try when the time is over count as throttled, not as failed. */
bool stress_has_failed(const struct stress *s);
int stress_run(struct stress *s, struct err *e) MUST_CHECK;
void stress_fini(struct stress *s);
