#include "metering/limits/capacity.h"

#include <math.h>

enum { MINUTE_S = 60, US = 1000000 };
/* Alarms of target tracking: this many minutes above the target, or well below it. */
enum { ABOVE_MINUTES = 2, BELOW_MINUTES = 15, BELOW_PERCENT = 20 };

void capacity_define(struct capacity *c, const struct capacity *definition, int64_t begins) {
    bool was_provisioned = c->provisioned;
    int64_t former = capacity_rate(c, INT64_MAX);
    if (c->units != definition->units || c->provisioned != definition->provisioned) c->scaled = 0;
    c->provisioned = definition->provisioned;
    c->units = definition->units;
    c->warm = definition->warm;
    c->scaling = definition->scaling;
    c->per_unit = definition->per_unit;
    c->begins = begins;
    if (was_provisioned && !c->provisioned && c->peak < former / 2) c->peak = former / 2;
}

static int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }

int64_t capacity_rate(const struct capacity *c, int64_t maximum) {
    int64_t provisioned = c->scaled ? c->scaled : c->units;
    int64_t rate = c->provisioned ? provisioned : greatest(greatest(c->begins, 2 * c->peak), c->warm);
    return greatest(rate < maximum ? rate : maximum, 1);
}

/* Applies auto scaling at the end of a minute with this mean use. */
static void scale(struct capacity *c, int64_t now_s, int64_t mean) {
    if (!c->scaling.enabled || !c->provisioned) {
        c->minutes_above = c->minutes_below = 0;
        return;
    }
    int64_t current = capacity_rate(c, INT64_MAX);
    double percent = 100.0 * (double)mean / (double)current;
    c->minutes_above = percent > c->scaling.target_percent ? c->minutes_above + 1 : 0;
    c->minutes_below = percent < c->scaling.target_percent - BELOW_PERCENT ? c->minutes_below + 1 : 0;
    if (c->minutes_above < ABOVE_MINUTES && c->minutes_below < BELOW_MINUTES) return;
    int64_t wanted = (int64_t)ceil(100.0 * (double)mean / c->scaling.target_percent);
    if (wanted < c->scaling.minimum) wanted = c->scaling.minimum;
    else if (wanted > c->scaling.maximum) wanted = c->scaling.maximum;
    bool out = wanted > current;
    int64_t cooldown = out ? c->scaling.out_cooldown_s : c->scaling.in_cooldown_s;
    if (wanted == current || (!out && c->scaling.no_scale_in)) return;
    bool waits = now_s >= c->scaled_at_s && now_s - c->scaled_at_s < cooldown; /* not after the clock was set back */
    if (c->scaled_at_s && waits) return;
    c->scaled = wanted;
    c->scaled_at_s = now_s;
    c->minutes_above = c->minutes_below = 0;
}

void capacity_reverse(struct capacity *c, int64_t at_us, int64_t n) {
    if (at_us / US / MINUTE_S != c->minute) return;
    c->in_minute -= n < c->in_minute ? n : c->in_minute;
}

void capacity_add(struct capacity *c, int64_t now_us, int64_t n, int64_t window_s, bool scales) {
    int64_t minute = now_us / US / MINUTE_S, window = now_us / US / window_s;
    if (!c->minute) c->minute = minute;
    if (!c->window) c->window = window;
    if (minute != c->minute) { /* also when the clock was set back */
        int64_t mean = c->in_minute / MINUTE_S / c->per_unit, idle = minute - c->minute - 1;
        c->window_best = greatest(c->window_best, mean);
        if (scales) scale(c, (c->minute + 1) * MINUTE_S, mean);
        /* Minutes without requests matter to auto scaling only. */
        for (int64_t i = 0; scales && i < idle && i < 4 * BELOW_MINUTES; i++)
            scale(c, (c->minute + 2 + i) * MINUTE_S, 0);
        c->minute = minute;
        c->in_minute = 0;
    }
    if (window > c->window) {
        c->peak = greatest(c->peak, c->window_best);
        c->window_best = 0;
    }
    c->window = window;
    c->in_minute += n;
}
