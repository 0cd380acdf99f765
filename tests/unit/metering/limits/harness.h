/* A limiter on times of the test's own, with one table, number 1. */
#pragma once

#include "metering/limits/limiter.h"

enum { S = 1000000, NOON = 43200 };

struct world {
    struct limiter *l;
    uint32_t late;    /* of readings that come late: a random state */
    int64_t began_us; /* where its monotonic clock begins */
    struct limit_connection c;
    int64_t now_us;
    struct limit_verdict v;
};

/* Of limits as the option --limits has them. */
struct limiter_options options(const char *values);

/* It is noon. The test frees w->l. */
void open_world(struct world *w, const struct limiter_options *o);

/* As of a clock that nobody sets. */
void set_time(struct limiter *l, int64_t now_us);

/* Into w->v. After the newest reading of the clock comes an older one, up to 16 seconds late, as
 * from another thread. */
void ask_now(struct world *w, const struct limit_request *a);

/* Whether a statement with one part is let through; of table 1 where the part names none. */
bool ask(struct world *w, struct charge_item p);
bool writes(struct world *w, int64_t token, int64_t units);
bool reads(struct world *w, int64_t token, int64_t halves);

/* Brought up to date. */
const struct limit_table *table_now(struct world *w, uint32_t i);
