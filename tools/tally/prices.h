/* A dated table of prices: CSV with a line for each Region, either the built-in prices.csv or a file.
 * A price without a number is unknown, and so is every sum that includes it. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum price_item {
#define PRICE(id, column, what) PRICE_##id,
#include "tools/tally/price.def"
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

/* path NULL: the built-in prices. Returns -1 with ERR_CONFIG with file and line. */
int prices_read(struct arena *a, const char *path, struct prices *out, struct err *e) MUST_CHECK;
int prices_parse(struct arena *a, const char *path, struct slice text, struct prices *out, struct err *e) MUST_CHECK;
const struct price_region *prices_find(const struct prices *p, const char *region);
