/* How long to wait before the next try: y = min(zmin + rand(0.8 z, 1.2 z) * (2^x - 1), zmax), Azure
 * Storage's exponential retry ("RetryPolicies.RetryExponential Method",
 * https://msdn.microsoft.com/en-us/library/ee758587.aspx; its constants: limit.def). x counts the
 * tries that failed; all times in milliseconds. */
#pragma once

#include <stdint.h>

/* Jitter that a seed decides. */
struct backoff_random {
    uint64_t state;
};

int64_t backoff_ms(struct backoff_random *r, uint32_t x, int64_t minimum, int64_t delta, int64_t maximum);
