/* The monthly cost of the tables in a Region: on demand, provisioned, and with auto scaling. A
 * month is 365 / 12 days. An amount below 0 is unknown; a sum with an unknown amount is unknown. */
#pragma once

#include "tools/tally/capacity/day.h"
#include "tools/tally/capacity/price.h"

#define BILL_DAYS (365.0 / 12)

enum bill_mode { BILL_ON_DEMAND, BILL_PROVISIONED, BILL_SCALED, BILL_MODES };

struct bill {
    double read[BILL_MODES], write[BILL_MODES], total[BILL_MODES];
    double storage, pitr, ttl;
    /* per cent of use above which provisioned units are cheaper than on demand */
    double read_break_even, write_break_even;
};

/* Whether a statement on the table, or on an unknown table, has no figures. */
bool bill_lacks_use(const struct measure *m, const struct schema_table *t);
/* Adds up all tables; days[i] belongs to m->tables[i]. */
void bill_of(const struct measure *m, const struct day *days, const struct price_region *r, struct bill *out);
