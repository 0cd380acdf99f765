/* The report of tally capacity, as text and as JSON. */
#pragma once

#include "tools/tally/capacity/price.h"

struct report {
    const struct measure *m;
    const struct day *days; /* of m->tables, one each */
    const struct day *other_days; /* the same by the other size model */
    const struct prices *prices;
    uint32_t n_regions;
    const struct price_region *const *regions;
    int64_t age_days;       /* of the prices */
    const char *schema;
    bool plots;
};

/* The keyspace of the i-th table if it is in several Regions and no table before is of it; else NULL. */
const struct schema_keyspace *report_spread(const struct report *r, uint32_t i);
/* The inputs of the costs under one size model. */
struct report_costs {
    struct measure m; /* with that model */
    const struct day *days;
};
struct report_costs report_costs_of(const struct report *r, enum size_model model);
/* Whether the exit code is EXIT_NO: something is refused, a partition exceeds a limit, or no
 * setting within the quotas suffices. Azure's figure for entities counts with --guidance alone. */
bool report_is_no(const struct report *r);
void report_text(const struct report *r, struct buf *out);
void report_json(const struct report *r, struct buf *out);
