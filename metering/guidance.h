/* The words of Azure Table Storage's guidance for partitions (guidance.def): classes of reads with
 * their ratings, and the granularity of partition keys. The payload's query_class has four other
 * names (charge.h). */
#pragma once

#include "metering/size/op_cost.h"

enum guidance_granularity {
#define GUIDANCE_CLASS(id, name, rating)
#define GUIDANCE_GRANULARITY(id, name, keys, gains, costs) GRANULARITY_##id,
#include "metering/guidance.def"
    GRANULARITIES
};
/* A row of the table of granularity. */
struct guidance_granularity_info {
    const char *name, *keys, *gains, *costs;
};
const struct guidance_granularity_info *guidance_granularity_info(enum guidance_granularity g);
const char *guidance_class_name(enum guidance_class class);
const char *guidance_class_rating(enum guidance_class class);
