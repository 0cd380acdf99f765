#include "metering/limits/backoff.h"

int64_t backoff_ms(struct backoff_random *r, uint32_t x, int64_t minimum, int64_t delta, int64_t maximum) {
    enum { DOUBLINGS_MAX = 20 };
    int64_t low = delta * 8 / 10, width = delta * 12 / 10 - low + 1;
    /* SplitMix64, a published generator with 64 bits of state. */
    uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    int64_t jittered = low + (int64_t)((z ^ z >> 31) % (uint64_t)width);
    int64_t times = (INT64_C(1) << (x < DOUBLINGS_MAX ? x : DOUBLINGS_MAX)) - 1;
    int64_t y = minimum + jittered * times;
    return y < maximum ? y : maximum;
}
