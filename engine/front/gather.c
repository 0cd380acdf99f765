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

/* A single long sync raises the estimate only a little. */
static int64_t typical(int64_t before_us, int64_t took_us) {
    if (!before_us) return took_us < SYNC_US_MAX ? took_us : SYNC_US_MAX;
    int64_t most = before_us * 2 < SYNC_US_MAX ? before_us * 2 : SYNC_US_MAX;
    return before_us + ((took_us < most ? took_us : most) - before_us) / 8;
}

void engi_gather_end(struct engi_gather *g, uint64_t asked, int64_t took_us, int64_t now_us) {
    g->sync_us = typical(g->sync_us, took_us);
    if (g->rest) {
        g->rest--;
        return;
    }
    uint64_t expected = g->answered + (asked - g->asked);
    if (expected < 2) return; /* a single client is not waited for */
    g->enough = g->asked + expected;
    g->until_us = now_us + g->sync_us;
}
