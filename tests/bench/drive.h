/* The load of tally-bench: its workloads on the load engine of tools/client, in a closed loop.
 *
 * Life: drive_open connects and, when asked, makes the schema and prepares; drive_fill writes the
 * data; drive_run runs one workload for a time; drive_close. One thread. Every response is looked
 * at: an error or a wrong number of rows counts as failed.
 */
#pragma once

#include "tests/bench/proc.h"
#include "tests/bench/workload.h"
#include "tools/client/hist.h"

struct drive;

struct drive_result {
    uint64_t requests, failed;
    double seconds;
    struct hist latency;
    char first_error[256];
};

/* schema: make tables and prepare on the server; false: a ceiling server, which needs neither. NULL
 * with a message on stderr. */
struct drive *drive_open(const struct proc *p, unsigned connections, unsigned in_flight, bool schema);
/* Writes what workloads need, FILL_..., and is not there already; large: rows of FILL_LARGE. 0 / -1. */
int drive_fill(struct drive *l, unsigned fills, uint32_t large);
/* Adds to *out. Ends the program when a connection fails. */
void drive_run(struct drive *l, enum workload w, uint32_t large, double seconds, struct drive_result *out);
void drive_close(struct drive *l);
