/* A dated table of prices: CSV, a line for each Region (prices.csv, which is part of the program,
 * or a file). What has no number in it is unknown, and so is every sum with it.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

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

/* path NULL: those that are part of the program. -1: ERR_CONFIG with file and line. */
int prices_read(struct arena *a, const char *path, struct prices *out, struct err *e) MUST_CHECK;
int prices_parse(struct arena *a, const char *path, struct slice text, struct prices *out, struct err *e) MUST_CHECK;
const struct price_region *prices_find(const struct prices *p, const char *region);
/* n of something at a price; unknown when the price is, unless there is none of it. */
double price_times(double price, double n);
