/* The cost of the tables in a month at dated prices (prices.h). */
#pragma once

#include "tools/tally/capacity/day.h"
#include "tools/tally/prices.h"

/* The cost of a month in a Region: on demand, provisioned in two ways, and with auto scaling. An amount below 0
 * is unknown. */
#define BILL_DAYS (365.0 / 12)

/* BILL_PROVISIONED: the fewest units that refuse nothing. BILL_USUAL: day_use.usual. */
enum bill_mode { BILL_ON_DEMAND, BILL_PROVISIONED, BILL_USUAL, BILL_SCALED, BILL_MODES };

struct bill {
    double read[BILL_MODES], write[BILL_MODES], total[BILL_MODES];
    double storage, pitr, ttl;
    /* per cent of use above which provisioned units are cheaper than on demand */
    double read_break_even, write_break_even;
};

/* Whether a statement on the table, or on an unknown table, has no figures. */
bool bill_lacks_use(const struct measure *m, const struct schema_table *t);
/* The cost in one Region. Adds up all tables; days[i] belongs to m->tables[i]. */
void bill_of(const struct measure *m, const struct day *days, const struct price_region *r, struct bill *out);
/* The cost of a keyspace in all of its Regions, each at its own prices: each Region takes every write
 * and stores every row; the reads are those of the first one. */
void bill_of_keyspace(const struct measure *m, const struct day *days, const struct prices *p,
                      const struct schema_keyspace *ks, struct bill *out);
