#include "base/clock.h"

#include <time.h>

static int64_t read_us(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t real_wall(struct clock *c) {
    (void)c;
    return read_us(CLOCK_REALTIME);
}

static int64_t real_mono(struct clock *c) {
    (void)c;
    return read_us(CLOCK_MONOTONIC);
}

struct clock clock_real = {.wall_us = real_wall, .mono_us = real_mono};
