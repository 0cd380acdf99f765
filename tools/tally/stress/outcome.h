/* What a stress came to: as text, as JSON, and as a page of HTML that needs nothing else. */
#pragma once

#include "tools/tally/stress/run.h"

/* Of a storage partition on Amazon Keyspaces, and of one in Azure's guidance (limits/limit.def). */
struct outcome_bounds {
    double entities, read_units, write_units;
};
struct outcome_bounds outcome_bounds(void);

void outcome_text(const struct stress *s, const char *profile);
void outcome_json(const struct stress *s, const char *profile, struct buf *out);
void outcome_html(const struct stress *s, const char *profile, struct buf *out);
