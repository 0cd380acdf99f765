/* Runs a plan against a server: schema, load, and the stress itself on the load engine. */
#pragma once

#include "limits/backoff.h"
#include "tools/client/load.h"
#include "tools/tally/remote.h"
#include "tools/tally/stress/score.h"

enum retry_kind { RETRY_NONE, RETRY_FIXED, RETRY_EXPONENTIAL };

/* After what is worth another try: time-outs (which is how Amazon Keyspaces throttles), Unavailable, Overloaded. */
struct retry {
    enum retry_kind kind;
    uint32_t tries;                  /* at most, after the first */
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
    /* while it runs */
    struct load *load;
    struct score score;
    struct client_prepared *prepared; /* of the plan's statements, and of its load behind them */
    struct arena keep;
    double took; /* seconds */
    uint64_t unanswered;
    uint64_t backing_off; /* of the unanswered: those that waited for their next try when the run ended */
    struct dist_random random;
    struct backoff_random jitter;
    uint64_t begun_ns, next_due_ns, picked[PLAN_STATEMENTS + 1], loaded;
    int64_t begun_wall_ms;
    bool loading;
    struct buf scratch;
    struct err failed; /* a value that cannot be made */
    void (*show)(struct stress *s); /* now and then, while it runs; NULL: nobody looks */
    uint64_t shown_ns;
};

/* "none", "fixed:MS[,TRIES]", "exponential[:MIN,DELTA,MAX[,TRIES]]". */
int retry_parse(const char *text, struct retry *out, struct err *e) MUST_CHECK;
/* Milliseconds to wait after so many failures; below 0: no more tries. */
int64_t retry_wait(const struct retry *r, struct backoff_random *jitter, uint32_t failures);

/* Requests failed, were never answered, or there were none. Those that wait for their next try when the time is over
 * are throttled, not failed. */
bool stress_has_failed(const struct stress *s);
int stress_run(struct stress *s, struct err *e) MUST_CHECK;
void stress_fini(struct stress *s);
