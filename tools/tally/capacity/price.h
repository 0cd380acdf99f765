/* A dated table of prices, and what the tables cost in a month at these. The prices are CSV with a
 * line for each Region, either the built-in prices.csv or a file. A price without a number is
 * unknown, and so is every sum that includes it.
 */
#pragma once

#include "tools/tally/capacity/day.h"

enum price_item {
#define PRICE(id, column, what) PRICE_##id,
#include "tools/tally/capacity/price.def"
#undef PRICE
    PRICES
};
const char *price_column(enum price_item i);

struct price_region {
    const char *name;
    double of[PRICES]; /* US dollars; below 0: unknown */
};
struct prices {
    const char *path;
    char date[16];        /* 2025-11-05 */
    uint32_t date_line;
    int64_t date_s;
    uint32_t n;
    struct price_region *regions;
};

/* path NULL: the built-in prices. -1: ERR_CONFIG with file and line. */
int prices_read(struct arena *a, const char *path, struct prices *out, struct err *e) MUST_CHECK;
int prices_parse(struct arena *a, const char *path, struct slice text, struct prices *out, struct err *e) MUST_CHECK;
const struct price_region *prices_find(const struct prices *p, const char *region);

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
