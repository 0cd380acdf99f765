#include "engine/front/gather.h"

enum { RESTS_MAX = 64, SYNC_US_MAX = 10000 };

bool engi_gather_waits(const struct engi_gather *g, uint64_t asked, int64_t now_us) {
    return asked < g->enough && now_us < g->until_us;
}

void engi_gather_begin(struct engi_gather *g, uint64_t asked) {
    /* A wait is not in vain if at least three quarters of the expected requests came. */
    bool came = (asked - g->asked) * 4 >= (g->enough - g->asked) * 3;
    if (g->enough && came) g->rests = 0;
    else if (g->enough) {
        g->rests = g->rests * 2 < RESTS_MAX ? g->rests * 2 + 1 : RESTS_MAX;
        g->rest = g->rests;
    }
    g->enough = 0;
    g->answered = asked - g->asked;
    g->asked = asked;
}

void engi_gather_end(struct engi_gather *g, uint64_t asked, int64_t took_us, int64_t now_us) {
    /* A single long sync raises the estimate only a little. */
    int64_t before_us = g->sync_us, most = before_us && before_us * 2 < SYNC_US_MAX ? before_us * 2 : SYNC_US_MAX;
    if (took_us > most) took_us = most;
    g->sync_us = before_us ? before_us + (took_us - before_us) / 8 : took_us;
    if (g->rest) {
        g->rest--;
        return;
    }
    uint64_t expected = g->answered + (asked - g->asked);
    if (expected < 2) return; /* a single client is not waited for */
    g->enough = g->asked + expected;
    g->until_us = now_us + g->sync_us;
}
