/* The load: connections x requests in flight on one libev loop, closed (a response is followed at once by the next request).
 *
 * Life: load_open connects and, when asked, makes the schema and prepares; load_fill writes the data; load_run runs one
 * workload for a time; load_close. One thread. Every response is looked at: an error or a wrong number of rows counts as failed.
 */
#pragma once

#include "tests/bench/hist.h"
#include "tests/bench/workload.h"

struct load;

struct load_result {
    uint64_t requests, failed;
    double seconds;
    struct hist latency;
    char first_error[256];
};

/* schema: make tables and prepare on the server; false: a ceiling server, which needs neither. NULL with a message on stderr. */
struct load *load_open(const char *host, uint16_t port, unsigned connections, unsigned in_flight, bool schema);
/* Writes what workloads need, FILL_...; 0 / -1. */
int load_fill(struct load *l, unsigned fills);
/* Adds to *out. */
void load_run(struct load *l, enum workload w, double seconds, struct load_result *out);
void load_close(struct load *l);
