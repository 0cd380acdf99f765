/* One size of tally-bench --growth on one server: its tables, written once, and each request sent
 * again and again.
 *
 * Life: growth_load_open connects and prepares; growth_load_fill writes what is not there yet and
 * reads it once; growth_load_begin passes the pages in front of the one that is asked for;
 * growth_load_run adds to a cost; growth_load_close. One thread.
 */
#pragma once

#include "tests/bench/proc.h"
#include "tools/client/hist.h"

enum growth {
#define GROWTH(id, ...) GROWTH_##id,
#include "tests/bench/growth.def"
#undef GROWTH
    GROWTHS
};

/* What a cost may follow as more is stored: nothing; nothing, but from memory or from the store;
 * the bytes of the row, which is one piece; all that is there. */
enum growth_follows { FLAT, KEPT, ROW, ALL };

struct growth_row {
    const char *name;
    int64_t rows;
    int32_t page;
    const char *binds;
    enum growth_follows follows;
    const char *text;
};
extern const struct growth_row growth_rows[GROWTHS];

struct growth_cost {
    uint64_t requests, failed, cpu_ns;
    double best_cpu_us; /* a request's, in the turn that cost least; 0: there was none */
    int64_t rows_read, bytes_read; /* of one request, as the server tells; -1: it does not */
    struct hist latency;
    char first_error[256];
};

struct growth_load;

/* n: what is stored, of which the keyspace's name tells. NULL with a message on stderr. */
struct growth_load *growth_load_open(const struct proc *p, uint64_t n, unsigned connections, unsigned in_flight);
void growth_load_close(struct growth_load *g);
int growth_load_fill(struct growth_load *g);
/* Once before the first of the others. */
int growth_load_begin(struct growth_load *g, enum growth what) MUST_CHECK;
/* One request that asks what it costs. */
int growth_load_ask(struct growth_load *g, enum growth what, struct growth_cost *c) MUST_CHECK;
/* warm: nothing is counted. -1: requests failed. */
int growth_load_run(struct growth_load *g, enum growth what, double seconds, bool warm, struct growth_cost *c);
