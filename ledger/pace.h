/* How much in the last whole second and the last whole minute: a few words a subject. Times come from the caller. */
#pragma once

#include <stdint.h>

struct pace {
    uint32_t second, minute; /* of the running counts, since 1970 */
    uint32_t in_second, last_second, in_minute, last_minute;
};

static inline void pace_roll(struct pace *p, uint32_t second) {
    if (p->second == second) return;
    p->last_second = p->second + 1 == second ? p->in_second : 0;
    p->in_second = 0;
    p->second = second;
    uint32_t minute = second / 60;
    if (p->minute == minute) return;
    p->last_minute = p->minute + 1 == minute ? p->in_minute : 0;
    p->in_minute = 0;
    p->minute = minute;
}

static inline void pace_add(struct pace *p, uint32_t second, uint32_t n) {
    pace_roll(p, second);
    p->in_second += n;
    p->in_minute += n;
}
