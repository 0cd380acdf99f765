/* The engine's counters. */
#pragma once

#include "engine/engine.h"

enum eng_stat {
#define STAT(id, name, scale, help) ENG_STAT_##id,
#include "engine/stat.def"
#undef STAT
    ENG_STATS
};
/* Any thread. */
uint64_t eng_stat(const struct eng *eng, enum eng_stat stat);

enum eng_store_stat {
#define STORE_STAT(id, name, help) ENG_STORE_##id,
#include "engine/store_stat.def"
#undef STORE_STAT
    ENG_STORE_STATS
};
/* Durations of operations, by the first bound that they do not exceed; the last place has those
 * above all bounds. */
enum { ENG_DURATION_BOUNDS = 14 };
extern const uint32_t eng_duration_bounds_us[ENG_DURATION_BOUNDS];
struct eng_durations {
    uint64_t n[ENG_DURATION_BOUNDS + 1];
    uint64_t sum_us;
};
struct eng_store_figures {
    uint64_t n[ENG_STORE_STATS];
    struct eng_durations reads, writes;
};
/* The figures of a remote store. false: the store is not remote. Waits for nothing. Any thread. */
bool eng_store_figures(const struct eng *eng, struct eng_store_figures *out);
