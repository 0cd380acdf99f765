/* The report of a stress as text, as JSON, and as a self-contained page of HTML. */
#pragma once

#include "tools/tally/stress/run.h"

/* The limits of a partition a second: units on Amazon Keyspaces, entities in Azure's guidance
 * (metering/limits/limit.def). */
struct outcome_bounds {
    double entities, read_units, write_units;
};
struct outcome_bounds outcome_bounds(void);

void outcome_text(const struct stress *s, const char *profile);
void outcome_json(const struct stress *s, const char *profile, struct buf *out);
void outcome_html(const struct stress *s, const char *profile, struct buf *out);
