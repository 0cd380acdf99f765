/* How long who syncs waits before. Private to engine/, under the lock of who uses it, pure.
 *
 * Clients that wait for each answer write again a moment after it. A sync that begins at once has
 * those who came during the last one; whoever was answered by that comes too late, waits for it,
 * and then for the next: two syncs a write. One that begins a moment later has all of them. So
 * after a sync (engi_gather_end) the next one waits until as many ask as it has answered and as
 * asked meanwhile, at most as long as a sync takes. Where they do not come back it begins at once
 * for some syncs, twice as many each time that it was waited in vain.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct engi_gather {
    uint64_t asked;       /* how many had asked for a sync, ever, when the last one began */
    uint64_t answered;    /* of them by the last one */
    uint64_t enough;      /* when so many have asked nobody is waited for; 0: nobody is */
    int64_t until_us;     /* nor from then on */
    int64_t sync_us;      /* what a sync mostly takes */
    uint32_t rest, rests; /* so many syncs more nobody is waited for; so many the last time */
};

/* Whether to wait still; asked: how many have asked, ever. */
bool engi_gather_waits(const struct engi_gather *g, uint64_t asked, int64_t now_us);
/* A sync begins, which will answer all that have asked. */
void engi_gather_begin(struct engi_gather *g, uint64_t asked);
/* It has ended, and has taken that long. */
void engi_gather_end(struct engi_gather *g, uint64_t asked, int64_t took_us, int64_t now_us);
