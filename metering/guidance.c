#include "metering/guidance.h"

static const struct {
    const char *name, *rating;
} classes[] = {
#define GUIDANCE_CLASS(id, name_, rating_) [GUIDANCE_##id] = {.name = name_, .rating = rating_},
#define GUIDANCE_GRANULARITY(id, name, keys, gains, costs)
#include "metering/guidance.def"
};

static const struct guidance_granularity_info granularities[] = {
#define GUIDANCE_CLASS(id, name, rating)
#define GUIDANCE_GRANULARITY(id, name_, keys_, gains_, costs_) \
    [GRANULARITY_##id] = {.name = name_, .keys = keys_, .gains = gains_, .costs = costs_},
#include "metering/guidance.def"
};

const char *guidance_class_name(enum guidance_class class) { return classes[class].name; }
const char *guidance_class_rating(enum guidance_class class) { return classes[class].rating; }

const struct guidance_granularity_info *guidance_granularity_info(enum guidance_granularity g) {
    return &granularities[g];
}
