/* Simulates a day of a table: the units that its statements use in each second, and the refusals of
 * the limiter (metering/limits/limiter.h) in each capacity mode.
 *
 * Requests arrive at random at the rates of the workload, and each costs as much as one of its
 * samples (measure.h). For each capacity mode the server's own limiter and auto scaling run through
 * the day second by second. Most trials last two days: the first brings the limiter into its state
 * at the beginning of the second, and only the second counts.
 */
#pragma once

#include "metering/limits/limiter.h"
#include "tools/tally/capacity/measure.h"

enum { DAY_MINUTES = DAY_S / 60, HOT_SHOWN = 10, DAY_PAGES_A_SECOND = 20, DAY_USUAL_PERCENT = 70 };

struct day_scaling {
    int64_t minimum, maximum;
    double target_percent;
};

/* Reads or writes of a table. */
struct day_use {
    double *seconds; /* units of each */
    double total, peak_second, peak_minute; /* peak_minute: average of a second of that minute */
    uint32_t peak_second_at, peak_minute_at;
    double on_demand_refused; /* units of the day that an on-demand table refuses after a day of the same load */
    double new_table_refused; /* units of the day that a new on-demand table refuses */
    /* fewest provisioned units that refuse nothing; 0 means more than the quota */
    int64_t needed;
    int64_t usual; /* provisioned units of which the busiest minute uses DAY_USUAL_PERCENT; 0 means more than the
                    * quota */
    struct day_scaling scaling;
    double scaled_unit_hours, scaled_refused;
    int32_t scaled[DAY_MINUTES];   /* provisioned units, minute by minute */
};

struct day {
    const struct schema_table *table;
    struct day_use reads, writes;
    double ttl_deletes;              /* units a day; below 0: not known */
    uint32_t busiest_at;             /* second of the day, for the partitions */
    bool observed;                   /* the partitions' loads come from a capture or a server */
    /* known partitions, and how many exceed a limit; n_partitions 0: no statement names one */
    uint64_t n_partitions, n_over;
    uint32_t n_shown;
    struct workload_partition shown[HOT_SHOWN]; /* the busiest, over or not */
    const struct measured *keyed;    /* a statement that names the partition, for measure_key */
};

/* Sets p->over_reads, over_writes and, with guidance, over_entities from the limiter's refusals of p's
 * load. */
int day_judge_partition(const struct schema_table *t, bool guidance, struct workload_partition *p,
                        struct err *e) MUST_CHECK;
/* Allocates from the workload's arena. Statements that could not be measured are left out. */
int day_of_table(const struct measure *m, const struct schema_table *t, const struct day_scaling *scaling,
                 struct day *out, struct err *e) MUST_CHECK;
