/* What the system reports about this process. */
#pragma once

#include <stdint.h>

struct process_figures {
    uint64_t resident, virtual; /* bytes */
    double cpu_s;
    uint64_t fds, fds_max, threads;
    double started_s; /* since 1970 */
};

/* Figures that the system does not report are 0. */
struct process_figures process_figures(void);
