/* What tables cost a month in a Region: on demand, provisioned, and with auto scaling. A month is
 * 365 / 12 days. Below 0: unknown, as is every sum with it. */
#pragma once

#include "tools/tally/capacity/day.h"
#include "tools/tally/capacity/price.h"

#define BILL_DAYS (365.0 / 12)

enum bill_mode { BILL_ON_DEMAND, BILL_PROVISIONED, BILL_SCALED, BILL_MODES };

struct bill {
    double read[BILL_MODES], write[BILL_MODES], total[BILL_MODES];
    double storage, pitr, ttl;
    /* per cent of provisioned units that are used, from which they are cheaper than on demand */
    double read_break_even, write_break_even;
};

/* Whether anything of a table's figures is unknown. */
bool bill_lacks_use(const struct measure *m, const struct schema_table *t);
/* Of all tables: days[i] is that of m->tables[i]. */
void bill_of(const struct measure *m, const struct day *days, const struct price_region *r, struct bill *out);
