/* A day of a table: what its statements use second by second, and what the limiter
 * (limits/limiter.h) makes of that in each capacity mode.
 *
 * Requests arrive at random at the rates of the workload, and each costs what one of its samples
 * did (measure.h). A day in a capacity mode is asked of the server's own limiter and its auto
 * scaling, second by second, twice over: the first day is there to begin the second with what it
 * leaves.
 */
#pragma once

#include "limits/limiter.h"
#include "tools/tally/capacity/measure.h"

enum { DAY_MINUTES = DAY_S / 60, HOT_SHOWN = 10, DAY_PAGES_A_SECOND = 20 };

struct day_scaling {
    int64_t minimum, maximum;
    double target_percent;
};

/* Reads or writes of a table. */
struct day_use {
    double *seconds; /* units of each */
    double total, peak_second, peak_minute; /* of the minute: a second, on average */
    uint32_t peak_second_at, peak_minute_at;
    double on_demand_refused;      /* units of the day that an on-demand table that has served it before refuses */
    double new_table_refused;      /* and one that is new */
    /* provisioned units with which nothing is refused; 0: there is no such number within the quota */
    int64_t needed;
    struct day_scaling scaling;
    double scaled_unit_hours, scaled_refused;
    int32_t scaled[DAY_MINUTES];   /* provisioned units, minute by minute */
};

struct day {
    const struct schema_table *table;
    struct day_use reads, writes;
    double ttl_deletes;              /* units a day; below 0: not known */
    uint32_t busiest_at;             /* second of the day, for the partitions */
    bool observed;                   /* the partitions' busiest seconds are those of a capture or a server */
    /* partitions known, and how many are over a limit; n_partitions 0: no statement names one */
    uint64_t n_partitions, n_over;
    uint32_t n_shown;
    struct workload_partition shown[HOT_SHOWN]; /* the busiest, over or not */
    const struct measured *keyed;    /* a statement that names the partition, for measure_key */
};

/* Asks the limiter whether what the partition is asked for is over a limit. */
int day_judge_partition(const struct schema_table *t, struct workload_partition *p, struct err *e) MUST_CHECK;
/* From the arena of the workload. Statements without figures are left out. */
int day_of_table(const struct measure *m, const struct schema_table *t, const struct day_scaling *scaling,
                 struct day *out, struct err *e) MUST_CHECK;
