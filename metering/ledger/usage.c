#include "metering/ledger/usage.h"

void usage_turn(struct usage *u, uint32_t second) {
    for (int i = 0; i < USAGE_FIGURES; i++) u->before.n[i] += u->in_second.n[i];
    usage_window_add(&u->in_minute, &u->in_second);
    u->last_second = u->second + 1 == second ? u->in_second : (struct usage_window){0};
    u->in_second = (struct usage_window){0};
    u->second = second;
    if (u->minute == second / 60) return;
    u->last_minute = u->minute + 1 == second / 60 ? u->in_minute : (struct usage_window){0};
    u->in_minute = (struct usage_window){0};
    u->minute = second / 60;
}

void usage_merge(struct usage *to, const struct usage *from, uint32_t second) {
    struct usage f = *from;
    if (f.second > second) second = f.second;
    if (to->second > second) second = to->second;
    usage_roll(&f, second);
    usage_roll(to, second);
    usage_sums_add(&to->before, &f.before);
    usage_window_add(&to->in_second, &f.in_second);
    usage_window_add(&to->last_second, &f.last_second);
    usage_window_add(&to->in_minute, &f.in_minute);
    usage_window_add(&to->last_minute, &f.last_minute);
}

/* Lowers *n by at most by, and returns the part of by that exceeded *n. */
static uint64_t lessen(uint64_t *n, uint64_t by) {
    uint64_t taken = by < *n ? by : *n;
    *n -= taken;
    return by - taken;
}

static uint64_t window_lessen(uint32_t *n, uint64_t by) {
    uint64_t left = *n, rest = lessen(&left, by);
    *n = (uint32_t)left;
    return rest;
}

void usage_take_back(struct usage *u, uint32_t second, const struct usage_sums *what) {
    usage_roll(u, u->second > second ? u->second : second);
    for (int i = 0; i < USAGE_FIGURES; i++) {
        uint64_t rest = window_lessen(&u->in_second.n[i], what->n[i]);
        (void)lessen(&u->before.n[i], rest);
        (void)window_lessen(&u->last_second.n[i], rest);
        (void)window_lessen(&u->last_minute.n[i], window_lessen(&u->in_minute.n[i], rest));
    }
}
