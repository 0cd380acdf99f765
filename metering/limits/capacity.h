/* The throughput of a table a second, for reads or for writes: the provisioned capacity, adjusted
 * by auto scaling where that is simulated, or twice the previous peak of an on-demand table.
 *
 * Counts come minute by minute (capacity_add), in the units of the limit. Rules: "Configure
 * read/write capacity modes" and "Automatically manage throughput capacity with Amazon Keyspaces
 * auto scaling", https://docs.aws.amazon.com/keyspaces/latest/devguide/autoscaling.html. A pure
 * state machine on the times that its callers pass.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct scaling {
    bool enabled;
    int64_t minimum, maximum;
    double target_percent;
    int64_t in_cooldown_s, out_cooldown_s;
    bool no_scale_in;
};

struct capacity {
    /* set by the table's definition */
    bool provisioned;
    int64_t units; /* a second; provisioned */
    int64_t warm;  /* a second: lower bound of an on-demand table */
    struct scaling scaling;
    int per_unit;  /* counts that make a unit: 2 of reads, which may cost a half */
    /* state */
    int64_t minute, in_minute;   /* of the clock; counts in it so far */
    int64_t window, window_best; /* of the clock; the highest mean of a minute in it, a second */
    int64_t begins;              /* a second: rate of a new on-demand table; at least 1 */
    int64_t peak;                /* of windows that are over */
    int64_t scaled;              /* capacity set by auto scaling instead of units; 0 if not scaled yet */
    int64_t scaled_at_s;
    uint32_t minutes_above, minutes_below; /* the target, in a row */
};

/* Sets the definition. scaled is kept while the mode and units of the definition stay the same;
 * begins is the rate of a new on-demand table. */
void capacity_define(struct capacity *c, const struct capacity *definition, int64_t begins);
/* Adds n used counts; n 0 only lets time pass. scales: auto scaling is simulated. A clock that was
 * set back ends the minute; its counts stay in the window. */
void capacity_add(struct capacity *c, int64_t now_us, int64_t n, int64_t window_s, bool scales);
/* When the present minute ends, the next moment at which the rate may change. */
static inline int64_t capacity_changes_us(const struct capacity *c) { return (c->minute + 1) * 60 * INT64_C(1000000); }
/* Subtracts n counts that were added at at_us. Counts of a minute that is over stay, because peaks
 * and auto scaling have used them already. */
void capacity_reverse(struct capacity *c, int64_t at_us, int64_t n);
/* Units a second now; at least 1, at most the table's maximum. */
int64_t capacity_rate(const struct capacity *c, int64_t maximum);
