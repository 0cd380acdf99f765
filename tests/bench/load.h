/* The load: connections x requests in flight on one libev loop, closed (a response is followed at once by the next request).
 *
 * Life: load_open connects and, when asked, makes the schema and prepares; load_rows writes the data; load_run runs one
 * workload for a time; load_close. One thread. Every response is looked at: an error or a wrong number of rows counts as failed.
 */
#pragma once

#include "tests/bench/hist.h"
#include "base/buf.h"

enum workload { LOAD_READ, LOAD_INSERT, LOAD_SLICE, LOAD_MIXED, LOAD_WORKLOADS };

enum { LOAD_POINTS = 100000, LOAD_SLICES = 1000, LOAD_SLICE_ROWS = 100, LOAD_VALUES = 5, LOAD_VALUE_BYTES = 20 };
/* Prepared ids when there is no PREPARE: the first byte tells a ceiling server which statement it is. */
enum { LOAD_ID_READ = 'r', LOAD_ID_INSERT = 'i', LOAD_ID_SLICE = 's' };

struct load;

struct load_result {
    uint64_t requests, failed;
    double seconds;
    struct hist latency;
    char first_error[256];
};

/* schema: make tables and prepare on the server; false: a ceiling server, which needs neither. NULL with a message on stderr. */
struct load *load_open(const char *host, uint16_t port, unsigned connections, unsigned in_flight, bool schema);
/* Writes LOAD_POINTS single-row partitions and LOAD_SLICES partitions of LOAD_SLICE_ROWS rows. 0 / -1. */
int load_rows(struct load *l);
void load_run(struct load *l, enum workload w, double seconds, struct load_result *out);
void load_close(struct load *l);
