/* The history of one table, as system_metering.recovery shows it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct history_report {
    const char *keyspace, *name;
    bool begun;
    int64_t earliest_us, gone_us; /* gone_us INT64_MAX: the table exists */
    uint64_t bytes;               /* on disk, and logged since the start */
};
