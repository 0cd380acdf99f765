#include "engine/rados/pool_counts.h"

#include <errno.h>

#include "base/clock.h"

const uint32_t eng_duration_bounds_us[ENG_DURATION_BOUNDS] = {
    500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000,
};

int64_t pool_began(struct pool_counts *c) {
    int64_t now_us = clock_machine_us(&clock_real), none = 0;
    atomic_fetch_add(&c->in_flight, 1);
    atomic_compare_exchange_strong(&c->silent_since_us, &none, now_us);
    return now_us;
}

void pool_ended(struct pool_counts *c, enum pool_use use, int64_t began_us, int rc) {
    struct pool_durations *d = &c->durations[use];
    int64_t us = clock_machine_us(&clock_real) - began_us;
    int i = 0;
    while (i < ENG_DURATION_BOUNDS && us > eng_duration_bounds_us[i]) i++;
    atomic_fetch_add(&d->n[i], 1);
    atomic_fetch_add(&d->sum_us, (uint64_t)us);
    atomic_fetch_sub(&c->in_flight, 1);
    if (rc == -ETIMEDOUT) atomic_fetch_add(&c->timeouts, 1);
    else atomic_store(&c->silent_since_us, 0);
    if (rc == -ECANCELED || rc == -EEXIST) atomic_fetch_add(&c->conflicts, 1);
    else if (rc < 0 && rc != -ENOENT && rc != -ETIMEDOUT) atomic_fetch_add(&c->failures, 1);
}

static uint64_t add_durations(const struct pool_durations *d, struct eng_durations *out) {
    uint64_t all = 0;
    for (int i = 0; i <= ENG_DURATION_BOUNDS; i++) all += out->n[i] = atomic_load(&d->n[i]);
    out->sum_us = atomic_load(&d->sum_us);
    return all;
}

void pool_figures(const struct pool_counts *c, struct eng_store_figures *out) {
    out->n[ENG_STORE_READS] = add_durations(&c->durations[POOL_READS], &out->reads);
    out->n[ENG_STORE_WRITES] = add_durations(&c->durations[POOL_WRITES], &out->writes);
    out->n[ENG_STORE_TIMEOUTS] = atomic_load(&c->timeouts);
    out->n[ENG_STORE_CONFLICTS] = atomic_load(&c->conflicts);
    out->n[ENG_STORE_FAILURES] = atomic_load(&c->failures);
    out->n[ENG_STORE_IN_FLIGHT] = atomic_load(&c->in_flight);
}

int64_t pool_silent_us(const struct pool_counts *c) {
    int64_t since_us = atomic_load(&c->silent_since_us);
    return since_us ? clock_machine_us(&clock_real) - since_us : 0;
}
